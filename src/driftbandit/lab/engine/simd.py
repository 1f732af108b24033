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
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import NativeValue, intrinsic, make_attribute_wrapper, overload, register_model, typeof_impl, unbox

from driftbandit import primitives
from driftbandit.lab.engine import loop

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


def _define(function: Any, shape: Callable[..., Any], codegen: Callable[..., Any], *patterns: tuple[Any, ...]) -> None:
    """Give `function` a meaning for some types: `shape` names the result's type (None: not ours), `codegen` writes
    the code.

    Numba's `overload` would compile a small function for every operator and pair of types; this goes straight to
    LLVM, which makes a cold start twice as fast."""

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            if kws or len(args) != len(patterns[0]):
                return None
            kinds = tuple(types.unliteral(kind) for kind in args)
            result = shape(self.context, *kinds)
            return None if result is None else signature(result, *kinds)

    infer_global(function)(Template)
    for pattern in patterns:
        lower_builtin(function, *pattern)(codegen)


def _binary(function: Any, emit: Callable[..., Any], result: Any = None) -> None:
    """An operator or builtin of two operands, at least one of them a row."""

    def shape(context: Any, a: Any, b: Any) -> Any:
        row = a if isinstance(a, Row) else b
        return Row(result or row.dtype, row.lanes) if isinstance(row, Row) else None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = signature.args[0] if isinstance(signature.args[0], Row) else signature.args[1]
        x, y = (
            _as_row(context, builder, value, kind, row.dtype, row.lanes)
            for value, kind in zip(args, signature.args, strict=True)
        )
        return emit(builder, row.dtype, x, y)

    _define(function, shape, codegen, (Row, Row), (Row, types.Number), (types.Number, Row))


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


def _where_shape(context: Any, condition: Any, yes: Any, no: Any) -> Any:
    if not isinstance(condition, Row):
        return context.unify_types(yes, no)
    dtype = yes.dtype if isinstance(yes, Row) else no.dtype if isinstance(no, Row) else yes
    return Row(dtype, condition.lanes)


