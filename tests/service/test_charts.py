"""Charts agree with the journal: what is sampled as time goes by, what is filled in afterwards, and the rows."""

import contextlib
import itertools
import random
import sqlite3
import threading
import time

import pytest

from driftbandit import DiscountedTS
from driftbandit.live import Bandit
from driftbandit.live.opening import policy_maker, reading
from driftbandit.service.bandits import WatchedBandits
from driftbandit.service.charts import jobs as chart_jobs
from driftbandit.service.charts import recorder
from driftbandit.service.charts.beliefs import Believed, Sample, alarms_of, believed
from driftbandit.service.charts.jobs import ChartTrace, Jobs
from driftbandit.service.charts.recorder import DAY, HOUR, MINUTE, ChartCell, Track, join
from driftbandit.service.charts.series import Charts
from driftbandit.service.handlers.looking import explain_choice
from driftbandit.text.registry import policies

START = 1_800_000_000_000_000 // HOUR * HOUR


MEANS = {"x": 0.8, "y": 0.4, "z": 0.2}


class Held:
    """What a recorder asks of a service's bandits, for one bandit with a clock of its own."""

    read_only = False

    def __init__(self, bandit, journal):
        self.held, self.journal = {bandit.name: bandit}, journal


@pytest.fixture
def played(store):
    """Three hours of a bandit, two decisions a minute, by a clock that we turn; the recorder looks on each minute."""
    now = [START]
    with Bandit.open(
        store, "b", DiscountedTS(), arms=list(MEANS), half_life="30 min", seed=3, clock=lambda: now[0]
    ) as bandit:
        journal = reading(store)
        track = Track(bandit, journal, write=True)
        rng = random.Random(1)
        for minute in range(180):
            now[0] = START + minute * MINUTE + 10_000_000
            made = bandit.decide_many(2)
            now[0] += 30_000_000
            bandit.reward_many([(one.id, float(rng.random() < MEANS[one.arm])) for one in made])
            now[0] = START + (minute + 1) * MINUTE
            bandit.refresh()
            track.tick(now[0])
        now[0] += 10_000_000
        track.tick(now[0])
        bandit._writer.submit([]).wait()
        yield bandit, journal, track, now
        journal.close()


def test_cells_are_what_the_rows_come_to(played):
    bandit, journal, _, _ = played
    number = bandit._number
    minutes = journal.charts(number, MINUTE, 0, 1 << 62)
    hours = journal.charts(number, HOUR, 0, 1 << 62)
    assert (len(minutes), len(hours)) == (180, 3)
    for width, rows in ((MINUTE, minutes), (HOUR, hours)):
        for start, body in rows:
            cell = ChartCell.read(body)
            made, came, total = [0, 0, 0], [0, 0, 0], [0.0, 0.0, 0.0]
            for _, slot, _, decided, outcomes, rewards in journal.tally(number, start, start + width, width):
                made[slot] += decided
                came[slot] += outcomes
                total[slot] += rewards
            assert (cell.decisions, cell.outcomes, cell.rewards) == (made, came, total)


def test_every_width_of_question_gets_the_same_sums(played):
    bandit, journal, track, now = played
    charts = Charts(Held(bandit, journal))
    charts.recorder.tracks["b"] = track
    sums = set()
    for points in (3, 10, 60, 240, 1000):
        history = charts.counts(bandit, track, START, now[0] + 1, points)
        assert len(history.starts) <= points + 1
        assert history.starts == sorted(history.starts)
        sums.add(tuple(map(sum, zip(*history.decisions, strict=True))))
    assert len(sums) == 1
    assert sum(sums.pop()) == 360
    part = charts.counts(bandit, track, START + HOUR, START + 2 * HOUR, 60)
    assert sum(map(sum, part.decisions)) == 120


