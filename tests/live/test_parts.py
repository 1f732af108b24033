"""Rewards that are added up: every part counts once, and the sum is learned as one outcome."""

import asyncio
import json
import threading
import time

import pyarrow.parquet as pq
import pytest

from driftbandit import Bandit
from driftbandit.bandit.asks import DecisionState
from driftbandit.bandit.audit import audit
from driftbandit.bandit.export import export
from driftbandit.bandit.records import DAY, PART, REWARD, DecisionRow, mark
from driftbandit.errors import NotFound, RecordConflict
from driftbandit.policies import BetaTS
from live.button import ARMS, HOUR, Clock, assert_proved, opened

WAIT = {"wait": "1 h", "default": 0.0}


def made(target, clock, name="button", **options) -> Bandit:
    options = {**WAIT, "reward_range": (0, 2), **options}
    if target is not None:
        return opened(target, name, clock=clock, **options)
    return Bandit(ARMS, BetaTS() if "policy" not in options else options.pop("policy"), seed=1, clock=clock, **options)


def numbers(state) -> list:
    return [list(field) for field in state]


def test_the_sum_is_learned_as_the_same_reward_at_once_would_be(target) -> None:
    states = []
    for parts in (True, False):
        clock = Clock()
        with made(target, clock, f"b{parts}", policy=BetaTS(), learn_holdback=True) as bandit:
            for n in range(40):
                decision = bandit.decide(f"d{n}", available=[ARMS[n % 3]])
                if n % 4 == 0:
                    continue
                if parts and n % 2:
                    assert bandit.reward(decision, 0.2, add=True, part="basket") == "waiting"
                    clock.now += 60_000_000
                    assert bandit.reward(decision, 1.0, add=True) == "waiting"
                    assert bandit.reward(decision, 0.2, add=True, part="basket") == "again"
                else:
                    clock.now += 60_000_000 * (n % 2)
                    bandit.reward(decision, 1.2 if n % 2 else 0.5)
            bandit.refresh()
            assert sum(sum(field) for field in numbers(bandit.state)[:2]) == 0.0
            clock.now += 2 * HOUR
            assert bandit.settle() == 10
            bandit.refresh()
            health = bandit.health()
            assert (health["rewards"], health["defaults"], health["late"]) == (30, 10, 0)
            assert bandit.history().rewards[-1] is not None
            states.append((numbers(bandit.state), [sum(row) for row in zip(*bandit.history().rewards, strict=True)]))
            outcome = bandit.outcome("d1")
            assert (outcome.kind, outcome.reward, outcome.added) == ("reward", 1.2, 1.2 if parts else None)
    assert states[0] == states[1]
    if target is not None:
        assert_proved(target)


def test_a_part_counts_once_and_what_cannot_be_added_changes_nothing(target) -> None:
    clock = Clock()
    with made(target, clock) as bandit:
        for n in range(3):
            bandit.decide(f"d{n}")
        before = bandit.fingerprint()
        for wrong, kind, what in (
            (lambda: bandit.reward("no", 0.5, add=True), NotFound, "no decision 'no'"),
            (lambda: bandit.reward("d0", 2.5, add=True), ValueError, "add up to 2.5, outside reward_range"),
            (lambda: bandit.reward("d0", float("inf"), add=True), ValueError, "finite"),
            (lambda: bandit.reward("d0", 0.5, part="a"), ValueError, "give add=True"),
            (lambda: bandit.reward("d0", 0.5, add=1), ValueError, "add is True or False; got 1"),
            (lambda: bandit.reward("d0", 0.5, add=True, part="a b"), ValueError, "A part's id is"),
        ):
            with pytest.raises(kind, match=what):
                wrong()
        bandit.refresh()
        assert bandit.fingerprint() == before
        assert bandit.reward("d0", 0.5, add=True, part="a") == "waiting"
        assert bandit.reward("d1", 0.5) == "waiting"
        bandit.refresh()
        before = bandit.fingerprint()
        assert bandit.reward("d0", 0.5, add=True, part="a") == "again"
        for wrong, kind, what in (
            (lambda: bandit.reward("d0", 0.6, add=True, part="a"), RecordConflict, "already 0.5; 0.6 was not written"),
            (lambda: bandit.reward("d0", 0.5), RecordConflict, "added up from parts; give add=True"),
            (lambda: bandit.reward("d1", 0.5, add=True), RecordConflict, "already has a whole reward"),
            (lambda: bandit.reward("d0", 1.6, add=True), ValueError, "add up to 2.1"),
            (lambda: bandit.reward("d0", -0.6, add=True), ValueError, "add up to -0.1"),
            (lambda: bandit.change(wait=None), ValueError, "it needs a wait"),
        ):
            with pytest.raises(kind, match=what):
                wrong()
        bandit.refresh()
        assert bandit.fingerprint() == before
        assert bandit.reward("d0", -0.25, add=True, part="returned") == "waiting"
        assert bandit.outcome("d0")[1:] == (None, None, None, None, True, None, 0.25)
        clock.now += 2 * HOUR
        bandit.settle()
        assert [bandit.outcome(f"d{n}").reward for n in range(3)] == [0.25, 0.5, 0.0]


