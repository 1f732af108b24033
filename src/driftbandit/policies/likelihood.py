"""How likely a reward between 0 and 1 was: p**y (1 - p)**(1 - y), for many p at once and without a library.

For rewards of 0 and 1 this is p or 1 - p. In between it is the natural continuation: a policy that weighs hypotheses by
it treats a reward of 0.7 as seven tenths of a win and three tenths of a loss. Logarithm and exponential are short
polynomials of +, -, * and /, so vectors compute many at a time, and the bits are the same everywhere."""

from typing import Any

from driftbandit.draws import _LOG
from driftbandit.primitives import compilable, exponent_and_rest, nearest_whole, times_power_of_two

# 2**f for f between -1/2 and 1/2: interpolation at Chebyshev's points, relative error below 4e-16.
_POWER = (
    1.0,
    0.69314718055995,
    0.24022650695910097,
    0.05550410866444772,
    0.009618129107606888,
    0.0013333558230164974,
    0.0001540353044173605,
    1.5252657260200837e-05,
    1.321544258792169e-06,
    1.0208690299958306e-07,
    7.072585949269224e-09,
)
_LOG2_E = 1.4426950408889634
# The logarithm of `draws.log_of_unit` in units of log 2: 2 s + s**3 (...), s = f / (2 + f).
_LOG2 = tuple(_LOG2_E * c for c in (2.0, *_LOG))


@compilable
def logarithm_of(k: Any, s: Any) -> Any:
    """log2 of 2**k (1 + f), where s = f / (2 + f) and 1 + f lies between sqrt(1/2) and sqrt(2)."""
    z = s * s
    p = _LOG2[5] + z * _LOG2[6]
    p = _LOG2[4] + z * p
    p = _LOG2[3] + z * p
    p = _LOG2[2] + z * p
    p = _LOG2[1] + z * p
    return k + s * (_LOG2[0] + z * p)


@compilable
def two_to_the(x: Any) -> Any:
    """2**x for |x| < 1000, entry by entry."""
    k = nearest_whole(x)
    f = x - k
    p = _POWER[9] + f * _POWER[10]
    p = _POWER[8] + f * p
    p = _POWER[7] + f * p
    p = _POWER[6] + f * p
    p = _POWER[5] + f * p
    p = _POWER[4] + f * p
    p = _POWER[3] + f * p
    p = _POWER[2] + f * p
    p = _POWER[1] + f * p
    p = _POWER[0] + f * p
    return times_power_of_two(p, k)


@compilable
def power(x: Any, y: Any) -> Any:
    """x**y for positive normal x and y between 0 and 1."""
    k, f = exponent_and_rest(x)
    return two_to_the(y * logarithm_of(k, f / (2.0 + f)))
