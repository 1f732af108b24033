"""Arrays of SIMD rows: `LaneArray`, laid out [entry][lane], and how its entries are read and written.

A number as index gives the same entry of every lane, one vector load. A row as index gives each lane the entry that its
number names, a gather."""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin
from numba.extending import NativeValue, intrinsic, make_attribute_wrapper, overload, register_model, typeof_impl, unbox
from numba.np.arrayobj import populate_array

from driftbandit.core import primitives
from driftbandit.lab.engine import loop, simd
from driftbandit.lab.engine.loop import NO_SUCH_ARM
from driftbandit.lab.engine.numba_methods import INLINED
from driftbandit.lab.engine.simd import ELEMENT, I32, I64, LaneRow, as_row, define


class LaneArray:
    """An array of rows in Python: a C-contiguous array of shape (entries, lanes)."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = np.ascontiguousarray(array)


class LaneArrayType(types.Type):
    """Numba type of a `LaneArray`."""

    def __init__(self, dtype: Any, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        self.store = types.Array(dtype, 2, "C")
        super().__init__(name=f"LaneArray({dtype}, {lanes})")


@typeof_impl.register(LaneArray)
def _typeof_lane_array(value: LaneArray, context: Any) -> LaneArrayType:
    return LaneArrayType(from_dtype(value.array.dtype), value.array.shape[1])


@register_model(LaneArrayType)
class LaneArrayModel(models.StructModel):
    """The layout in memory: an ordinary array of shape (entries, lanes)."""

    def __init__(self, dmm: Any, fe_type: LaneArrayType) -> None:
        super().__init__(dmm, fe_type, [("store", fe_type.store)])


make_attribute_wrapper(LaneArrayType, "store", "store")


@unbox(LaneArrayType)
def unbox_lane_array(kind: LaneArrayType, value: Any, c: Any) -> NativeValue:
    """Convert the Python object for compiled code."""
    array = c.pyapi.object_getattr_string(value, "array")
    native = c.unbox(kind.store, array)
    struct = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    struct.store = native.value
    c.pyapi.decref(array)
    return NativeValue(struct._getvalue(), is_error=native.is_error)


def _pointer(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Pointer to the first number of a `LaneArray`, or of an ordinary array, which all lanes share."""
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value=value).data
    struct = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    return context.make_array(kind.store)(context, builder, value=struct.store).data


def _row_at(context: Any, builder: Any, kind: LaneArrayType, value: Any, index: Any, index_kind: Any) -> Any:
    """Pointer to a whole row."""
    entry = context.cast(builder, index, index_kind, types.int64)
    start = builder.gep(_pointer(context, builder, kind, value), [builder.mul(entry, ir.Constant(I64, kind.lanes))])
    return builder.bitcast(start, ir.VectorType(ELEMENT[kind.dtype], kind.lanes).as_pointer())


def _lane_pointers(context: Any, builder: Any, kind: Any, value: Any, entries: Any, lanes: int) -> Any:
    """For every lane, its number and a pointer to the entry that it names, in its own column of a `LaneArray`."""
    base = _pointer(context, builder, kind, value)
    for lane in range(lanes):
        position = ir.Constant(I32, lane)
        entry = builder.extract_element(entries, position)
        if isinstance(kind, LaneArrayType):
            entry = builder.add(builder.mul(entry, ir.Constant(I64, lanes)), ir.Constant(I64, lane))
        yield position, builder.gep(base, [entry])


def _entry_shape(context: Any, array: Any, index: Any) -> Any:
    if isinstance(array, LaneArrayType):
        return LaneRow(array.dtype, array.lanes)
    shared = isinstance(array, types.Array) and isinstance(index, LaneRow)
    return LaneRow(array.dtype, index.lanes) if shared else None


def _load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array, index = signature.args
    return builder.load(_row_at(context, builder, array, args[0], args[1], index), align=8)