def test_adding_needs_a_wait(target) -> None:
    with made(target, Clock(), wait=None, default=None) as bandit:
        bandit.decide("d")
        with pytest.raises(ValueError, match=r"add=True needs wait, .*; set it by change\(wait="):
            bandit.reward("d", 0.5, add=True)
        bandit.change(wait="1 h")
        assert bandit.reward("d", 0.5, add=True) == "waiting"


def test_late_parts_are_kept_and_counted_and_not_learned(target) -> None:
    clock = Clock()
    with made(target, clock, policy=BetaTS()) as bandit:
        for id in ("sum", "open", "none"):
            bandit.decide(id)
        for id in ("sum", "open"):
            bandit.reward(id, 0.5, add=True, part="first")
        clock.now += HOUR + 1
        assert bandit.reward("open", 0.25, add=True, part="late") == "late"  # it writes the sum first
        assert bandit.reward("open", 0.25, add=True, part="late") == "again"
        clock.now += HOUR
        bandit.settle()
        for id in ("sum", "none"):
            assert bandit.reward(id, 0.25, add=True, part="late") == "late"
            assert bandit.reward(id, 0.5, add=True, part="later") == "late"
            assert bandit.reward(id, 0.25, add=True, part="late") == "again"
        assert bandit.reward("sum", 0.5, add=True, part="first") == "again"
        with pytest.raises(RecordConflict):
            bandit.reward("none", 0.25)
        bandit.refresh()
        found = {id: bandit.outcome(id) for id in ("sum", "open", "none")}
        kept = {id: (one.kind, one.reward, one.late) for id, one in found.items()}
        assert kept == {
            "sum": ("reward", 0.5, 0.75), "open": ("reward", 0.5, 0.25), "none": ("default", 0.0, 0.75),
        }  # fmt: skip
        assert (bandit.health()["rewards"], bandit.health()["defaults"], bandit.health()["late"]) == (2, 1, 5)
        assert sum(bandit.state.wins) == 0.5
    if target is not None:
        assert_proved(target)


def test_many_parts_in_one_call_and_from_coroutines(target) -> None:
    clock = Clock()
    with made(target, clock) as bandit:
        bandit.decide_many(["a", "b"])
        triples = [("a", 0.5, "1"), ("a", 0.5, "2"), ("a", 0.5, "1"), ("b", 1.5), ("b", 1.0, "too much"), ("no", 0.1)]
        found = bandit.reward_many(triples, add=True)
        assert found[:4] == ["waiting", "waiting", "again", "waiting"]
        assert [type(error).__name__ for error in found[4:]] == ["ValueError", "NotFound"]
        with pytest.raises(ValueError, match="reward_many needs pairs of id and reward; got"):
            bandit.reward_many([("a", 0.5, "1")])
        assert asyncio.run(bandit.areward("a", 0.25, add=True, part="3")) == "waiting"
        assert asyncio.run(bandit.areward_many([("a", 0.25, "4")], add=True)) == ["waiting"]
        clock.now += 2 * HOUR
        bandit.settle()
        assert (bandit.outcome("a").reward, bandit.outcome("b").reward) == (1.5, 1.5)


def test_a_snapshot_in_memory_has_the_parts_and_a_damaged_one_is_refused() -> None:
    clock = Clock()
    bandit = made(None, clock)
    bandit.decide("d")
    bandit.reward("d", 0.5, add=True, part="a")
    text = bandit.snapshot()
    again = Bandit.restore(text, clock=clock)
    assert again.reward("d", 0.5, add=True, part="a") == "again"
    for one in (bandit, again):
        assert one.reward("d", 0.25, add=True, part="b") == "waiting"
    clock.now += 2 * HOUR
    assert (bandit.settle(), again.settle()) == (0, 0)
    assert bandit.fingerprint() == again.fingerprint()
    assert again.outcome("d").reward == 0.75
    for damage in ({"x": {"a": [0.5, False]}}, {"d": {"a": [None, False]}}, {"d": {}}, {"d": [1]}):
        data = json.loads(text)
        del data["check"]
        data["memory"]["parts"] = damage
        with pytest.raises(ValueError, match="damaged and was not restored"):
            Bandit.restore(json.dumps(data))


def test_restarts_erasure_other_policies_and_exports_have_the_sums(store, tmp_path) -> None:
    clock = Clock()
    with made(store, clock, features={"x": "number"}, policy="lin-ts") as bandit:
        for n in range(20):
            bandit.decide(f"d{n}", context={"x": float(n)})
            bandit.reward(f"d{n}", 0.25, add=True, part="order 17".replace(" ", "-"))
    with made(store, clock) as bandit:
        for n in range(10):
            bandit.reward(f"d{n}", 0.5, add=True, part="order-18")
        assert bandit.erase("d3")
        assert bandit.reward("d3", 0.5, add=True, part="order-18") == "again"
        assert bandit.reward("d3", 0.125, add=True, part="order-19") == "waiting"
        rows = str(bandit._journal._rows("SELECT decision, body FROM @event"))
        assert "order" not in rows
        assert "'d3'" not in rows
        assert "d3+" not in rows
        clock.now += 2 * HOUR
        assert bandit.settle() == 0
        bandit.refresh()
        bandit.change(policy="d-lin-ts")
        assert [bandit.outcome(f"d{n}").reward for n in (0, 10)] == [0.75, 0.25]
    export(store, tmp_path / "log.parquet")
    log = pq.read_table(tmp_path / "log.parquet").to_pydict()
    assert sorted(log["reward"]) == [0.25] * 10 + [0.75] * 9 + [0.875]
    assert set(log["outcome"]) == {"reward"}
    assert_proved(store)


