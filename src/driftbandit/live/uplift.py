"""What a policy brings over its baseline: two groups of decisions, compared by Welch's interval."""

import math
from typing import NamedTuple

import numpy as np

from driftbandit.beliefs import beta_cdf
from driftbandit.live.records import FLOOR, HOLDBACK, POLICY


class Uplift(NamedTuple):
    """Mean reward with the policy and without, and an interval for the difference; NaN where nothing can be said."""

    policy: float
    baseline: float
    difference: float
    low: float
    high: float
    n_policy: int
    n_baseline: int
    confidence: float

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"Nothing can be said yet: {self.n_policy} outcomes with the policy, {self.n_baseline} held back."
        return (
            f"{self.policy:.4g} with the policy ({self.n_policy} outcomes), {self.baseline:.4g} held back "
            f"({self.n_baseline}): {self.difference:+.4g}, {100 * self.confidence:g} % interval "
            f"{self.low:+.4g} to {self.high:+.4g}"
        )


def compared(groups: list[tuple[int, int, float, float]], confidence: float) -> Uplift:
    """From counts, sums and sums of squares by way of deciding. Decisions by the policy and by its floor belong to the
    policy; those of a fixed arm belong to neither."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence lies between 0 and 1; got {confidence!r:.60}.")
    ours, theirs = ([row for row in groups if row[0] in ways] for ways in ((POLICY, FLOOR), (HOLDBACK,)))
    n, mean, variance = _moments(ours)
    m, base, spread = _moments(theirs)
    low = high = math.nan
    if n > 1 and m > 1:
        a, b = variance / n, spread / m
        if a + b > 0.0:
            freedom = (a + b) ** 2 / (a * a / (n - 1) + b * b / (m - 1))
            width = t_quantile(0.5 + 0.5 * confidence, freedom) * math.sqrt(a + b)
            low, high = mean - base - width, mean - base + width
        else:
            low = high = mean - base
    return Uplift(mean, base, mean - base, low, high, n, m, confidence)


def _moments(rows: list[tuple[int, int, float, float]]) -> tuple[int, float, float]:
    n = sum(row[1] for row in rows)
    if n == 0:
        return 0, math.nan, math.nan
    mean = math.fsum(row[2] for row in rows) / n
    variance = max(0.0, math.fsum(row[3] for row in rows) - n * mean * mean) / max(1, n - 1)
    return n, mean, variance


def t_quantile(p: float, freedom: float) -> float:
    """The p-quantile (p > 1/2) of Student's t: what the base install has instead of SciPy.

    >>> round(t_quantile(0.975, 10.0), 6)
    2.228139
    """
    low, high = 0.0, 1.0

    def tail(x: float) -> float:
        return 0.5 * float(beta_cdf(freedom / 2.0, 0.5, np.array([freedom / (freedom + x * x)]))[0])

    while tail(high) > 1.0 - p and high < 1e6:
        high *= 2.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tail(middle) > 1.0 - p else (low, middle)
    return 0.5 * (low + high)
