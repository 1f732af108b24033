"""Dropping old rows: everything that remains is as if nothing had been dropped."""

import gzip
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit
from driftbandit.bandit.audit import audit
from driftbandit.bandit.opening import reading
from driftbandit.bandit.records import DAY, as_datetime
from driftbandit.bandit.reports import View
from driftbandit.errors import DamagedJournal, NotFound
from live.button import HOUR, Clock, assert_proved, opened, play

START = 1_700_006_400_000_000 // DAY * DAY  # a midnight


def live(bandit: Bandit, clock: Clock, days: range, pause: int = HOUR, context=None) -> list[str]:
    """A decision every three hours, rewarded a minute later but for every fifth; the arms."""
    arms = []
    for hour in range(days.start * 24, days.stop * 24, 3):
        clock.now = max(clock.now, START + hour * pause)
        decision = bandit.decide(f"d{hour}", context=context(hour) if context else None)
        arms.append(decision.arm)
        if hour % 5:
            clock.now += 60_000_000
            bandit.reward(decision.id, float((hour * 7) % 5 < 3))
            bandit.refresh()  # decisions know the same with every store
    return arms


def counts(bandit: Bandit) -> dict[str, int]:
    health = bandit.health()
    return {name: health[name] for name in ("decisions", "rewards", "defaults", "late", "events", "waiting")}


