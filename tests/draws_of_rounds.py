"""The numbers of many rounds at once, and how far from their law they may be, for the statistical tests.

Each of these tests is passed or failed forever, because its seed is fixed. Had the seed been drawn anew, a right
generator would fail one of them with a probability of `ALARM` (times the number of cases, where a test has several)."""

import numpy as np
from scipy import stats

from driftbandit.core.draws import POLICY, Draws, mix, stream_key

ALARM = 1e-6
MANY = 1 << 19


def rounds(seed: int, count: int = MANY, run: int = 0, stream: int = POLICY, first: int = 0) -> Draws:
    """The numbers of rounds first .. first + count - 1 of one stream, all at once."""
    step = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        steps = (np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)) * step
    return Draws(mix(np.uint64(stream_key(seed, run, stream)) + steps))


def assert_uniform(values: np.ndarray) -> None:
    assert stats.kstest(values, "uniform").pvalue > ALARM


def assert_independent(x: np.ndarray, y: np.ndarray, cells: int = 16) -> None:
    """Pairs of uniforms fill a grid uniformly: catches linear and other dependence alike."""
    grid = np.histogram2d(x, y, bins=cells, range=((0, 1), (0, 1)))[0]
    assert stats.chisquare(grid.ravel()).pvalue > ALARM
