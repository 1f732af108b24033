"""Logs that can be read but not quite believed: rows written twice, rounded chances, times that are dates in disguise,
arms of which hardly anything is known. Each is warned of, and what only looks like it is not."""

import numpy as np
import pytest

from driftbandit.logs import Log, LogError, drift
from driftbandit.logs.checks import warnings_about

N = 2000
RNG = np.random.default_rng(4)
ARM, REWARD = RNG.integers(0, 3, N), RNG.integers(0, 2, N)


def warnings(**options):
    columns = {"time": np.arange(N), "arm": ARM, "reward": REWARD, "propensity": np.full(N, 1 / 3), **options}
    unit = columns.pop("time_unit", "s")
    return Log(columns, time_unit=unit).summary.warnings


@pytest.mark.parametrize("share", [1.0, 0.05])
def test_rows_written_twice_are_counted(share):
    times = np.where(np.arange(N) < share * N, 2, 1)
    twice = np.repeat(np.arange(N), times)
    rows = {"time": twice, "arm": ARM[twice], "reward": REWARD[twice]}
    (warning,) = Log(rows, propensity="uniform").summary.warnings
    assert warning.startswith(f"{int(share * N):,} of {N + int(share * N):,} rows are copies of another row")


@pytest.mark.parametrize("size", [2, 3, 40])
def test_rows_of_equal_time_that_agree_by_chance_are_no_copies(size):
    """Of two arms the better is played at 97 % and rewarded at 95 %, so that pairs agree in nine of ten; in order of
    arms, as a table of counts would have them."""
    rng = np.random.default_rng(size)
    arm = (rng.random(N) < 0.03).astype(int)
    time = np.arange(N) // size
    arm = arm[np.lexsort((arm, time))]
    rows = {"time": time, "arm": arm, "reward": rng.random(N) < 0.95, "propensity": np.where(arm == 0, 0.97, 0.03)}
    assert not any("copies" in text for text in Log(rows).summary.warnings)


