"""Folding a long journal as machine code: the same bits as interpreted, several times as fast.

Used to open a journal of millions of events. It is compiled again in each process, which takes a second or two, and
needs the `lab` extra."""

from typing import Any

import numba
import numpy as np
from numba import types

from driftbandit.half_life import learn_by_time
from driftbandit.lab.engine import numba_methods
from driftbandit.lab.engine.compiled_player import StateRef, load
from driftbandit.primitives import weighs
from driftbandit.state import to_arrays, to_lists


def learn_all(policy: Any, ref: Any, t: int, slots: Any, values: Any) -> None:
    """Take in rewards one after the other."""
    state = load(ref)
    for j in range(len(slots)):
        policy.learn(state, t + j, slots[j], values[j])


def learn_all_late(policy: Any, ref: Any, t: int, slots: Any, values: Any, chances: Any) -> None:
    """The same, for a policy that weighs by the probability its arms were played with, where that was kept."""
    state = load(ref)
    for j in range(len(slots)):
        if chances[j] >= 0.0:
            policy.learn_late(state, t + j, slots[j], values[j], chances[j])
        else:
            policy.learn(state, t + j, slots[j], values[j])


def learn_all_by_time(policy: Any, ref: Any, time: int, half_life: int, slots: Any, values: Any, decided: Any) -> Any:
    """The same with a half-life. The state's time afterwards."""
    state = load(ref)
    for j in range(len(slots)):
        time = learn_by_time(policy, state, time, half_life, slots[j], values[j], decided[j])
    return time


class CompiledLearner:
    """A policy whose rewards are taken in by machine code."""

    def __init__(self, policy: Any, state: Any, by_time: bool) -> None:
        numba_methods.prepare(policy)
        numba_methods.prepare(to_arrays(to_lists(state), state))
        self.policy = policy
        function = learn_all_by_time if by_time else learn_all_late if weighs(policy) else learn_all
        self._function = numba.njit(nogil=True, **numba_methods.OPTIONS)(function)
        self._entry: Any = None

    def learn(self, state: Any, n_arms: int, numbers: tuple[Any, ...], columns: list[np.ndarray]) -> tuple[Any, Any]:
        """The state of lists after these rewards, and what the function returns."""
        ref = StateRef(to_arrays(state, self.policy.init(n_arms)))
        if self._entry is None:
            arrays = [numba.typeof(column) for column in columns]
            signature = (numba.typeof(self.policy), numba.typeof(ref), *([types.int64] * len(numbers)), *arrays)
            self._function.compile(signature)
            self._entry = self._function.get_overload(signature)
        out = self._entry(self.policy, ref, *numbers, *columns)
        return to_lists(ref.state), out
