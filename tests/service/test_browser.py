"""The page in a real browser, fed by the demonstration. It also takes the pictures of the documentation:

DRIFTBANDIT_PICTURES=docs/service python -m pytest tests/service/test_browser.py
"""

import os
import shutil
import time
from pathlib import Path

import pytest

from driftbandit.service.auth import Keys

sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright drives the browser")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PICTURES = os.environ.get("DRIFTBANDIT_PICTURES")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium, or put one on the path"),
]
HOSTILE = "<img src=x onerror=\"document.title='hit'\">"


def pay(served, name, count, reward):
    """Decisions of a bandit, fifty at a time, each rewarded."""
    for _ in range(0, count, 50):
        made = served.post(f"/v1/bandits/{name}/decisions/batch", {"count": 50}).json()["decisions"]
        paid = [{"id": one["id"], "reward": reward(one["arm"])} for one in made]
        assert served.post(f"/v1/bandits/{name}/rewards/batch", {"rewards": paid}).status_code == 200


@pytest.fixture(scope="module")
def demo():
    """The demonstration, with a bandit whose arms' names are hostile next to it."""
    from service.conftest import Served

    served = Served("demo", "--port", 0)
    arms = [HOSTILE, "\"'><script>document.title='hit'</script>", "plain"]
    served.post("/v1/bandits", {"name": "headline", "policy": "ts", "reward_range": [0, 1], "arms": arms})
    pay(served, "headline", 300, lambda arm: 0.5)
    served.post("/v1/bandits", {"name": "empty", "policy": "ds-ts", "arms": ["a", "b"], "half_life": "1 h"})
    many = [f"headline number {n}" for n in range(50)]
    served.post("/v1/bandits", {"name": "many", "policy": "ts", "reward_range": [0, 1], "arms": many})
    pay(served, "many", 1000, lambda arm: 0.4 + 0.004 * int(arm.split()[-1]))
    time.sleep(110 if PICTURES else 6)
    yield served
    served.stop()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, demo):
    """Open a page; at the end nothing was complained about, and no other host was asked."""
    contexts, complaints, hosts = [], [], set()

    def open_page(path, width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: complaints.append(message.text) if is_complaint(message) else 0)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
        page.goto(demo.url + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert hosts == {demo.url.split("/")[2]}


def is_complaint(message):
    """Errors and warnings, but for the one about our own looks at the points of a drawing."""
    return message.type in ("error", "warning") and "getImageData" not in message.text


def until(page, expression, seconds=30):
    """Wait for something to become true. Not wait_for_function: it needs eval, which the page forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


SPAN = "(() => { const at = document.getElementById('range').dataset; return at.until - at.since; })()"


def drawn(page):
    """Wait until the charts are there."""
    until(page, "Number(document.body.dataset.drawn) >= 1")
    return page


def coloured(page, chart):
    """How many points of a drawing have a distinct colour: neither grey nor transparent."""
    return page.evaluate(
        """(id) => {
          const canvas = document.querySelector(`#${id} canvas`);
          const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          let count = 0;
          for (let i = 0; i < data.length; i += 4)
          {
            const [r, g, b, opaque] = data.slice(i, i + 4);
            if (opaque > 200 && Math.max(r, g, b) - Math.min(r, g, b) > 60) count++;
          }
          return count;
        }""",
        chart,
    )


def picture(page, name, **more):
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{PICTURES}/{name}.png", **more)


def test_all_bandits_are_listed_with_their_leaders(visit):
    page = visit("/")
    rows = page.locator("table.overview tbody tr")
    assert rows.count() == 7
    page.wait_for_selector(".spark polygon")
    assert "%" in rows.first.locator("td").nth(1).inner_text()
    page.wait_for_timeout(3500)  # brought up to date by the script
    assert page.locator("table.overview tbody tr").count() == 7


@pytest.mark.parametrize("name", ["abrupt", "smooth"])
def test_every_chart_of_every_bandit_of_the_demonstration_has_data(visit, demo, name):
    page = drawn(visit(f"/bandits/{name}"))
    for chart in ("shares", "beliefs", "densities", "weights", "delays"):
        assert int(page.locator(f"#{chart}").get_attribute("data-points")) > 3, chart
        assert coloured(page, chart) > 100, chart
    assert page.locator("#recent tbody tr").count() == 15
    arms = demo.get(f"/v1/bandits/{name}").json()["arms"]
    assert page.locator("#arms tbody tr").count() == len(arms)
    assert "create" in page.locator("#changes tbody").inner_text()
    until(page, "document.getElementById('uplift').innerText.includes('held back')")
    if name == "abrupt":  # the default policy is the first that is seen
        assert "DriftAuto()" in page.locator("#about").inner_text()
        until(page, "document.getElementById('explanation').innerText.includes('The environment')")
        picture(page, "bandit", clip={"x": 0, "y": 0, "width": 1280, "height": 1330}, full_page=True)


def test_arms_have_counts_a_rate_and_a_share_and_one_that_is_back_is_listed_once(visit, demo):
    demo.post("/v1/bandits", {"name": "counted", "arms": ["left", "right"], "seed": 3})
    pay(demo, "counted", 200, lambda arm: 1.0 if arm == "left" else 0.25)
    demo.post("/v1/bandits/counted/arms/retire", {"arm": "right"})
    demo.post("/v1/bandits/counted/arms", {"arm": "right"})
    pay(demo, "counted", 50, lambda arm: 1.0 if arm == "left" else 0.25)
    page = drawn(visit("/bandits/counted"))
    assert page.locator("#legend label").all_inner_texts() == ["left", "right"]
    rows = [row.split("\t") for row in page.locator("#arms tbody tr").all_inner_texts()]
    assert [row[0] for row in rows] == ["left", "right"]
    shown = [int(row[1]) for row in rows]
    assert sum(shown) == 250
    assert [int(row[2]) for row in rows] == shown
    assert [float(row[3]) for row in rows] == [1.0, 0.25]
    assert [row[4] for row in rows] == [f"{count / 2.5:.1f}%" for count in shown]


def test_a_change_is_a_line_on_the_time_axis_explained_when_pointed_at(visit, demo):
    demo.post("/v1/bandits/headline/fix", {"arm": "plain", "who": "test"})
    demo.post("/v1/bandits/headline/release")
    page = drawn(visit("/bandits/headline"))
    page.get_by_role("button", name="Pause").click()
    assert "fix plain" in page.locator("#changes tbody").inner_text()
    at = demo.get("/v1/bandits/headline/changes").json()["changes"][-2]["at"]
    since, end = (int(page.locator("#range").get_attribute(f"data-{name}")) for name in ("since", "until"))
    share = (at - since) / (end - since)
    box = page.locator("#shares .u-over").bounding_box()
    page.mouse.move(box["x"] + share * box["width"] - 2, box["y"] + 0.5 * box["height"])
    until(page, "document.querySelector('#shares .tip').innerText.includes('fix plain')")


def test_a_bandit_without_decisions_is_shown_as_such(visit):
    page = drawn(visit("/bandits/empty"))
    assert "No decisions" in page.locator("#shares").inner_text()
    assert page.locator("#recent tbody").inner_text().strip() == "No decisions yet."
    assert page.locator("#arms tbody tr").count() == 2
    page = visit("/")
    assert page.get_by_role("link", name="empty").count() == 1


def test_fifty_arms_are_shown_without_burying_the_charts(visit):
    page = drawn(visit("/bandits/many", width=400))
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.locator("#legend input").count() == 50
    assert page.locator("#legend input:checked").count() == 8
    top = page.locator("#shares").bounding_box()["y"]
    assert top < 900
    assert page.locator("#arms tbody tr").count() == 50
    assert "other arms" in page.locator("#shares").inner_text()


def test_the_charts_follow_what_happens(visit):
    page = drawn(visit("/bandits/abrupt"))
    before = int(page.evaluate("document.body.dataset.drawn"))
    until(page, f"Number(document.body.dataset.drawn) > {before}")
    page.get_by_role("button", name="Pause").click()
    assert page.get_by_role("button", name="Pause").get_attribute("aria-pressed") == "true"


def test_a_range_is_chosen_by_dragging_and_by_buttons(visit):
    page = drawn(visit("/bandits/abrupt"))
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(500)
    wide = page.evaluate(SPAN)
    box = page.locator("#beliefs .u-over").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], middle, steps=5)
    page.mouse.move(box["x"] + 0.7 * box["width"], middle, steps=5)
    page.mouse.up()
    until(page, f"{SPAN} < {0.6 * wide}")
    narrow = page.evaluate(SPAN)
    assert narrow == pytest.approx(0.4 * wide, rel=0.1)
    page.get_by_role("button", name="1 h", exact=True).focus()
    page.keyboard.press("Enter")
    until(page, f"{SPAN} > 3.5e9")
    assert page.get_by_role("button", name="1 h", exact=True).get_attribute("aria-pressed") == "true"


def test_why_a_decision_and_the_audit(visit):
    page = drawn(visit("/bandits/abrupt"))
    page.get_by_role("button", name="Why?").first.click()
    until(page, "document.querySelector('.why')?.innerText.includes('Proved again')")
    assert "probability" in page.locator(".why").first.inner_text()
    page = drawn(visit("/bandits/headline"))  # no decisions are made there, so that the audit ends soon
    page.get_by_role("button", name="Prove every decision again").click()
    until(page, "document.getElementById('audit').innerText.startsWith('Proved:')", seconds=120)


def test_an_arm_is_fixed_after_a_confirmation_and_its_record_is_shown(visit, demo):
    page = drawn(visit("/bandits/smooth"))
    page.locator("form[data-action=fix] select").select_option(label="place 2")
    page.get_by_role("button", name="Play this arm only").click()
    dialog = page.get_by_role("dialog")
    assert "place 2" in dialog.inner_text()
    page.keyboard.press("Escape")  # no
    assert demo.get("/v1/bandits/smooth").json()["fixed"] is None
    page.get_by_role("button", name="Play this arm only").click()
    page.get_by_role("button", name="Do it").click()
    until(page, "document.getElementById('notice').innerText.includes('fix place 2 by local: page')")
    assert demo.get("/v1/bandits/smooth").json()["fixed"] == "place 2"
    page.get_by_role("button", name="Let the policy choose again").click()
    page.get_by_role("button", name="Do it").click()
    until(page, "document.getElementById('notice').innerText.includes('release')")
    page = drawn(visit("/bandits/empty"))
    page.locator("form[data-action=half_life] input").fill("2 h")
    page.get_by_role("button", name="Set the half-life").click()
    page.get_by_role("button", name="Do it").click()
    until(page, "document.getElementById('notice').innerText.includes('half_life 1 h -> 2 h')")
    assert demo.get("/v1/bandits/empty").json()["half_life"] == "2 h"


def test_arms_are_added_and_retired(visit, demo):
    page = drawn(visit("/bandits/headline"))
    page.locator("form[data-action=add_arm] input[name=name]").fill("<b>new</b>")
    page.get_by_role("button", name="Add this arm").click()
    page.get_by_role("button", name="Do it").click()
    until(page, "document.getElementById('notice').innerText.includes('add_arm')")
    page.locator("form[data-action=retire_arm] select").select_option(label="<b>new</b>")
    page.get_by_role("button", name="Retire this arm").click()
    page.get_by_role("button", name="Do it").click()
    until(page, "document.getElementById('notice').innerText.includes('retire_arm')")
    assert demo.get("/v1/bandits/headline").json()["retired"] == ["<b>new</b>"]


def test_a_hostile_name_is_only_a_name(visit):
    for path in ("/", "/bandits/headline"):
        page = visit(path)
        if path != "/":
            drawn(page)
            page.hover("#shares .u-over")
            page.get_by_role("button", name="Why?").first.click()
            until(page, "document.querySelector('.why')?.innerText.includes('probability')")
            assert HOSTILE in page.locator("#legend").inner_text()
        page.wait_for_timeout(500)
        assert page.title() != "hit"
        assert page.locator("img").count() == 0


def test_shares_are_drawn_where_every_other_interval_has_no_decision(visit):
    """Coloured columns, not only the edges of intervals: the bandit makes a decision about every four seconds."""
    page = visit("/bandits/banner")
    page.click("button:has-text('All')")
    until(page, "Number(document.body.dataset.drawn) >= 2")
    assert coloured(page, "shares") > 2000


def test_dark_is_dark(visit):
    page = drawn(visit("/bandits/abrupt", scheme="dark"))
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, back[4:-1].split(", "))) < 60
    text = page.evaluate("getComputedStyle(document.body).color")
    assert min(map(int, text[4:-1].split(", "))) > 180
    assert coloured(page, "shares") > 100


@pytest.mark.parametrize("path", ["/", "/bandits/headline", "/api"])
def test_at_400_pixels_nothing_sticks_out(visit, path):
    page = visit(path, width=400)
    if "bandits/" in path:
        drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_everything_can_be_reached_by_keyboard(visit):
    page = drawn(visit("/bandits/smooth"))
    page.get_by_role("button", name="Pause").click()
    wanted = {"5 min", "Why?", "Prove every decision again", "Play this arm only"}
    page.locator("body").focus()
    for _ in range(120):
        page.keyboard.press("Tab")
        wanted.discard(page.evaluate("document.activeElement.innerText || ''"))
        if not wanted:
            break
    assert not wanted


def test_the_api_page_shows_every_operation(visit):
    page = visit("/api")
    page.locator("summary").nth(1).click()
    assert page.locator("details.operation").count() >= 20


def test_people_sign_in_change_a_bandit_and_sign_out_and_other_sites_cannot(browser, serve, tmp_path):
    """In a browser, whose headers no test can make up: what it sends as Origin depends on our own headers."""
    keys = Keys(tmp_path / "keys.json")
    boss = keys.add("boss", ["admin", "read", "decide", "reward"])
    served = serve(tmp_path / "journal.db", "--keys", keys.path)
    bearer = {"headers": {"authorization": f"Bearer {boss}"}}
    served.post("/v1/bandits", {"name": "button", "arms": ["red", "green"]}, **bearer)
    page = browser.new_context().new_page()
    page.set_default_timeout(30_000)

    def sign_in(key):
        page.locator("input[name=key]").fill(key)
        page.get_by_role("button", name="Open").click()

    page.goto(served.url + "/bandits/button")
    sign_in("drb_00000000_wrong")
    page.get_by_text("not one of our keys").wait_for()
    page.goto(served.url + "/bandits/button")
    sign_in(boss)
    page.get_by_role("heading", name="button").wait_for()  # and one is back where one wanted to go
    drawn(page)
    page.locator("form[data-action=fix] select").select_option(label="green")
    page.get_by_role("button", name="Play this arm only").click()
    page.get_by_role("button", name="Do it").click()
    until(page, "document.getElementById('notice').innerText.includes('fix green by boss: page')")

    def foreign(path):
        """A page of another site that sends a form here at once."""
        form = f'<form method=post action="{served.url}/{path}"><input name=key value="{boss}"></form>'
        text = form + "<script>document.forms[0].submit()</script>"
        return lambda route: route.fulfill(body=text, content_type="text/html")

    for path in ("login", "logout", "v1/bandits/button/release", "v1/bandits/button/unarchive"):
        other = page.context.new_page()
        other.route("http://evil.example/", foreign(path))
        other.goto("http://evil.example/", wait_until="commit")
        other.wait_for_url(f"{served.url}/{path}")
        assert "another site" in other.locator("body").inner_text()
        other.close()
    assert served.get("/v1/bandits/button", **bearer).json()["fixed"] == "green"
    page.goto(served.url + "/")
    page.get_by_role("link", name="button").wait_for()  # still signed in
    page.get_by_role("button", name="Sign out").click()
    page.get_by_text("This service needs a key").wait_for()
    page.goto(served.url + "/bandits/button")
    page.get_by_text("This service needs a key").wait_for()
    page.context.close()
