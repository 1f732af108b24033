"""The README's example prints something, and every link between pages leads somewhere."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MADE = ("api", "policies", "command-line.md", "http-api.md")  # by `make docs`, below docs/reference
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PAGES = [page for page in PAGES if not {*MADE, "_made"} & set(page.relative_to(ROOT).parts)]

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the pages are not part of the source archive")


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_the_examples_of_a_page_run(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the README's makes a journal
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_picture_of_a_page_exists(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_the_readme_quotes_the_speed_that_was_measured():
    rows = json.loads((ROOT / "docs/speed/speed.json").read_text(encoding="utf-8"))["policies"]
    for name in ("ds-ts", "sw-ts", "d-ucb"):
        ns = {row["n_arms"]: row["ns"] for row in rows if row["policy"] == name and row["lockstep"]}
        assert f"{ns[5]:.0f}, {ns[10]:.0f} and {ns[30]:.0f}" in (ROOT / "README.md").read_text(encoding="utf-8"), name


def test_the_readmes_table_has_the_numbers_that_were_measured():
    data = json.loads((ROOT / "docs/speed/speed.json").read_text(encoding="utf-8"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    chosen = {
        "driftbandit": "ds-ts",
        "river": "UCB, EWMean",
        "pymab": "discounted Thompson",
        "mabwiser": "Thompson (never forgets)",
        "bayesianbandits": "Dirichlet, decay to the prior",
    }
    for row in data["peers"]:
        if row["kind"] == "world" and row["n_arms"] == 10 and chosen.get(row["library"]) == row["policy"]:
            assert f"{sum(row['regrets']) / len(row['regrets']):.0f}" in text
            us = row["cpu"] * 1e6
            assert f"{us:.3f} µs" in text if us < 1 else f"{us:.1f} µs" in text or f"{us:.0f} µs" in text
    for row in data["live"]:
        if row["n_arms"] == 10 and row["policy"] in ("ds-ts, interpreted", "UCB, EWMean", "discounted Thompson"):
            assert f"{row['us']:.1f} µs" in text
