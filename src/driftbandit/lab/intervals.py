"""Confidence intervals: Student's t for a mean, the percentile bootstrap for paired differences."""

from typing import NamedTuple

import numpy as np

from driftbandit.core.beliefs import t_quantile

RESAMPLES = 2000  # of the bootstrap


class Interval(NamedTuple):
    """A mean with both ends of its 95% interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} ({self.low:.4g} to {self.high:.4g})"


def t_interval(values: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Student's t-interval for the mean along the first axis; NaN for a single value.

    >>> low, high = t_interval(np.array([1.0, 2.0, 3.0]))  # 2 ± 4.3027 / sqrt(3)
    >>> round(float(low), 4), round(float(high), 4)
    (-0.4841, 4.4841)
    """
    values = np.asarray(values, float)
    runs, mean = len(values), np.asarray(values.mean(axis=0))
    if runs < 2:
        return np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = t_quantile(0.5 + level / 2, runs - 1) * values.std(axis=0, ddof=1) / np.sqrt(runs)
    return mean - half, mean + half


def interval(values: np.ndarray, level: float = 0.95) -> Interval:
    """Mean and Student's t-interval, of 95% by default."""
    low, high = t_interval(values, level)
    return Interval(float(values.mean()), float(low), float(high))


def difference(values: np.ndarray, reference: np.ndarray, seed: int = 0) -> Interval:
    """Mean of `values - reference`, run by run on the same random numbers, with a percentile bootstrap interval over
    runs.

    >>> difference(np.array([3.0, 4.0, 5.0]), np.array([2.0, 3.0, 4.0]))
    Interval(mean=1.0, low=1.0, high=1.0)
    """
    pairs = np.asarray(values, float) - np.asarray(reference, float)
    if len(pairs) < 2:
        return Interval(float(pairs.mean()), float("nan"), float("nan"))
    rng = np.random.default_rng(seed)
    means = pairs[rng.integers(len(pairs), size=(RESAMPLES, len(pairs)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(pairs.mean()), float(low), float(high))
