"""Four neighbours of an array at a time, as machine code: `primitives.fours`, and sums in four columns.

The compiler makes vectors out of a loop only after asking, whenever it comes by, whether arrays overlap; and it does
not reorder additions, so it makes none out of four sums written side by side. Here it is told to. The bits are those of
the interpreted functions of the same names."""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, overload, register_model

from driftbandit import primitives
from driftbandit.lab.engine.numba_methods import INLINED
from driftbandit.lab.engine.simd import I32, LaneRow, as_row, define

FOUR = 4
_FOUR = LaneRow(types.float64, FOUR)
_ROW = ir.VectorType(ir.DoubleType(), FOUR)


class FoursType(types.Type):
    """Numba type of `primitives.fours`: where an array's numbers begin. An index gives the row that begins there."""

    def __init__(self) -> None:
        super().__init__(name="Fours")


@register_model(FoursType)
class _FoursModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: FoursType) -> None:
        super().__init__(dmm, fe_type, ir.DoubleType().as_pointer())


def _begin(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return context.make_array(signature.args[0])(context, builder, value=args[0]).data


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    first = builder.gep(args[0], [context.cast(builder, args[1], signature.args[1], types.int64)])
    return builder.bitcast(first, _ROW.as_pointer())


def _load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(_place(context, builder, signature, args), align=8)


def _store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    row = as_row(context, builder, args[2], signature.args[2], types.float64, FOUR)
    builder.store(row, _place(context, builder, signature, args), align=8)
    return context.get_dummy_value()


def _if_fours(result: Any) -> Any:
    return lambda context, values, *others: result if isinstance(values, FoursType) else None


define(primitives.fours, lambda context, values: FoursType(), _begin, (types.Array,))
define(operator.getitem, _if_fours(_FOUR), _load, (FoursType, types.Integer))
define(operator.setitem, _if_fours(types.none), _store, (FoursType, types.Integer, types.Any))


@overload(primitives.at_once, jit_options=INLINED, strict=False)
def _at_once() -> Any:
    return lambda: FOUR


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
    four = primitives.fours(values)
    for i in range(first, end, FOUR):
        total = total + four[i]
    return _entries(total)


def _moments(values: Any, first: Any, end: Any, other: Any) -> Any:
    total = _zeros()
    once = _zeros()
    twice = _zeros()
    four = primitives.fours(values)
    for i in range(first, end, FOUR):
        value = four[i]
        factor = four[i + other]
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
