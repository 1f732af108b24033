"""What an administrator does on the page in a real browser: greedy answers, arms with a past, erasing, archiving."""

import pytest

from driftbandit.service.auth import Keys
from service import test_browser
from service.test_browser import drawn, pay, until

browser, demo, visit = test_browser.browser, test_browser.demo, test_browser.visit  # the fixtures
pytestmark = test_browser.pytestmark
NOTICE = "document.getElementById('notice').innerText"


def do(page, button):
    page.get_by_role("button", name=button).click()
    page.get_by_role("button", name="Do it").click()


def test_the_greedy_answer_is_shown_and_records_nothing(visit, demo):
    demo.post("/v1/bandits", {"name": "preview", "policy": "ts", "reward_range": [0, 1], "arms": ["red", "green"]})
    pay(demo, "preview", 100, lambda arm: float(arm == "green"))
    decisions = demo.get("/v1/bandits/preview/health").json()["decisions"]
    page = drawn(visit("/bandits/preview"))
    until(page, "document.getElementById('greedy').innerText === 'green'")
    demo.post("/v1/bandits/preview/fix", {"arm": "red"})
    until(page, "document.getElementById('greedy').innerText === 'red'")
    assert demo.get("/v1/bandits/preview/health").json()["decisions"] == decisions


def test_an_arm_is_added_with_a_past(visit, demo):
    demo.post("/v1/bandits", {"name": "past", "policy": "ts", "reward_range": [0, 1], "arms": ["red", "green"]})
    pay(demo, "past", 200, lambda arm: 1.0 if arm == "red" else 0.2)
    page = drawn(visit("/bandits/past"))
    form = page.locator("form[data-action=add_arm]")
    form.locator("input[name=name]").fill("pink")
    form.locator("select").select_option(label="like red")
    page.get_by_role("button", name="Add this arm").click()
    assert "It begins like “red”." in page.get_by_role("dialog").inner_text()
    page.get_by_role("button", name="Do it").click()
    until(page, f"{NOTICE}.includes('add_arm pink')")
    assert form.locator("select").input_value() == ""  # the form is empty again, and offers the new arm
    form.locator("select").select_option(label="like pink")
    form.locator("select").select_option(label="nothing known, or a mean")
    form.locator("input[name=name]").fill("blue")
    form.locator("input[name=mean]").fill("0.03")
    form.locator("input[name=worth]").fill("200")
    page.get_by_role("button", name="Add this arm").click()
    assert "a mean of 0.03, worth 200 observations" in page.get_by_role("dialog").inner_text()
    page.get_by_role("button", name="Do it").click()
    until(page, f"{NOTICE}.includes('add_arm blue')")
    means = {row["arm"]: row["mean"] for row in demo.get("/v1/bandits/past/arms").json()["arms"]}
    assert means["pink"] > 0.9
    assert means["blue"] == pytest.approx(0.03, abs=0.01)


def test_parts_of_a_reward_are_shown_while_they_add_up(visit, demo):
    demo.post("/v1/bandits", {"name": "basket", "arms": ["a", "b"], "wait": "1 h", "default": 0})
    id = demo.post("/v1/bandits/basket/decisions").json()["id"]
    for part, value in (("basket", 0.25), ("order", 1.0)):
        demo.post("/v1/bandits/basket/rewards", {"id": id, "reward": value, "add": True, "part": part})
    page = drawn(visit("/bandits/basket"))
    until(page, "document.querySelector('#recent tbody').innerText.includes('1.25 (added so far)')")


