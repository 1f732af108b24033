"""Arrays that lie apart in lockstep: one for each lane, where a `LaneArray` has the lanes of an entry side by side.

A policy that goes through many numbers of the arm it played has nothing from side by side: every lane played another
arm, so each number is fetched for each lane from a line of memory of its own. Where its state's class says `apart`,
the lanes learn one after the other instead, and the compiler takes several numbers of a lane at a time, as it does for
a run that plays alone. `choose` still works on rows; it can read such arrays, and writes none."""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.extending import intrinsic, make_attribute_wrapper, overload, register_model, typeof_impl, unbox

from driftbandit.lab.engine import loop
from driftbandit.lab.engine.numba_methods import INLINED
from driftbandit.lab.engine.simd import _ELEMENT, _I32, _I64, Row, _define, _LaneArrayModel, _unbox_lane_array


class OwnArray:
    """Python's side: a C-contiguous array of shape (lanes, entries)."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = np.ascontiguousarray(array)


class OwnArrayType(types.Type):
    """Numba type of an `OwnArray`; indexing it by a number, or by a row of positions, gives each lane's own entry."""

    def __init__(self, dtype: Any, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        self.store = types.Array(dtype, 2, "C")
        super().__init__(name=f"OwnArray({dtype}, {lanes})")


@typeof_impl.register(OwnArray)
def _typeof_own_array(value: OwnArray, context: Any) -> OwnArrayType:
    return OwnArrayType(from_dtype(value.array.dtype), value.array.shape[0])


register_model(OwnArrayType)(_LaneArrayModel)
make_attribute_wrapper(OwnArrayType, "store", "store")
unbox(OwnArrayType)(_unbox_lane_array)


def _own_entries(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Entry i of every lane's own array, i being a number or one for each lane."""
    array, index = signature.args
    struct = cgutils.create_struct_proxy(array)(context, builder, value=args[0])
    store = context.make_array(array.store)(context, builder, value=struct.store)
    entries = builder.extract_value(store.shape, 1)
    row = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
    for lane in range(array.lanes):
        position = ir.Constant(_I32, lane)
        at = (
            builder.extract_element(args[1], position)
            if isinstance(index, Row)
            else context.cast(builder, args[1], index, types.int64)
        )
        begin = builder.gep(store.data, [builder.mul(entries, ir.Constant(_I64, lane))])
        row = builder.insert_element(row, builder.load(builder.gep(begin, [at])), position)
    return row


def _row_of(context: Any, array: Any, index: Any) -> Any:
    return Row(array.dtype, array.lanes) if isinstance(array, OwnArrayType) else None


_define(operator.getitem, _row_of, _own_entries, (OwnArrayType, types.Integer))
lower_builtin(operator.getitem, OwnArrayType, Row)(_own_entries)


def _own_length(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    struct = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0])
    store = context.make_array(signature.args[0].store)(context, builder, value=struct.store)
    return builder.extract_value(store.shape, 1)


_define(len, lambda context, x: types.intp if isinstance(x, OwnArrayType) else None, _own_length, (OwnArrayType,))


@intrinsic
def _spilled(typing_context: Any, row: Any) -> Any:
    """A row written to memory once, as its address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = cgutils.alloca_once_value(builder, args[0])
        return builder.ptrtoint(place, _I64)

    return types.int64(row), codegen


@intrinsic
def _lane_of(typing_context: Any, row: Any, address: Any, lane: Any) -> Any:
    """One lane of a row that `_spilled` wrote."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.inttoptr(args[1], _ELEMENT[row.dtype].as_pointer())
        return builder.load(builder.gep(first, [args[2]]))

    return row.dtype(row, types.int64, types.int64), codegen


@overload(loop.let_learn, jit_options=INLINED, strict=False)
def _let_learn(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any) -> Any:
    if not any(isinstance(field, OwnArrayType) for field in _fields(state)):
        return loop.let_learn
    scope: dict[str, Any] = {"spilled": _spilled, "lane_of": _lane_of}

    def apart(kind: Any, path: str) -> str:
        """The state as one lane has it: its own arrays as plain ones, anything else as it is."""
        if isinstance(kind, OwnArrayType):
            return f"{path}.store[lane]"
        if not isinstance(kind, types.BaseNamedTuple):
            return path
        name = f"class{len(scope)}"
        scope[name] = kind.instance_class
        return f"{name}({', '.join(apart(field, f'{path}[{n}]') for n, field in enumerate(kind.types))})"

    one = apart(state, "state")
    exec(
        "def teach_lanes(policy, state, t, arm, reward, rng):\n"
        "    arms, rewards = spilled(arm), spilled(reward)\n"
        f"    for lane in range({arm.lanes}):\n"
        f"        policy.learn({one}, t, lane_of(arm, arms, lane), lane_of(reward, rewards, lane))\n",
        scope,
    )
    return scope["teach_lanes"]


def _fields(kind: Any) -> Any:
    """The types of all fields of a state, of states within it too."""
    for field in kind.types:
        if isinstance(field, types.BaseNamedTuple):
            yield from _fields(field)
        else:
            yield field