def test_pruning_keeps_sums_that_are_open_and_counts_those_that_are_gone(store) -> None:
    clock = Clock(1_700_006_400_000_000 // DAY * DAY)
    with made(store, clock, retention="2 d", wait="5 h") as bandit:
        for hour in range(0, 4 * 24, 3):
            bandit.decide(f"d{hour}")
            clock.now += HOUR
            bandit.reward(f"d{hour}", 0.5, add=True, part="a")
            bandit.reward(f"d{hour}", 0.5, add=True, part="b")
            clock.now += 2 * HOUR
            bandit.settle()
            bandit.refresh()
        totals = [sum(sum(row) for row in rows) for rows in (bandit.history().rewards, bandit.history().outcomes)]
        assert bandit.prune().decisions >= 8
        assert [
            sum(sum(row) for row in rows) for rows in (bandit.history().rewards, bandit.history().outcomes)
        ] == totals
        before = bandit.fingerprint()
    with made(store, clock) as bandit:
        assert bandit.fingerprint() == before
        assert bandit.reward("d93", 0.5, add=True, part="a") == "again"
        clock.now += DAY
        bandit.settle()
        assert bandit.outcome("d93").reward == 1.0
    assert_proved(store)


def test_an_audit_finds_a_sum_that_is_not_that_of_its_parts(tmp_path) -> None:
    clock, path = Clock(), str(tmp_path / "journal.db")
    with made(path, clock) as bandit:
        bandit.decide("d")
        bandit.reward("d", 0.5, add=True, part="a")
        event = next(event for _, event in bandit._journal.events(1) if event.kind == PART)
        clock.now += 2 * HOUR
        bandit.settle()
        forged = event._replace(value=0.25)  # with the checksums that go with it
        writer = bandit._journal._writer
        writer.execute("UPDATE event SET value = 0.25, mark = ? WHERE n = ?", (mark(forged[1:]), event.n))
        writer.execute("UPDATE head SET event_marks = event_marks + ?", (mark(forged[1:]) - mark(event[1:]),))
    assert "the reward of decision d is not 0.25, the sum of its parts" in audit(path)[0].differences


def test_a_part_that_came_in_time_is_in_the_sum_whichever_process_settles_meanwhile(postgres, monkeypatch) -> None:
    from driftbandit.bandit import opening
    from driftbandit.bandit.pgcommit import PostgresCommit

    clocks, bandits = [Clock(), Clock()], []
    for clock in clocks:
        monkeypatch.setattr(opening, "_opened", {})  # as another process would: a separate journal
        bandits.append(made(postgres, clock))
    one, two = bandits
    for n in range(2):
        one.decide(f"d{n}")
        one.reward(f"d{n}", 0.5, add=True)
    two.refresh()
    clocks[1].now += 2 * HOUR
    judged, verdicts, append = threading.Event(), [], PostgresCommit._append

    def slowly(commit, events, *more) -> None:
        if any(event.kind in (PART, REWARD) and event.value == 0.25 for _, event in events):
            judged.set()
            time.sleep(0.5)  # long enough for the other to settle
        append(commit, events, *more)

    monkeypatch.setattr(PostgresCommit, "_append", slowly)
    thread = threading.Thread(target=lambda: verdicts.append(one.reward("d0", 0.25, add=True)))
    thread.start()
    judged.wait(10)
    two.settle()
    thread.join()
    assert verdicts == ["waiting"]
    assert [two.outcome(f"d{n}").reward for n in range(2)] == [0.75, 0.5]
    for bandit in bandits:
        bandit.refresh()
    assert one.fingerprint() == two.fingerprint()
    for bandit in bandits:
        bandit.close()
    assert_proved(postgres)


def test_the_parts_of_a_decision_are_found_by_an_index(tmp_path) -> None:
    plans = []
    with made(str(tmp_path / "journal.db"), Clock()) as bandit:
        journal, rows = bandit._journal, bandit._journal._rows

        def explained(sql: str, *values: int) -> list:
            plans.append(str(rows("EXPLAIN QUERY PLAN " + sql, *values)))
            return rows(sql, *values) or [(1,)][: "LIMIT" in sql]

        journal._rows = explained
        row = DecisionRow("d", 2, 0, 0, 1, None, bandit=1)
        assert journal.add_parts({(1, "d"): DecisionState(row)}) == {(1, "d"): DecisionState(row)}
        journal._rows = rows
    assert len(plans) == 2
    assert all("event_part" in plan for plan in plans)
