"""A player as machine code: the same choices as interpreted, some microseconds sooner.

Handing a tuple of arrays to compiled code costs more than a choice does, because every array is unpacked again. So the
state stays where it is, and a call hands over one address: that of a table of the arrays' addresses and lengths. `load`
turns it back into the state inside compiled code."""

from collections.abc import Iterable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import NativeValue, intrinsic, register_model, typeof_impl, unbox
from numba.np.arrayobj import populate_array

from driftbandit.core.draws import Draws
from driftbandit.core.state import to_arrays, to_lists
from driftbandit.lab.engine import code_cache
from driftbandit.lab.engine.loop import learn_one
from driftbandit.player import Player
from driftbandit.spec import policy_check
from driftbandit.spec.half_life import half_to_the

_I64 = ir.IntType(64)
_WHOLE, _REAL = types.int64, types.float64
_INTEGERS, _REALS = types.Array(_WHOLE, 1, "C"), types.Array(_REAL, 1, "C")


class StateRef:
    """A state by the address of its table. Keeps the arrays alive."""

    def __init__(self, state: Any) -> None:
        self.state = state
        arrays = list(_arrays(state))
        self.table = np.array([[array.ctypes.data, len(array)] for array in arrays], np.int64)
        self.address = int(self.table.ctypes.data)


def _arrays(state: Any) -> Any:
    for field in state:
        if isinstance(field, tuple):
            yield from _arrays(field)
        else:
            yield field


class StateRefType(types.Type):
    """Numba type of a `StateRef`: the type of its state is part of it."""

    def __init__(self, state: Any) -> None:
        self.state = state
        super().__init__(name=f"StateRef({state})")


@typeof_impl.register(StateRef)
def _typeof(value: StateRef, context: Any) -> StateRefType:
    return StateRefType(numba.typeof(value.state))


@register_model(StateRefType)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: StateRefType) -> None:
        super().__init__(dmm, fe_type, _I64)


