"""Does the best arm move, and does forgetting pay: environments whose answer is known."""

import math

import numpy as np
import pytest

from driftbandit.environments import phased
from driftbandit.logs import Log, drift, estimate_means
from driftbandit.logs.drift import Cells, estimates, scores
from driftbandit.logs.estimates import (
    DAY,
    HOUR,
    MONTH,
    WEEK,
    block_length,
    format_duration,
    parse_duration,
    period_of,
    scales,
)
from driftbandit.logs.log import warnings_about
from naive.simulated_logs import adaptive_log, uniform_log

SWAPS = phased([[0.25, 0.65, 0.4], [0.65, 0.25, 0.4]] * 5, range(0, 10_000, 1000), 10_000)
STILL = phased([[0.3, 0.5, 0.4]], [0], 10_000)


def tides(n=10_000):
    """Levels that move together by 0.1, gaps that stay."""
    shift = np.random.default_rng(5).normal(0.0, 0.1, (40, 1))
    return phased(np.clip(np.array([0.3, 0.5, 0.4]) + shift, 0.02, 0.98), range(0, n, n // 40), n)


def test_a_ranking_that_moves_is_distinguished_from_levels_that_move_and_from_nothing():
    assert drift(uniform_log(SWAPS, seed=1)).verdict == "ranking"
    found = drift(uniform_log(tides(40_000), seed=1))
    assert found.verdict == "levels"
    assert "the ranking does not: forgetting will not pay" in found.sentence
    assert drift(uniform_log(STILL, seed=2)).verdict == "nothing"


def test_the_recommendation_is_the_default_where_something_changes_and_never_a_half_life():
    """And where the log is too short to exclude that forgetting pays."""
    assert drift(uniform_log(SWAPS, seed=1)).policy == "drift-ts"
    assert drift(uniform_log(tides(40_000), seed=1)).policy == "drift-ts"
    still = drift(uniform_log(phased([[0.3, 0.5, 0.4]], [0], 40_000), seed=2))
    assert still.policy == "ts"
    assert "never forgets, or the default policy" in str(still)
    short = drift(uniform_log(phased([[0.01, 0.012, 0.02]], [0], 9000), seed=1))
    assert short.policy == "drift-ts"
    for found in (still, short):
        assert "half-life" not in str(found)
        assert str(found).count("Use ") == 1


@pytest.mark.long
def test_a_stationary_log_is_seldom_reported_as_drifting():
    """Of 60 logs at most 9 may be: at the 5 % meant, more happen in one suite of 700."""
    found = [drift(uniform_log(STILL, seed=seed)).verdict for seed in range(60)]
    assert sum(verdict != "nothing" for verdict in found) <= 9


def test_equal_arms_are_not_said_to_change_places():
    """Of 40 logs at most 5 may be: at the 2.5 % meant, more happen in one suite of 3,000. It once was one in six."""
    still = phased([[0.4, 0.4, 0.4]], [0], 6000)
    found = [drift(uniform_log(still, seed=seed)).verdict for seed in range(40)]
    assert found.count("ranking") <= 5


def test_no_interval_of_a_scale_is_narrower_than_students():
    """Four scales share 5 %: 99.375 % to either side, which are 2.5 standard errors at the least."""
    for seed in range(4):
        for scale in drift(adaptive_log(STILL, seed=seed)).scales:
            for gain in (scale.current, scale.last):
                assert min(gain.mean - gain.low, gain.high - gain.mean) >= 2.5 * gain.error


def test_a_log_that_is_too_short_does_not_say_that_forgetting_will_not_pay():
    short = drift(uniform_log(phased([[0.01, 0.012, 0.02]], [0], 9000), seed=1))
    assert short.verdict == "nothing"
    assert "no sign that forgetting pays, but gains up to" in short.sentence
    assert "will not pay" not in short.sentence


def come_and_go(means, seed):
    """A log in which arm 2 is there every other stretch of 500 events; `means` are each event's."""
    rng = np.random.default_rng(seed)
    n = len(means)
    there = np.arange(n) // 500 % 2 == 0
    arm = rng.integers(0, np.where(there, 3, 2))
    reward = (rng.random(n) < means[np.arange(n), arm]).astype(float)
    columns = {"time": np.arange(n), "arm": arm, "reward": reward, "propensity": np.where(there, 1 / 3, 1 / 2)}
    return Log({**columns, "available": np.where(there, "0|1|2", "0|1")})


def test_where_the_best_arm_comes_and_goes_a_fixed_order_is_hard_to_beat():
    found = drift(come_and_go(np.tile([0.3, 0.5, 0.7], (12_000, 1)), seed=4))
    assert found.verdict == "nothing"
    assert max(scale.last.mean for scale in found.scales) < 0.01
    assert any("Arm 2 was available at 50%" in text for text in found.warnings)


def test_a_ranking_that_moves_while_the_best_arm_is_away_is_seen():
    """Arms 0 and 1 change places. Arm 2 is better than both, but cannot be played where it is not."""
    second = np.arange(12_000) // 1500 % 2
    means = np.stack([np.where(second, 0.2, 0.6), np.where(second, 0.6, 0.2), np.full(12_000, 0.8)], axis=1)
    found = drift(come_and_go(means, seed=4))
    assert found.verdict == "ranking"
    assert 0.03 < max(scale.last.mean for scale in found.scales) < 0.1  # half of the time, half of 0.4, for an oracle


def test_the_movements_are_about_as_large_as_they_are():
    """Levels move by 0.1, but for noise and for what periods longer than 250 rounds average away."""
    finest = drift(uniform_log(tides(), seed=2)).scales[0]
    assert finest.level == pytest.approx(0.1, rel=0.35)
    assert finest.ranking < 0.05
    swapping = drift(uniform_log(SWAPS, seed=2)).scales[1]
    assert swapping.ranking == pytest.approx(math.sqrt(2 / 3) * 0.2, rel=0.35)  # two arms by 0.2, one by nothing


def test_late_rewards_do_not_count_for_the_best_of_the_last_period():
    """Arms change places every 1000 rounds. Known at once, last period's best gains; heard of 1000 rounds late it is
    the worst of the two, and the sentence must not say that forgetting can pay."""
    events = uniform_log(SWAPS, seed=1).whole()
    columns = {"time": events.time, "arm": events.arm, "reward": events.reward}
    at_once = drift(Log(columns, propensity="uniform"))
    late = drift(Log({**columns, "reward_time": events.time + 1000.0}, propensity="uniform"))
    assert at_once.verdict == "ranking"
    assert late.verdict == "unclear"
    assert "forgetting can pay" not in late.sentence
    for one, two in zip(at_once.scales, late.scales, strict=True):
        assert one.current == two.current
    assert late.scales[1].last.high < 0.0 < at_once.scales[1].last.low
    never = drift(Log({**columns, "reward_time": [None] * 9000 + list(events.time[9000:])}, propensity="uniform"))
    assert never.verdict != "ranking"


def dated(means, n, days, seed):
    """An even log over so many days; `means(t, rng)` gives the arms' means at seconds t."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, days * DAY, n))
    truth = means(t, rng)
    arm = rng.integers(0, truth.shape[1], n)
    reward = (rng.random(n) < truth[np.arange(n), arm]).astype(float)
    return Log(
        {"time": np.datetime64("2026-01-01", "s") + t.astype("m8[s]"), "arm": arm, "reward": reward},
        propensity="uniform",
    )


def test_a_ranking_that_lasts_a_day_is_not_said_to_be_gone():
    """New means every day: a memory of hours can follow them, one of a day cannot. From hour to day it is far; that
    neither gains for sure does not prove that nothing does."""
    drawn = np.random.default_rng(5).normal(0.5, 0.1, (130, 3))
    log = dated(lambda t, rng: np.clip(drawn[(t // DAY).astype(int)], 0.02, 0.98), 40_000, 120, 5)
    found = drift(log)
    assert found.verdict in ("ranking", "unclear")
    assert "does not stay" not in found.sentence
    hours = drift(
        dated(lambda t, rng: np.clip(rng.normal(0.5, 0.2, (3000, 3))[(t // HOUR).astype(int)], 0, 1), 40_000, 60, 5)
    )
    assert hours.verdict == "unclear"


def test_scores_are_sums_of_weighted_rows():
    rng = np.random.default_rng(0)
    n, k = 60, 3
    arm, mu, reward, period = rng.integers(0, k, n), rng.uniform(0.2, 0.5, n), rng.random(n), np.arange(n) // 20
    base = np.array([0.3, 0.5, 0.6])
    cells = Cells(*(np.zeros(shape) for shape in ((3, 1), (3, k, 1), (3, k, 1), (3, k), (3, k), (3, k))))
    expected = np.zeros((3, k))
    for t in range(n):
        p, a = period[t], arm[t]
        cells.events[p, 0] += 1
        cells.weight[p, a, 0] += 1 / mu[t]
        cells.reward[p, a, 0] += reward[t] / mu[t]
        expected[p] += base + np.eye(k)[a] * (reward[t] - base) / mu[t]
    assert np.allclose(scores(cells, 0, base), expected)


def test_an_arm_not_seen_on_a_bad_day_does_not_look_good():
    """Arms 0 and 1 fall by 0.3 on a day without rows of arm 2: it is taken to have fallen too, and stays the worst."""
    base, lean = np.array([0.6, 0.5, 0.4]), np.full(3, 30.0)
    weight = np.array([[300.0, 300.0, 0.0]])
    reward = weight * (base - 0.3)
    assert estimates(weight, reward, base, lean)[0].argmax() == 0


def test_a_half_life_shorter_than_the_delay_is_warned_of_first():
    events = adaptive_log(SWAPS, seed=3).whole()
    columns = {"time": events.time, "arm": events.arm, "reward": events.reward, "propensity": events.propensity}
    late = Log({**columns, "reward_time": events.time + 900.0})
    found = warnings_about(late, [100.0, 1000.0])
    assert found[0].startswith("Half of the rewards come 900 late or later, longer than a half-life of 100:")
    assert any("adaptive logger" in text for text in found[1:])
    assert not any("late" in text for text in warnings_about(late, [1000.0]))


def test_a_log_with_few_rewards_is_not_refused():
    n = 2000
    rare = {"time": np.arange(n), "arm": np.arange(n) % 2, "reward": (np.arange(n) % 40 == 0) * 1.0}
    found = drift(Log(rare, propensity="uniform"))
    assert found.verdict == "cannot tell"
    assert "it has 50" in found.sentence
    assert found.policy == "drift-ts"
    with pytest.raises(ValueError, match="An interval needs at least 8"):
        drift(uniform_log(SWAPS, seed=1), block=5000)


def test_the_means_of_a_log_make_a_environment_like_it():
    log = uniform_log(SWAPS, seed=6)
    made = estimate_means(log)
    again = made.environment().means(0, log.n)
    error = np.sqrt(((again - SWAPS.means(0, log.n)) ** 2).mean())
    assert error < 0.1  # the spread over time is 0.16
    assert made.bandwidth < 20
    still = estimate_means(uniform_log(STILL, seed=6))
    assert np.sqrt(((still.environment().means(0, 10_000) - STILL.means(0, 10_000)) ** 2).mean()) < 0.03


def test_lengths_of_time_are_read_and_said():
    assert [parse_duration(text) for text in ("6 h", "6h", "90 min", "2 weeks", 5)] == [
        21600.0, 21600.0, 5400.0, 2 * WEEK, 5.0,
    ]  # fmt: skip
    for bad in ("6 parsecs", "", "-1 h", "0 h", "1.2.3 h"):
        with pytest.raises(ValueError, match="length of time"):
            parse_duration(bad)
    for seconds in (90.0, 5400.0, DAY, 3 * DAY, 2 * WEEK, 32 * WEEK):
        assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, rel=0.01)


def test_periods_follow_the_calendar():
    start = float(np.datetime64("2026-01-30T22:00", "s").astype(np.int64))
    time = start + HOUR * np.array([0.0, 1.9, 2.0, 26.0, 50.0, 74.0])
    assert period_of(time, start, DAY, True).tolist() == [0, 0, 1, 2, 3, 4]
    assert period_of(time, start, MONTH, True).tolist() == [0, 0, 0, 1, 1, 1]
    assert period_of(time, start, WEEK, True).tolist() == [0, 0, 0, 0, 1, 1]  # 2 February is a Monday
    assert list(scales(0.0, 40 * DAY, True)) == ["hour", "6 hours", "day", "week"]
    assert block_length(0.0, 365 * DAY, True) == WEEK
    assert block_length(0.0, 30 * DAY, True) == DAY


def test_rewards_that_came_after_the_log_say_nothing():
    events = uniform_log(SWAPS, seed=3).whole()
    columns = {"time": events.time, "arm": events.arm, "reward": events.reward}
    for late in ([None] * events.n, events.time + 20_000.0):
        found = drift(Log({**columns, "reward_time": late}, propensity="uniform"))
        assert found.verdict == "cannot tell"
        assert any("Only 0 rewards became known" in text for text in found.warnings)


def test_no_interval_has_width_zero():
    """Arms so far apart that every choice is right, and rewards that never differ within an arm."""
    n = 4000
    arm = np.random.default_rng(0).integers(0, 2, n)
    for scale in drift(Log({"time": np.arange(n), "arm": arm, "reward": arm}, propensity="uniform")).scales:
        assert scale.current.low < scale.current.high
        assert scale.last.low < scale.last.high


def test_a_log_of_successes_only_is_refused_in_a_sentence():
    rng = np.random.default_rng(0)
    n = 10_000
    reward = [1.0 if r < 0.1006 else None for r in rng.random(n)]
    columns = {"time": np.arange(n), "arm": rng.integers(0, 3, n), "reward": reward}
    columns["outcome"] = ["reward" if r else None for r in reward]  # as in the export of a journal
    log = Log(columns, propensity="uniform")
    with pytest.raises(
        ValueError, match=f"All {log.n:,} rewards are 1 and {n - log.n:,} decisions have no reward: only"
    ):
        drift(log)
    columns["reward"][int(np.flatnonzero([r == 1.0 for r in reward])[7])] = 0.0
    nearly = drift(Log(columns, propensity="uniform"))
    assert any("only successes seem to be reported" in text for text in nearly.warnings)
