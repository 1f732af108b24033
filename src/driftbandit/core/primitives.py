"""Small functions that policies share, each written once for interpreted and compiled use.

A function marked `compilable` may be called from a policy's methods: in the compiled loop Numba compiles the same
source (`lab.engine.numba_methods`). A few primitives (`where`, the bit casts) work differently on NumPy arrays,
numbers and SIMD rows; those have a compiled counterpart there, compared with this one by tests."""

import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

COMPILABLE: list[Callable[..., Any]] = []
COUNTERPARTS: dict[Callable[..., Any], Callable[..., Any]] = {}  # of NumPy functions, loops to be compiled instead

TIES = (1 << 39) + 1  # the slot of the number that breaks ties; policies' own slots are small numbers
AMONG = 1 << 39  # that breaks them among the allowed arms, where TIES chose one that is not allowed
COIN = 2  # the slot of the number by which `learn` turns a reward into 0 or 1; no `choose` may use it


def compilable(function: F) -> F:
    """Mark a plain function that policies and environments may call, so that the compiled loop can compile it too."""
    COMPILABLE.append(function)
    return function


def compiled_as(loops: Callable[..., Any]) -> Callable[[F], F]:
    """Mark a function for NumPy rows whose compiled form is `loops`, with the same parameters and the same bits."""

    def mark(function: F) -> F:
        COUNTERPARTS[function] = loops
        return compilable(function)

    return mark


# ---- primitives with a compiled counterpart --------------------------------------------------------------------------


def where(condition: Any, yes: Any, no: Any) -> Any:
    """`yes if condition else no`, entry by entry for an array or a row of lanes. Both sides are computed."""
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
    """An arm's number as a float, one per lane when the arm is a row of lanes."""
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
    """k and f with x = 2**k (1 + f) and 1 + f between sqrt(1/2) and sqrt(2), for a positive normal number; exact.
    Python numbers use `math`: NumPy is slow with single numbers."""
    if type(x) is not float:
        return exponent_and_rest_by_bits(x)
    rest, k = math.frexp(x)
    return (float(k), rest - 1.0) if rest >= _SQRT_HALF else (k - 1.0, 2.0 * rest - 1.0)


def times_power_of_two(x: Any, k: Any) -> Any:
    """x * 2**k for a whole number k given as a float, where neither x nor the result is tiny or huge; exact."""
    if type(x) is not float:
        return times_power_of_two_by_bits(x, k)
    return math.ldexp(x, int(k))


@compilable
def times_power_of_two_by_bits(x: Any, k: Any) -> Any:
    """`times_power_of_two` of arrays, rows of lanes and, compiled, of numbers: k is added to the exponent."""
    return as_float(as_int(x) + (as_int(k + _MAGIC_FLOAT) << _S52))


@compilable
def nearest_whole(x: Any) -> Any:
    """The whole number nearest to x, of two equally near ones the even one, for |x| < 2**51."""
    return (x + _MAGIC_FLOAT) - _MAGIC_FLOAT


def bit_length(n: int) -> int:
    """The number of binary digits of a number of 1 or more."""
    return int(n).bit_length()


def bit_count(n: int) -> int:
    """How many binary digits of a number of 0 or more are 1."""
    return n.bit_count()


def stride(n: int) -> Any:
    """n times the golden-ratio step of SplitMix64, modulo 2**64."""
    return np.uint64((n * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)


def index(i: Any) -> Any:
    """The same position, promised to be 0 or more.

    Python counts a negative position from the end, so compiled code tests every access for one, unless it can prove
    that there is none. In a loop over `range(n)` it can; for a number read from an array it needs this promise, in
    the function that uses the position: a promise made in a helper may be lost."""
    return i


def argmax(values: Any) -> int:
    """The first position of the largest value; for continuous samples, where ties have probability 0."""
    items: list[float] = values if type(values) is list else list(values)
    return items.index(max(items))


def copy_state(target: Any, source: Any) -> None:
    """Copy every number of one state into another of the same shape, nested states included. Wrappers restart a
    policy with it."""
    for into, from_ in zip(target, source, strict=True):
        if isinstance(into, tuple):
            copy_state(into, from_)
        else:
            for i in range(len(into)):
                into[i] = from_[i]


_takes_random_numbers: dict[type, bool] = {}


def learns_with_random_numbers(cls: type) -> bool:
    """Whether `learn` of this class takes the round's random numbers as a fifth argument."""
    if cls not in _takes_random_numbers:
        _takes_random_numbers[cls] = len(inspect.signature(cls.learn).parameters) > 5  # type: ignore[attr-defined]
    return _takes_random_numbers[cls]


def learn_reward(policy: Any, state: Any, t: int, arm: Any, reward: Any, rng: Any) -> None:
    """Call `learn` of a policy, with the random numbers of round t if its class takes them."""
    if learns_with_random_numbers(type(policy)):
        policy.learn(state, t, arm, reward, rng)
    else:
        policy.learn(state, t, arm, reward)


def uses_probability(policy: Any) -> bool:
    """Whether this policy divides a reward by the probability with which its arm was played, so that a late reward
    needs the probability at decision time (see `protocols.Policy`). A wrapper does what its base does."""
    return hasattr(type(policy), "arm_probability") and (not hasattr(policy, "base") or uses_probability(policy.base))


def arm_probability(policy: Any, state: Any, t: int, arm: Any, rng: Any) -> Any:
    """The probability with which a policy that `uses_probability` plays this arm now; 0.0 for others."""
    return policy.arm_probability(state, t, arm, rng) if uses_probability(policy) else 0.0


def learn_late_reward(policy: Any, state: Any, t: int, arm: Any, reward: Any, rng: Any, probability: Any) -> None:
    """`learn_reward` with a reward whose arm was played some time ago, with probability `probability`."""
    if not uses_probability(policy):
        learn_reward(policy, state, t, arm, reward, rng)
    elif learns_with_random_numbers(type(policy)):
        policy.learn_late(state, t, arm, reward, rng, probability)
    else:
        policy.learn_late(state, t, arm, reward, probability)


# ---- rows of numbers -------------------------------------------------------------------------------------------------

WIDTH = 4  # numbers in a row: what AVX2 computes at once


def open_rows(values: Any, first: int, count: int, block: int, blocks: int) -> Any:
    """The table of `count` rows that is block number `block` of those that begin at `first`, in the memory of `values`.
    All rows of a block follow each other. Interpreted, a row has the numbers of so many `blocks`, compiled of one."""
    start, size = first + block * count * WIDTH, blocks * count * WIDTH
    rows = values[start : start + size]
    return rows.reshape(1, blocks, WIDTH) if count == 1 else rows.reshape(blocks, count, WIDTH).swapaxes(0, 1)


def add_row(total: Any, row: Any) -> Any:
    """The total and the numbers of a row, added in a fixed order."""
    for a, b, c, d in row.tolist():
        total += (a + b) + (c + d)
    return total


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
def shuffle(items: Any, count: int, rng: Any, slot: int) -> None:
    """Put the first `count` items in random order, in place; `slot` is before the first one used."""
    for j in range(count - 1, 0, -1):
        k = int(rng.uniform(slot + j) * (j + 1))
        held = items[j]
        items[j] = items[k]
        items[k] = held
