"""A live agent's policy as machine code: the same choices as interpreted, some microseconds sooner.

Handing a tuple of arrays to compiled code costs more than a choice does, because every array is unpacked again. So the
state stays where it is, and a call hands over one address: that of a table of the arrays' addresses and lengths. `load`
turns it back into the state inside compiled code."""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.errors import NumbaError
from numba.extending import NativeValue, intrinsic, register_model, typeof_impl, unbox
from numba.np.arrayobj import populate_array

from driftbandit.draws import Draws, round_key
from driftbandit.lab.engine import code_cache, compile_errors, compiled_draws, numba_methods
from driftbandit.primitives import teach, teach_late
from driftbandit.text import policy_check

_I64 = ir.IntType(64)


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


def choose_once(policy: Any, ref: Any, t: int, key: Any, decision: int) -> Any:
    """The arm for one decision."""
    return policy.choose(load(ref), t, Draws(round_key(key, decision)))


def learn_once(policy: Any, ref: Any, t: int, arm: int, reward: float, key: Any) -> None:
    """Take in one reward, the t-th."""
    teach(policy, load(ref), t, arm, reward, Draws(round_key(key, t)))


def learn_once_late(policy: Any, ref: Any, t: int, arm: int, reward: float, key: Any, chance: float) -> None:
    """Take in one reward of an arm that was played with this probability."""
    teach_late(policy, load(ref), t, arm, reward, Draws(round_key(key, t)), chance)


def choose_many(policy: Any, ref: Any, t: int, stream: Any, decision: int, out: Any) -> None:
    """The arms of len(out) decisions without a reward between them."""
    state = load(ref)
    for j in range(len(out)):
        out[j] = policy.choose(state, t, stream.at(decision + j))


class LivePolicy:
    """A policy with its state, compiled; `state` holds the arrays themselves."""

    def __init__(self, policy: Any, state: Any, key: int, n_arms: int) -> None:
        policy_check.check(policy, n_arms)
        numba_methods.prepare(policy)
        numba_methods.prepare(state)
        self.policy, self.state, self._n_arms = policy, state, n_arms
        self._ref = StateRef(state)
        self.rekey(key)
        self._choose = self._entry(choose_once, types.int64, types.uint64, types.int64)
        self._learn = self._entry(learn_once, types.int64, types.int64, types.float64, types.uint64)
        self._late: Any = None
        room = np.empty(0, np.int64)
        self._many = self._entry(choose_many, types.int64, numba.typeof(self._stream), types.int64, numba.typeof(room))

    def _entry(self, function: Any, *kinds: Any) -> Any:
        """The compiled function for just these types, past Numba's look at the arguments, which takes longer than all
        the rest."""
        signature = (numba.typeof(self.policy), numba.typeof(self._ref), *kinds)
        dispatcher = code_cache.compiled(function, self.policy, self.state)
        try:
            with code_cache.LOCK, numba_methods.whole_stores():
                dispatcher.compile(signature)
        except NumbaError as error:
            raise TypeError(compile_errors.explain(error, self.policy)) from error
        return dispatcher.get_overload(signature)

    def rekey(self, key: int) -> None:
        """Draw from this stream from now on."""
        self.key = np.uint64(key)
        self._stream = compiled_draws.ahead_stream(key, self._n_arms)

    @property
    def kept(self) -> Any:
        """What was learnt: the state itself."""
        return self.state

    def choose(self, t: int, decision: int) -> int:
        """The arm for one decision."""
        return int(self._choose(self.policy, self._ref, t, self.key, decision))

    def learn(self, t: int, arm: int, reward: float) -> None:
        """Take in one reward."""
        self._learn(self.policy, self._ref, t, arm, reward, self.key)

    def learn_late(self, t: int, arm: int, reward: float, chance: float) -> None:
        """Take in one reward of an arm that was played with this probability. Few policies ask for it, and few agents
        hear late, so it is compiled when it is first used."""
        if self._late is None:
            self._late = self._entry(
                learn_once_late, types.int64, types.int64, types.float64, types.uint64, types.float64
            )
        self._late(self.policy, self._ref, t, arm, reward, self.key, chance)

    def choose_many(self, t: int, decision: int, n: int) -> list[int]:
        """The arms of n decisions without a reward between them."""
        out = np.empty(n, np.int64)
        self._stream.filled[0] = -1
        self._many(self.policy, self._ref, t, self._stream, decision, out)
        return out.tolist()
