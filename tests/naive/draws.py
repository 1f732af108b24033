"""The random numbers of the naive twins, and the few rules by which a number becomes a decision.

A twin never owns a generator. In every round it is handed `rng`, which stands for that one round, and each number is a
pure function of (stream, round, slot): asking twice gives the same number, and not asking shifts nothing else.
`Draws` is such a source, made from NumPy for these tests; any object with the same three methods will do.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from driftbandit.core.primitives import (
    TIES,  # the slot that settles exact ties: a convention, so twin and policy share it
)


class Round(Protocol):
    """What `choose` may ask of the round's random numbers."""

    def uniform(self, slot: int) -> float: ...

    def normals(self, n: int) -> list[float]: ...

    def betas(self, a: Sequence[float], b: Sequence[float]) -> list[float]: ...


class Draws:
    """One round of a stream: every number comes from a fresh generator seeded with its own coordinates."""

    def __init__(self, seed: int, t: int) -> None:
        self.seed, self.t = seed, t

    def _generator(self, kind: int, slot: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.t, kind, slot])

    def uniform(self, slot: int) -> float:
        return float(self._generator(0, slot).random())

    def normals(self, n: int) -> list[float]:
        return [float(self._generator(1, arm).standard_normal()) for arm in range(n)]

    def betas(self, a: Sequence[float], b: Sequence[float]) -> list[float]:
        # Arm by arm, so that one arm's parameters can never shift another arm's draw.
        return [float(self._generator(2, arm).beta(a[arm], b[arm])) for arm in range(len(a))]


def argmax(values: Sequence[float]) -> int:
    """The first maximum: for continuous samples, where ties have probability zero."""
    best = 0
    for arm in range(1, len(values)):
        if values[arm] > values[best]:
            best = arm
    return best


def pick(candidates: Sequence[int], u: float) -> int:
    """The candidate that the uniform number `u` points at."""
    return candidates[int(u * len(candidates))]


def argmax_fair(values: Sequence[float], rng: Round, slot: int = TIES) -> int:
    """Uniform among the exact maxima in index order; a single maximum asks for no number."""
    top = max(values)
    maxima = [arm for arm in range(len(values)) if values[arm] == top]
    return maxima[0] if len(maxima) == 1 else pick(maxima, rng.uniform(slot))


def draw_from(p: Sequence[float], u: float) -> int:
    """The first entry whose cumulative sum exceeds `u`; the last one if rounding leaves none."""
    cumulative = 0.0
    for entry in range(len(p)):
        cumulative += p[entry]
        if cumulative > u:
            return entry
    return len(p) - 1


def shuffled(items: Sequence[int], rng: Round) -> list[int]:
    """A random order: for j = m-1 down to 1, item j changes places with item int(uniform(100 + j) * (j + 1))."""
    order = list(items)
    for j in range(len(order) - 1, 0, -1):
        k = int(rng.uniform(100 + j) * (j + 1))
        order[j], order[k] = order[k], order[j]
    return order


def total(values: Iterable[float]) -> float:
    """The plain left-to-right sum.

    The built-in `sum` compensates rounding from Python 3.12 on, so that it would differ from a running sum in the
    last bit, and differ between the Pythons we support."""
    result = 0.0
    for value in values:
        result += value
    return result


def log(n: float) -> float:
    """ln n, and 0 below one."""
    return math.log(max(n, 1.0))


def log_log(n: float) -> float:
    """ln ln n, and 0 up to e."""
    return math.log(math.log(max(n, math.e)))


class Twin(Protocol):
    """What every naive twin does, in rounds t = 0, 1, 2, ...; t is also the number of rewards learned before."""

    def choose(self, t: int, rng: Round) -> int: ...

    def learn(self, t: int, arm: int, reward: float) -> None: ...


Factory = Callable[[int], Twin]
