"""Logs with arms about which there is hardly any evidence."""

import numpy as np
import pytest

from driftbandit.logs import Log, LogError, drift
from driftbandit.logs.log import warnings_about

N = 2000
RNG = np.random.default_rng(4)
ARM, REWARD = RNG.integers(0, 3, N), RNG.integers(0, 2, N)


def test_of_an_arm_hardly_ever_played_nothing_is_claimed():
    """Ten plays of one arm cannot exclude that it moves, however still the other two stand."""
    rng = np.random.default_rng(3)
    n, p = 20_000, np.array([0.4995, 0.4995, 0.001])
    arm = rng.choice(3, n, p=p)
    reward = (rng.random(n) < np.array([0.9, 0.1, 0.1])[arm]) * 1.0
    found = drift(Log({"time": np.arange(n), "arm": arm, "reward": reward, "propensity": p[arm]}))
    assert "will not pay" not in found.sentence
    assert found.warnings[-1].startswith("The effective number of plays of arm 2 is 10")
    both = drift(Log({"time": np.arange(n), "arm": arm.clip(0, 1), "reward": reward}, propensity="uniform"))
    assert "will not pay" in both.sentence
    assert not any("effective number" in text for text in both.warnings)


def test_no_gain_is_larger_than_the_rewards():
    """One row with a propensity of one in ten thousand outweighs all others, and its bound is beyond reason."""
    mu = np.full(N, 1 / 3)
    mu[700] = 1e-4
    log = Log({"time": np.arange(N), "arm": ARM, "reward": REWARD, "propensity": mu})
    found = drift(log)
    assert max(scale.last.high for scale in found.scales) > 1.0
    assert "gains up to +100.0 points are not excluded" in found.sentence


def test_an_arm_that_vanished_is_reported_with_the_column_that_shows_it():
    arm = np.where(np.arange(N) < N // 2, ARM, np.random.default_rng(9).integers(0, 2, N))
    columns = {"time": np.arange(N), "arm": arm, "reward": REWARD}
    mu = np.where(np.arange(N) < N // 2, 1 / 3, 1 / 2)
    with pytest.raises(LogError, match="out of `available`"):
        Log({**columns, "propensity": mu})
    available = ["0|1|2"] * (N // 2) + ["0|1"] * (N // 2)
    log = Log({**columns, "propensity": mu, "available": available})
    assert any("available at 50%" in text for text in warnings_about(log))