@unbox(StateRefType)
def _unbox(kind: StateRefType, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "address")
    number = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(number, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@intrinsic
def load(typing_context: Any, ref: Any) -> Any:
    """The state behind the address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = builder.inttoptr(args[0], _I64.as_pointer())
        position = 0

        def word() -> Any:
            nonlocal position
            value = builder.load(builder.gep(table, [ir.Constant(_I64, position)]))
            position += 1
            return value

        def built(kind: Any) -> Any:
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder)
                data = builder.inttoptr(word(), context.get_data_type(kind.dtype).as_pointer())
                size = ir.Constant(_I64, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
                populate_array(array, data=data, shape=[word()], strides=[size], itemsize=size, meminfo=None)
                return array._getvalue()
            return context.make_tuple(builder, kind, [built(field) for field in kind.types])

        return built(ref.state)

    return ref.state(ref), codegen


# ---- compiled functions, each when it is first used -----------------------------------------------------------


def choose_once(policy: Any, ref: Any, t: int, key: Any, features: Any) -> Any:
    """The arm of one decision, whose numbers have this key, with these features or None."""
    if features is None:
        return policy.choose(load(ref), t, Draws(key))
    return policy.choose_in(load(ref), t, Draws(key), features)


def learn_once(
    policy: Any, ref: Any, t: int, key: Any, time: int, half_life: Any, coins: Any, arm: int, reward: float,
    decided: int, features: Any, probability: Any,
) -> Any:  # fmt: skip
    """Learn one reward, the t-th; the state's time afterwards. What the player does without is None."""
    now = t, key, time, half_life, coins
    return learn_one(policy, load(ref), *now, arm, reward, decided, features, probability)


def learn_all(
    policy: Any, ref: Any, t: int, key: Any, time: int, half_life: Any, coins: Any, arms: Any, rewards: Any,
    decided: Any,
) -> Any:  # fmt: skip
    """Learn rewards one after the other, the first of them the t-th; the state's time afterwards."""
    state = load(ref)
    for j in range(len(arms)):
        row = arms[j], rewards[j], decided[j], None, None
        time = learn_one(policy, state, t + j, key, time, half_life, coins, *row)
    return time


def fade_once(policy: Any, ref: Any, elapsed: int, half_life: int) -> None:
    """Let this much time go by."""
    policy.fade(load(ref), half_to_the(elapsed / half_life))


class CompiledPlayer(Player):
    """A player whose policy is machine code. All arrays of its state lie in one block of memory, so that a copy of the
    state is a copy of the block."""

    def __init__(
        self,
        policy: Any,
        n_arms: int,
        key: int = 0,
        half_life: int | None = None,
        time: int = 0,
        most: int | None = None,
        n_features: int = 0,
        joint: bool = False,
    ) -> None:
        policy_check.check(policy, n_arms, n_features=n_features, joint=joint)
        self._key = np.uint64(key)
        super().__init__(policy, n_arms, key, half_life, time, most, n_features, joint)
        self._choose = self._entry(choose_once, _WHOLE, types.uint64, self._features())
        self._learner()  # what cannot be compiled is refused before anything is decided

    def rekey(self, key: int) -> None:
        super().rekey(key)
        self._key = np.uint64(key)

    def _hold(self, state: Any) -> None:
        self._block, self.state = in_one_block(to_arrays(state, self.first_state()))
        self._ref = self._view_ref = StateRef(self.state)
        if self.half_life is not None or not self._in_place:
            self._view_block, self._view = in_one_block(self.state)
            self._view_ref = StateRef(self._view)
        self._viewed = None
        self._refs: dict[int, Any] = {}  # in the joint form, by the number of arms: the state with its scratch
        self._entries: dict[Any, Any] = {}

    def _replace(self, state: Any) -> None:
        if self._view_ref is not self._ref:
            self._hold(state)
            return
        if self.n_arms not in self._refs:
            self._refs[self.n_arms] = state, StateRef(state)
        self.state, self._ref = self._refs[self.n_arms]
        self._view_ref = self._ref

    def lists(self) -> Any:
        """The state as plain lists."""
        return to_lists(self.state)

    def _entry(self, function: Any, *kinds: Any) -> Any:
        """The compiled function for just these types, past Numba's look at the arguments, which takes longer than all
        the rest."""
        found = self._entries.get((function, kinds))
        if found is None:
            signature = (numba.typeof(self.policy), numba.typeof(self._ref), *kinds)
            dispatcher = code_cache.compiled(function, self.policy, self.state)
            with code_cache.compiling(self.policy):
                dispatcher.compile(signature)
            found = self._entries[function, kinds] = dispatcher.get_overload(signature)
        return found

    def view(self, at: int = 0) -> Any:
        """The state to choose from at a time."""
        if self._view_ref is self._ref:
            return self.state
        stamp = self.learned, 0 if self.half_life is None else at
        if self._viewed != stamp:
            self._view_block[:] = self._block
            if self.half_life is not None and at > self.time:
                fade = self._entry(fade_once, _WHOLE, _WHOLE)
                fade(self.policy, self._view_ref, at - self.time, self.half_life)
            self._viewed = stamp
        return self._view

    def choose(self, rng: Any, allowed: list[int] | None = None, at: int = 0, features: Any = None) -> int:
        """The arm that the policy plays with these random numbers, among the allowed ones (None: all)."""
        if self._view_ref is not self._ref:
            self.view(at)
        if self.n_features or features is not None:
            features = self.check_features(features, self.n_arms)
        arm = int(self._choose(self.policy, self._view_ref, self.learned, rng.round_key, features))
        return arm if allowed is None or arm in allowed else self._keep_to(allowed, arm, self.view(at), rng, features)

    def check_features(self, features: Any, arms: int = 1) -> Any:
        """The features as an array; others are refused."""
        return np.array(super().check_features(features, arms))

    def _ask(self, view: Any, rng: Any, features: Any = None) -> int:
        return int(self._choose(self.policy, self._view_ref, self.learned, rng.round_key, features))

    def learn(
        self, slot: int, reward: float, decided: int = 0, probability: float | None = None, features: Any = None
    ) -> None:
        """Learn one reward."""
        if not 0 <= slot < self.n_arms:
            self._check_slot(slot)
        if self.n_features or features is not None:
            features = self.check_features(features)
        if self.half_life is not None or not self.uses_probability or features is not None:
            probability = None
        learn = self._learner(probability is not None)
        self.time = learn(self.policy, self._ref, *self._now(), slot, reward, decided, features, probability)
        self.learned += 1

    def _now(self) -> tuple[Any, ...]:
        """`t`, `key`, `time`, `half_life` and `coins`."""
        return self.learned, self._key, self.time, self.half_life, None if self._coins is None else 1

    def _clock(self) -> tuple[Any, ...]:
        """The compiler's types of `_now`."""
        optional = (types.none if value is None else _WHOLE for value in self._now()[3:])
        return _WHOLE, types.uint64, _WHOLE, *optional

    def _features(self) -> Any:
        return _REALS if self.n_features else types.none

    def _learner(self, late: bool = False) -> Any:
        """What learns one reward, `late` with the probability that its arm had."""
        found = self._entries.get(late)
        if found is None:
            kinds = *self._clock(), _WHOLE, _REAL, _WHOLE, self._features(), _REAL if late else types.none
            found = self._entries[late] = self._entry(learn_once, *kinds)
        return found

    def _batch_learner(self) -> Any:
        return self._entry(learn_all, *self._clock(), _INTEGERS, _REALS, _INTEGERS)

    def prepare(self) -> None:
        """Compile everything that this player may need later."""
        if self.half_life is not None:
            self._entry(fade_once, _WHOLE, _WHOLE)
        if not self.n_features and self.uses_probability and self.half_life is None:
            self._learner(late=True)
        elif not self.n_features:
            self._batch_learner()

    def _check_slot(self, slot: int) -> int:
        if not 0 <= slot < self.n_arms:  # machine code would not notice
            raise IndexError(f"There is no arm {slot}.")
        return slot

    def learn_many(self, rewards: Iterable[tuple[Any, ...]]) -> None:
        """Learn several rewards in one call of machine code."""
        rows = list(rewards)
        if len(rows) < 2 or self.n_features or (self.uses_probability and self.half_life is None):
            super().learn_many(rows)
            return
        arms = np.array([self._check_slot(row[0]) for row in rows], np.int64)
        values = np.array([row[1] for row in rows], np.float64)
        decided = np.array([row[2] for row in rows], np.int64)
        self.time = self._batch_learner()(self.policy, self._ref, *self._now(), arms, values, decided)
        self.learned += len(rows)


def in_one_block(state: Any) -> tuple[np.ndarray, Any]:
    """A copy of a state whose arrays lie in one block of memory, and the block."""
    sizes = [array.nbytes + -array.nbytes % 8 for array in _arrays(state)]
    block = np.zeros(sum(sizes), np.uint8)
    starts = iter([0, *np.cumsum(sizes).tolist()])

    def placed(field: Any) -> Any:
        if isinstance(field, tuple):
            return tuple.__new__(type(field), [placed(part) for part in field])
        start = next(starts)
        out = block[start : start + field.nbytes].view(field.dtype)
        out[:] = field
        return out

    return block, placed(state)
