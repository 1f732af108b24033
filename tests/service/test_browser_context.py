"""The page of a bandit with features in a real browser."""

import random
import time

import pytest

from service.test_browser import (  # noqa: F401  # the fixtures
    CHROMIUM,
    PICTURES,
    browser,
    drawn,
    is_complaint,
    picture,
    sync_api,
    until,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium, or put one on the path"),
]
BEST = {"mobile": "red", "desktop": "green"}
HOSTILE = "<img src=x onerror=\"document.title='hit'\">"
FEATURES = {"device": ["mobile", "desktop", HOSTILE], "member": "flag", "basket": "number", "hour": "hour of day"}


@pytest.fixture(scope="module")
def shop():
    """The demonstration, with a bandit whose best arm depends on the device, and one with candidates."""
    from service.conftest import Served

    served, chance = Served("demo", "--port", 0), random.Random(1)
    made = {"name": "offers", "features": {"price": "number", "new": "flag"}, "candidates": True}
    assert served.post("/v1/bandits", made).status_code == 201
    made = {"name": "shop", "policy": "lin-ts", "arms": ["red", "green", "blue"], "features": FEATURES}
    assert served.post("/v1/bandits", made).status_code == 201
    for _ in range(6):
        contexts = [
            {"device": chance.choice(list(BEST)), "member": chance.random() < 0.5, "basket": 10.0} for _ in range(50)
        ]
        decided = served.post("/v1/bandits/shop/decisions/batch", {"count": 50, "context": contexts}).json()[
            "decisions"
        ]
        rewards = [
            {"id": one["id"], "reward": 3.0 * (one["arm"] == BEST[context["device"]]) + chance.random()}
            for one, context in zip(decided, contexts, strict=True)
        ]
        assert served.post("/v1/bandits/shop/rewards/batch", {"rewards": rewards}).status_code == 200
        among = [{f"o{n}": {"price": chance.uniform(1.0, 9.0), "new": n == 1} for n in range(3)} for _ in range(50)]
        decided = served.post("/v1/bandits/offers/decisions/batch", {"count": 50, "candidates": among}).json()[
            "decisions"
        ]
        rewards = [
            {"id": one["id"], "reward": 10.0 - offers[one["arm"]]["price"]}
            for one, offers in zip(decided, among, strict=True)
        ]
        assert served.post("/v1/bandits/offers/rewards/batch", {"rewards": rewards}).status_code == 200
    time.sleep(110 if PICTURES else 0)
    yield served
    served.stop()


@pytest.fixture
def visit(browser, shop):  # noqa: F811
    contexts, complaints = [], []

    def open_page(name, width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: complaints.append(message.text) if is_complaint(message) else 0)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{shop.url}/bandits/{name}")
        drawn(page)
        until(page, "document.getElementById('context').dataset.drawn === 'yes'")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def test_what_matters_is_shown_in_words_numbers_and_a_map(visit):
    page = visit("shop")
    assert "features device, member, basket, hour" in page.locator("#about").inner_text()
    words = page.locator("#matters").inner_text()
    assert "With device mobile, red earns" in words
    assert "No effect on the choice is visible so far of" in words
    assert "better than always playing" in page.locator("#gain").inner_text()
    assert page.locator("#gain svg").count() == 1
    rows = page.locator("#best tbody tr")
    assert [rows.nth(n).locator("td").last.inner_text().split(",")[0] for n in (0, 1)] == ["red", "green"]
    assert rows.first.locator("rect").count() == 24
    colours = [rows.nth(n).locator("rect").first.get_attribute("fill") for n in (0, 1)]
    assert colours[0] != colours[1]
    assert "±" in page.locator("#effects tbody").inner_text()
    assert page.title() != "hit"
    assert page.locator("img").count() == 0
    picture(page, "context")


def test_a_context_is_asked_about_with_inputs(visit):
    page = visit("shop")
    for level, best in BEST.items():
        page.select_option("#what-if select[name=device]", label=level)
        page.fill("#what-if input[name=basket]", "10")
        page.get_by_role("button", name="Ask").click()
        until(page, f"document.querySelector('#asked tbody tr')?.innerText.startsWith('{best}')")
        until(page, f"document.getElementById('greedy').innerText === '{best}'")


def test_candidates_have_effects_and_no_arms_to_change(visit):
    page = visit("offers")
    assert "candidates with each request" in page.locator("#about").inner_text()
    assert "a candidate earns" in page.locator("#matters").inner_text()
    assert page.locator("#best").count() == page.locator("form[data-action=fix]").count() == 0
    assert page.locator("#greedy").count() == 0  # it needs candidates
    page.fill("#what-if input[name=price]", "2")
    page.get_by_role("button", name="Ask").click()
    until(page, "/^(7|8)/.test(document.querySelector('#asked tbody td:nth-child(3)')?.innerText)")


@pytest.mark.parametrize("name", ["shop", "offers", "banner"])
def test_it_fits_400_pixels_and_is_dark_where_wanted(visit, name):
    page = visit(name, width=400, scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    back = page.evaluate("getComputedStyle(document.getElementById('context')).backgroundColor")
    assert max(map(int, back[4:-1].split(", "))) < 60
