"""Intervals from blocks of time: whole blocks are drawn again, because what happens within a day hangs together.

The studentised bootstrap: each redrawn mean is divided by its own standard error, which keeps the interval honest with
as few as eight blocks and with blocks of unequal size."""

import math
from typing import Any, NamedTuple

import numpy as np

REDRAWN = 999


class Estimate(NamedTuple):
    """A mean per event with a 95 % interval and the standard error over blocks."""

    mean: float
    low: float
    high: float
    error: float

    def scaled(self, factor: float, shift: float = 0.0) -> "Estimate":
        """The same in another unit."""
        return Estimate(
            shift + factor * self.mean, shift + factor * self.low, shift + factor * self.high, factor * self.error
        )

    def moved(self, mean: float) -> "Estimate":
        """The same uncertainty around another mean."""
        return Estimate(mean, mean + self.low - self.mean, mean + self.high - self.mean, self.error)


def block_mean(sums: Any, events: Any, level: float = 0.95, seed: int = 0) -> Estimate:
    """The mean per event, from each block's sum and number of events; blocks without events say nothing.

    >>> block_mean([1.0, 2.0, 3.0, 2.0, 1.0, 3.0, 2.0, 2.0], [10] * 8).mean
    0.2
    """
    sums, events = np.asarray(sums, np.float64), np.asarray(events, np.float64)
    sums, events = sums[events > 0], events[events > 0]
    b = len(sums)
    if b < 2:
        return Estimate(float(sums.sum() / events.sum()) if b else math.nan, -math.inf, math.inf, math.inf)
    means, errors = _mean_and_error(sums[None], events[None])
    mean, error = float(means[0]), float(errors[0])
    if not error > 0.0:
        return Estimate(mean, mean, mean, 0.0)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(b,)))
    drawn = rng.integers(0, b, (REDRAWN, b))
    means, errors = _mean_and_error(sums[drawn], events[drawn])
    good = errors > 1e-9 * error
    t = (means[good] - mean) / errors[good]
    tail = 0.5 * (1.0 - level)
    # With eight blocks a redrawn error can be next to nothing and its t beyond reason: no quantile goes beyond 6.
    low, high = np.clip(np.quantile(t, [tail, 1.0 - tail]), -6.0, 6.0) if len(t) else (-math.inf, math.inf)
    return Estimate(mean, float(mean - high * error), float(mean - low * error), error)


def _mean_and_error(sums: np.ndarray, events: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard errors of rows of blocks, a mean being a ratio of sums."""
    b = sums.shape[1]
    total = events.sum(axis=1)
    mean = sums.sum(axis=1) / total
    rest = sums - mean[:, None] * events
    return mean, np.sqrt(b / (b - 1.0) * (rest * rest).sum(axis=1)) / total


def needed(events: int, error: float, difference: float) -> float:
    """How many events it takes to tell this difference from 0 in four of five logs: n (2.8 s.e. / difference)^2."""
    return math.inf if difference == 0.0 else events * (2.8 * error / difference) ** 2
