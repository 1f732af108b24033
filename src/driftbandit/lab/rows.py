"""A number for each of many runs at once: SIMD rows for Numba.

Lockstep simulation plays L runs of one policy side by side. Each number of the policy's source (a mean, a draw, the arm
chosen, the reward) is then a row of L numbers, one lane a run. `Row` is that row as a Numba type, an LLVM vector with
the usual operators; `LaneArray` is an array whose entries are rows, laid out [entry][lane]. A policy written with
element access, arithmetic, `min`, `max`, `sqrt` and `where` instead of `if` compiles for rows from the same source that
the interpreter runs on numbers.

No operation is reordered and no multiply-add fused, so lane r holds, bit for bit, what run r alone would have
computed."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import NativeValue, intrinsic, make_attribute_wrapper, overload, register_model, typeof_impl, unbox

from driftbandit import numerics
from driftbandit.lab import loop

_ELEMENT = {
    types.float64: ir.DoubleType(),
    types.int64: ir.IntType(64),
    types.uint64: ir.IntType(64),
    types.boolean: ir.IntType(1),
}
_I32, _I64 = ir.IntType(32), ir.IntType(64)


class Row(types.Type):
    """Numba type: `lanes` numbers of one dtype in SIMD registers."""

    def __init__(self, dtype: Any, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Row({dtype}, {lanes})")


@register_model(Row)
class _RowModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Row) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(_ELEMENT[fe_type.dtype], fe_type.lanes))


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
class _LaneArrayModel(models.StructModel):
    def __init__(self, dmm: Any, fe_type: LaneArrayType) -> None:
        super().__init__(dmm, fe_type, [("store", fe_type.store)])


make_attribute_wrapper(LaneArrayType, "store", "store")


@unbox(LaneArrayType)
def _unbox_lane_array(kind: LaneArrayType, value: Any, c: Any) -> NativeValue:
    array = c.pyapi.object_getattr_string(value, "array")
    native = c.unbox(kind.store, array)
    struct = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    struct.store = native.value
    c.pyapi.decref(array)
    return NativeValue(struct._getvalue(), is_error=native.is_error)


# ---- operators -------------------------------------------------------------------------------------------------------


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    """One number copied into every lane."""
    vector = ir.VectorType(value.type, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(
        first, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes)
    )


def _as_row(context: Any, builder: Any, value: Any, kind: Any, dtype: Any, lanes: int) -> Any:
    """The operand as a row of the wanted dtype: a row as it is, a number cast and copied into every lane."""
    if isinstance(kind, Row):
        return value
    return _splat(builder, context.cast(builder, value, kind, dtype), lanes)


def _binary(function: Any, emit: Callable[..., Any], result: Any = None) -> None:
    """Give `function`, an operator or builtin of two operands, a meaning for rows."""

    @intrinsic
    def primitive(typing_context: Any, a: Any, b: Any) -> Any:
        row = a if isinstance(a, Row) else b
        dtype, lanes = row.dtype, row.lanes

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            x = _as_row(context, builder, args[0], signature.args[0], dtype, lanes)
            y = _as_row(context, builder, args[1], signature.args[1], dtype, lanes)
            return emit(builder, dtype, x, y)

        return Row(result or dtype, lanes)(a, b), codegen

    @overload(function, strict=False)
    def typed(a: Any, b: Any) -> Any:
        if isinstance(a, Row) or isinstance(b, Row):
            return lambda a, b: primitive(a, b)
        return None


def _arithmetic(for_floats: str, for_integers: str) -> Callable[..., Any]:
    return lambda builder, dtype, x, y: getattr(builder, for_floats if dtype == types.float64 else for_integers)(x, y)


def _comparison(sign: str) -> Callable[..., Any]:
    def emit(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
        if dtype == types.float64:
            return builder.fcmp_unordered(sign, x, y) if sign == "!=" else builder.fcmp_ordered(sign, x, y)
        return builder.icmp_unsigned(sign, x, y) if dtype == types.uint64 else builder.icmp_signed(sign, x, y)

    return emit


def _shift_right(builder: Any, dtype: Any, x: Any, y: Any) -> Any:
    return builder.lshr(x, y) if dtype == types.uint64 else builder.ashr(x, y)


for _plain, _inplace, _emit in (
    (operator.add, operator.iadd, _arithmetic("fadd", "add")),
    (operator.sub, operator.isub, _arithmetic("fsub", "sub")),
    (operator.mul, operator.imul, _arithmetic("fmul", "mul")),
    (operator.truediv, operator.itruediv, _arithmetic("fdiv", "sdiv")),
):
    _binary(_plain, _emit)
    _binary(_inplace, _emit)
_binary(operator.xor, lambda builder, dtype, x, y: builder.xor(x, y))
_binary(operator.and_, lambda builder, dtype, x, y: builder.and_(x, y))
_binary(operator.or_, lambda builder, dtype, x, y: builder.or_(x, y))
_binary(operator.lshift, lambda builder, dtype, x, y: builder.shl(x, y))
_binary(operator.rshift, _shift_right)
for _operator, _sign in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
    (operator.ne, "!="),
):
    _binary(_operator, _comparison(_sign), types.boolean)
# As Python's own: min(a, b) is b only if b < a, max(a, b) is b only if b > a.
_binary(min, lambda builder, dtype, x, y: builder.select(_comparison("<")(builder, dtype, y, x), y, x))
_binary(max, lambda builder, dtype, x, y: builder.select(_comparison(">")(builder, dtype, y, x), y, x))


@intrinsic
def _select(typing_context: Any, condition: Any, yes: Any, no: Any) -> Any:
    dtype = yes.dtype if isinstance(yes, Row) else no.dtype if isinstance(no, Row) else yes
    lanes = condition.lanes

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x = _as_row(context, builder, args[1], signature.args[1], dtype, lanes)
        y = _as_row(context, builder, args[2], signature.args[2], dtype, lanes)
        return builder.select(args[0], x, y)

    return Row(dtype, lanes)(condition, yes, no), codegen


@overload(numerics.where, strict=False)
def _where(condition: Any, yes: Any, no: Any) -> Any:
    if isinstance(condition, Row):
        return lambda condition, yes, no: _select(condition, yes, no)
    return lambda condition, yes, no: yes if condition else no


@intrinsic
def _sqrt(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = args[0].type
        name = f"llvm.sqrt.v{signature.args[0].lanes}f64"
        return builder.call(
            cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector]), name), args
        )

    return x(x), codegen


@overload(math.sqrt, strict=False)
@overload(np.sqrt, strict=False)
def _row_sqrt(x: Any) -> Any:
    return (lambda x: _sqrt(x)) if isinstance(x, Row) else None


@overload(abs, strict=False)
def _row_abs(x: Any) -> Any:
    return (lambda x: max(x, 0.0 - x)) if isinstance(x, Row) else None


@overload(operator.neg, strict=False)
def _row_neg(x: Any) -> Any:
    return (lambda x: -0.0 - x) if isinstance(x, Row) else None


# ---- bits ------------------------------------------------------------------------------------------------------------


def _bit_cast(function: Callable[..., Any], dtype: Any) -> None:
    """Compiled counterpart of `as_float` and its kin, for numbers and rows."""

    @intrinsic
    def primitive(typing_context: Any, x: Any) -> Any:
        result = Row(dtype, x.lanes) if isinstance(x, Row) else dtype

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(result))

        return result(x), codegen

    @overload(function, strict=False)
    def typed(x: Any) -> Any:
        return lambda x: primitive(x)


_bit_cast(numerics.as_float, types.float64)
_bit_cast(numerics.as_int, types.int64)
_bit_cast(numerics.as_uint, types.uint64)


@intrinsic
def _row_to_float(typing_context: Any, x: Any) -> Any:
    result = Row(types.float64, x.lanes)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sitofp(args[0], context.get_value_type(result))

    return result(x), codegen


@overload(numerics.as_number, strict=False)
def _as_number(arm: Any) -> Any:
    return (lambda arm: _row_to_float(arm)) if isinstance(arm, Row) else (lambda arm: float(arm))


_GOLD = np.uint64(0x9E3779B97F4A7C15)


@overload(numerics.stride, strict=False)
def _stride(n: Any) -> Any:
    if isinstance(n, Row):
        return lambda n: numerics.as_uint(n) * _GOLD
    return lambda n: np.uint64(n) * _GOLD


# ---- entries of lane arrays ------------------------------------------------------------------------------------------


def _pointer(context: Any, builder: Any, kind: LaneArrayType, value: Any) -> Any:
    struct = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    return context.make_array(kind.store)(context, builder, value=struct.store).data


def _row_at(context: Any, builder: Any, kind: LaneArrayType, value: Any, index: Any, index_kind: Any) -> Any:
    """Pointer to a whole row."""
    entry = context.cast(builder, index, index_kind, types.int64)
    start = builder.gep(_pointer(context, builder, kind, value), [builder.mul(entry, ir.Constant(_I64, kind.lanes))])
    return builder.bitcast(start, ir.VectorType(_ELEMENT[kind.dtype], kind.lanes).as_pointer())


def _lane_pointers(context: Any, builder: Any, kind: LaneArrayType, value: Any, entries: Any) -> Any:
    """For every lane, its number and a pointer to its own entry."""
    base = _pointer(context, builder, kind, value)
    for lane in range(kind.lanes):
        position = ir.Constant(_I32, lane)
        row = builder.mul(builder.extract_element(entries, position), ir.Constant(_I64, kind.lanes))
        yield position, builder.gep(base, [builder.add(row, ir.Constant(_I64, lane))])


@intrinsic
def _load(typing_context: Any, array: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_row_at(context, builder, array, args[0], args[1], signature.args[1]), align=8)

    return Row(array.dtype, array.lanes)(array, index), codegen


@intrinsic
def _store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _as_row(context, builder, args[2], signature.args[2], array.dtype, array.lanes)
        builder.store(row, _row_at(context, builder, array, args[0], args[1], signature.args[1]), align=8)
        return context.get_dummy_value()

    return types.none(array, index, value), codegen


@intrinsic
def _gather(typing_context: Any, array: Any, entries: Any) -> Any:
    result = Row(array.dtype, array.lanes)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = ir.Constant(context.get_value_type(result), ir.Undefined)
        for position, pointer in _lane_pointers(context, builder, array, args[0], args[1]):
            row = builder.insert_element(row, builder.load(pointer), position)
        return row

    return result(array, entries), codegen


@intrinsic
def _scatter(typing_context: Any, array: Any, entries: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _as_row(context, builder, args[2], signature.args[2], array.dtype, array.lanes)
        for position, pointer in _lane_pointers(context, builder, array, args[0], args[1]):
            builder.store(builder.extract_element(row, position), pointer)
        return context.get_dummy_value()

    return types.none(array, entries, value), codegen


@intrinsic
def _take(typing_context: Any, array: Any, entries: Any) -> Any:
    """Each lane's entry of an array that all lanes share."""
    result = Row(array.dtype, entries.lanes)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = context.make_array(array)(context, builder, value=args[0]).data
        row = ir.Constant(context.get_value_type(result), ir.Undefined)
        for lane in range(entries.lanes):
            position = ir.Constant(_I32, lane)
            pointer = builder.gep(base, [builder.extract_element(args[1], position)])
            row = builder.insert_element(row, builder.load(pointer), position)
        return row

    return result(array, entries), codegen


