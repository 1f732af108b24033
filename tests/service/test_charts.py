"""Charts agree with the journal, beliefs are sampled and kept, and every policy can be drawn."""

import contextlib
import random
import sqlite3
import threading
import time

import pytest

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit
from driftbandit.bandit.audit import audit
from driftbandit.bandit.beliefs import arm_beliefs
from driftbandit.bandit.opening import reading
from driftbandit.service.bandits import Bandits, WatchedBandits
from driftbandit.service.charts import HOUR, MINUTE, Charts
from driftbandit.service.looking import explain_choice
from driftbandit.service.problems import HttpProblem
from driftbandit.spec.parse import policies

START = 1_800_000_000_000_000 // HOUR * HOUR
MEANS = {"x": 0.8, "y": 0.4, "z": 0.2}


def play(bandit, charts, now, minutes):
    """Two decisions a minute by a clock that we turn; beliefs are sampled each minute."""
    rng = random.Random(1)
    for minute in range(minutes):
        now[0] = START + minute * MINUTE + 10_000_000
        made = bandit.decide_many(2)
        now[0] += 30_000_000
        bandit.reward_many([(one.id, float(rng.random() < MEANS[one.arm])) for one in made])
        now[0] = START + (minute + 1) * MINUTE
        bandit.refresh()
        charts.sample(bandit)


@pytest.fixture
def played(store):
    """Forty minutes of a bandit."""
    now = [START]
    options = {"arms": list(MEANS), "half_life": "30 min", "seed": 3}
    with (
        Bandit.open(store, "b", DiscountedTS(), clock=lambda: now[0], **options) as bandit,
        contextlib.closing(Bandits(store)) as bandits,
    ):
        charts = Charts(bandits)
        play(bandit, charts, now, 40)
        yield bandit, bandits, charts, now


def test_every_width_has_the_same_sums_and_the_last_belief_is_the_bandits(played):
    bandit, _, charts, now = played
    for points in (10, 240):
        drawn = charts.draw(bandit, None, None, points)
        assert len(drawn.history.starts) <= points
        assert sum(map(sum, drawn.history.decisions)) == 80
        assert drawn.beliefs.times[-1] == now[0]
        assert drawn.beliefs.mean[-1] == arm_beliefs(bandit.policy, bandit.state, bandit.stored).mean
    assert len(charts.draw(bandit, None, None, 240).beliefs.times) > 30
    part = charts.draw(bandit, START + 10 * MINUTE, START + 20 * MINUTE, 60)
    assert sum(map(sum, part.history.decisions)) == 20


def test_over_a_long_time_only_what_can_still_change_is_counted_again(played):
    bandit, _, charts, now = played

    def sums(points):
        charts._cache.clear()
        found = charts.draw(bandit, START - 7 * HOUR, None, points).history
        assert len(found.starts) <= points
        assert found.starts[0] <= START - 7 * HOUR
        return [[sum(column) for column in zip(*rows, strict=True)] for rows in (found.decisions, found.outcomes)]

    for points in (10, 240):
        assert sum(sums(points)[0]) == 80
    now[0] += 7 * HOUR
    bandit.add_arm("late")
    rows = []
    for n in range(5):
        made = bandit.decide_many(2)
        now[0] += MINUTE
        bandit.reward_many([(one.id, 1.0) for one in made])
        bandit.refresh()
        for points in (10, 240):
            decisions, outcomes = sums(points)
            assert (sum(decisions), decisions, len(decisions)) == (82 + 2 * n, outcomes, 4)
        rows.append(len(charts._closed[bandit.name, max(width for _, width in charts._closed)]))
    assert rows[-1] > 0


def test_after_a_restart_beliefs_of_every_ten_minutes_are_left(played):
    bandit, bandits, charts, now = played
    before = charts.beliefs(bandit, START, now[0], 240)
    after = Charts(bandits).beliefs(bandit, START, now[0], 240)
    assert len(after.times) == 5  # four, and the last again at the end
    assert set(map(tuple, after.mean)) <= set(map(tuple, before.mean))


def test_a_belief_that_does_not_change_takes_two_samples(store):
    now = [START]
    with (
        Bandit.open(store, "b", DiscountedTS(), arms=list(MEANS), seed=3, clock=lambda: now[0]) as bandit,
        contextlib.closing(Bandits(store)) as bandits,
    ):
        charts = Charts(bandits)
        play(bandit, charts, now, 1)
        for _ in range(10):
            now[0] += 1_000_000
            charts.sample(bandit)
        assert charts.beliefs(bandit, START, now[0], 1000).times == [START + MINUTE, now[0]]


def test_one_request_computes_and_others_get_the_old_answer(played, monkeypatch):
    bandit, _, charts, _ = played
    monkeypatch.setattr("driftbandit.service.charts._QUEUE", 0.05)
    begun, go = threading.Event(), threading.Event()

    def slow():
        begun.set()
        go.wait(10)
        return "new"

    thread = threading.Thread(target=lambda: charts.cached("x", bandit, slow, "a"))
    thread.start()
    assert begun.wait(10)
    with pytest.raises(HttpProblem, match="try again"):
        charts.cached("x", bandit, slow, "b")
    charts._cache["x", bandit.name, "a"] = 0.0, "old"
    assert charts.cached("x", bandit, slow, "a") == "old"
    go.set()
    thread.join(10)
    assert charts.cached("x", bandit, slow, "a") == "new"


