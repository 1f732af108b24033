"""The index and the page with sliders, in a real browser: by keyboard, on a narrow page, asking no other host."""

import shutil

import pytest

from driftbandit.policies import BetaTS, DiscountedTS, Oracle
from tools.site import behaviour, index, sliders
from tools.site.environments import as_its_theory_says, small_environments

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def page():
    complaints = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 400, "height": 800})
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith("file:") else complaints.append(asked.url))
        yield page
        browser.close()
    assert complaints == []


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_index_is_sorted_and_filtered_by_keyboard(page, tmp_path):
    markdown = pytest.importorskip("markdown_it")
    environments = small_environments(quick=True)
    ts = behaviour.behaviour(BetaTS, quick=True)
    rows = []
    for cls in (Oracle, DiscountedTS, BetaTS):
        policy = as_its_theory_says(cls, environments[0].environment)
        rows.append(index.row(cls, policy, ts, ts, environments))
    index.write(rows, tmp_path)
    text = (tmp_path / "index.md").read_text()
    parts = text.split("````")[1].removeprefix("{container} policy-table\n")
    html = markdown.MarkdownIt().enable("table").render(parts)
    blocks = [part.split("```")[0] for part in text.split("```{raw} html\n")[1:]]
    whole = f"<!doctype html><meta charset=utf-8>{blocks[0]}<div class='policy-table'>{html}</div>{blocks[1]}"
    (tmp_path / "index.html").write_text(whole)
    page.goto((tmp_path / "index.html").as_uri())

    def names():
        return page.locator(".policy-table tbody tr:visible td:first-child").all_inner_texts()

    assert names() == ["ds-ts", "oracle", "ts"]
    heading = page.get_by_role("button", name="ns", exact=True)
    heading.focus()
    page.keyboard.press("Enter")
    assert names() == ["oracle", "ds-ts", "ts"]
    page.keyboard.press("Enter")
    assert names() == ["ts", "ds-ts", "oracle"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("ns")
    page.get_by_role("searchbox").fill("GAMMA")
    assert names() == ["ds-ts"]
    assert page.locator(".policy-filter output").inner_text() == "1 of 3"
    page.get_by_role("searchbox").fill("")
    page.get_by_label("needs no facts").focus()
    page.keyboard.press("Space")
    assert names() == ["ts"]


def test_the_sliders_move_by_keyboard_and_the_run_plays(page, tmp_path):
    sliders.save(tmp_path, quick=True)
    page.goto((tmp_path / "forgetting.html").as_uri())
    assert fits(page)
    chart = page.locator(".forgetting-chart")
    before = chart.inner_html()
    gamma = page.get_by_label("gamma")
    assert page.locator(".forgetting-gamma + output").inner_text() == "0.98"
    gamma.focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator(".forgetting-gamma + output").inner_text() == "0.95"
    assert gamma.get_attribute("aria-valuetext") == "0.95"
    assert chart.inner_html() != before
    page.get_by_role("button", name="Play").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("Number(document.querySelector('.forgetting-round').value) > 3")
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="Play").is_visible()
    shown = page.locator(".forgetting-words").inner_text()
    assert shown.startswith(f"Round {page.locator('.forgetting-round').input_value()}: ")
