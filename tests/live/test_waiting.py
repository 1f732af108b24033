"""With `wait`, outcomes are learned when their decision is that old, in the order of the decisions, everywhere."""

import contextlib
import heapq
import json
import logging
import random
import sqlite3

import pytest

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit
from driftbandit.bandit.asks import Settle
from driftbandit.bandit.audit import audit
from driftbandit.bandit.export import rows_of
from driftbandit.bandit.fold import Fold
from driftbandit.bandit.opening import is_url, policy_maker
from driftbandit.bandit.records import DEFAULT, SETTLED, DecisionRow
from driftbandit.bandit.reports import View
from driftbandit.player import Player
from driftbandit.spec.half_life import format_duration
from live.button import ARMS, HOUR, Clock, assert_proved, opened

SECOND = 1_000_000


def taught(bandit, pairs):
    """The state of a policy that learned these rewards, by arm, one after the other."""
    player = Player(bandit.policy, 3)
    for arm, value in pairs:
        player.learn(ARMS.index(arm), value)
    return player.dump()["state"]


def test_outcomes_are_learned_in_the_order_of_the_decisions_when_these_are_old_enough(store) -> None:
    rng, clock = random.Random(3), Clock()
    with opened(store, wait="1 h", default=0.25, clock=clock) as bandit:
        made = []
        for n in range(60):
            made.append(bandit.decide(f"d{n}"))
            clock.now += SECOND
        values = {one.id: float(rng.random() < 0.5) for one in made if rng.random() < 0.6}
        for id in rng.sample(list(values), len(values)):
            assert bandit.reward(id, values[id]) == "waiting"
        bandit.refresh()
        assert bandit._fold.player.learned == 0
        assert bandit.health()["waiting"] == len(values)
        clock.now += HOUR - 31 * SECOND  # so that the first half is old enough
        bandit.decide("later")
        half = [(one.arm, values.get(one.id, 0.25)) for one in made[:30]]
        assert bandit._fold.player.learned in (29, 30)
        clock.now += 2 * HOUR
        bandit.decide("last")
        bandit.refresh()
        rest = [(one.arm, values.get(one.id, 0.25)) for one in made[30:]]
        assert bandit._fold.player.learned == 61
        later = bandit.outcome("later")
        assert bandit._fold.player.dump()["state"] == taught(bandit, [*half, *rest, (later.decision.arm, 0.25)])
        assert bandit.health()["waiting"] == 0
        before = bandit.fingerprint()
    assert_proved(store)
    with opened(store, clock=clock) as again:
        assert again.fingerprint() == before


@pytest.mark.parametrize("half_life", [None, "10 min"])
def test_snapshots_restarts_views_and_machine_code_have_what_waits(half_life, store) -> None:
    rng, clock = random.Random(5), Clock()
    options = {"wait": "10 min", "snapshot_every": 7, "clock": clock, "half_life": half_life}
    open_ids: list[str] = []
    with contextlib.ExitStack() as stack:
        bandit = stack.enter_context(opened(store, **options))
        for n in range(140):
            clock.now += 20 * SECOND
            open_ids.append(bandit.decide(f"d{n}").id)
            if rng.random() < 0.7:
                with contextlib.suppress(ValueError):
                    bandit.reward(open_ids.pop(rng.randrange(len(open_ids))), float(rng.random() < 0.4))
            if n % 50 == 30:
                bandit.close()
                bandit = stack.enter_context(opened(store, **options))
            if n == 60:
                bandit.change(wait="5 min", learn="arrival")
                bandit.refresh()
                assert bandit.health()["waiting"] == 0
            if n == 80:
                bandit.change(wait="8 min", learn="wait")
            if n == 120:
                bandit.change(policy=DiscountedTS(0.9))
        bandit.refresh()
        assert bandit.health()["waiting"] > 0
        assert bandit.health()["late"] > 0
        before, events = bandit.fingerprint(), [event for _, event in bandit._journal.events(1)]
        plain = Fold(policy_maker(), lambda count: iter(events[:count]))
        plain.apply(events)
        assert plain.dump() == before
        if not is_url(store):
            compiled = Fold(policy_maker(), lambda count: iter(events[:count]), compiled=True)
            compiled.apply(events)
            assert compiled.dump() == before
        assert Fold.read(json.loads(before), policy_maker()).dump() == before
        with View(store, "button") as view:
            assert view.fingerprint() == before
    assert_proved(store)
    assert audit(store)[0].snapshots > 0