def test_a_watched_journal_is_drawn_and_nothing_is_written(played, store):
    with contextlib.closing(WatchedBandits(store)) as watched:
        charts, view = Charts(watched), watched.get("b")
        assert not hasattr(view, "settle")
        charts.sample(view)
        drawn = charts.draw(view, START, START + HOUR, 60)
        assert sum(map(sum, drawn.history.decisions)) == 80
        assert len(drawn.beliefs.times) > 3


def finished(bandits, name):
    until = time.monotonic() + 20
    while (found := bandits.last_audit(name)).state == "running":
        assert time.monotonic() < until
        time.sleep(0.01)
    return found


def test_an_audit_names_what_another_version_decided(store, monkeypatch):
    with Bandit.open(store, "b", DiscountedTS(), arms=["x", "y"]) as bandit:
        bandit.reward_many([(one.id, 1.0) for one in bandit.decide_many(9)])
    monkeypatch.setattr(DiscountedTS, "arithmetic", 2, raising=False)
    with Bandit.open(store, "b", DiscountedTS(), arms=["x", "y"]) as bandit:
        bandit.decide_many(3)
    with contextlib.closing(WatchedBandits(store)) as bandits:
        assert bandits.last_audit("b").state == "never"
        bandits.begin_audit("b")
        found = finished(bandits, "b")
    assert (found.state, found.differences, len(found.unproved)) == ("proved in part", [], 1)
    assert found.unproved[0].startswith("9 decisions")


@pytest.mark.parametrize(
    "change", ["DELETE FROM decision WHERE id = 'd3'", "UPDATE decision SET at = at + 1 WHERE id = 'd3'"]
)
def test_an_audit_finds_a_decision_that_was_deleted_or_altered(tmp_path, change):
    path = str(tmp_path / "j.db")
    for name in ("b", "other"):
        with Bandit.open(path, name, arms=["x", "y"]) as bandit:
            bandit.decide_many([f"d{n}" for n in range(5)])
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute(f"{change} AND bandit = (SELECT number FROM bandit WHERE name = 'b')")
    with contextlib.closing(WatchedBandits(path)) as bandits:
        for name, state in (("b", "differs"), ("other", "proved")):
            bandits.begin_audit(name)
            assert finished(bandits, name).state == state
            assert bool(audit(path, name)[0].differences) == (state == "differs")
    assert [bool(report.differences) for report in audit(path)] == [True, False]


def test_an_audit_that_cannot_read_the_journal_ends_and_waiting_ones_are_limited(tmp_path, monkeypatch):
    path = str(tmp_path / "j.db")
    Bandit.open(path, "b", DiscountedTS(), arms=["x", "y"]).close()
    with contextlib.closing(WatchedBandits(path)) as bandits:
        bandits.target = str(tmp_path / "gone.db")
        bandits.begin_audit("b")
        assert finished(bandits, "b").state == "failed"
        with bandits._auditing:
            for number in range(20):
                bandits.begin_audit(f"b{number}")
            with pytest.raises(HttpProblem, match="are waiting"):
                bandits.begin_audit("b")


@pytest.mark.parametrize(
    "name", sorted(name for name, cls in policies().items() if not getattr(cls, "simulated_only", False))
)
def test_every_policy_can_be_drawn(name):
    """Whatever a policy keeps, its beliefs are lists of numbers or None, and those that count know how often."""
    cls = policies()[name]
    try:
        policy = cls(base=DiscountedTS()) if "base" in cls._fields else cls()
    except (TypeError, ValueError):
        policy = cls.tuned(10_000, 5, 4)
    bandit = Bandit(4, policy, seed=1)
    for number in range(40):
        decision = bandit.decide(f"d{number}")
        bandit.reward(decision.id, 0.25 * decision.arm)
    found = arm_beliefs(bandit.policy, bandit.state, bandit.stored)
    assert [len(row) for row in found] == [4, 4, 4]
    if any(weight is not None for weight in found.weight):
        assert sum(found.weight) > 0.0
    for arm, mean in enumerate(found.mean):
        if mean is not None and (found.weight[arm] or 0.0) >= 3.0:
            assert mean == pytest.approx(0.25 * arm, abs=0.35)


def test_why_skips_a_damaged_snapshot_as_everything_else_does(tmp_path):
    path = tmp_path / "j.db"
    with Bandit.open(path, "x", DiscountedTS(), ["a", "b"], snapshot_every=5) as bandit:
        for n in range(12):
            bandit.decide(f"d{n}")
            bandit.reward(f"d{n}", n % 2)
    connection = sqlite3.connect(path)
    assert connection.execute("UPDATE snapshot SET body = ?", ("not JSON",)).rowcount == 2
    connection.commit()
    connection.close()
    with contextlib.closing(reading(path)) as journal:
        assert explain_choice(journal, "x", "d11").proved
