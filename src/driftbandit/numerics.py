"""Small pieces that policies share, each written once for interpreted and compiled use.

A function marked `compilable` may be called from a policy's methods: interpreted it is itself, in the compiled loop Numba
compiles the very same source (`driftbandit.lab.kernel`). A few primitives (`where`, the bit casts) differ in how they are carried
out on NumPy arrays, numbers and SIMD rows; those have a compiled counterpart there, held to this one by test."""

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


# ---- primitives with a compiled counterpart -------------------------------------------------------------------------------------


def where(condition: Any, yes: Any, no: Any) -> Any:
    """`yes if condition else no`, entry by entry when the condition is an array or a row of lanes. Both sides are computed."""
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


def stride(n: int) -> Any:
    """n times the golden-ratio step of SplitMix64, modulo 2**64."""
    return np.uint64((n * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)


def argmax(values: Any) -> int:
    """The first position of the largest value; for continuous samples, where ties have probability 0."""
    best, arm = values[0], 0
    for i in range(1, len(values)):
        if values[i] > best:
            best, arm = values[i], i
    return arm


def copy_state(target: Any, source: Any) -> None:
    """Write every number of one state into another of the same shape; states within states too. How wrappers start a policy anew."""
    for into, from_ in zip(target, source, strict=True):
        if isinstance(into, tuple):
            copy_state(into, from_)
        else:
            for i in range(len(into)):
                into[i] = from_[i]


# ---- shared by interpreter and compiler -----------------------------------------------------------------------------------------


@compilable
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


@compilable
def draw_from(probabilities: Any, u: float) -> int:
    """The first position whose cumulative probability exceeds u, a uniform number; the last one if rounding leaves none."""
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
    """The largest q >= p with kl(p, q) <= bound, by bisection below Pinsker's p + sqrt(bound / 2), to a width of 1e-9."""
    if p >= 1.0:
        return 1.0
    low = p
    high = min(1.0, p + math.sqrt(max(bound, 0.0) / 2.0))
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if kl_bernoulli(p, middle) <= bound:
            low = middle
        else:
            high = middle
    return low
