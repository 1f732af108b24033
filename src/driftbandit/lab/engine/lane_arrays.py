"""Arrays of SIMD rows: `LaneArray`, laid out [entry][lane], and how its entries are read and written.

An index that is a number gives the same entry of every lane, one vector load; an index that is a row gives each lane an
entry of its own, a gather."""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin
from numba.extending import NativeValue, intrinsic, make_attribute_wrapper, overload, register_model, typeof_impl, unbox

from driftbandit import primitives
from driftbandit.lab.engine import loop, simd
from driftbandit.lab.engine.loop import NO_SUCH_ARM
from driftbandit.lab.engine.numba_methods import INLINED
from driftbandit.lab.engine.simd import ELEMENT, I32, I64, LaneRow, as_row, define


class LaneArray:
    """Python's side of an array of rows: a C-contiguous array of shape (entries, lanes)."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = np.ascontiguousarray(array)


class LaneArrayType(types.Type):
    """Numba type of a `LaneArray`: indexing it by a number gives a row; by a row of positions, each lane's own
    entry."""

    def __init__(self, dtype: Any, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        self.store = types.Array(dtype, 2, "C")
        super().__init__(name=f"LaneArray({dtype}, {lanes})")


@typeof_impl.register(LaneArray)
def _typeof_lane_array(value: LaneArray, context: Any) -> LaneArrayType:
    return LaneArrayType(from_dtype(value.array.dtype), value.array.shape[1])


@register_model(LaneArrayType)
class LaneArrayModel(models.StructModel):
    """How a lane array lies in memory: an ordinary array of (entries, lanes)."""

    def __init__(self, dmm: Any, fe_type: LaneArrayType) -> None:
        super().__init__(dmm, fe_type, [("store", fe_type.store)])


make_attribute_wrapper(LaneArrayType, "store", "store")


@unbox(LaneArrayType)
def unbox_lane_array(kind: LaneArrayType, value: Any, c: Any) -> NativeValue:
    """From Python's object to the machine's."""
    array = c.pyapi.object_getattr_string(value, "array")
    native = c.unbox(kind.store, array)
    struct = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    struct.store = native.value
    c.pyapi.decref(array)
    return NativeValue(struct._getvalue(), is_error=native.is_error)


def _pointer(context: Any, builder: Any, kind: LaneArrayType, value: Any) -> Any:
    struct = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    return context.make_array(kind.store)(context, builder, value=struct.store).data


def _row_at(context: Any, builder: Any, kind: LaneArrayType, value: Any, index: Any, index_kind: Any) -> Any:
    """Pointer to a whole row."""
    entry = context.cast(builder, index, index_kind, types.int64)
    start = builder.gep(_pointer(context, builder, kind, value), [builder.mul(entry, ir.Constant(I64, kind.lanes))])
    return builder.bitcast(start, ir.VectorType(ELEMENT[kind.dtype], kind.lanes).as_pointer())


def _lane_pointers(context: Any, builder: Any, kind: LaneArrayType, value: Any, entries: Any) -> Any:
    """For every lane, its number and a pointer to its own entry."""
    base = _pointer(context, builder, kind, value)
    for lane in range(kind.lanes):
        position = ir.Constant(I32, lane)
        row = builder.mul(builder.extract_element(entries, position), ir.Constant(I64, kind.lanes))
        yield position, builder.gep(base, [builder.add(row, ir.Constant(I64, lane))])


def _entry_shape(context: Any, array: Any, index: Any) -> Any:
    if isinstance(array, LaneArrayType):
        return LaneRow(array.dtype, array.lanes)
    shared = isinstance(array, types.Array) and isinstance(index, LaneRow)
    return LaneRow(array.dtype, index.lanes) if shared else None


def _load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array, index = signature.args
    return builder.load(_row_at(context, builder, array, args[0], args[1], index), align=8)


def _gather(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    row = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
    for position, pointer in _lane_pointers(context, builder, signature.args[0], args[0], args[1]):
        row = builder.insert_element(row, builder.load(pointer), position)
    return row


def _take(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Each lane's entry of an array that all lanes share."""
    array, index = signature.args
    base = context.make_array(array)(context, builder, value=args[0]).data
    row = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
    for lane in range(index.lanes):
        position = ir.Constant(I32, lane)
        pointer = builder.gep(base, [builder.extract_element(args[1], position)])
        row = builder.insert_element(row, builder.load(pointer), position)
    return row


define(operator.getitem, _entry_shape, _load, (LaneArrayType, types.Integer))
lower_builtin(operator.getitem, LaneArrayType, LaneRow)(_gather)
lower_builtin(operator.getitem, types.Array, LaneRow)(_take)