@pytest.mark.parametrize("learn", ["wait", "arrival"])
def test_with_wait_an_outcome_counts_when_its_decision_is_that_old(learn, store):
    """Otherwise a success counts at once and a failure after the wait, so rates of the last hours are wrong.
    Successes only are reported, after a minute; the rate of every stretch of time is that of the decisions then due."""
    now, wait = [START], 10 * MINUTE
    with (
        Bandit.open(
            store, "b", DiscountedTS(), arms=list(MEANS), wait="10 min", learn=learn, seed=3, clock=lambda: now[0]
        ) as bandit,
        contextlib.closing(reading(store)) as journal,
    ):
        track, rng, made = Track(bandit, journal, write=True), random.Random(1), []
        charts = Charts(Held(bandit, journal))
        charts.recorder.tracks["b"] = track
        for minute in range(75):
            now[0] = START + minute * MINUTE + 10_000_000
            share = 20 if minute < 45 else 2  # so that successes of now and failures of then differ in number
            for one in bandit.decide_many(share):
                made.append((now[0], one, float(rng.random() < MEANS[one.arm])))
            now[0] += 45_000_000
            bandit.reward_many([(one.id, 1.0) for _, one, won in made[-share:] if won])
            bandit.settle()
            bandit.refresh()
            track.tick(now[0])
        bandit._writer.submit([]).wait()
        ranges = ((50, 70, 20), (30, 70, 8), (70, 75, 5), (0, 75, 10), (0, 8, 4))
        for first, last, points in ranges:
            begin, end = START + first * MINUTE, START + last * MINUTE
            due = [(one, won) for at, one, won in made if begin - wait <= at < end - wait]
            expected = [[sum(1 for one, _ in due if one.arm == arm) for arm in MEANS],
                        [sum(won for one, won in due if one.arm == arm) for arm in MEANS]]  # fmt: skip
            drawn = charts.counts(bandit, track, begin, end, points)
            for history in (drawn, bandit._history(begin, end, points)):
                found = [list(map(sum, zip(*rows, strict=True))) for rows in (history.outcomes, history.rewards)]
                assert found == expected


def test_what_is_filled_in_afterwards_is_what_was_seen_at_the_time(played):
    bandit, journal, _, _ = played
    trace = ChartTrace(journal, bandit._number, MINUTE)
    trace.advance()
    filled = {found.at: found for found in trace.samples}
    compared = 0
    for start, body in journal.charts(bandit._number, MINUTE, 0, 1 << 62):
        cell, found = ChartCell.read(body), filled.get(start + MINUTE)
        if found is not None and found.n == cell.last.n:
            again = [*found.belief.mean, *found.belief.spread, *found.belief.weight]
            for seen, value in zip(itertools.chain(*cell.last.belief), again, strict=True):
                assert seen is value is None or seen == pytest.approx(value, rel=1e-4)
            compared += 1
    assert compared > 150


def test_a_journal_without_cells_is_filled_and_watched_without_writing(played, store):
    _, _, _, now = played
    watched = WatchedBandits(store)
    try:
        view = watched.get("b")
        with pytest.raises(ValueError, match="writes nothing"):
            view.settle()
        charts = Charts(watched)
        fresh = Track(view, watched.journal, write=False)
        fresh.closed, fresh.lacks = dict.fromkeys(fresh.closed, START), True
        charts.recorder.tracks["b"] = fresh
        fresh.fill(threading.Event())
        fresh.memory.clear()
        for _ in range(4):
            fresh.close_cells(now[0])
        assert len([key for key in fresh.memory if key[0] == MINUTE]) == 180
        sums = charts.counts(view, fresh, START, now[0] + 1, 30)
        assert sum(map(sum, sums.decisions)) == 360
        series, _ = charts.beliefs(fresh, START, now[0], 100, 3)
        assert len(series.times) >= 60
    finally:
        watched.close()


def test_another_half_life_is_the_fold_of_a_bandit_that_always_had_it(played, tmp_path):
    """Rewards played again to a bandit with the other half-life leave the same beliefs."""
    bandit, journal, _, now = played
    trace = ChartTrace(journal, bandit._number, MINUTE, (bandit.config.policy, 5 * MINUTE))
    trace.advance()
    bandit.change(half_life="5 min")
    state = trace.fold.player.arrays(now[0])
    for mine, theirs in zip(state, bandit.state, strict=True):
        assert mine.tolist() == theirs.tolist()


