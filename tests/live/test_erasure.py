"""Erasing an id: it is gone everywhere, and nothing else changes."""

import asyncio
import json
import sqlite3
import threading
from contextlib import closing

import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.audit import Walk, audit
from driftbandit.bandit.export import export
from driftbandit.bandit.opening import is_url, reading
from driftbandit.bandit.reports import View
from driftbandit.errors import NotFound, RecordConflict
from live.button import HOUR, Clock, assert_proved, opened, play

FEATURES = {"device": ["mobile", "desktop"], "basket": "number"}


def texts(store) -> str:
    """Everything that the tables hold about decisions and events."""
    with closing(reading(store)) as journal:
        rows = journal._rows("SELECT id, context FROM @decision") + journal._rows("SELECT decision, '' FROM @event")
    return json.dumps([list(row) for row in rows])


def test_the_id_is_gone_and_everything_else_is_as_before(store, tmp_path) -> None:
    with opened(store, wait="1 h", clock=(clock := Clock())) as bandit:
        for n in range(30):
            clock.now += 600_000_000
            decision = bandit.decide(f"person{n}")
            if n % 3:
                bandit.reward(decision.id, float(n % 2))
        first, before, state = bandit.outcome("person7"), bandit.health(), bandit._fold.player.dump()
        assert bandit.erase("person7", who="Ada")
        assert not bandit.erase("person7")
        bandit.erase("person27")  # its outcome is still to come
        assert bandit._fold.player.dump() == state
        with pytest.raises(NotFound):
            bandit.outcome("person7")
        with pytest.raises(NotFound):
            bandit.erase("missing")
        again = bandit.decide("person7")
        assert (again.id, again.arm, again.at) == ("person7", first.decision.arm, first.decision.at)
        assert bandit.reward("person7", first.reward) == "again"
        with pytest.raises(RecordConflict):
            bandit.reward("person7", 0.5)
        assert bandit.decide_many(["person7", "new"])[1].id == "new"
        clock.now += 2 * HOUR
        bandit.settle()
        bandit.refresh()
        assert bandit.health()["decisions"] == before["decisions"] + 1
        assert [change["what"] for change in bandit.changes()][-1] == "erased 1 -> 2"
        shown = [one.decision.id for one in bandit.recent(100)]
        assert {"person7", "person27"}.isdisjoint(shown)
        assert sum(id.startswith("=") for id in shown) == 2
        state = bandit.fingerprint()
    with View(store, "button") as view:
        assert view.fingerprint() == state
    assert not {'"person7"', '"person27"'} & set(texts(store).replace("[", "").replace("]", "").split(", "))
    assert_proved(store)
    assert export(store, tmp_path / "log.jsonl") == 31
    assert '"person7"' not in (tmp_path / "log.jsonl").read_text()


def test_a_context_is_removed_and_what_was_learned_from_it_stays(store, tmp_path) -> None:
    with Bandit.open(store, "a", None, ["red", "green"], seed=1, features=FEATURES, snapshot_every=5) as bandit:
        for n in range(12):
            decision = bandit.decide(f"d{n}", context={"device": "mobile", "basket": 1000.5 + n})
            bandit.reward(decision.id, float(n % 2))
        bandit.refresh()
        state = bandit._fold.player.dump()
        bandit.erase("d4")
        hidden = next(one for one in bandit.recent(20) if one.decision.id.startswith("="))
        assert hidden.context is None
        assert hidden.reward == 0.0
        assert bandit.decide("d4", context={"device": "mobile"}).arm == hidden.decision.arm
    with closing(reading(store)) as journal:
        walk = Walk(journal, journal.number("a"))
        walk.finish()
        assert walk.fold.player.dump() == state  # learned again from the first event on
    (report,) = audit(store)
    assert report.differences == []
    assert report.unproved == ("1 decision whose context was erased",)
    export(store, tmp_path / "log.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    (row,) = [row for row in rows if row["decision"].startswith("=")]
    assert (row["x_basket"], row["x_device"], row["propensity"]) == (None, None, None)
    assert all(row["propensity"] for row in rows if not row["decision"].startswith("="))


def test_an_erased_row_that_is_altered_is_noticed(tmp_path) -> None:
    store = str(tmp_path / "a.db")
    with opened(store) as bandit:
        play(bandit, 20)
        bandit.erase("d3")
    assert_proved(store)
    for table, column in (("decision", "slot"), ("event", "value")):
        with sqlite3.connect(store) as connection:
            name = "id" if table == "decision" else "decision"
            connection.execute(f"UPDATE {table} SET {column} = {column} + 1 WHERE {name} >= '=' AND {name} < '>'")
        assert any("altered" in text for report in audit(store) for text in report.differences)
        with sqlite3.connect(store) as connection:
            connection.execute(f"UPDATE {table} SET {column} = {column} - 1 WHERE {name} >= '=' AND {name} < '>'")
    assert_proved(store)


def test_nothing_of_it_is_left_in_the_file(tmp_path) -> None:
    store = str(tmp_path / "a.db")
    assert not is_url(store)
    with opened(store) as bandit:
        for n in range(200):
            bandit.reward(bandit.decide(f"someone-{n:04}").id, 1.0)
        bandit.erase("someone-0100")
    data = (tmp_path / "a.db").read_bytes()
    assert b"someone-0099" in data
    assert b"someone-0100" not in data


@pytest.mark.parametrize("durability", ["disk", "none"])
def test_a_coroutine_does_not_read_the_store(store, durability, monkeypatch) -> None:
    """Erased ids are recognised by the thread that writes: a slow store does not delay an event loop."""
    threads = set()

    async def use(bandit) -> list[str]:
        again = await bandit.adecide("person1")
        await bandit.adecide_many(["person1", "new"])
        return [again.id, again.arm, await bandit.areward("person1", 1.0), await bandit.areward("new", 1.0)]

    with opened(store, durability=durability) as bandit:
        play(bandit, 3)
        arm = bandit.decide("person1").arm
        bandit.reward("person1", 1.0)
        bandit.erase("person1")
        rows = bandit._journal._rows
        monkeypatch.setattr(bandit._journal, "_rows", lambda *sql: (threads.add(threading.get_ident()), rows(*sql))[1])
        assert asyncio.run(use(bandit)) == ["person1", arm, "again", "learned"]
        assert threads or is_url(store)  # PostgreSQL recognises them in the statement that writes
        assert threading.get_ident() not in threads