def _gather(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array, index = signature.args
    row = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
    for position, pointer in _lane_pointers(context, builder, array, args[0], args[1], index.lanes):
        row = builder.insert_element(row, builder.load(pointer), position)
    return row


define(operator.getitem, _entry_shape, _load, (LaneArrayType, types.Integer))
lower_builtin(operator.getitem, LaneArrayType, LaneRow)(_gather)
lower_builtin(operator.getitem, types.Array, LaneRow)(_gather)


def _store_shape(context: Any, array: Any, index: Any, value: Any) -> Any:
    shared = isinstance(array, types.Array) and isinstance(index, LaneRow)
    return types.none if shared or isinstance(array, LaneArrayType) else None


def _store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array, index, value = signature.args
    row = as_row(context, builder, args[2], value, array.dtype, array.lanes)
    builder.store(row, _row_at(context, builder, array, args[0], args[1], index), align=8)
    return context.get_dummy_value()


def _scatter(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write each lane's value; of two lanes with one entry of a shared array, the last counts."""
    array, index, value = signature.args
    row = as_row(context, builder, args[2], value, array.dtype, index.lanes)
    for position, pointer in _lane_pointers(context, builder, array, args[0], args[1], index.lanes):
        builder.store(builder.extract_element(row, position), pointer)
    return context.get_dummy_value()


define(operator.setitem, _store_shape, _store, (LaneArrayType, types.Integer, types.Any))
lower_builtin(operator.setitem, LaneArrayType, LaneRow, types.Any)(_scatter)
lower_builtin(operator.setitem, types.Array, LaneRow, LaneRow)(_scatter)


def _length(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    struct = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
    store = context.make_array(kind.store)(context, builder, value=struct.store)
    return builder.extract_value(store.shape, 0)


define(len, lambda context, x: types.intp if isinstance(x, LaneArrayType) else None, _length, (LaneArrayType,))


# ---- rows within ordinary arrays -------------------------------------------------------------------------------------


def _table_shape(context: Any, values: Any, *places: Any) -> Any:
    return LaneArrayType(values.dtype, primitives.WIDTH)


def _open_rows(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """A block of rows of an array, as a `LaneArray` in the same memory."""
    kind = signature.return_type
    places = zip(args[1:4], signature.args[1:4], strict=True)
    first, count, block = (context.cast(builder, value, kind, types.int64) for value, kind in places)
    begin = builder.add(first, builder.mul(builder.mul(block, count), ir.Constant(I64, primitives.WIDTH)))
    data = builder.gep(context.make_array(signature.args[0])(context, builder, value=args[0]).data, [begin])
    row, number = (ir.Constant(I64, size) for size in (8 * kind.lanes, 8))
    store = context.make_array(kind.store)(context, builder)
    shape = [count, ir.Constant(I64, kind.lanes)]
    populate_array(store, data=data, shape=shape, strides=[row, number], itemsize=number, meminfo=None)
    struct = cgutils.create_struct_proxy(kind)(context, builder)
    struct.store = store._getvalue()
    return struct._getvalue()


def _add_row(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    a, b, c, d = (builder.extract_element(args[1], ir.Constant(I32, lane)) for lane in range(primitives.WIDTH))
    total = context.cast(builder, args[0], signature.args[0], types.float64)
    return builder.fadd(total, builder.fadd(builder.fadd(a, b), builder.fadd(c, d)))


define(primitives.open_rows, _table_shape, _open_rows, (types.Array, *[types.Integer] * 4))
define(primitives.add_row, lambda context, total, row: types.float64, _add_row, (types.Number, LaneRow))


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


@overload(primitives.argmax, strict=False)
def _argmax(values: Any) -> Any:
    def argmax(values: Any) -> Any:
        # A select instead of a branch, also for numbers: no processor can predict a branch here.
        best = values[0]
        arm = primitives.as_int(best) & 0
        for i in range(1, len(values)):
            value = values[i]
            better = value > best
            best = primitives.where(better, value, best)
            arm = primitives.where(better, i, arm)
        return arm

    return argmax


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
