"""The letters of the analysis that only the tests of its lemmas need, next to those of the package."""

import math

from driftbandit.paper.theory.theorem import *  # noqa: F403
from driftbandit.paper.theory.theorem import SQRT2, D, log_C, log_F, log_L, log_M, margin, n


def U(eps: float, count: float) -> float:
    """U_t: the largest bias left in a discounted average of weight `count`, far from any change (Lemma 1).

    Infinite at count 0: an arm without evidence may be anywhere."""
    return math.inf if count == 0.0 else math.sqrt(-eps * math.log(eps) / count)


def m(eps: float) -> float:
    """m = 12 sqrt(2) / sqrt(eps) + 3, the scale of the bias: U = (Delta_T / m) sqrt(A / N)."""
    return 12.0 * SQRT2 / math.sqrt(eps) + 3.0


def log_A(eps: float, gap: float, drift: float = 0.0, *, smooth: bool = False) -> float:
    """ln A(gamma): see `A`."""
    left = margin(eps, gap, drift) if smooth else gap
    return 2.0 * math.log(n(eps)) + math.log(-math.log(eps)) - 2.0 * math.log(left)


def A(eps: float, gap: float, drift: float = 0.0, *, smooth: bool = False) -> float:
    """A(gamma): discounted plays after which an arm counts as well explored.

    n^2 ln(1/eps) / Delta_T^2 in the abrupt case; with `smooth=True` the gap is replaced by gap/3 - 2 drift D."""
    return math.exp(log_A(eps, gap, drift, smooth=smooth))


def L(eps: float, gap: float) -> float:
    """L(gamma) of Lemma 2: 144 (1 + sqrt 2)^2 ln(1/eps + e^25) / Delta^2.

    The paper defines L twice. Theorem 1 prints it with the factor G inside and multiplies by G once more; the proof
    needs G once, so this is the lemma's form and the printed one is L G."""
    return math.exp(log_L(eps, gap))


def F(x: float) -> float:
    """x e^(-x^2/2) / ((1 + x^2) sqrt(2 pi)): a lower bound of P(Z > x)."""
    return math.exp(log_F(x))


def C(ratio: float) -> float:
    """C = e^25 + 12 + 1 / F(ratio) with ratio = mu_max / tau_max. e^25 = 7.2e10 is why the bounds are so large."""
    return math.exp(log_C(ratio))


def M(eps: float, gap: float, drift: float, ratio: float) -> float:
    """M(gamma) of Theorem 2: L G (C + 1) + 594 G / (gap/3 - 2 drift D)^2. The 594 covers n^2 <= 353: valid, loose."""
    return math.exp(log_M(eps, gap, drift, ratio))


def smallest_tau_max(gap: float, eps: float) -> float:
    """The smallest tau_max the proof allows: gap / (n sqrt(ln(1/eps))), never above 1/(12 sqrt 2) = 0.0589."""
    return gap / (n(eps) * math.sqrt(-math.log(eps)))


def longest_horizon(*, drift: float, gap: float, beta: float) -> int | None:
    """The largest T at which Corollary 2's gamma still satisfies Theorem 2's condition 2 sigma D < gap / 3.

    Finite for every drift > 0 and beta < 1, so the corollary's "as T grows" needs a drift that shrinks with T.
    0 when no horizon below 10^300 qualifies; None when there is no limit below 10^300 (a drift of 0)."""

    def fits(horizon: int) -> bool:
        return 2.0 * drift * D(math.exp((beta - 1.0) * math.log(horizon))) < gap / 3.0

    if 1.0 / (1.0 - beta) > 690.0:
        return 0
    low = math.floor(math.exp(1.0 / (1.0 - beta))) + 1  # the first T with gamma > 1 - 1/e; D grows from here on
    if not fits(low):
        return 0
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
        if high > 10**300:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
