"""Relative entropy of 0/1 rewards and the upper confidence bound made from it.

Written by hand, not taken from SciPy: the live agent needs only NumPy, and the same bits must come out interpreted and
compiled."""

import math

from driftbandit.primitives import compilable


@compilable
def kl_bernoulli(p: float, q: float) -> float:
    """Relative entropy of Bernoulli(p) to Bernoulli(q), with 0 ln 0 = 0 and q kept off the ends."""
    q = min(max(q, 1e-15), 1.0 - 1e-15)
    total = 0.0
    if p > 0.0:
        total += p * math.log(p / q)
    if p < 1.0:
        total += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return total


@compilable
def kl_ucb(p: float, bound: float) -> float:
    """The largest q >= p with kl(p, q) <= bound; exactly p for a bound of 0 and exactly 1 where even q = 1 is within
    it.

    Halley's iteration on the log-odds x of q: there kl is ln(1 + e**x) - p x + constant, convex, a parabola near p and
    a straight line far from it, so that two steps from a good start do what thirty halvings of an interval do. Right to
    about 1e-14, and a pure function of its arguments: arms with equal records get equal indices, to the last bit."""
    if p >= 1.0:
        return 1.0
    if bound <= 0.0:
        return p
    if p <= 0.0:  # kl(0, q) is -ln(1 - q)
        return 1.0 if kl_bernoulli(0.0, 1.0) <= bound else -math.expm1(-bound)
    log_p = math.log(p)
    log_rest = math.log(1.0 - p)
    entropy = p * log_p + (1.0 - p) * log_rest
    if entropy + 34.5 * (1.0 - p) <= bound and kl_bernoulli(p, 1.0) <= bound:  # 34.5: just below -ln(1e-15)
        return 1.0
    variance = p * (1.0 - p)
    origin = log_p - log_rest
    if bound < 2.0 * variance:  # the parabola at p, with two terms more of the series
        step = math.sqrt(2.0 * bound / variance)
        x = origin + step / (1.0 + ((1.0 - 2.0 * p) * step - bound) / 6.0)
    else:  # kl >= entropy - (1 - p) ln(1 - q), nearly equal when p is small or q close to 1
        x = math.log(math.expm1(min((bound - entropy) / (1.0 - p), 37.0)))
    q = p
    for _ in range(60):
        if x > 0.0:
            small = math.exp(-x)
            q = 1.0 / (1.0 + small)
            value = x + math.log(1.0 + small)
        else:
            small = math.exp(x)
            q = small / (1.0 + small)
            value = math.log(1.0 + small)
        excess = value - p * x + entropy - bound
        slope = q - p
        if slope <= 0.0:
            break
        curve = q * (1.0 - q)
        below = 2.0 * slope * slope - excess * curve
        step = 2.0 * excess * slope / below if below > slope * slope else excess / slope
        if step >= x - origin:
            step = 0.5 * (x - origin)
        x -= step
        if abs(step) <= 3e-5 * min(x - origin, 1.0):  # what is left is of third order, below rounding: no further exp
            q += curve * step * (0.5 * (1.0 - 2.0 * q) * step - 1.0)
            break
    return max(p, min(q, p + math.sqrt(0.5 * bound)))
