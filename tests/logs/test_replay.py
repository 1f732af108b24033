"""What policies would have earned: intervals that hold the truth, and what can be said of little."""

import numpy as np
import pytest

from driftbandit.environments import phased
from driftbandit.logs import Log, drift, replay
from naive.simulated_logs import uniform_log

STILL = phased([[0.3, 0.5, 0.4]], [0], 1500)


def rare_log(seed, n=4000, k=3, rate=0.006):
    rng = np.random.default_rng(seed)
    columns = {"time": np.arange(n), "arm": rng.integers(0, k, n), "reward": rng.random(n) < rate}
    return Log(columns, propensity="uniform")


def intervals(result):
    for line in result.lines:
        yield from (e for e in (line.value, line.own, line.over_ts, line.over_best, line.over_logger) if e is not None)
    yield result.logger
    yield result.best_value


@pytest.mark.long
def test_the_policy_that_equals_the_logger_gains_nothing_by_intervals_that_hold_the_truth():
    """Its value is 0.4 and its gain over the logger 0. Of 60 intervals of 95%, fewer than 50 hold the truth in one
    suite of 1,500; once it was none of 60, at width 0."""
    value = gain = arm = 0
    for seed in range(60):
        result = replay(uniform_log(STILL, seed=seed), ["uniform", "fixed(1)"], own=False)
        _, uniform, fixed = result.lines
        value += uniform.value.low <= 0.4 <= uniform.value.high
        gain += uniform.over_logger.low <= 0.0 <= uniform.over_logger.high
        arm += fixed.value.low <= 0.5 <= fixed.value.high
        assert uniform.over_logger.low < uniform.over_logger.high
    assert min(value, gain, arm) >= 50


def test_no_interval_has_width_zero_or_leaves_the_rewards():
    """Also not for a policy compared with itself, or for rewards that never differ."""
    same = Log({"time": np.arange(900), "arm": np.arange(900) % 2, "reward": np.ones(900)}, propensity="uniform")
    for log in (same, rare_log(1), uniform_log(STILL, seed=1)):
        policies = {"ts": "ts", "again": "ts", "uniform": "uniform", "first": "fixed(0)"}
        result = replay(log, policies, own=False)
        for estimate in intervals(result):
            assert estimate.low < estimate.high
        for line in result.lines:
            assert 0.0 <= line.value.low <= line.value.mean <= line.value.high <= 1.0


def test_a_range_of_rewards_is_kept_to():
    events = rare_log(3).whole()
    cents = {"time": events.time, "arm": events.arm, "reward": 50.0 + 100.0 * events.reward}
    result = replay(Log(cents, propensity="uniform", reward_range=(50, 150)), ["uniform"], own=False)
    assert all(50.0 <= line.value.low < line.value.high <= 150.0 for line in result.lines)


def revenue_log(seed, n, scale=1.0, shift=0.0):
    """One purchase in ten. Arm 1 earns most in the first half, arm 0 in the second."""
    rng = np.random.default_rng(seed)
    arm, second = rng.integers(0, 2, n), np.arange(n) * 2 // n
    spent = np.where(rng.random(n) < 0.1, rng.lognormal(np.where(arm == second, 3.0, 4.0), 0.4), 0.0)
    return Log({"time": np.arange(n), "arm": arm, "reward": shift + scale * spent}, propensity="uniform")


def test_rewards_of_any_scale_need_no_range():
    """The default policy is that of bandits. Values are in the unit of the rewards, and choices do not depend on it."""
    plain = replay(revenue_log(1, 1200), own=False, compiled=False)
    cents = replay(revenue_log(1, 1200, 128.0, -512.0), own=False, compiled=False)
    assert [line.label for line in plain.lines] == ["ts", "drift-auto"]
    for one, other in zip(plain.lines, cents.lines, strict=True):
        for name in ("low", "mean", "high"):
            assert getattr(other.value, name) == pytest.approx(128.0 * getattr(one.value, name) - 512.0, rel=1e-9)


def test_drift_is_found_in_revenue_without_a_range():
    found = drift(revenue_log(2, 40_000))
    assert found.verdict == "ranking"
    assert found.policy == "drift-auto"


def test_rare_rewards_are_not_refused_and_their_intervals_hold_the_truth():
    """24 rewards in 4,000 rows. Of 60 intervals fewer than 50 hold the truth in one suite of 1,500."""
    uniform = fixed = 0
    for seed in range(60):
        result = replay(rare_log(seed), ["uniform", "fixed(0)"], own=False)
        assert any("rewards differ from the rest" in text for text in result.warnings)
        uniform += result.lines[1].value.low <= 0.006 <= result.lines[1].value.high
        fixed += result.lines[2].value.low <= 0.006 <= result.lines[2].value.high
    assert min(uniform, fixed) >= 50


def test_the_best_arm_in_hindsight_bounds_what_does_not_learn():
    """By the same estimator no mixture of arms has more; once uniform play gained +0.29 [+0.03, +0.60] over it."""
    for seed in range(20):
        result = replay(rare_log(seed, n=1500, k=5), ["uniform", *(f"fixed({arm})" for arm in range(5))], own=False)
        for line in result.lines[1:]:
            assert line.over_best.mean <= 1e-12
            assert line.over_best.low <= 0.0
        best = next(line for line in result.lines if line.label == f"fixed({result.best_arm})")
        assert best.value.mean == pytest.approx(result.best_value.mean)


def test_policies_are_printed_side_by_side_with_their_differences():
    result = replay(uniform_log(STILL, seed=1), ["ds-ts(gamma=[0.9, 0.99])"], own=False)
    assert [line.label for line in result.lines] == ["ts", "ds-ts(gamma=0.9)", "ds-ts(gamma=0.99)"]
    assert result.lines[0].over_ts is None
    means = [line.value.mean for line in result.lines]
    assert result.lines[2].over_ts.mean == pytest.approx(means[2] - means[0])
    assert result.to_dict()["lines"][2]["over_ts"]["mean"] == pytest.approx(means[2] - means[0])


def test_what_the_log_hardly_holds_has_no_value_and_the_rest_has():
    """A logger that plays one arm once in 400 events."""
    rng = np.random.default_rng(0)
    n = 4000
    arm = (rng.random(n) < 0.0025).astype(int)
    mu = np.where(arm == 1, 0.0025, 0.9975)
    log = Log({"time": np.arange(n), "arm": arm, "reward": rng.random(n) < 0.3, "propensity": mu})
    result = replay(log, ["fixed(0)", "fixed(1)"], own=False)
    refused = {line.label: line.refused for line in result.lines}
    assert "effective sample size is only" in refused["fixed(1)"]
    assert not refused["fixed(0)"]
    assert f"no value: {refused['fixed(1)']}" in str(result)


def test_successes_only_are_refused_in_a_sentence():
    rng = np.random.default_rng(0)
    reward = [1.0 if r < 0.1 else None for r in rng.random(4000)]
    columns = {"time": np.arange(4000), "arm": rng.integers(0, 3, 4000), "reward": reward, "outcome": reward}
    with pytest.raises(ValueError, match="only successes seem to be reported") as caught:
        replay(Log(columns, propensity="uniform"))
    assert len(str(caught.value).splitlines()) == 1