def test_two_processes_on_postgresql_agree_and_a_view_proves_them(postgres) -> None:
    clock = Clock()
    one = opened(postgres, wait="1 min", clock=clock)
    made = one.decide_many(50)
    with contextlib.closing(one):
        from driftbandit.bandit import opening

        with opening._lock:  # as another process would: a separate journal and writer
            mine = opening._opened.pop(postgres)
        two = Bandit.open(postgres, "button", clock=clock)
        with contextlib.closing(two):
            assert two._replica.journal is not one._replica.journal
            two.reward_many([(decision.id, 1.0) for decision in made[::-2]])
            clock.now += 61 * SECOND
            one.decide("x")
            two.decide("y")
            for bandit in (one, two):
                bandit.refresh()
            assert one.fingerprint() == two.fingerprint()
            assert one._fold.player.learned == 50
        with opening._lock:
            opening._opened[postgres] = mine
    assert_proved(postgres)


def test_a_decision_after_a_long_silence_sees_what_fell_due_meanwhile(store) -> None:
    clock = Clock()
    with opened(store, wait="1 h", clock=clock) as bandit:
        bandit.decide("a")
        bandit.reward("a", 1.0)
        clock.now += 2 * HOUR
        known = bandit.decide("b").known
        assert known == bandit._fold.n
        assert bandit._fold.player.learned == 1


def test_a_process_that_is_idle_settles_and_one_that_opens_does(tmp_path) -> None:
    import time

    path = tmp_path / "a.db"
    with opened(path, wait="100 ms") as bandit:
        bandit.decide_many(5)
        until = time.monotonic() + 20.0
        while bandit._fold.player.learned < 5 and time.monotonic() < until:
            time.sleep(0.05)
        assert bandit._fold.player.learned == 5
        bandit.decide("last")
    time.sleep(0.15)
    with opened(path) as again:
        assert again._fold.player.learned == 6


def test_without_wait_one_call_is_learned_in_the_order_of_its_decisions(store) -> None:
    clock = Clock()
    with opened(store, clock=clock) as bandit:
        made = []
        for n in range(40):
            clock.now += SECOND
            made.append(bandit.decide(f"d{n}"))
        value = {one.id: float(n % 3 == 0) for n, one in enumerate(made)}
        successes_first = sorted(value.items(), key=lambda pair: -pair[1])
        assert bandit.reward_many(successes_first) == ["learned"] * 40
        bandit.refresh()
        assert bandit._fold.player.dump()["state"] == taught(bandit, [(one.arm, value[one.id]) for one in made])


def test_a_decision_stored_long_after_its_time_gets_its_default_from_a_running_process(store) -> None:
    clock = Clock()
    with opened(store, wait="1 min", clock=clock) as bandit:
        for _ in range(5):
            bandit.decide()
            clock.now += 40 * SECOND
        late = DecisionRow("straggler", clock.now - 900 * SECOND, 0, 0, 1, None, bandit=1)
        bandit._journal.commit([late])
        bandit._journal._last = {}
        clock.now += 61 * SECOND
        bandit.decide("x")
        assert bandit.outcome("straggler").kind == "default"
        bandit.refresh()
        assert bandit._fold.player.learned == 6


def test_a_limited_settling_goes_on_where_it_stopped_and_never_splits_a_moment(store) -> None:
    clock = Clock()
    with opened(store, wait="1 min", clock=clock) as bandit:
        for _ in range(4):
            bandit.decide_many(10)
            clock.now += SECOND
        journal, last, seen = bandit._journal, 0, []
        while True:
            settled = journal.commit([Settle(1, last, clock.now, clock.now, 0.0, limit=7)])[0][0]
            last = settled.until or last
            seen.append(settled.written)
            if settled.done:
                break
        assert sum(seen) == 40
        assert all(count % 10 == 0 for count in seen)
        events = [event for _, event in journal.events(1)]
        reached = 0
        for event in events:
            if event.kind == DEFAULT:
                assert event.decided > reached
            elif event.kind == SETTLED:
                reached = event.decided


def test_late_rewards_are_stored_and_counted_and_not_learned(store) -> None:
    clock = Clock()
    with opened(store, wait="1 min", clock=clock) as bandit:
        bandit.decide("a")
        clock.now += 61 * SECOND
        assert bandit.reward("a", 1.0) == "late"
        bandit.decide("b")
        bandit.refresh()
        assert (bandit.health()["late"], bandit.health()["defaults"], bandit._fold.player.learned) == (1, 1, 1)
        assert bandit.outcome("a").late == 1.0


