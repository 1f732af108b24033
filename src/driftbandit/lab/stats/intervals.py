"""Intervals for a mean, each named after its method: Student's t for one mean, the percentile bootstrap for paired
differences and ratios."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Interval(NamedTuple):
    """A mean with both ends of its 95 % interval; the caller that makes one says by which method."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} ({self.low:.4g} to {self.high:.4g})"


def t_interval(values: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Student's t-interval for the mean along the first axis.

    >>> low, high = t_interval(np.array([1.0, 2.0, 3.0]))  # 2 ± 4.3027 / sqrt(3)
    >>> round(float(low), 4), round(float(high), 4)
    (-0.4841, 4.4841)
    """
    values = np.asarray(values, float)
    runs, mean = len(values), np.asarray(values.mean(axis=0))
    if runs < 2:
        return np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    from scipy.special import stdtrit

    half = float(stdtrit(runs - 1, 0.5 + level / 2)) * values.std(axis=0, ddof=1) / np.sqrt(runs)
    return mean - half, mean + half


def interval(values: np.ndarray) -> Interval:
    """Mean and Student's 95 % t-interval; both ends are NaN for a single value."""
    low, high = t_interval(values)
    return Interval(float(values.mean()), float(low), float(high))


RESAMPLES = 2000  # of the bootstrap


class Difference(NamedTuple):
    """A mean paired difference with its 95 % bootstrap interval, and the share of pairs below 0."""

    mean: float
    low: float
    high: float
    wins: float


def difference(values: np.ndarray, reference: np.ndarray, seed: int = 0) -> Difference:
    """Mean of `values - reference`, run by run on the same luck, with a percentile bootstrap interval over runs.

    The interval is that of `scipy.stats.bootstrap`, held to it by a test; importing `scipy.stats` would take longer
    than most commands do.

    >>> difference(np.array([3.0, 4.0, 5.0]), np.array([2.0, 3.0, 4.0]))
    Difference(mean=1.0, low=1.0, high=1.0, wins=0.0)
    """
    pairs = np.asarray(values, float) - np.asarray(reference, float)
    if len(pairs) < 2:
        return Difference(float(pairs.mean()), float("nan"), float("nan"), float((pairs < 0).mean()))
    rng = np.random.default_rng(seed)  # the same resamples for everybody: the interval is part of the result
    means = pairs[rng.integers(len(pairs), size=(RESAMPLES, len(pairs)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Difference(float(pairs.mean()), float(low), float(high), float((pairs < 0).mean()))


class Rival(NamedTuple):
    """One policy among several: final regret of every run, those it was judged by first."""

    policy: Any
    regret: np.ndarray

    @property
    def judged(self) -> np.ndarray:
        """The runs that decide which policy is chosen."""
        return self.regret[: len(self.regret) // 2]

    @property
    def held_out(self) -> np.ndarray:
        """The runs from which numbers are reported."""
        return self.regret[len(self.regret) // 2 :]

    def estimate(self) -> Interval:
        """Mean final regret on the runs that had no part in the choice."""
        return interval(self.held_out)

    def excess(self, other: "Rival") -> Interval:
        """How much more this policy regrets than another, run by run on the same luck."""
        return interval(self.held_out - other.held_out)


def best(candidates: Sequence[Rival]) -> Rival:
    """The candidate with the smallest mean on the runs set apart for choosing."""
    return min(candidates, key=lambda each: float(each.judged.mean()))


def as_good(candidates: Sequence[Rival], chosen: Rival) -> list[Rival]:
    """The candidates whose paired difference to the chosen one is not clearly above 0.

    Each is tested at 95 % on its own, so in a long list one may be missing by chance. They need not lie side by side:
    in a slow drift a short memory and a long one can be equally good, and everything between them worse."""
    return [each for each in candidates if each is chosen or each.excess(chosen).low <= 0.0]
