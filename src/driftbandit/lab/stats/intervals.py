"""Intervals for a mean, each named after its method."""

from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """A mean with its 95 % interval by Student's t."""

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
    """Mean and 95 % t-interval; both ends are NaN for a single value."""
    low, high = t_interval(values)
    return Interval(float(values.mean()), float(low), float(high))