def totals(history) -> list[float]:
    """By arm; with `wait`, outcomes of a dropped day count on the day of their decision."""
    return [sum(column) for rows in (history.outcomes, history.rewards) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("options", [{}, {"wait": "2 h"}, {"half_life": "1 d"}])
def test_state_decisions_and_counts_are_those_of_a_bandit_that_keeps_everything(store, tmp_path, options) -> None:
    kept, pruned = tmp_path / "kept.db", store
    found = []
    for place in (kept, pruned):
        clock = Clock(START)
        with opened(place, clock=clock, retention="2 d", holdback=0.2, baseline="red", **options) as bandit:
            live(bandit, clock, range(4))
            bandit.change(floor=0.1)
            if place == pruned:
                dropped = bandit.prune()
                assert dropped.decisions >= 8
                assert dropped.events >= 6
                assert dropped.until == START + DAY
                assert bandit.prune() == dropped._replace(decisions=0, events=0)
            arms = live(bandit, clock, range(4, 6))
            history, uplift = bandit.history(as_datetime(START), as_datetime(START + 6 * DAY), 6), bandit.uplift()
        with opened(place, clock=clock) as bandit:  # from the last snapshot
            arms += live(bandit, clock, range(6, 7))
            found.append((arms, bandit.fingerprint(), counts(bandit), history.decisions, totals(history), uplift[5:8]))
    assert found[0] == found[1]
    assert_proved(store)
    report = audit(store)[0]
    assert report.dropped > 0
    assert report.decisions < audit(kept)[0].decisions


def test_everything_can_be_folded_again_from_the_beginning(store) -> None:
    clock = Clock(START)
    with opened(store, clock=clock, retention="1 d") as bandit:
        live(bandit, clock, range(4))
        before = bandit.fingerprint()
        bandit.prune()
        assert bandit.fingerprint() == before
        journal = bandit._journal
        base = journal.base(bandit._number)
        bandit._writer.submit([]).wait()
        assert len(journal.snapshots(bandit._number)) <= 4
        assert base.n in dict(journal.snapshots(bandit._number))
        assert [event.body for _, event in journal.changes(bandit._number)]  # changes stay
    with View(store, "button") as view:
        assert view.fingerprint() == before
    journal = reading(store)
    assert journal.check(journal.number("button")) == []


def test_a_dropped_decision_is_gone_and_a_younger_one_is_not(store) -> None:
    clock = Clock(START)
    with opened(store, clock=clock, retention="1 d") as bandit:
        live(bandit, clock, range(3))
        bandit.prune()
        with pytest.raises(NotFound):
            bandit.reward("d0", 1.0)
        assert bandit.reward("d60", 1.0) == "learned"
        assert bandit.outcome("d69").decision.id == "d69"


def test_days_are_exported_before_they_are_dropped(store, tmp_path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    clock = Clock(START)
    with opened(store, clock=clock, retention="1 d") as bandit:
        live(bandit, clock, range(4))
        arms = {one.decision.id: one.decision.arm for one in bandit.recent(1000)}
        dropped = bandit.prune(tmp_path / "out")
        names = sorted(path.name for path in (tmp_path / "out" / "button").iterdir())
        assert names == ["2023-11-15.parquet", "2023-11-16.parquet"]
        rows = [row for path in dropped.files for row in parquet.read_table(path).to_pylist()]
        assert len(rows) == dropped.decisions
        assert {row["decision"]: row["arm"] for row in rows}.items() <= arms.items()
        assert all(row["propensity"] > 0.0 for row in rows)
        left = {one.decision.id for one in bandit.recent(1000)}
        assert left.isdisjoint(row["decision"] for row in rows)
        assert len(left) + len(rows) == len(arms)


def test_a_change_that_learns_everything_again_waits_or_is_refused(store) -> None:
    clock = Clock(START)
    with opened(store, clock=clock, retention="1 d") as bandit:
        live(bandit, clock, range(3))
        bandit.change(policy="dts")
        assert "learned from all events" in bandit.prune().note
        live(bandit, clock, range(3, 6))
        assert bandit.prune().until == START + 4 * DAY
        with pytest.raises(ValueError, match="from_now=True"):
            bandit.change(policy=DiscountedTS())
        bandit.change(policy=DiscountedTS(), from_now=True)
        bandit.change(floor=0.2)
        live(bandit, clock, range(6, 7))
    assert_proved(store)


def test_retention_is_longer_than_the_wait(store) -> None:
    for options in ({"retention": "2 h"}, {"retention": "2 d", "wait": "36 h"}):
        with pytest.raises(ValueError, match="at least 1 day"):
            opened(store, **options)
    with opened(store, retention="2 d") as bandit, pytest.raises(ValueError, match="at least 1 day"):
        bandit.change(wait="36 h")


def test_an_altered_day_is_not_dropped(tmp_path) -> None:
    import sqlite3

    clock, store = Clock(START), str(tmp_path / "a.db")
    with opened(store, clock=clock, retention="1 d") as bandit:
        live(bandit, clock, range(3))
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE decision SET slot = (slot + 1) % 3 WHERE id = 'd9'")
    with opened(store, clock=clock) as bandit:
        with pytest.raises(Exception, match="cannot be proved"):
            bandit.prune()
        assert counts(bandit)["decisions"] == 24


def test_a_process_that_is_far_behind_reports_it(postgres) -> None:
    clock = Clock(START)
    with opened(postgres, clock=clock, retention="1 d") as bandit:
        live(bandit, clock, range(2))
        with View(postgres, "button") as view:
            live(bandit, clock, range(2, 5))
            bandit.prune()
            with pytest.raises(ValueError, match="open the bandit again"):
                view.refresh()


def test_the_command_and_the_service_drop_what_is_old(tmp_path, capsys) -> None:
    from driftbandit.cli._main import main
    from driftbandit.service.background import Pruner
    from driftbandit.service.bandits import Bandits

    store = str(tmp_path / "a.db")
    for name in ("old", "older"):
        clock = Clock(START)
        with opened(store, name, clock=clock, retention="2 d" if name == "old" else None) as bandit:
            live(bandit, clock, range(2))
    assert main(["live", "prune", store, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["old"]["decisions"] > 0
    assert "older" not in found
    assert main(["live", "change", store, "older", "--retention", "3 d"]) == 0
    bandits = Bandits(store)
    try:
        assert bandits.journal.notes("upkeep ") == ["old", "older"]
        Pruner(bandits).visit("older")
        assert bandits.journal.base(bandits.journal.number("older")) is not None
    finally:
        bandits.close()
    assert main(["live", "prune", "http://127.0.0.1:9", "old"]) != 0
    assert "by itself" in capsys.readouterr().err


def test_a_journal_kept_from_an_earlier_commit_is_read_and_written(tmp_path) -> None:
    path = tmp_path / "old.db"
    with gzip.open(Path(__file__).parent / "journals" / "tables-15.db.gz") as old, path.open("wb") as new:
        shutil.copyfileobj(old, new)
    before = {report.bandit: report for report in audit(path)}  # without writing anything
    assert [report.differences for report in before.values()] == [[], [], []]
    clock = Clock(1_800_000_000_000_000)
    for name in before:
        with Bandit.open(path, name, clock=clock) as bandit:
            bandit.change(retention="30 d")
            context = {"device": "mobile", "basket": 1.0} if name == "context" else None
            bandit.reward(bandit.decide(context=context).id, 1.0)
            assert bandit.prune().decisions > 0
    assert_proved(path)


def test_a_journal_with_tables_of_another_version_is_refused(store) -> None:
    with opened(store) as bandit:
        play(bandit, 5)
    if str(store).startswith("postgresql"):
        with pytest.importorskip("psycopg").connect(store) as connection:
            connection.execute("UPDATE driftbandit.version SET version = version - 1")
    else:
        with sqlite3.connect(store) as connection:
            connection.execute("PRAGMA user_version = 14")
    for open_it in (reading, opened):
        with pytest.raises(DamagedJournal, match="tables of version 14"):
            open_it(store)
