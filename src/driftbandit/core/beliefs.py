"""The probability that each arm's sample is the largest, from beliefs about the arms.

For Thompson sampling, arm i is chosen when its sample is the largest: P(i) = integral of (product of the others'
distribution functions) dF_i. The integral uses a grid that is fine wherever any arm's distribution moves, so that a
sharp belief next to a vague one costs no accuracy. Halving the grid gives the stated error."""

import math
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

_NUMBERS, _FEWEST = 400_000, 400  # arms × places, and places: so that a thousand arms take a fraction of a second


class NormalBelief(NamedTuple):
    """Independent normal samples, one per arm."""

    mean: np.ndarray
    sd: np.ndarray

    def points(self, per_arm: int) -> np.ndarray:
        """Places where some arm's distribution function moves."""
        near = (self.mean[:, None] + self.sd[:, None] * np.linspace(-8.5, 8.5, per_arm)).ravel()
        return np.concatenate([near, _neighbours(self.mean)])

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return normal_cdf((x - self.mean[:, None]) / self.sd[:, None])


class BetaBelief(NamedTuple):
    """Independent Beta samples, one per arm."""

    a: np.ndarray
    b: np.ndarray

    def points(self, per_arm: int) -> np.ndarray:
        """The same: dense around each mean, and over all of [0, 1]."""
        a, b = np.minimum(self.a, _HUGE), np.minimum(self.b, _HUGE)
        mean = a / (a + b)
        sd = np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
        near = (mean[:, None] + sd[:, None] * np.linspace(-8.0, 8.0, per_arm)).ravel()
        everywhere = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, per_arm))
        return np.asarray(np.clip(np.concatenate([near, _neighbours(mean), everywhere]), 0.0, 1.0))

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Distribution functions, arms × places. Arms with the same parameters share one."""
        pairs = [(float(a), float(b)) for a, b in zip(self.a, self.b, strict=True)]
        known = {pair: beta_cdf(*pair, x) for pair in set(pairs)}
        return np.array([known[pair] for pair in pairs])


def _neighbours(mean: np.ndarray) -> np.ndarray:
    """The numbers next to each mean: a belief too sharp for floats jumps from 0 to 1 between them."""
    return np.concatenate([np.nextafter(mean, -np.inf), np.nextafter(mean, np.inf)])


# ---- distribution functions ------------------------------------------------------------------------------------------

_STEP = 1.0 / 256.0
_END = 9.0


@cache
def _normal_table() -> tuple[np.ndarray, np.ndarray]:
    """The normal distribution function and its slope at multiples of the step."""
    z = np.arange(-_END, _END + _STEP / 2, _STEP)
    values = np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in z])
    return values, np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def normal_cdf(z: np.ndarray) -> np.ndarray:
    """The standard normal distribution function, right to 1e-12, from a table: NumPy has no error function, and
    Python's takes one number at a time.

    >>> normal_cdf(np.array([-np.inf, 0.0, 1.959963984540054])).round(9).tolist()
    [0.0, 0.5, 0.975]
    """
    return _between(*_normal_table(), -_END, _STEP, z)


def _between(values: np.ndarray, slopes: np.ndarray, first: float, step: float, x: np.ndarray) -> np.ndarray:
    """A function at x, from its values and slopes at first, first + step, ...: cubics in between, 0 before, 1 after."""
    last = len(values) - 1
    at = np.clip((x - first) / step, 0.0, last * (1.0 - 1e-15))
    left = at.astype(np.int64)
    u = at - left
    v = 1.0 - u
    between = values[left] * (1.0 + 2.0 * u) * v * v + values[left + 1] * (3.0 - 2.0 * u) * u * u
    between += step * u * v * (slopes[left] * v - slopes[left + 1] * u)
    beyond = np.where(x <= first, 0.0, np.where(x >= first + step * last, 1.0, between))
    return np.asarray(np.clip(beyond, 0.0, 1.0))


_PIECES = 768  # of the line from tail to tail; more where the tails are long
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_HUGE = 1e300


def beta_cdf(a: float, b: float, x: np.ndarray) -> np.ndarray:
    """The distribution function of Beta(a, b), for an array of x in [0, 1] and any positive a and b, at a cost that
    does not grow with them. (The usual continued fraction takes sqrt(a + b) steps: seconds where a is 1e8.)

    The density of the log-odds s = ln(x / (1 - x)) is exp(a s - (a + b) ln(1 + e**s)) up to a factor: smooth, with
    exponential tails. It is integrated by Gauss's rule on pieces that are short around the bulk and grow towards the
    tails (s - s0 = width sinh u). The result is divided by the whole, so that no gamma function is needed. Right to
    1e-9; within a piece the integral is a cubic.

    >>> round(float(beta_cdf(2.0, 1.0, np.array([0.5]))[0]), 9)
    0.25
    """
    a, b = min(float(a), _HUGE), min(float(b), _HUGE)
    n = a + b
    origin = math.log(a + 0.5) - math.log(b + 0.5)  # s0: in the bulk, also where a or b is tiny
    width = 1.0 / math.sqrt(1.0 + a * (b / n))
    # How far the density has to be followed: ten deviations, and tails that fall by e**-45.
    ends = [math.asinh((10.0 * width + 45.0 / rate) / width) for rate in (a, b)]
    pieces = max(_PIECES, math.ceil(64.0 * (ends[0] + ends[1])))
    knots, step = np.linspace(-ends[0], ends[1], pieces + 1, retstep=True)
    log_density = _log_density(a, b)
    top = float(log_density(width * np.sinh(knots)).max())

    def density(u: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(log_density(width * np.sinh(u)) - top) * np.cosh(u))

    inner = (knots[:-1] + 0.5 * step)[:, None] + 0.5 * step * _NODES
    parts = 0.5 * step * (density(inner) * _WEIGHTS).sum(axis=1)
    values = np.concatenate([[0.0], np.cumsum(parts)])
    inside = (x > 0.0) & (x < 1.0)
    safe = np.where(inside, x, 0.5)
    u = np.arcsinh((np.log(safe) - np.log1p(-safe) - origin) / width)
    found = _between(values / values[-1], density(knots) / values[-1], knots[0], float(step), u)
    return np.asarray(np.where(inside, found, np.where(x <= 0.0, 0.0, 1.0)))


_ANGLES, _ANGLE_WEIGHTS = np.polynomial.legendre.leggauss(200)


@cache
def t_quantile(p: float, freedom: float) -> float:
    """The quantile of Student's t for p > 1/2 and at least one degree of freedom.

    >>> round(t_quantile(0.975, 2), 10), round(t_quantile(0.975, 10.5), 10), round(t_quantile(0.975, 99), 10)
    (4.3026527297, 2.2138402929, 1.9842169516)
    """
    if freedom >= 1000:  # Abramowitz and Stegun, 26.7.5
        z, n = NormalDist().inv_cdf(p), freedom
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
        return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2) + third
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    x = 0.0
    for _ in range(100):  # Newton's method; the distribution function is concave here, so that no step goes too far
        angle = math.atan(x / math.sqrt(freedom))  # the density of the angle is scale * cos(angle)**(freedom - 1)
        powers = np.cos(0.5 * angle * (1.0 + _ANGLES)) ** (freedom - 1)
        area = 0.5 * angle * scale * math.fsum(_ANGLE_WEIGHTS * powers)
        density = scale / math.sqrt(freedom) * math.cos(angle) ** (freedom + 1)
        step = (p - 0.5 - area) / density
        x += step
        if abs(step) < 1e-15 * x:
            break
    return float(x)


def _log_density(a: float, b: float) -> Any:
    """The logarithm of the density of the log-odds, up to a constant, as a function of the distance d from s0.

    With p = (a + 1/2) / (a + b + 1) it is a d - n ln(1 + p (e**d - 1)), which is exact where p is small. Where it is
    not, the two sides are exchanged. Where n is large and d small, two large terms would cancel. There it is
    (a - n p) d less n times a series in the cumulants of a coin."""
    n = a + b
    p, q = (a + 0.5) / (n + 1.0), (b + 0.5) / (n + 1.0)
    slope = 0.5 * (a - b) / (n + 1.0)
    v, skew = p * q, q - p
    terms = (
        v / 2.0,
        v * skew / 6.0,
        v * (1.0 - 6.0 * v) / 24.0,
        v * skew * (1.0 - 12.0 * v) / 120.0,
        v * (1.0 - 30.0 * v + 120.0 * v * v) / 720.0,
    )

    def value(d: np.ndarray) -> np.ndarray:
        near = np.abs(d) < 1e-2
        s = np.where(near, d, 0.0)
        series = s * s * (terms[0] + s * (terms[1] + s * (terms[2] + s * (terms[3] + s * terms[4]))))
        small, first, e = (p, a, d) if p <= q else (q, b, -d)
        bounded = np.minimum(e, 700.0)  # beyond, the logarithm is a straight line
        written = first * e - n * (np.log1p(small * np.expm1(bounded)) + (e - bounded))
        return np.asarray(np.where(near, slope * s - n * series, written))

    return value


# ---- the probability of being largest --------------------------------------------------------------------------------


def largest_probabilities(belief: Any, per_arm: int = 240) -> tuple[np.ndarray, float]:
    """The probability that each arm's sample is the largest, and an estimate of its error: the difference from half as
    many points of integration.

    >>> p, error = largest_probabilities(NormalBelief(np.array([0.0, 0.0]), np.array([1.0, 0.01])))
    >>> [round(float(v), 4) for v in p], error < 1e-3
    ([0.5, 0.5], True)
    """
    coarse, fine = _stieltjes(belief, per_arm // 2, 2), _stieltjes(belief, per_arm, 1)
    return fine, float(np.abs(fine - coarse).max()) + 1e-12


def _stieltjes(belief: Any, per_arm: int, coarser: int) -> np.ndarray:
    x = np.unique(belief.points(per_arm))
    most = max(_FEWEST, _NUMBERS // len(belief[0])) // coarser
    if len(x) > most:
        x = x[np.linspace(0, len(x) - 1, most).astype(np.int64)]
    cdf = belief.cdf(x)
    below = np.ones_like(cdf)
    above = np.ones_like(cdf)
    for i in range(1, len(cdf)):  # products of all other arms, by prefix and suffix: no division by 0
        below[i] = below[i - 1] * cdf[i - 1]
        above[-1 - i] = above[-i] * cdf[-i]
    others = below * above
    found = (np.diff(cdf, axis=1) * 0.5 * (others[:, 1:] + others[:, :-1])).sum(axis=1)
    return np.asarray(found / found.sum())