def _put(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Each lane's value into its entry of an array that all lanes share; where two lanes share an entry, the last one
    stays."""
    array, index, _ = signature.args
    base = context.make_array(array)(context, builder, value=args[0]).data
    for lane in range(index.lanes):
        position = ir.Constant(I32, lane)
        pointer = builder.gep(base, [builder.extract_element(args[1], position)])
        builder.store(builder.extract_element(args[2], position), pointer)
    return context.get_dummy_value()


def _store_shape(context: Any, array: Any, index: Any, value: Any) -> Any:
    shared = isinstance(array, types.Array) and isinstance(index, LaneRow)
    return types.none if shared or isinstance(array, LaneArrayType) else None


def _store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array, index, value = signature.args
    row = as_row(context, builder, args[2], value, array.dtype, array.lanes)
    builder.store(row, _row_at(context, builder, array, args[0], args[1], index), align=8)
    return context.get_dummy_value()


def _scatter(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = signature.args[0]
    row = as_row(context, builder, args[2], signature.args[2], array.dtype, array.lanes)
    for position, pointer in _lane_pointers(context, builder, array, args[0], args[1]):
        builder.store(builder.extract_element(row, position), pointer)
    return context.get_dummy_value()


define(operator.setitem, _store_shape, _store, (LaneArrayType, types.Integer, types.Any))
lower_builtin(operator.setitem, LaneArrayType, LaneRow, types.Any)(_scatter)
lower_builtin(operator.setitem, types.Array, LaneRow, LaneRow)(_put)


def _length(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    struct = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
    store = context.make_array(kind.store)(context, builder, value=struct.store)
    return builder.extract_value(store.shape, 0)


define(len, lambda context, x: types.intp if isinstance(x, LaneArrayType) else None, _length, (LaneArrayType,))


@intrinsic
def _lane(typing_context: Any, row: Any, lane: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_element(args[0], builder.trunc(args[1], I32))

    return row.dtype(row, types.int64), codegen


@overload(loop.store_lanes, strict=False)
def _store_lanes(out: Any, column: Any, value: Any) -> Any:
    if not isinstance(value, LaneRow):
        return loop.store_lanes
    lanes = value.lanes

    def store_row(out: Any, column: Any, value: Any) -> None:
        for lane in range(lanes):
            out[lane, column] = _lane(value, lane)

    return store_row


def _argmax_of_numbers(values: Any) -> Any:
    # Whether a sample beats the best so far is a coin toss no processor can predict, so we select instead of jumping.
    best = values[0]
    arm = 0
    for i in range(1, len(values)):
        value = values[i]
        better = value > best
        best = value if better else best
        arm = i if better else arm
    return arm


@overload(primitives.argmax, strict=False)
def _argmax(values: Any) -> Any:
    if not isinstance(values, LaneArrayType):
        return _argmax_of_numbers

    def argmax_of_rows(values: Any) -> Any:
        best = values[0]
        arm = primitives.as_int(best) & 0
        for i in range(1, len(values)):
            value = values[i]
            better = value > best
            best = primitives.where(better, value, best)
            arm = primitives.where(better, i, arm)
        return arm

    return argmax_of_rows


@overload(primitives.argmax_fair, jit_options=INLINED, strict=False)
def _argmax_fair(values: Any, rng: Any) -> Any:
    if not isinstance(values, LaneArrayType):
        return primitives.argmax_fair

    def argmax_fair_of_rows(values: Any, rng: Any) -> Any:
        best = values[0]
        for i in range(1, len(values)):
            best = max(best, values[i])
        ties = primitives.where(values[0] == best, 1.0, 0.0)
        for i in range(1, len(values)):
            ties = ties + primitives.where(values[i] == best, 1.0, 0.0)
        # Of the equal ones in order, the last whose number is not above the draw.
        drawn = rng.uniform(primitives.TIES) * ties
        arm = primitives.as_int(best) & 0
        number = primitives.where(values[0] == best, 1.0, 0.0)
        for i in range(1, len(values)):
            tied = values[i] == best
            arm = primitives.where(tied & (number <= drawn), i, arm)
            number = number + primitives.where(tied, 1.0, 0.0)
        return arm

    return argmax_fair_of_rows


@overload(primitives.draw_from, jit_options=INLINED, strict=False)
def _draw_from(probabilities: Any, u: Any) -> Any:
    if not isinstance(probabilities, LaneArrayType):
        return primitives.draw_from

    def draw_from_rows(probabilities: Any, u: Any) -> Any:
        total = 0.0 * u
        arm = primitives.as_int(u) & 0
        for i in range(len(probabilities) - 1):
            total = total + probabilities[i]
            arm = primitives.where(total <= u, i + 1, arm)
        return arm

    return draw_from_rows


@overload(loop.existing, jit_options=INLINED, strict=False)
def _existing(arm: Any, n_arms: Any) -> Any:
    if not isinstance(arm, LaneRow):
        return loop.existing

    def existing_in_rows(arm: Any, n_arms: Any) -> Any:
        if simd.false_lanes((arm >= 0) & (arm < n_arms)) != 0:
            raise ValueError(NO_SUCH_ARM)
        return arm

    return existing_in_rows
