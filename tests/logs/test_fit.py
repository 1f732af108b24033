"""Propensities against counts: what is wrong only for a while is noticed, what is right never."""

import numpy as np
import pytest

from driftbandit.logs import Log, LogError
from driftbandit.logs.log import correlate_misses, warnings_about
from driftbandit.logs.rows import Events

N = 12_000


def swinging(rng, n=N, k=2):
    """An adaptive logger: each arm's chance swings between 0.2 and 0.8 over the log."""
    first = 0.5 + 0.3 * np.sin(np.arange(n) / n * 4.0 * np.pi)
    arm = (rng.random(n) >= first).astype(int)
    return arm, np.where(arm == 0, first, 1.0 - first)


def columns(arm, mu=None):
    out = {"time": np.arange(len(arm)), "arm": arm, "reward": np.random.default_rng(9).integers(0, 2, len(arm))}
    return out if mu is None else {**out, "propensity": mu}


def test_averages_in_place_of_the_chance_at_that_moment_are_warned_of():
    """They sum to the right number over the whole log, arm by arm; nothing but their course over time gives them
    away."""
    arm, mu = swinging(np.random.default_rng(0))
    assert not any("over time" in text for text in Log(columns(arm, mu)).summary.warnings)
    average = np.where(arm == 0, (arm == 0).mean(), (arm == 1).mean())
    (warning,) = Log(columns(arm, average)).summary.warnings
    assert "fit the counts on the whole but not over time" in warning


def test_a_split_that_changed_is_not_uniform():
    rng = np.random.default_rng(1)
    arm = (rng.random(N) < np.where(np.arange(N) // 2000 % 2, 0.7, 0.3)).astype(int)
    (warning,) = Log(columns(arm), propensity="uniform").summary.warnings
    assert "not over time" in warning
    assert Log(columns(rng.integers(0, 2, N)), propensity="uniform").summary.warnings == []


def test_propensities_of_an_adaptive_logger_that_are_true_are_seldom_doubted():
    """Of 200 logs none: 4.4 standard deviations come by chance in one of 100,000. The statistic is centred, within
    4.5 of its standard errors."""
    z = []
    for seed in range(200):
        arm, mu = swinging(np.random.default_rng(seed), 8000)
        row = np.arange(8000)
        z.append(correlate_misses(Events(row, arm, arm, mu, row, row, np.zeros(8000, int), row), np.ones((1, 2), bool)))
    assert max(z) < 4.4
    assert abs(np.mean(z)) < 4.5 / np.sqrt(200)


def test_wrong_propensities_are_refused_also_where_arms_are_not_always_available():
    rng = np.random.default_rng(3)
    offered = rng.random(N) < 0.5  # arm 1 is there half of the time, and played half of that
    arm = np.where(offered, rng.integers(0, 2, N), 0)
    right = {**columns(arm, np.where(offered, 0.5, 1.0)), "available": np.where(offered, "0|1", "0")}
    log = Log(right)
    assert log.summary.warnings == []
    assert log.summary.forced == 0
    with pytest.raises(LogError, match="over the plays of '1' sums to"):
        Log({**right, "propensity": np.where(arm == 1, 0.25, 0.75)})


def test_events_without_a_choice_are_counted_and_warned_of():
    rng = np.random.default_rng(4)
    fixed = np.arange(N) % 10 == 0
    arm = np.where(fixed, 0, rng.integers(0, 2, N))
    log = Log(columns(arm, np.where(fixed, 1.0, 0.5)))
    assert log.summary.forced == fixed.sum()
    assert any("the logger had no choice" in text for text in warnings_about(log))
    with pytest.raises(LogError, match=r"[Pp]ropensity is 1 in 12,000 of 12,000 events"):
        Log(columns(arm, np.ones(N)))


def waning(rng, n=2000, floor=0.01):
    """An adaptive logger of three arms that gives up the first, but for a floor, and comes back to it at times."""
    good = 1.0 / (1.0 + np.exp(-6.0 * np.cumsum(rng.normal(0.0, 0.05, n)) - 4.0))
    first = (1.0 - floor) * 0.5 * (1.0 - good) ** 3 + floor / 3.0
    arm = (rng.random(n)[:, None] > np.stack([first, 0.5 + 0.5 * first], axis=1)).sum(axis=1)
    return arm, np.where(arm == 0, first, 0.5 * (1.0 - first))


def test_small_propensities_that_were_never_drawn_are_accepted():
    """At a floor of a third of a percent an arm is not played for a thousand events, one log in thirty: nothing in the
    log says that it could have been. By the variance of the plays only, 1 of 50 of these logs is refused."""
    for seed in range(100):
        arm, mu = waning(np.random.default_rng(seed))
        if len(np.unique(arm)) > 1:
            assert Log(columns(arm, mu)).summary.warnings == [], seed


def test_an_arm_with_equal_propensities_that_vanished_is_still_refused():
    rng, gone = np.random.default_rng(1), np.arange(2000) >= 1000
    arm = np.where(gone, rng.integers(1, 3, 2000), rng.integers(0, 3, 2000))
    with pytest.raises(LogError, match="over the plays of '0' sums to"):
        Log(columns(arm, np.where(gone, 0.5, 1 / 3)))
