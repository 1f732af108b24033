"""How likely each arm is to be chosen now: from beliefs by quadrature, otherwise by asking the policy many times.

For Thompson sampling, arm i is chosen when its sample is the largest: P(i) = integral of (product of the others'
distribution functions) dF_i. The integral is taken over a grid that is fine wherever any arm's distribution moves, so
that a sharp belief beside a vague one costs no accuracy; halving the grid gives the stated error."""

import math
from typing import Any, NamedTuple

import numpy as np


class NormalBelief(NamedTuple):
    """Independent normal samples, one an arm."""

    mean: np.ndarray
    sd: np.ndarray

    def points(self, per_arm: int) -> np.ndarray:
        """Places where some arm's distribution function moves."""
        return (self.mean[:, None] + self.sd[:, None] * np.linspace(-8.5, 8.5, per_arm)).ravel()

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Distribution functions, arms × places."""
        z = (x - self.mean[:, None]) / self.sd[:, None]
        return 0.5 * np.array([[math.erfc(-value / math.sqrt(2.0)) for value in row] for row in z])


class BetaBelief(NamedTuple):
    """Independent Beta samples, one an arm."""

    a: np.ndarray
    b: np.ndarray

    def points(self, per_arm: int) -> np.ndarray:
        """Places where some arm's distribution function moves: dense around each mean, and over all of [0, 1]."""
        mean = self.a / (self.a + self.b)
        sd = np.sqrt(mean * (1.0 - mean) / (self.a + self.b + 1.0))
        near = (mean[:, None] + sd[:, None] * np.linspace(-8.0, 8.0, per_arm)).ravel()
        everywhere = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, per_arm))
        return np.asarray(np.clip(np.concatenate([near, everywhere]), 0.0, 1.0))

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Distribution functions, arms × places."""
        return np.array([beta_cdf(a, b, x) for a, b in zip(self.a, self.b, strict=True)])


def beta_cdf(a: float, b: float, x: np.ndarray) -> np.ndarray:
    """The regularised incomplete beta function by its continued fraction (Lentz's method), for an array of x in [0, 1].

    >>> round(float(beta_cdf(2.0, 1.0, np.array([0.5]))[0]), 12)
    0.25
    """
    flip = x > (a + 1.0) / (a + b + 2.0)
    p, q = np.where(flip, b, a), np.where(flip, a, b)
    y = np.where(flip, 1.0 - x, x)
    inside = (y > 0.0) & (y < 1.0)
    y = np.where(inside, y, 0.5)
    log_front = p * np.log(y) + q * np.log1p(-y) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - np.log(p)
    tiny = 1e-300
    c, d = np.ones_like(y), 1.0 - (p + q) * y / (p + 1.0)
    d = 1.0 / np.where(np.abs(d) < tiny, tiny, d)
    value = d.copy()
    for m in range(1, 10_000):
        for step in (
            m * (q - m) * y / ((p + 2 * m - 1.0) * (p + 2 * m)),
            -(p + m) * (p + q + m) * y / ((p + 2 * m) * (p + 2 * m + 1.0)),
        ):
            d = 1.0 + step * d
            c = 1.0 + step / c
            d = 1.0 / np.where(np.abs(d) < tiny, tiny, d)
            c = np.where(np.abs(c) < tiny, tiny, c)
            delta = c * d
            value *= delta
        if np.abs(delta - 1.0).max(initial=0.0) < 1e-14:
            break
    tail = np.exp(log_front) * value
    tail = np.where(inside, tail, np.where(x <= 0.0, 0.0, np.where(flip, 0.0, 1.0)))
    return np.clip(np.where(flip, 1.0 - tail, tail), 0.0, 1.0)


def chance_of_largest(belief: Any, per_arm: int = 240) -> tuple[np.ndarray, float]:
    """The probability that each arm's sample is the largest, and a bound on its error.

    >>> p, error = chance_of_largest(NormalBelief(np.array([0.0, 0.0]), np.array([1.0, 0.01])))
    >>> [round(float(v), 4) for v in p], error < 1e-3
    ([0.5, 0.5], True)
    """
    coarse, fine = _stieltjes(belief, per_arm // 2), _stieltjes(belief, per_arm)
    return fine, float(np.abs(fine - coarse).max()) + 1e-12


def _stieltjes(belief: Any, per_arm: int) -> np.ndarray:
    x = np.unique(belief.points(per_arm))
    cdf = belief.cdf(x)
    below = np.ones_like(cdf)
    above = np.ones_like(cdf)
    for i in range(1, len(cdf)):  # products of all other arms, by prefix and suffix: no division by 0
        below[i] = below[i - 1] * cdf[i - 1]
        above[-1 - i] = above[-i] * cdf[-i]
    others = below * above
    chance = (np.diff(cdf, axis=1) * 0.5 * (others[:, 1:] + others[:, :-1])).sum(axis=1)
    return np.asarray(chance / chance.sum())
