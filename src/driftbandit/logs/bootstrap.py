"""Intervals from blocks of time: whole blocks are drawn again, because what happens within a day hangs together.

The studentised bootstrap: each redrawn mean is divided by its own standard error, which keeps the interval honest with
as few as eight blocks and with blocks of unequal size."""

import math
import statistics
from typing import Any, NamedTuple

import numpy as np

REDRAWN = 999
_MOST = 4096  # blocks


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

    def __neg__(self) -> "Estimate":
        """The other way round."""
        return Estimate(0.0 - self.mean, 0.0 - self.high, 0.0 - self.low, self.error)

    def widened(self, blocks: int, level: float) -> "Estimate":
        """No narrower than Student's interval: in the far tails, where several questions share one level, redrawn
        blocks of which a few are heavy are too sure."""
        half = self.error * _student(0.5 * (1.0 + level), max(blocks - 1, 1))
        return self._replace(low=min(self.low, self.mean - half), high=max(self.high, self.mean + half))

    def moved(self, mean: float) -> "Estimate":
        """The same uncertainty around another mean."""
        return Estimate(mean, mean + self.low - self.mean, mean + self.high - self.mean, self.error)


def block_mean(sums: Any, events: Any, level: float = 0.95, seed: int = 0) -> Estimate:
    """The mean per event, from each block's sum and number of events; blocks without events say nothing.

    >>> block_mean([1.0, 2.0, 3.0, 2.0, 1.0, 3.0, 2.0, 2.0], [10] * 8).mean
    0.2
    """
    return block_means(np.asarray(sums, np.float64)[:, None], events, level, seed)[0]


def block_means(sums: Any, events: Any, level: float = 0.95, seed: int = 0) -> list[Estimate]:
    """The same for each column of sums: all columns are redrawn together."""
    sums, events = np.asarray(sums, np.float64), np.asarray(events, np.float64)
    sums, events = _fewer(sums[events > 0], events[events > 0])
    b = len(sums)
    if b < 2:
        means = sums.sum(axis=0) / events.sum() if b else np.full(sums.shape[1], math.nan)
        return [Estimate(float(mean), -math.inf, math.inf, math.inf) for mean in means]
    mean = sums.sum(axis=0) / events.sum()
    rest = sums - events[:, None] * mean
    error = np.sqrt(b / (b - 1.0) * (rest * rest).sum(axis=0)) / events.sum()
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(b,)))
    drawn = rng.integers(0, b, (REDRAWN, b)) + b * np.arange(REDRAWN)[:, None]
    times = np.bincount(drawn.ravel(), minlength=REDRAWN * b).reshape(REDRAWN, b).astype(np.float64)
    total = (times @ events)[:, None]
    moved = times @ rest / total  # by how far a redrawn mean is off
    mixed, weights = times @ (rest * events[:, None]), (times @ events**2)[:, None]
    squares = times @ rest**2 - 2.0 * moved * mixed + moved**2 * weights
    errors = np.sqrt(b / (b - 1.0) * np.maximum(squares, 0.0)) / total
    tails = [0.5 * (1.0 - level), 0.5 * (1.0 + level)]
    out = []
    for at in range(len(mean)):
        if not error[at] > 0.0:
            out.append(Estimate(float(mean[at]), float(mean[at]), float(mean[at]), 0.0))
            continue
        good = errors[:, at] > 1e-6 * error[at]
        t = moved[good, at] / errors[good, at]
        # With eight blocks a redrawn error can be next to nothing and its t beyond reason: no quantile goes beyond 6.
        low, high = np.clip(np.quantile(t, tails), -6.0, 6.0) if len(t) else (-math.inf, math.inf)
        sides = float(mean[at] - high * error[at]), float(mean[at] - low * error[at])
        out.append(Estimate(float(mean[at]), *sides, float(error[at])))
    return out


def _fewer(sums: np.ndarray, events: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours put together where there are more blocks than anybody needs, so that memory stays bounded."""
    if len(events) <= _MOST:
        return sums, events
    starts = np.arange(_MOST) * len(events) // _MOST
    return np.add.reduceat(sums, starts, axis=0), np.add.reduceat(events, starts)


def _student(share: float, freedom: int) -> float:
    """The quantile of Student's distribution, from the normal one by its expansion in 1 / degrees of freedom,
    of which blocks leave seven or more."""
    z = statistics.NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / freedom + second / freedom**2 + third / freedom**3


def needed(events: int, error: float, difference: float) -> float:
    """How many events it takes to tell this difference from 0 in four of five logs: n (2.8 s.e. / difference)^2."""
    return math.inf if difference == 0.0 else events * (2.8 * error / difference) ** 2
