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

from driftbandit import primitives
from driftbandit.draws import Draws
from driftbandit.lab.engine import loop
from driftbandit.lab.engine.lane_arrays import LaneArrayModel, LaneArrayType, unbox_lane_array
from driftbandit.lab.engine.numba_methods import INLINED
from driftbandit.lab.engine.simd import ELEMENT, I32, I64, LaneRow, define


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


register_model(OwnArrayType)(LaneArrayModel)
make_attribute_wrapper(OwnArrayType, "store", "store")
unbox(OwnArrayType)(unbox_lane_array)


def _own_entries(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Entry i of every lane's own array, i being a number or one for each lane."""
    array, index = signature.args
    struct = cgutils.create_struct_proxy(array)(context, builder, value=args[0])
    store = context.make_array(array.store)(context, builder, value=struct.store)
    entries = builder.extract_value(store.shape, 1)
    row = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
    for lane in range(array.lanes):
        position = ir.Constant(I32, lane)
        at = (
            builder.extract_element(args[1], position)
            if isinstance(index, LaneRow)
            else context.cast(builder, args[1], index, types.int64)
        )
        begin = builder.gep(store.data, [builder.mul(entries, ir.Constant(I64, lane))])
        row = builder.insert_element(row, builder.load(builder.gep(begin, [at])), position)
    return row


def _row_of(context: Any, array: Any, index: Any) -> Any:
    return LaneRow(array.dtype, array.lanes) if isinstance(array, OwnArrayType) else None


define(operator.getitem, _row_of, _own_entries, (OwnArrayType, types.Integer))
lower_builtin(operator.getitem, OwnArrayType, LaneRow)(_own_entries)


def _own_length(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    struct = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0])
    store = context.make_array(signature.args[0].store)(context, builder, value=struct.store)
    return builder.extract_value(store.shape, 1)


define(len, lambda context, x: types.intp if isinstance(x, OwnArrayType) else None, _own_length, (OwnArrayType,))


@intrinsic
def _spilled(typing_context: Any, row: Any) -> Any:
    """A row written to memory once, as its address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = cgutils.alloca_once_value(builder, args[0])
        return builder.ptrtoint(place, I64)

    return types.int64(row), codegen


@intrinsic
def _lane_of(typing_context: Any, row: Any, address: Any, lane: Any) -> Any:
    """One lane of a row that `_spilled` wrote."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.inttoptr(args[1], ELEMENT[row.dtype].as_pointer())
        return builder.load(builder.gep(first, [args[2]]))

    return row.dtype(row, types.int64, types.int64), codegen


@overload(loop.let_learn, jit_options=INLINED, strict=False)
def _let_learn(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any) -> Any:
    if not _lies_apart(state):
        return loop.let_learn
    scope: dict[str, Any] = {"spilled": _spilled, "lane_of": _lane_of}
    exec(
        "def teach_lanes(policy, state, t, arm, reward, rng):\n"
        "    arms, rewards = spilled(arm), spilled(reward)\n"
        f"    for lane in range({arm.lanes}):\n"
        f"        policy.learn({_one_lane(state, 'state', scope)}, t, lane_of(arm, arms, lane),"
        " lane_of(reward, rewards, lane))\n",
        scope,
    )
    return scope["teach_lanes"]


@overload(primitives.lane_by_lane, jit_options=INLINED, strict=False)
def _lane_by_lane(policy: Any, state: Any, t: Any, rng: Any) -> Any:
    if not _lies_apart(state):
        return lambda policy, state, t, rng: policy.believe(state, t, rng)
    scope: dict[str, Any] = {"spilled": _spilled, "lane_of": _lane_of, "Draws": Draws}
    key = rng.types[rng.fields.index("key")]
    exec(
        "def believe_lanes(policy, state, t, rng):\n"
        "    keys = spilled(rng.key)\n"
        f"    for lane in range({key.lanes}):\n"
        f"        policy.believe({_one_lane(state, 'state', scope)}, t, Draws(lane_of(rng.key, keys, lane)))\n",
        scope,
    )
    return scope["believe_lanes"]


def _one_lane(kind: Any, path: str, scope: dict[str, Any]) -> str:
    """The state as one lane has it, as an expression: its own arrays as plain ones, of arrays of rows its column."""
    if isinstance(kind, OwnArrayType):
        return f"{path}.store[lane]"
    if isinstance(kind, LaneArrayType):
        return f"{path}.store[:, lane]"
    if not isinstance(kind, types.BaseNamedTuple):
        return path
    name = f"class{len(scope)}"
    scope[name] = kind.instance_class
    fields = [_one_lane(field, f"{path}[{n}]", scope) for n, field in enumerate(kind.types)]
    return f"{name}({', '.join(fields)})"


def _lies_apart(state: Any) -> bool:
    """Has the state arrays that lie apart?"""
    return any(isinstance(field, OwnArrayType) for field in _fields(state))


def _fields(kind: Any) -> Any:
    """The types of all fields of a state, of states within it too."""
    for field in kind.types:
        if isinstance(field, types.BaseNamedTuple):
            yield from _fields(field)
        else:
            yield field