def test_an_id_is_erased_after_a_confirmation_and_only_once(visit, demo):
    for n in range(3):
        demo.post("/v1/bandits/empty/decisions", {"id": f"customer-{n}"})
    page = drawn(visit("/bandits/empty"))
    assert "customer-1" in page.locator("#recent").inner_text()
    page.locator("form[data-action=erase] input").fill("customer-1")
    page.get_by_role("button", name="Erase this id").click()
    assert "cannot be undone" in page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")  # no
    assert demo.get("/v1/bandits/empty/decisions/customer-1").json()["decision"]["id"] == "customer-1"
    do(page, "Erase this id")
    until(page, f"{NOTICE}.includes('Written to the journal: erase')")
    until(page, "!document.getElementById('recent').innerText.includes('customer-1')")
    assert "customer-2" in page.locator("#recent").inner_text()
    assert demo.get("/v1/bandits/empty/decisions/customer-1").status_code == 404
    page.locator("form[data-action=erase] input").fill("customer-1")
    do(page, "Erase this id")
    until(page, f"{NOTICE}.includes('had been erased before')")


def test_a_bandit_is_archived_listed_and_taken_back(visit, demo):
    demo.post("/v1/bandits", {"name": "gone", "arms": ["a", "b"]})
    page = drawn(visit("/bandits/gone"))
    assert page.locator("p[data-archived]").is_hidden()
    page.get_by_role("button", name="Archive this bandit").click()
    assert "within a day" in page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")  # no
    assert demo.post("/v1/bandits/gone/decisions").status_code == 200
    do(page, "Archive this bandit")
    until(page, f"{NOTICE}.includes('archived no ->')")
    assert demo.post("/v1/bandits/gone/decisions").status_code == 410
    assert page.locator("p[data-archived]").is_visible()
    assert page.get_by_role("button", name="Archive this bandit").count() == 0
    page = visit("/")
    assert page.get_by_role("link", name="gone", exact=True).count() == 0
    page.get_by_role("link", name="Archived bandits").click()
    page.get_by_role("heading", name="Archived bandits").wait_for()
    page.wait_for_timeout(3500)  # brought up to date by the script: still the archived ones
    assert page.locator("table.overview tbody tr").count() == 1
    page.get_by_role("link", name="gone", exact=True).click()
    page.get_by_role("heading", name="Change it").wait_for()
    drawn(page)
    assert page.locator("p[data-archived]").is_visible()
    do(page, "Let it decide again")
    until(page, f"{NOTICE}.includes('-> no')")
    assert demo.post("/v1/bandits/gone/decisions").status_code == 200
    page.goto(demo.url + "/?archived=true")
    assert "No bandit is archived." in page.locator("#bandits").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_at_400_pixels_an_archived_bandit_and_its_forms_fit(visit, demo, scheme):
    page = drawn(visit("/bandits/many", width=400, scheme=scheme))
    widest = "Math.max(...[...document.querySelectorAll('#admin *')].map((one) => one.getBoundingClientRect().right))"
    assert page.evaluate(widest) <= 400
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page = visit("/?archived=true", width=400, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_key_that_only_reads_is_offered_nothing(browser, serve, tmp_path):
    keys = Keys(tmp_path / "keys.json")
    boss, reader, decider = (keys.add(n, scopes) for n, scopes in
                             (("boss", ["admin", "read"]), ("ann", ["read"]), ("bob", ["read", "decide"])))  # fmt: skip
    served = serve(tmp_path / "journal.db", "--keys", keys.path)
    bearer = {"headers": {"authorization": f"Bearer {boss}"}}
    served.post("/v1/bandits", {"name": "button", "arms": ["red", "green"]}, **bearer)
    for key, forms, greedy in ((boss, 7, 0), (reader, 0, 0), (decider, 0, 1)):
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.goto(served.url + "/bandits/button")
        page.locator("input[name=key]").fill(key)
        page.get_by_role("button", name="Open").click()
        page.get_by_role("heading", name="Recent decisions").wait_for()
        drawn(page)
        assert page.locator("#admin form").count() == forms
        assert page.locator("#greedy").count() == greedy
        refused = page.evaluate(
            "async () => (await fetch('/v1/bandits/button/decisions/x', { method: 'DELETE', body: '{}' })).status"
        )
        assert refused == (404 if key == boss else 403)
        context.close()
