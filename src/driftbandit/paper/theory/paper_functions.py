"""The letters of the paper's analysis as functions of `eps` = 1 - gamma.

They take `eps` and not gamma because the bounds only say something near eps = 1e-20, where 1 - eps is exactly 1 in
floating point and every formula in gamma would divide by log(1) = 0. ln(gamma) is therefore `log1p(-eps)` throughout.

What can leave the range of a float (C does so as soon as tau_max is below mu_max / 37) is given by its natural
logarithm, `log_...`."""

import math

SQRT2 = math.sqrt(2.0)
EXP25 = math.exp(25.0)
LARGEST_EPS = math.exp(-1.0)  # the theorems ask for gamma > 1 - 1/e
LEMMA2_SCALE = 144.0 * (1.0 + SQRT2) ** 2  # 839.294, the factor of L
LOG_MAX = math.log(1.7e308)


def log_add(*logs: float) -> float:
    """ln(e^a + e^b + ...), for sums whose terms or total have no float. Terms of minus infinity count as zero."""
    from scipy.special import logsumexp

    return float(logsumexp(logs))


def _eps(eps: float, name: str) -> float:
    if not 0.0 < eps < 1.0:
        raise ValueError(f"{name} needs eps = 1 - gamma in (0, 1); got {eps!r}.")
    return float(eps)


def _positive(value: float, name: str, what: str) -> float:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} needs {what} above 0 and finite; got {value!r}.")
    return float(value)


def _exp(log: float, name: str) -> float:
    if log > LOG_MAX:
        raise ValueError(f"{name} is e^{log:.6g} here, beyond a float; log_{name} gives its logarithm.")
    return math.exp(log)


def log_D(eps: float) -> float:
    """ln D(gamma): see `D`."""
    eps = _eps(eps, "D")
    lam = -math.log(eps)
    return math.log(2.0 * lam - math.log(lam)) - math.log(-math.log1p(-eps))


def D(eps: float) -> float:
    """D(gamma): how many rounds after a change old rewards still weigh enough to spoil an average.

    D = ln(eps^2 ln(1/eps)) / ln(gamma), a real number (about 2 ln(1/eps) / eps). It is the length of the part of each
    phase about which Theorem 1 promises nothing."""
    eps = _eps(eps, "D")
    value = (2.0 * math.log(eps) + math.log(-math.log(eps))) / math.log1p(-eps)
    return value if math.isfinite(value) else _exp(log_D(eps), "D")


def G(eps: float) -> float:
    """gamma^(-1/(1-gamma)): by how much evidence shrinks in one memory length; falls to e as eps -> 0."""
    eps = _eps(eps, "G")
    return math.exp(-math.log1p(-eps) / eps)


def n(eps: float) -> float:
    """n = 12 sqrt(2) + 3 sqrt(eps) = m sqrt(eps); n^2 lies in (288, 353.07) on the theorems' range of gamma."""
    return 12.0 * SQRT2 + 3.0 * math.sqrt(_eps(eps, "n"))


def margin(eps: float, gap: float, drift: float) -> float:
    """gap/3 - 2 drift D: what a drift leaves of a third of the gap. Theorem 2 needs it above 0."""
    return gap / 3.0 - 2.0 * drift * math.exp(min(log_D(eps), 700.0))


def log_L(eps: float, gap: float) -> float:
    """ln of L(gamma) of Lemma 2: 144 (1 + sqrt 2)^2 ln(1/eps + e^25) / Delta^2.

    The paper defines L twice. Theorem 1 prints it with the factor G inside and multiplies by G once more; the proof
    needs G once, so this is the lemma's form and the printed one is L G."""
    eps = _eps(eps, "L")
    gap = _positive(gap, "L", "the gap")
    return math.log(LEMMA2_SCALE) + math.log(log_add(-math.log(eps), 25.0)) - 2.0 * math.log(gap)


def log_F(x: float) -> float:
    """ln of x e^(-x^2/2) / ((1 + x^2) sqrt(2 pi)), a lower bound of P(Z > x) and so of the probability of an optimistic
    sample."""
    x = _positive(x, "F", "x = mu_max / tau_max")
    return math.log(x) - 0.5 * x * x - math.log1p(x * x) - 0.5 * math.log(2.0 * math.pi)


def log_C(ratio: float) -> float:
    """ln of C = e^25 + 12 + 1 / F(ratio) with ratio = mu_max / tau_max. e^25 = 7.2e10 makes the bounds so large."""
    return log_add(25.0, math.log(12.0), -log_F(ratio))


def log_M(eps: float, gap: float, drift: float, ratio: float) -> float:
    """ln of M(gamma) of Theorem 2: L G (C + 1) + 594 G / (gap/3 - 2 drift D)^2. The 594 covers n^2 <= 353."""
    left = margin(_eps(eps, "M"), _positive(gap, "M", "the gap"), drift)
    if not left > 0.0:
        raise ValueError(f"M needs 2 drift D(gamma) < gap / 3; the difference is {left:.6g}.")
    log_G = math.log(G(eps))
    return log_add(
        log_L(eps, gap) + log_G + log_add(log_C(ratio), 0.0),
        math.log(594.0) + log_G - 2.0 * math.log(left),
    )