def test_a_damaged_buffer_in_a_snapshot_is_refused(tmp_path) -> None:
    clock = Clock()
    with opened(tmp_path / "a.db", wait="1 h", clock=clock) as bandit:
        bandit.reward(bandit.decide().id, 1.0)
        before = bandit.fingerprint()
    import json

    data = json.loads(before)
    rows, _ = data["waiting"]
    for bad in (
        ["", []],
        ["AAAA", []],
        ["x", []],
        [None, []],
        [rows[:-4], []],
        [rows, ["{}", "{}"]],
        [rows, [3]],
        None,
    ):
        changed = json.dumps({**data, "waiting": bad})
        if bad == ["", []]:
            assert len(Fold.read(json.loads(changed), policy_maker()).waiting) == 0
            continue
        with pytest.raises(ValueError, match="snapshot cannot be read"):
            Fold.read(json.loads(changed), policy_maker())


# ---- how rewards are reported ----------------------------------------------------------------------------------------


def test_a_bandit_with_reported_successes_only_warns_once(tmp_path, caplog) -> None:
    """10,000 decisions, 1,006 rewards, all of them 1."""
    clock = Clock()
    with caplog.at_level(logging.WARNING, "driftbandit"), opened(tmp_path / "a.db", clock=clock) as bandit:
        for n in range(10):
            clock.now += 60 * SECOND
            made = bandit.decide_many(1000)
            clock.now += 60 * SECOND
            bandit.reward_many([(one.id, 1.0) for one in made[: 101 if n < 6 else 100]])
        health = bandit.health()
        assert (health["decisions"], health["rewards"]) == (10_000, 1006)
        [warning] = health["warnings"]
        assert "1,006 of 1,006 rewards are 1" in warning
        assert "change(wait=" in warning
        assert "default=0" in warning
        assert health["delays"] == "90% of rewards arrive within 1 min, 99% within 1 min."
        lines = [record.getMessage() for record in caplog.records]
        assert len(lines) == 1
        assert "button" in lines[0]
        bandit.change(wait="2 min", default=0.0)
        assert bandit.health()["warnings"] == []


@pytest.mark.parametrize("rate", [0.1, 0.9, 1.0])
def test_a_bandit_with_all_rewards_reported_warns_of_nothing(rate, tmp_path, caplog) -> None:
    rng, clock = random.Random(1), Clock()
    with opened(tmp_path / "a.db", clock=clock) as bandit:
        waiting: list[tuple[int, str, float]] = []
        for _ in range(30):
            for _ in range(50):
                clock.now += SECOND
            for one in bandit.decide_many(50):
                heapq.heappush(waiting, (rng.randrange(1000), one.id, float(rng.random() < rate)))
            for _ in range(48):  # out of order
                _, id, value = heapq.heappop(waiting)
                ticket = bandit._replica.reward([(id, value, None)])
            ticket.wait()
        assert bandit.health()["warnings"] == []
    assert not caplog.records


def test_delays_are_reported_to_an_eighth(tmp_path) -> None:
    rng, clock = random.Random(4), Clock()
    with opened(tmp_path / "a.db", clock=clock) as bandit:
        for _ in range(20):
            made = bandit.decide_many(20)
            for one in made:
                clock.now += round(rng.uniform(50, 60) * SECOND)
                bandit._replica.reward([(one.id, float(rng.random() < 0.5), None)])
        bandit.reward(bandit.decide().id, 1.0)
        assert 990 * SECOND < bandit._fold.reported.delay(0.9) < 1.125 * 1100 * SECOND
        assert bandit.health()["delays"].startswith("90% of rewards arrive within 1")


@pytest.mark.parametrize(
    ("micros", "text"), [(41 * 60 * SECOND, "41 min"), (3 * HOUR, "3 h"), (1500, "1.5 ms"), (7, "7 us")]
)
def test_a_time_in_two_digits(micros, text) -> None:
    assert format_duration(micros, 2) == text


def test_uplift_and_history_count_only_decisions_that_are_old_enough(store) -> None:
    clock = Clock()
    with opened(store, wait="1 h", holdback=0.3, baseline="red", clock=clock) as bandit:
        for _ in range(10):
            clock.now += SECOND
            made = bandit.decide_many(50)
            bandit.reward_many([(one.id, 1.0) for one in made[::5]])
        bandit.refresh()
        early = bandit.uplift()
        assert early.n_policy + early.n_baseline == 0
        assert "Too few outcomes" in str(early)
        assert sum(map(sum, bandit.history().outcomes)) == 0
        clock.now += 2 * HOUR
        bandit.settle()
        bandit.refresh()
        found = bandit.uplift()
        assert found.n_policy + found.n_baseline == 500
        assert found.policy == pytest.approx(0.2, abs=0.06)
        history = bandit.history()
        assert sum(map(sum, history.outcomes)) == 500
        assert sum(map(sum, history.rewards)) == 100


