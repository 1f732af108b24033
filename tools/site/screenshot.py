"""Pictures of the service's page, of the demonstration's bandits after a minute and a half:
`python -m tools.site.screenshot` writes docs/service/bandit.png, and further ones (what matters in a context,
dark, and 400 px wide) below build/screenshots. It needs Chromium."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SERVICE, LOOK = ROOT / "docs/service", ROOT / "build/screenshots"
SECONDS = 95  # of traffic: three changes
SHOTS: dict[Path, tuple[Any, ...]] = {  # file: page of which bandit, width, height, colour scheme, part of the page
    SERVICE / "bandit.png": ("abrupt", 1280, 1500, "light"),
    LOOK / "context.png": ("banner", 1000, 1500, "light", "#context"),
    LOOK / "bandit-dark.png": ("abrupt", 1280, 1500, "dark"),
    LOOK / "bandit-narrow.png": ("abrupt", 400, 2600, "light"),
    LOOK / "context-narrow-dark.png": ("banner", 400, 2600, "dark"),
}


def main() -> None:
    """Start the demonstration, wait, and take the pictures."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("The pictures need Chromium; install it with your system's packages, e.g. chromium.")
    LOOK.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "driftbandit", "demo", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as demo, sync_playwright() as playwright:
        assert demo.stdout is not None
        found: Any = re.search(r"http://[\d.:]+", demo.stdout.readline())
        time.sleep(SECONDS)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for path, (name, width, height, scheme, *part) in SHOTS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(f"{found[0]}/bandits/{name}")
            page.wait_for_timeout(4000)
            (page.locator(*part) if part else page).screenshot(path=path)
            Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)  # a third of the size
        browser.close()
        demo.terminate()


if __name__ == "__main__":
    main()
