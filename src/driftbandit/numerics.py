"""Small pieces that policies share, each written once for interpreted and compiled use.

A function marked `compilable` may be called from a policy's methods: interpreted it is itself, in the compiled loop
Numba compiles the very same source (`driftbandit.lab.kernel`). A few primitives (`where`, the bit casts) differ in how
they are carried out on NumPy arrays, numbers and SIMD rows; those have a compiled counterpart there, held to this one
by test."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

COMPILABLE: list[Callable[..., Any]] = []

TIES = (1 << 39) + 1  # the slot of the number that breaks ties; policies' own slots are small numbers
SHUFFLE = 100  # the first slot used to shuffle a list


def compilable(function: F) -> F:
    """Mark a plain function that policies and environments may call, so that the compiled loop can compile it too."""
    COMPILABLE.append(function)
    return function


# ---- primitives with a compiled counterpart --------------------------------------------------------------------------


def where(condition: Any, yes: Any, no: Any) -> Any:
    """`yes if condition else no`, entry by entry when the condition is an array or a row of lanes. Both sides are
    computed."""
    return np.where(condition, yes, no) if isinstance(condition, np.ndarray) else (yes if condition else no)


def as_float(x: Any) -> Any:
    """The same bits read as float64."""
    return x.view(np.float64)


def as_int(x: Any) -> Any:
    """The same bits read as int64."""
    return x.view(np.int64)


def as_uint(x: Any) -> Any:
    """The same bits read as uint64."""
    return x.view(np.uint64)


def as_number(arm: Any) -> Any:
    """An arm's number as a float, one a lane when the arm is a row of lanes."""
    return arm * 1.0


_SQRT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)
_SQRT_HALF = float(_SQRT_HALF_BITS.view(np.float64))
_S52 = np.int64(52)
_MAGIC = np.int64(0x4338000000000000)  # adding it to a small integer gives the bits of 1.5 * 2**52 + that integer
_MAGIC_FLOAT = 6755399441055744.0


@compilable
def exponent_and_rest_by_bits(x: Any) -> Any:
    """`exponent_and_rest` of arrays, rows of lanes and, compiled, of numbers."""
    raw = as_int(x)
    k = (raw - _SQRT_HALF_BITS) >> _S52
    return as_float(k + _MAGIC) - _MAGIC_FLOAT, as_float(raw - (k << _S52)) - 1.0


def exponent_and_rest(x: Any) -> Any:
    """k and f with x = 2**k (1 + f) and 1 + f between sqrt(1/2) and sqrt(2), for a positive normal number; exact. A
    Python number is taken apart by Python: NumPy is slow with single numbers."""
    if type(x) is not float:
        return exponent_and_rest_by_bits(x)
    rest, k = math.frexp(x)
    return (float(k), rest - 1.0) if rest >= _SQRT_HALF else (k - 1.0, 2.0 * rest - 1.0)


def stride(n: int) -> Any:
    """n times the golden-ratio step of SplitMix64, modulo 2**64."""
    return np.uint64((n * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)


def index(i: Any) -> Any:
    """The same position, promised to be 0 or more.

    Python counts a negative position from the end, so compiled code asks at every access whether it is one, unless it
    can see that it is not. In a loop over `range(n)` it sees it; of a number read from an array, or counted up from
    one, it must be told, in the function that uses it: told in a helper that returns it, it may forget."""
    return i


def argmax(values: Any) -> int:
    """The first position of the largest value; for continuous samples, where ties have probability 0."""
    items: list[float] = values if type(values) is list else list(values)
    return items.index(max(items))


def copy_state(target: Any, source: Any) -> None:
    """Write every number of one state into another of the same shape; states within states too. How wrappers start a
    policy anew."""
    for into, from_ in zip(target, source, strict=True):
        if isinstance(into, tuple):
            copy_state(into, from_)
        else:
            for i in range(len(into)):
                into[i] = from_[i]


# ---- shared by interpreter and compiler ------------------------------------------------------------------------------


def argmax_fair(values: Any, rng: Any) -> int:
    """A position of the largest value, each of several equal ones with the same probability."""
    best = values[0]
    arm = 0
    ties = 1
    for i in range(1, len(values)):
        if values[i] > best:
            best = values[i]
            arm = i
            ties = 1
        elif values[i] == best:
            ties += 1
    if ties == 1:
        return arm
    skip = int(rng.uniform(TIES) * ties)
    for i in range(arm, len(values)):
        if values[i] == best:
            if skip == 0:
                return i
            skip -= 1
    return arm


def draw_from(probabilities: Any, u: float) -> int:
    """The first position whose cumulative probability exceeds u, a uniform number; the last one if rounding leaves
    none."""
    total = 0.0
    last = len(probabilities) - 1
    for i in range(last):
        total += probabilities[i]
        if u < total:
            return i
    return last


@compilable
def shuffle(items: Any, count: int, rng: Any) -> None:
    """Put the first `count` items in random order, in place."""
    for j in range(count - 1, 0, -1):
        k = int(rng.uniform(SHUFFLE + j) * (j + 1))
        held = items[j]
        items[j] = items[k]
        items[k] = held


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
