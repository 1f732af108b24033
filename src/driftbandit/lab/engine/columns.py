"""Sums in four columns as machine code: one SIMD row of four neighbours is added at a time.

The compiler does not reorder additions, so it makes no vector out of four sums written side by side; here it is told
to. The bits are those of `primitives.column_sums` and `primitives.column_moments`."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from driftbandit import primitives
from driftbandit.lab.engine.numba_methods import INLINED
from driftbandit.lab.engine.simd import I32, LaneRow

_FOUR = LaneRow(types.float64, 4)


@intrinsic
def _four(typing_context: Any, values: Any, first: Any) -> Any:
    """values[first] to values[first + 3] as a row."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, value=args[0]).data
        place = builder.gep(data, [context.cast(builder, args[1], signature.args[1], types.int64)])
        row = ir.VectorType(ir.DoubleType(), 4)
        return builder.load(builder.bitcast(place, row.as_pointer()), align=8)

    return _FOUR(values, first), codegen


@intrinsic
def _zeros(typing_context: Any) -> Any:
    """A row of four zeros."""
    return _FOUR(), lambda context, builder, signature, args: ir.Constant(ir.VectorType(ir.DoubleType(), 4), [0.0] * 4)


@intrinsic
def _entries(typing_context: Any, row: Any) -> Any:
    """The four numbers of a row."""
    kind = types.UniTuple(types.float64, 4)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return cgutils.pack_array(builder, [builder.extract_element(args[0], ir.Constant(I32, i)) for i in range(4)])

    return kind(row), codegen


def _sums(values: Any, first: Any, end: Any) -> Any:
    total = _zeros()
    for i in range(first, end, 4):
        total = total + _four(values, i)
    return _entries(total)


def _moments(values: Any, first: Any, end: Any, other: Any) -> Any:
    total = _zeros()
    once = _zeros()
    twice = _zeros()
    for i in range(first, end, 4):
        value = _four(values, i)
        factor = _four(values, i + other)
        x = value * factor
        total = total + value
        once = once + x
        twice = twice + x * factor
    a, b, c, d = _entries(total)
    a1, b1, c1, d1 = _entries(once)
    a2, b2, c2, d2 = _entries(twice)
    return a, b, c, d, (a1 + b1) + (c1 + d1), (a2 + b2) + (c2 + d2)


@overload(primitives.column_sums, jit_options=INLINED, strict=False)
def _column_sums(values: Any, first: Any, end: Any) -> Any:
    return _sums


@overload(primitives.column_moments, jit_options=INLINED, strict=False)
def _column_moments(values: Any, first: Any, end: Any, other: Any) -> Any:
    return _moments