def test_an_audit_names_what_another_version_decided(store, monkeypatch):
    with Bandit.open(store, "b", DiscountedTS(), arms=["x", "y"]) as bandit:
        bandit.reward_many([(one.id, 1.0) for one in bandit.decide_many(9)])
    monkeypatch.setattr(DiscountedTS, "arithmetic", 2, raising=False)
    with Bandit.open(store, "b", DiscountedTS(), arms=["x", "y"]) as bandit:
        bandit.decide_many(3)
        jobs = Jobs(store)
        jobs.audit(bandit, begin=True)
        until = time.monotonic() + 20
        while (found := jobs.audit(bandit, begin=False)).state == "running":
            assert time.monotonic() < until
            time.sleep(0.02)
        jobs.close()
    assert (found.state, found.differences, len(found.unproved)) == ("proved in part", [], 1)
    assert found.unproved[0].startswith("9 decisions")


def test_a_job_that_is_refused_or_cannot_read_the_journal_does_not_run_forever(tmp_path, monkeypatch):
    db = str(tmp_path / "j.db")
    with Bandit.open(db, "b", DiscountedTS(), arms=["x", "y"]) as bandit:
        bandit.decide_many(9)
        jobs = Jobs(str(tmp_path / "gone.db"))
        jobs.audit(bandit, begin=True)
        until = time.monotonic() + 10
        while jobs.audit(bandit, begin=False).state == "running":
            assert time.monotonic() < until
            time.sleep(0.01)
        assert jobs.audit(bandit, begin=False).state == "failed"
        while jobs.what_if(bandit, "ts", None).state == "running":
            assert time.monotonic() < until
            time.sleep(0.01)
        monkeypatch.setattr(chart_jobs, "MOST_WAITING", 0)
        for ask in (lambda: jobs.audit(bandit, begin=True), lambda: jobs.what_if(bandit, "ds-ts", None)):
            for _ in range(2):
                with pytest.raises(ValueError, match="try again"):
                    ask()
        assert jobs.audit(bandit, begin=False).state == "failed"
        jobs.close()


def test_fewer_samples_when_there_would_be_too_many(played):
    bandit, journal, _, _ = played
    trace = ChartTrace(journal, bandit._number, 1_000_000, None, 20)
    trace.advance()
    assert 10 <= len(trace.samples) <= 41
    assert [found.at for found in trace.samples] == sorted({found.at for found in trace.samples})


def test_old_cells_give_way_to_coarser_ones_and_every_question_is_still_answered(store, monkeypatch):
    """Six days, with minutes kept for one and hours for three."""
    monkeypatch.setattr(recorder, "_KEPT", {MINUTE: DAY, HOUR: 3 * DAY})
    start, now = START // DAY * DAY, [START // DAY * DAY]
    with Bandit.open(store, "b", DiscountedTS(), arms=["x", "y"], half_life="1 d", clock=lambda: now[0]) as bandit:
        journal = reading(store)
        track = Track(bandit, journal, write=True)
        for quarter in range(24):
            now[0] = start + quarter * DAY // 4 + 90 * MINUTE
            bandit.reward_many([(one.id, 1.0) for one in bandit.decide_many(3)])
            bandit.refresh()
            track.tick(now[0])
            now[0] = start + (quarter + 1) * DAY // 4 + 10_000_000
            track.tick(now[0])
            bandit._writer.submit([]).wait()
        number = bandit._number
        minutes, hours, days = (journal.charts(number, width, 0, 1 << 62) for width in (MINUTE, HOUR, DAY))
        assert (len(minutes), len(hours), len(days)) == (4, 12, 6)
        assert (minutes[0][0] - start) // DAY == 5
        assert (hours[0][0] - start) // DAY == 3
        for watching in (track, Track(bandit, journal, write=True)):  # as it went, and after a restart
            assert not watching.lacks
            charts = Charts(Held(bandit, journal))
            for points in (2, 5, 20, 100, 1000):
                history = charts.counts(bandit, watching, start, now[0] + 1, points)
                assert sum(map(sum, history.decisions)) == 72
                assert sum(map(sum, history.rewards)) == 72
                series, _ = charts.beliefs(watching, start, now[0], points, 2)
                assert len(series.times) >= min(points, 6)
            old = charts.counts(bandit, watching, start + HOUR, start + 2 * HOUR, 60)  # the rows tell it by the minute
            assert (old.width, sum(map(sum, old.decisions))) == (MINUTE, 3)
        journal.close()


