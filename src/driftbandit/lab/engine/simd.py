"""SIMD rows for Numba: a number for each of many runs.

In lockstep, each number of a policy's source (a mean, a draw, the arm chosen, the reward) is a row with one lane per
run. `LaneRow` is that row as a Numba type, an LLVM vector with the usual operators; `lane_arrays` has arrays of rows. A
policy written with element access, arithmetic, `min`, `max`, `sqrt` and `where` instead of `if` compiles for rows from
the same source. No operation is reordered or fused, so lane r produces exactly the same bits as run r on its own."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, register_model

from driftbandit.core import primitives

ELEMENT = {
    types.float64: ir.DoubleType(),
    types.int64: ir.IntType(64),
    types.uint64: ir.IntType(64),
    types.boolean: ir.IntType(1),
}
I32, I64 = ir.IntType(32), ir.IntType(64)


class LaneRow(types.Type):
    """Numba type: `lanes` numbers of one dtype in SIMD registers."""

    def __init__(self, dtype: Any, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Row({dtype}, {lanes})")


@register_model(LaneRow)
class _RowModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: LaneRow) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(ELEMENT[fe_type.dtype], fe_type.lanes))


# ---- operators -------------------------------------------------------------------------------------------------------


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    """One number copied into every lane."""
    vector = ir.VectorType(value.type, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(I32, 0))
    return builder.shuffle_vector(
        first, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
    )


def as_row(context: Any, builder: Any, value: Any, kind: Any, dtype: Any, lanes: int) -> Any:
    """The operand as a row: a row as it is, a number cast to `dtype` and copied into every lane."""
    if isinstance(kind, LaneRow):
        return value
    return _splat(builder, context.cast(builder, value, kind, dtype), lanes)


def define(function: Any, shape: Callable[..., Any], codegen: Callable[..., Any], *patterns: tuple[Any, ...]) -> None:
    """Define `function` for some types: `shape` returns the result's type (None: not ours), `codegen` writes the code.

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
        row = a if isinstance(a, LaneRow) else b
        return LaneRow(result or row.dtype, row.lanes) if isinstance(row, LaneRow) else None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = signature.args[0] if isinstance(signature.args[0], LaneRow) else signature.args[1]
        x, y = (
            as_row(context, builder, value, kind, row.dtype, row.lanes)
            for value, kind in zip(args, signature.args, strict=True)
        )
        return emit(builder, row.dtype, x, y)

    define(function, shape, codegen, (LaneRow, LaneRow), (LaneRow, types.Number), (types.Number, LaneRow))


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
    if not isinstance(condition, LaneRow):
        return context.unify_types(yes, no)
    dtype = yes.dtype if isinstance(yes, LaneRow) else no.dtype if isinstance(no, LaneRow) else yes
    return LaneRow(dtype, condition.lanes)


def _where(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    result = signature.return_type
    if isinstance(result, LaneRow):
        x, y = (as_row(context, builder, args[k], signature.args[k], result.dtype, result.lanes) for k in (1, 2))
    else:
        x, y = (context.cast(builder, args[k], signature.args[k], result) for k in (1, 2))
    return builder.select(args[0], x, y)


define(primitives.where, _where_shape, _where, (types.Any, types.Any, types.Any))


def _if_row(context: Any, x: Any) -> Any:
    return x if isinstance(x, LaneRow) else None


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
    """A function of the C library, called for each lane, with the same bits as for a number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
        function = cgutils.get_or_insert_function(builder.module, one, f"llvm.{name}.f64")
        row = args[0]
        for lane in range(signature.args[0].lanes):
            position = ir.Constant(I32, lane)
            row = builder.insert_element(
                row, builder.call(function, [builder.extract_element(row, position)]), position
            )
        return row

    return codegen


define(math.log, _if_row, _lane_by_lane("log"), (LaneRow,))
define(math.exp, _if_row, _lane_by_lane("exp"), (LaneRow,))
define(math.sqrt, _if_row, _sqrt, (LaneRow,))
define(np.sqrt, _if_row, _sqrt, (LaneRow,))
define(abs, _if_row, _absolute, (LaneRow,))
define(operator.neg, _if_row, _negative, (LaneRow,))


# ---- bits ------------------------------------------------------------------------------------------------------------


def _like(dtype: Any) -> Callable[..., Any]:
    """Shape of a function that maps rows to rows and numbers to numbers, with elements of `dtype`."""
    return lambda context, x: LaneRow(dtype, x.lanes) if isinstance(x, LaneRow) else dtype


def _bit_cast(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.bitcast(args[0], context.get_value_type(signature.return_type))


def _to_float(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    if isinstance(signature.args[0], LaneRow):
        return builder.sitofp(args[0], context.get_value_type(signature.return_type))
    return context.cast(builder, args[0], signature.args[0], types.float64)


def _stride(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    if isinstance(kind, LaneRow):
        return builder.mul(args[0], ir.Constant(args[0].type, [_GOLD] * kind.lanes))
    return builder.mul(context.cast(builder, args[0], kind, types.uint64), ir.Constant(I64, _GOLD))


def _promise(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Promise LLVM that the number is not negative; nothing is computed."""
    if not isinstance(signature.args[0], LaneRow):
        assume = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [ir.IntType(1)]), "llvm.assume"
        )
        builder.call(assume, [builder.icmp_signed(">=", args[0], ir.Constant(args[0].type, 0))])
    return args[0]


def _bit_length(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    zeros = builder.ctlz(context.cast(builder, args[0], signature.args[0], types.int64), ir.Constant(ir.IntType(1), 0))
    return builder.sub(ir.Constant(I64, 64), zeros)


def _bit_count(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.ctpop(context.cast(builder, args[0], signature.args[0], types.int64))


define(primitives.bit_count, lambda context, n: types.int64, _bit_count, (types.Integer,))
define(primitives.bit_length, lambda context, n: types.int64, _bit_length, (types.Integer,))
_GOLD = 0x9E3779B97F4A7C15
define(primitives.as_float, _like(types.float64), _bit_cast, (types.Any,))
define(primitives.as_int, _like(types.int64), _bit_cast, (types.Any,))
define(primitives.as_uint, _like(types.uint64), _bit_cast, (types.Any,))
define(primitives.as_number, _like(types.float64), _to_float, (types.Any,))
define(primitives.stride, _like(types.uint64), _stride, (types.Any,))
define(primitives.index, lambda context, x: x, _promise, (types.Any,))


@intrinsic
def false_lanes(typing_context: Any, row: Any) -> Any:
    """The lanes of a row of truth values that are false, as the bits of a number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.bitcast(builder.not_(args[0]), ir.IntType(row.lanes)), I64)

    return types.int64(row), codegen


@intrinsic
def lowest_bit(typing_context: Any, number: Any) -> Any:
    """The position of the lowest bit set in a number that is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen
