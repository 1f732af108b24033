"""How the loops over a log become machine code: through the laboratory's own compiler and cache."""

from typing import Any

from numba import types
from numba.core.errors import NumbaError
from numba.extending import overload

from driftbandit.lab.engine import code_cache, compile_errors, numba_methods
from driftbandit.logs import largest
from driftbandit.primitives import as_float, as_int
from driftbandit.text import policy_check

_LOG2E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
_SHIFT = 6755399441055744.0  # adding it leaves a whole number in the lowest bits
_SHIFT_BITS = 0x4338000000000000


@overload(largest.exp_below, jit_options=numba_methods.INLINED, strict=False)  # type: ignore[untyped-decorator]
def _exp_below(x: Any) -> Any:
    if not isinstance(x, types.Float):
        return None

    def exp_by_bits(x: Any) -> Any:
        x = max(x, -700.0)
        shifted = x * _LOG2E + _SHIFT
        k = shifted - _SHIFT
        r = (x - k * _LN2_HIGH) - k * _LN2_LOW
        s = 1.0 / 40320.0 + r * (1.0 / 362880.0)
        s = 1.0 / 5040.0 + r * s
        s = 1.0 / 720.0 + r * s
        s = 1.0 / 120.0 + r * s
        s = 1.0 / 24.0 + r * s
        s = 1.0 / 6.0 + r * s
        s = 0.5 + r * s
        s = 1.0 + r * (1.0 + r * s)
        return s * as_float((as_int(shifted) - _SHIFT_BITS + 1023) << 52)

    return exp_by_bits


def compiled(function: Any, *tuples: Any) -> Any:
    """The function as machine code for these tuples' classes, kept on disk like the simulator's loops."""
    with code_cache.LOCK:
        for value in tuples:
            numba_methods.prepare(value)
    return code_cache.compiled(function, *tuples)


def compiled_policy(function: Any, policy: Any, *tuples: Any, n_arms: int) -> Any:
    """The same for a function that calls a policy, which may be the user's own: what cannot be compiled is explained,
    and no fraction is cut off on its way into an array of whole numbers."""
    policy_check.check(policy, n_arms)
    made = compiled(function, policy, *tuples)

    def call(*given: Any) -> Any:
        try:
            if made.signatures:
                return made(*given)
            with code_cache.LOCK, numba_methods.whole_stores():
                return made(*given)
        except NumbaError as error:
            raise TypeError(compile_errors.explain(error, policy)) from error

    return call
