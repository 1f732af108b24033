"""How likely a reward between 0 and 1 was: p**y (1 - p)**(1 - y), for many p at once and without a library.

For rewards of 0 and 1 this is p or 1 - p. In between it is the natural continuation: a policy that weighs hypotheses by
it treats a reward of 0.7 as seven tenths of a win and three tenths of a loss. Logarithm and exponential are short
polynomials of +, -, * and /, so rows of lanes compute many at a time, and the bits are the same everywhere."""

from typing import Any

from driftbandit.draws import log_of_unit
from driftbandit.primitives import compilable, nearest_whole, times_power_of_two, where

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
def part_of_win(a: Any, b: Any, y: Any) -> Any:
    """a**y b**(1 - y) for positive a and b, which is a for a reward y of 1 and b for one of 0, exactly.

    Over a + b it is the likelihood of y where a win has the probability a / (a + b)."""
    between = b * two_to_the(y * (_LOG2_E * log_of_unit(a / b)))
    return where(y == 1.0, a, where(y == 0.0, b, between))