@overload(operator.getitem, strict=False)
def _getitem(array: Any, index: Any) -> Any:
    if isinstance(array, LaneArrayType):
        return (
            (lambda array, index: _gather(array, index))
            if isinstance(index, Row)
            else (lambda array, index: _load(array, index))
        )
    if isinstance(array, types.Array) and isinstance(index, Row):
        return lambda array, index: _take(array, index)
    return None


@overload(operator.setitem, strict=False)
def _setitem(array: Any, index: Any, value: Any) -> Any:
    if not isinstance(array, LaneArrayType):
        return None
    if isinstance(index, Row):
        return lambda array, index, value: _scatter(array, index, value)
    return lambda array, index, value: _store(array, index, value)


@overload(len, strict=False)
def _len(array: Any) -> Any:
    return (lambda array: array.store.shape[0]) if isinstance(array, LaneArrayType) else None


def _argmax_without_branches(values: Any) -> Any:
    # Whether a sample beats the best so far is a coin toss no processor can predict: choosing by selection instead of
    # by jump saves about 20 ns a round.
    best = values[0]
    arm = 0
    for i in range(1, len(values)):
        value = values[i]
        better = value > best
        best = value if better else best
        arm = i if better else arm
    return arm


@overload(numerics.argmax, strict=False)
def _argmax(values: Any) -> Any:
    if not isinstance(values, LaneArrayType):
        return _argmax_without_branches

    def argmax_of_rows(values: Any) -> Any:
        best = values[0]
        arm = numerics.as_int(best) & 0
        for i in range(1, len(values)):
            value = values[i]
            better = value > best
            best = numerics.where(better, value, best)
            arm = numerics.where(better, i, arm)
        return arm

    return argmax_of_rows


@intrinsic
def _lane(typing_context: Any, row: Any, lane: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_element(args[0], builder.trunc(args[1], _I32))

    return row.dtype(row, types.int64), codegen


@overload(loop.store_lanes, strict=False)
def _store_lanes(out: Any, column: Any, value: Any) -> Any:
    if not isinstance(value, Row):
        return loop.store_lanes
    lanes = value.lanes

    def store_row(out: Any, column: Any, value: Any) -> None:
        for lane in range(lanes):
            out[lane, column] = _lane(value, lane)

    return store_row
