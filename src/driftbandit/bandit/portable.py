"""Functions with the same bits on every machine.

Those of mathematical libraries differ in the last one, and replicas of a bandit on different machines must compute the
same numbers. Sums, products and quotients are the same everywhere."""

import math

_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(8, -1, -1)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(9, -1, -1)]
_ODD = [1.0 / k for k in range(25, 0, -2)]
_LN2, _ROOT = 0.6931471805599453, 0.7071067811865476
_TURN = 6.283185307179586


def sin_cos(turns: float) -> tuple[float, float]:
    """The sine and the cosine of an angle in turns, from 0 to 1.

    >>> [round(x, 15) for x in sin_cos(1 / 3)]
    [0.866025403784439, -0.5]
    """
    quarter = int(4.0 * turns + 0.5)
    angle = _TURN * (turns - 0.25 * quarter)
    square, sine, cosine = angle * angle, 0.0, 0.0
    for term in _SINE:
        sine = sine * square + term
    for term in _COSINE:
        cosine = cosine * square + term
    sine *= angle
    return ((sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine))[quarter % 4]


def log_1p(x: float) -> float:
    """The logarithm of 1 + x, for x of 0 or more.

    >>> [round(log_1p(x), 14) for x in (0.0, 1e-9, 1.0, 1e12)]
    [0.0, 1e-09, 0.69314718055995, 27.63102111592955]
    """
    exponent, share = 0, x / (2.0 + x)
    if x > 0.4:
        part, exponent = math.frexp(1.0 + x)
        if part < _ROOT:
            part, exponent = 2.0 * part, exponent - 1
        share = (part - 1.0) / (part + 1.0)
    square, total = share * share, 0.0
    for term in _ODD:
        total = total * square + term
    return exponent * _LN2 + 2.0 * share * total