def test_a_bandit_that_slept_for_longer_than_its_minutes_are_kept_is_not_read_again(store, monkeypatch):
    monkeypatch.setattr(recorder, "_KEPT", {MINUTE: DAY, HOUR: 3 * DAY})
    start, now = START // DAY * DAY, [START // DAY * DAY]
    with Bandit.open(store, "b", DiscountedTS(), arms=["x", "y"], half_life="1 d", clock=lambda: now[0]) as bandit:
        journal = reading(store)
        track = Track(bandit, journal, write=True)
        bandit.reward_many([(one.id, 1.0) for one in bandit.decide_many(9)])
        bandit.refresh()
        track.tick(now[0])
        for quarter in range(1, 14):
            now[0] = start + quarter * DAY // 4 + 10_000_000
            track.tick(now[0])
        bandit._writer.submit([]).wait()
        assert journal.charts(bandit._number, MINUTE, 0, 1 << 62) == []
        again = Track(bandit, journal, write=True)
        assert not again.lacks
        assert again.closed[MINUTE] >= start + DAY
        journal.close()


def test_cells_of_different_sizes_join():
    one = ChartCell([1, 2], [1, 1], [0.5, 0.5], Sample(7, Believed([0.1, None], [0.2, 0.2], [1.0, 0.0]), None, 5))
    two = ChartCell(
        [1, 1, 4], [0, 0, 1], [0.0, 0.0, 1.0], Sample(8, Believed([0.2, 0.3, 0.4], [0.1] * 3, [2.0] * 3), 1, 9)
    )
    assert join([one, two]).decisions == [2, 3, 4]
    assert join([one, two]).last == two.last
    for cell in (one, two, two._replace(last=None)):
        assert ChartCell.read(cell.text()) == cell
    assert ChartCell.read('{"decisions": []}') is None


@pytest.mark.parametrize(
    "name", sorted(name for name, cls in policies().items() if not getattr(cls, "simulated_only", False))
)
def test_every_policy_can_be_drawn(name, tmp_path):
    """Whatever a policy keeps, its beliefs are lists of numbers or None, and those that count know how often."""
    from driftbandit.text.parse import parse_policy

    cls = policies()[name]
    try:
        given = "base=ds-ts" if "base" in cls._fields else ""
        policy = parse_policy(f"{name}({given})" if given else name)
    except ValueError:
        policy = cls.tuned(10_000, 5, 4)
    with Bandit.open(str(tmp_path / "j.db"), "b", policy, arms=4, seed=1, durability="none") as bandit:
        for number in itertools.islice(itertools.count(), 40):
            decision = bandit.decide(f"d{number}")
            bandit.reward(decision.id, 0.25 * decision.arm)
        found = believed(bandit.policy, bandit.state, bandit.config)
        assert [len(row) for row in found] == [4, 4, 4]
        alarms_of(bandit.state)
        if any(weight is not None for weight in found.weight):
            assert sum(found.weight) > 0.0
        for arm, mean in enumerate(found.mean):
            if mean is not None and (found.weight[arm] or 0.0) >= 3.0:
                assert mean == pytest.approx(0.25 * arm, abs=0.35)
        assert policy_maker()(bandit.config.policy) == policy


@pytest.mark.parametrize("body", ["{}", "not JSON", '{"fold": {}, "cursor": 3, "after": [0, ""]}'])
def test_why_skips_a_damaged_snapshot_as_everything_else_does(body, tmp_path):
    path = tmp_path / "j.db"
    with Bandit.open(path, "x", DiscountedTS(), ["a", "b"], snapshot_every=5) as bandit:
        for n in range(12):
            bandit.decide(f"d{n}")
            bandit.reward(f"d{n}", n % 2)
    connection = sqlite3.connect(path)
    assert connection.execute("UPDATE snapshot SET body = ?", (body,)).rowcount == 2
    connection.commit()
    connection.close()
    journal = reading(path)
    assert explain_choice(journal, 1, "d11").proved
    journal.close()
