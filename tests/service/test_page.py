"""The page without a browser: what is vendored, how HTML is built, watching, the demonstration."""

import hashlib
import re
import sqlite3
import time
from importlib import resources

import pytest

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit
from driftbandit.service.pages import draw_shares

STATIC = resources.files("driftbandit.service") / "static"


def test_what_is_vendored_is_unchanged():
    rows = re.findall(r"\| (\S+) \| `([0-9a-f]{64})` \|", (STATIC / "README.md").read_text())
    assert len(rows) == 3
    for name, digest in rows:
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == digest


def test_our_scripts_write_text_never_html():
    for name in ("charts.js", "bandit.js", "context.js", "admin.js", "overview.js"):
        text = (STATIC / name).read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)
        assert not re.search(r"https?://(?!www\.w3\.org/)", text)


def test_what_is_searched_for_is_shown_as_text(small):
    """In an attribute, in a text, and without a template that turns escaping off."""
    page = small.get("/", params={"q": "\"'><script>"}).text
    assert 'value="&#34;&#39;&gt;&lt;script&gt;"' in page
    assert "“&#34;&#39;&gt;&lt;script&gt;”" in page
    templates = resources.files("driftbandit.service.pages") / "templates"
    texts = [file.read_text("utf-8") for file in templates.iterdir()]
    assert len(texts) > 4
    assert not any(re.search(r"\|\s*safe|autoescape|<[^>]+ (style|on\w+)=", text) for text in texts)


def test_the_small_drawing_of_shares_needs_two_times_with_decisions():
    assert draw_shares([[0, 0], [1, 1]]) == []
    first, second = draw_shares([[2, 0], [0, 0], [1, 1]])
    assert first == "0.0,0.0 160.0,16.0 160.0,32.0 0.0,32.0"
    assert second == "0.0,0.0 160.0,0.0 160.0,16.0 0.0,0.0"


def test_a_damaged_bandit_hides_no_other_in_the_overview(serve, tmp_path):
    place = str(tmp_path / "journal.db")
    for name in ("bad", "good"):
        with Bandit.open(place, name, arms=["red", "green"]) as bandit:
            for _ in range(5):
                bandit.reward(bandit.decide().id, 1.0)
    with sqlite3.connect(place) as journal:
        journal.execute("UPDATE event SET value = 0.5 WHERE bandit = 1 AND n = 3")
        journal.execute("DELETE FROM snapshot WHERE bandit = 1")
    served = serve(place)
    found = served.get("/")
    assert found.status_code == 200
    assert found.text.count("damaged: its journal cannot be read") == 1
    assert all(f'href="/bandits/{name}"' in found.text for name in ("bad", "good"))
    assert served.get("/bandits/good").status_code == 200
    found = served.get("/bandits/bad")
    assert (found.status_code, found.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert "see the log of the service" in found.text


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
def test_watch_shows_an_embedded_bandit_and_changes_nothing(serve, tmp_path, request, place):
    db = str(tmp_path / "shop.db") if place == "sqlite" else request.getfixturevalue("postgres")
    with Bandit.open(db, "button", DiscountedTS(), arms=["red", "green"], half_life="1 h") as bandit:
        for _ in range(30):
            bandit.reward(bandit.decide().id, 1.0)
        served = serve(db, command="watch")
        assert "Watching a journal" in served.get("/").text
        assert "Change it" not in served.get("/bandits/button").text
        for _ in range(30):
            bandit.reward(bandit.decide().id, 1.0)
        end, drawn = time.monotonic() + 10, 0  # a page is a moment behind the journal
        while drawn < 60 and time.monotonic() < end:
            charts = served.get("/v1/bandits/button/charts").json()
            drawn = sum(map(sum, charts["history"]["decisions"]))
        assert drawn == 60
        for method, path, body in [
            ("POST", "/decisions", {}),
            ("POST", "/fix", {"arm": "red"}),
            ("PATCH", "", {"floor": 0.1}),
        ]:
            assert served.call(method, f"/v1/bandits/button{path}", body).status_code == 403
        assert served.post("/v1/bandits", {"name": "b", "policy": "ts", "arms": ["x"]}).status_code == 403
        assert len(bandit.changes()) == 1


def test_the_demonstration_reports_the_true_means(serve):
    from driftbandit.service.traffic import demo_bandits

    names = {one.name for one in demo_bandits()}
    served = serve(command="demo")
    assert set(served.get("/v1/bandits").json()["bandits"]) == names
    truth = served.get("/v1/bandits/abrupt/charts").json()["truth"]
    assert truth is not None
