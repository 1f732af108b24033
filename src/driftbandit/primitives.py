"""Small pieces that policies share, each written once for interpreted and compiled use.

A function marked `compilable` may be called from a policy's methods: interpreted it is itself, in the compiled loop
Numba compiles the very same source (`lab.engine.numba_methods`). A few primitives (`where`, the bit casts) differ in
how they are carried out on NumPy arrays, numbers and SIMD rows; those have a compiled counterpart there, held to this
one by test."""

import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

COMPILABLE: list[Callable[..., Any]] = []

TIES = (1 << 39) + 1  # the slot of the number that breaks ties; policies' own slots are small numbers
COIN = 2  # the slot of the number by which `learn` turns a reward into 0 or 1; no `choose` may use it
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
    """k and f with x = 2**k (1 + f) and 1 + f between sqrt(1/2) and sqrt(2), for a positive normal number; exact. A
    Python number is taken apart by Python: NumPy is slow with single numbers."""
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


def anywhere(condition: Any) -> Any:
    """Does the condition hold, in any lane if there are many? What no lane needs may be left out; what is computed must
    then be chosen lane by lane, by `where`."""
    return condition


def bit_length(n: int) -> int:
    """How many binary digits a number of 1 or more has."""
    return n.bit_length()


def bit_count(n: int) -> int:
    """How many of the binary digits of a number of 0 or more are 1."""
    return n.bit_count()


def fours(values: Any) -> Any:
    """The same array, of which compiled code reads and writes four neighbours at a time: `fours(values)[i]` is then a
    row of the entries i to i + 3. A loop that goes `range(0, n, at_once())` through it is the same source for one
    number at a time and for four, without the compiler having to prove that its arrays lie apart."""
    return values


def at_once() -> int:
    """How many entries one step through `fours` takes: one, or four in compiled code."""
    return 1


def column_sums(values: Any, first: int, end: int) -> Any:
    """The sums of values[first], values[first + 4], ..., of values[first + 1], values[first + 5], ..., and two more
    like these, up to `end`: four sums side by side, each from left to right. One sum would be a chain of additions
    each waiting for the one before; compiled, these are one vector."""
    a = b = c = d = 0.0
    for i in range(first, end, 4):
        a = a + values[i]
        b = b + values[i + 1]
        c = c + values[i + 2]
        d = d + values[i + 3]
    return a, b, c, d


def column_moments(values: Any, first: int, end: int, other: int) -> Any:
    """The four sums of `column_sums`; and, over all columns, the sums of values[i] times values[i + other] and of the
    same times values[i + other] again."""
    a = b = c = d = 0.0
    a1 = b1 = c1 = d1 = 0.0
    a2 = b2 = c2 = d2 = 0.0
    for i in range(first, end, 4):
        x = values[i] * values[i + other]
        a = a + values[i]
        a1 = a1 + x
        a2 = a2 + x * values[i + other]
        x = values[i + 1] * values[i + 1 + other]
        b = b + values[i + 1]
        b1 = b1 + x
        b2 = b2 + x * values[i + 1 + other]
        x = values[i + 2] * values[i + 2 + other]
        c = c + values[i + 2]
        c1 = c1 + x
        c2 = c2 + x * values[i + 2 + other]
        x = values[i + 3] * values[i + 3 + other]
        d = d + values[i + 3]
        d1 = d1 + x
        d2 = d2 + x * values[i + 3 + other]
    return a, b, c, d, (a1 + b1) + (c1 + d1), (a2 + b2) + (c2 + d2)


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


_by_chance: dict[type, bool] = {}


def learns_by_chance(cls: type) -> bool:
    """Does `learn` of this class ask for the round's random numbers as a fifth argument?"""
    if cls not in _by_chance:
        _by_chance[cls] = len(inspect.signature(cls.learn).parameters) > 5  # type: ignore[attr-defined]
    return _by_chance[cls]


def teach(policy: Any, state: Any, t: int, arm: Any, reward: Any, rng: Any) -> None:
    """Let a policy learn, with the random numbers of round t if its class asks for them: whoever calls `learn` of a
    policy it did not write, the simulator's loop and the wrappers above all, calls this."""
    if learns_by_chance(type(policy)):
        policy.learn(state, t, arm, reward, rng)
    else:
        policy.learn(state, t, arm, reward)


def weighs(policy: Any) -> bool:
    """Does this policy divide a reward by the probability with which its arm was played? Then a reward that comes late
    needs the probability of back then: see `protocols.Policy`. A wrapper does what its base does."""
    return hasattr(type(policy), "chance_of") and (not hasattr(policy, "base") or weighs(policy.base))


def chance_of(policy: Any, state: Any, t: int, arm: Any, rng: Any) -> Any:
    """The probability with which a policy that `weighs` plays this arm now; of others 0.0, which nobody asks for."""
    return policy.chance_of(state, t, arm, rng) if weighs(policy) else 0.0


def teach_late(policy: Any, state: Any, t: int, arm: Any, reward: Any, rng: Any, chance: Any) -> None:
    """`teach` with a reward whose arm was played some time ago, with probability `chance`."""
    if not weighs(policy):
        teach(policy, state, t, arm, reward, rng)
    elif learns_by_chance(type(policy)):
        policy.learn_late(state, t, arm, reward, rng, chance)
    else:
        policy.learn_late(state, t, arm, reward, chance)


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