def _where(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    result = signature.return_type
    if isinstance(result, Row):
        x, y = (_as_row(context, builder, args[k], signature.args[k], result.dtype, result.lanes) for k in (1, 2))
    else:
        x, y = (context.cast(builder, args[k], signature.args[k], result) for k in (1, 2))
    return builder.select(args[0], x, y)


_define(primitives.where, _where_shape, _where, (types.Any, types.Any, types.Any))


def _anywhere(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    if not isinstance(kind, Row):
        return args[0]
    bits = ir.IntType(kind.lanes)
    return builder.icmp_unsigned("!=", builder.bitcast(args[0], bits), ir.Constant(bits, 0))


_define(primitives.anywhere, lambda context, x: types.boolean, _anywhere, (types.Any,))


def _if_row(context: Any, x: Any) -> Any:
    return x if isinstance(x, Row) else None


def _sqrt(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    vector = args[0].type
    name = f"llvm.sqrt.v{signature.args[0].lanes}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector]), name), args)


def _negative(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.fsub(ir.Constant(args[0].type, [-0.0] * signature.args[0].lanes), args[0])


def _absolute(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    negative = _negative(context, builder, signature, args)
    return builder.select(builder.fcmp_ordered(">", negative, args[0]), negative, args[0])


def _lane_by_lane(name: str) -> Callable[..., Any]:
    """A function of the C library, called for each lane: as dear as without rows, and the same bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
        function = cgutils.get_or_insert_function(builder.module, one, f"llvm.{name}.f64")
        row = args[0]
        for lane in range(signature.args[0].lanes):
            position = ir.Constant(_I32, lane)
            row = builder.insert_element(
                row, builder.call(function, [builder.extract_element(row, position)]), position
            )
        return row

    return codegen


_define(math.log, _if_row, _lane_by_lane("log"), (Row,))
_define(math.exp, _if_row, _lane_by_lane("exp"), (Row,))
_define(math.sqrt, _if_row, _sqrt, (Row,))
_define(np.sqrt, _if_row, _sqrt, (Row,))
_define(abs, _if_row, _absolute, (Row,))
_define(operator.neg, _if_row, _negative, (Row,))


# ---- bits ------------------------------------------------------------------------------------------------------------


def _like(dtype: Any) -> Callable[..., Any]:
    """Shape of a function that keeps rows rows and numbers numbers, with elements of `dtype`."""
    return lambda context, x: Row(dtype, x.lanes) if isinstance(x, Row) else dtype


def _bit_cast(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.bitcast(args[0], context.get_value_type(signature.return_type))


def _to_float(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    if isinstance(signature.args[0], Row):
        return builder.sitofp(args[0], context.get_value_type(signature.return_type))
    return context.cast(builder, args[0], signature.args[0], types.float64)


def _stride(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    if isinstance(kind, Row):
        return builder.mul(args[0], ir.Constant(args[0].type, [_GOLD] * kind.lanes))
    return builder.mul(context.cast(builder, args[0], kind, types.uint64), ir.Constant(_I64, _GOLD))


def _promise(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Nothing is computed: LLVM is told that the number is not negative. Rows are positions without a sign anyway."""
    if not isinstance(signature.args[0], Row):
        assume = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [ir.IntType(1)]), "llvm.assume"
        )
        builder.call(assume, [builder.icmp_signed(">=", args[0], ir.Constant(args[0].type, 0))])
    return args[0]


def _bit_length(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    zeros = builder.ctlz(context.cast(builder, args[0], signature.args[0], types.int64), ir.Constant(ir.IntType(1), 0))
    return builder.sub(ir.Constant(_I64, 64), zeros)


_define(primitives.bit_length, lambda context, n: types.int64, _bit_length, (types.Integer,))
_GOLD = 0x9E3779B97F4A7C15
_define(primitives.as_float, _like(types.float64), _bit_cast, (types.Any,))
_define(primitives.as_int, _like(types.int64), _bit_cast, (types.Any,))
_define(primitives.as_uint, _like(types.uint64), _bit_cast, (types.Any,))
_define(primitives.as_number, _like(types.float64), _to_float, (types.Any,))
_define(primitives.stride, _like(types.uint64), _stride, (types.Any,))
_define(primitives.index, lambda context, x: x, _promise, (types.Any,))


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


def _entry_shape(context: Any, array: Any, index: Any) -> Any:
    if isinstance(array, LaneArrayType):
        return Row(array.dtype, array.lanes)
    shared = isinstance(array, types.Array) and isinstance(index, Row)
    return Row(array.dtype, index.lanes) if shared else None


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
        position = ir.Constant(_I32, lane)
        pointer = builder.gep(base, [builder.extract_element(args[1], position)])
        row = builder.insert_element(row, builder.load(pointer), position)
    return row


_define(operator.getitem, _entry_shape, _load, (LaneArrayType, types.Integer))
lower_builtin(operator.getitem, LaneArrayType, Row)(_gather)
lower_builtin(operator.getitem, types.Array, Row)(_take)


def _put(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Each lane's value into its entry of an array that all lanes share; where two lanes share an entry, the last one
    stays."""
    array, index, _ = signature.args
    base = context.make_array(array)(context, builder, value=args[0]).data
    for lane in range(index.lanes):
        position = ir.Constant(_I32, lane)
        pointer = builder.gep(base, [builder.extract_element(args[1], position)])
        builder.store(builder.extract_element(args[2], position), pointer)
    return context.get_dummy_value()


def _store_shape(context: Any, array: Any, index: Any, value: Any) -> Any:
    shared = isinstance(array, types.Array) and isinstance(index, Row)
    return types.none if shared or isinstance(array, LaneArrayType) else None


def _store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array, index, value = signature.args
    row = _as_row(context, builder, args[2], value, array.dtype, array.lanes)
    builder.store(row, _row_at(context, builder, array, args[0], args[1], index), align=8)
    return context.get_dummy_value()


def _scatter(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = signature.args[0]
    row = _as_row(context, builder, args[2], signature.args[2], array.dtype, array.lanes)
    for position, pointer in _lane_pointers(context, builder, array, args[0], args[1]):
        builder.store(builder.extract_element(row, position), pointer)
    return context.get_dummy_value()


_define(operator.setitem, _store_shape, _store, (LaneArrayType, types.Integer, types.Any))
lower_builtin(operator.setitem, LaneArrayType, Row, types.Any)(_scatter)
lower_builtin(operator.setitem, types.Array, Row, Row)(_put)


def _length(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    struct = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
    store = context.make_array(kind.store)(context, builder, value=struct.store)
    return builder.extract_value(store.shape, 0)


_define(len, lambda context, x: types.intp if isinstance(x, LaneArrayType) else None, _length, (LaneArrayType,))


@intrinsic
def false_lanes(typing_context: Any, row: Any) -> Any:
    """The lanes of a row of truth values that are false, as the bits of a number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.bitcast(builder.not_(args[0]), ir.IntType(row.lanes)), _I64)

    return types.int64(row), codegen


@intrinsic
def lowest_bit(typing_context: Any, number: Any) -> Any:
    """The position of the lowest bit set in a number that is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


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
