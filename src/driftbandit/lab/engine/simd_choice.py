"""Picking an arm, compiled: functions that branch on numbers, written for rows of lanes without a branch."""

from typing import Any

from numba.extending import overload

from driftbandit import primitives
from driftbandit.lab.engine import loop, simd
from driftbandit.lab.engine.lane_arrays import LaneArrayType
from driftbandit.lab.engine.loop import NO_SUCH_ARM
from driftbandit.lab.engine.numba_methods import INLINED
from driftbandit.lab.engine.simd import LaneRow


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