def test_rows_that_only_take_after_each_other_are_no_copies():
    """Two in three pairs are one user's, who sees one arm; their rewards agree in half of them. And a handful of pairs
    that agree prove nothing."""
    rng = np.random.default_rng(2)
    arm = rng.integers(0, 3, N)
    arm[1::2] = np.where(rng.random(N // 2) < 0.67, arm[::2], arm[1::2])
    time = np.arange(N) // 2
    assert warnings(time=time, arm=arm, reward=rng.integers(0, 2, N)) == []
    time = np.arange(200)
    time[1:9:2] -= 1
    arm = np.tile([0, 0, 1, 1], 50)
    few = Log({"time": time, "arm": arm, "reward": np.tile([0, 0, 1, 1], 50)}, propensity="uniform")
    assert few.summary.warnings == []


def test_propensities_of_two_decimals_are_told_from_exact_ones():
    p = np.random.default_rng(5).dirichlet([3.0, 3.0, 3.0], N).clip(0.02)
    p /= p.sum(axis=1, keepdims=True)
    arm = (p.cumsum(axis=1) < np.random.default_rng(6).random((N, 1))).sum(axis=1).clip(0, 2)
    mu = p[np.arange(N), arm]
    (warning,) = (text for text in warnings(arm=arm, propensity=np.round(mu, 2)) if "rounded" in text)
    least = np.round(mu, 2).min()
    assert f"rounded to 2 decimals: the smallest, {least:g}, may be off by {0.5 / least:.0f}%" in warning
    assert not any("rounded" in text for text in warnings(arm=arm, propensity=mu))
    arm = (RNG.random(N)[:, None] > [0.92, 0.96]).sum(axis=1)
    few = np.where(arm == 0, 0.92, 0.04)  # two values may well be exact
    assert not any("rounded" in text for text in warnings(arm=arm, propensity=few))


def test_chances_of_all_arms_may_be_rounded_to_four_decimals_and_no_further():
    p = np.random.default_rng(7).dirichlet([5.0, 5.0, 5.0], N)
    arm = (p.cumsum(axis=1) < np.random.default_rng(8).random((N, 1))).sum(axis=1).clip(0, 2)

    def log(decimals):
        each = {f"p_{name}": np.round(p[:, name], decimals) for name in range(3)}
        return Log({"time": np.arange(N), "arm": arm, "reward": REWARD, **each})

    assert log(4).summary.least == pytest.approx(np.round(p, 4)[np.arange(N), arm].min())
    with pytest.raises(LogError, match=r"do not sum to 1 .* with four decimals or more"):
        log(3)


def test_columns_that_begin_with_p_but_name_no_arm_are_left_alone():
    columns = {"time": np.arange(N), "arm": ARM, "reward": REWARD, "propensity": np.full(N, 1 / 3)}
    log = Log({**columns, "p_page": ["home"] * N, "p_id": np.arange(N)})
    assert log.n == N
    with pytest.raises(LogError, match="p_0 is 'x', not a number"):
        Log({**columns, "p_0": ["x"] * N})


@pytest.mark.parametrize(
    ("scale", "unit", "hint"),
    [
        (1.0, "s", "unix-s"),
        (1e3, "s", "unix-ms"),
        (1e3, "ms", "unix-ms"),
        (1e6, "s", "unix-us"),
        (1e9, "s", "unix-ns"),
        (1e-9, "s", ""),
        (1.0, "h", "unix-s"),
    ],
)
def test_numbers_that_count_from_1970_are_hinted_at(scale, unit, hint):
    found = [text for text in warnings(time=scale * (1.7e9 + 60.0 * np.arange(N)), time_unit=unit) if "1970" in text]
    assert [f"--time-unit {hint}" in text and "(2023-11-14 22:13)" in text for text in found] == [True] * bool(hint)


def test_dates_are_not_told_to_be_dates():
    assert warnings(time=1.7e9 + 60.0 * np.arange(N), time_unit="unix-s") == []


def test_of_an_arm_hardly_ever_played_nothing_is_claimed():
    """Ten plays of one arm cannot exclude that it moves, however still the other two stand."""
    rng = np.random.default_rng(3)
    n, p = 20_000, np.array([0.4995, 0.4995, 0.001])
    arm = rng.choice(3, n, p=p)
    reward = (rng.random(n) < np.array([0.9, 0.1, 0.1])[arm]) * 1.0
    found = drift(Log({"time": np.arange(n), "arm": arm, "reward": reward, "propensity": p[arm]}, arms=range(3)))
    assert "will not pay" not in found.sentence
    assert found.warnings[-1].startswith("Of arm 2 the log holds only 10 plays' worth")
    both = drift(Log({"time": np.arange(n), "arm": arm.clip(0, 1), "reward": reward}, propensity="uniform"))
    assert "will not pay" in both.sentence
    assert not any("worth of evidence" in text for text in both.warnings)


def test_no_gain_is_said_to_be_larger_than_rewards_are():
    """One row with a chance of one in ten thousand outweighs all others, and its bound is beyond reason."""
    mu = np.full(N, 1 / 3)
    mu[700] = 1e-4
    log = Log({"time": np.arange(N), "arm": ARM, "reward": REWARD, "propensity": mu})
    found = drift(log)
    assert max(scale.last.high for scale in found.scales) > 1.0
    assert "gains up to +100.0 points are not excluded" in found.sentence


def test_an_arm_that_vanished_is_told_about_the_column_that_says_so():
    arm = np.where(np.arange(N) < N // 2, ARM, np.random.default_rng(9).integers(0, 2, N))
    columns = {"time": np.arange(N), "arm": arm, "reward": REWARD}
    mu = np.where(np.arange(N) < N // 2, 1 / 3, 1 / 2)
    with pytest.raises(LogError, match="say so in `available`"):
        Log({**columns, "propensity": mu})
    available = ["0|1|2"] * (N // 2) + ["0|1"] * (N // 2)
    log = Log({**columns, "propensity": mu, "available": available})
    assert any("available at 50%" in text for text in warnings_about(log))