def test_an_export_leaves_open_what_waits(tmp_path) -> None:
    clock, path = Clock(), tmp_path / "a.db"
    with opened(path, wait="1 h", clock=clock) as bandit:
        bandit.decide_many(["a", "b"])
        bandit.reward("a", 1.0)
        clock.now += 2 * HOUR
        bandit.decide_many(["c", "d"])
        bandit.reward("c", 1.0)
    with rows_of(path) as rows:
        found = {row["decision"]: (row["reward"], row["outcome"]) for row in rows}
    assert found == {"a": (1.0, "reward"), "b": (0.0, "default"), "c": (None, "waiting"), "d": (None, None)}


def test_no_interval_has_width_zero(tmp_path) -> None:
    clock = Clock()
    with opened(tmp_path / "a.db", holdback=0.3, baseline="red", clock=clock) as bandit:
        bandit.reward_many([(one.id, 1.0) for one in bandit.decide_many(400)])
        found = bandit.uplift()
    assert found.difference == 0.0
    assert -0.2 < found.low < 0.0 < found.high < 0.2


# ---- what it is for --------------------------------------------------------------------------------------------------


def share_of_best(path, wait, delay, decisions, **options) -> list[float]:
    """Conversions only are reported, after an exponential delay; one decision a second, 20 in a call."""
    rng, clock, reports, played = random.Random(1), Clock(), [], []
    rates = (0.10, 0.07, 0.16, 0.08)
    options = {"wait": wait, "default": 0.0, "durability": "none", **options}
    with Bandit.open(path, "a", None, 4, seed=1, clock=clock, **options) as bandit:
        for call in range(decisions // 20):
            clock.now += 20 * SECOND
            due = []
            while reports and reports[0][0] <= clock.now:
                due.append((heapq.heappop(reports)[1], 1.0))
            bandit.reward_many(due)
            for place, one in enumerate(bandit.decide_many([f"{call}-{n}" for n in range(20)])):
                played.append(one.arm == 2)
                if rng.random() < rates[one.arm]:
                    heapq.heappush(reports, (clock.now + round(rng.expovariate(1 / delay) * SECOND), f"{call}-{place}"))
    half = decisions // 2
    return [sum(played[:half]) / half, sum(played[half:]) / half]


@pytest.mark.long
def test_the_best_arm_is_found_where_only_conversions_are_reported(tmp_path) -> None:
    """Learned on arrival the share stays near 0.4: see benchmarks/live_wait.py for the long form."""
    assert share_of_best(tmp_path / "a.db", wait=200, delay=40.0, decisions=4000)[1] > 0.8
    assert share_of_best(tmp_path / "b.db", wait=200, delay=40.0, decisions=4000, learn="arrival")[1] < 0.7


@pytest.mark.long
def test_the_best_arm_is_found_where_a_days_successes_are_reported_first(tmp_path) -> None:
    rng, clock, best = random.Random(4), Clock(), []
    with Bandit.open(tmp_path / "a.db", "a", None, 3, seed=4, clock=clock, durability="none") as bandit:
        for day in range(20):
            pairs = []
            for call in range(25):
                clock.now += 60 * SECOND
                for one in bandit.decide_many([f"{day}-{call}-{n}" for n in range(20)]):
                    best.append(one.arm == 2)
                    pairs.append((one.id, float(rng.random() < (0.05, 0.08, 0.12)[one.arm])))
            bandit.reward_many(sorted(pairs, key=lambda pair: -pair[1]))
    assert sum(best) / len(best) > 0.8
    assert sum(best[-2500:]) / 2500 > 0.9


def test_a_journal_file_holds_few_settled_events(tmp_path) -> None:
    clock = Clock()
    with opened(tmp_path / "a.db", wait="100 s", clock=clock, durability="none") as bandit:
        for _ in range(3000):
            clock.now += SECOND // 10
            bandit.decide()
    with sqlite3.connect(tmp_path / "a.db") as file:
        assert file.execute("SELECT count(*) FROM event WHERE kind = 5").fetchone()[0] < 310
    assert not is_url(str(tmp_path))
