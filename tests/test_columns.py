"""Four neighbours at a time: compiled code finds, bit for bit, what the interpreted functions find one by one."""

import numba
import numpy as np
import pytest

from driftbandit.lab.engine import columns  # noqa: F401  tells Numba what fours are
from driftbandit.lab.engine.numba_methods import OPTIONS
from driftbandit.primitives import at_once, column_moments, column_sums, fours, where


def blended(values, others, out, first, end):
    """A loop with everything that one through fours may hold."""
    x, y, z = fours(values), fours(others), fours(out)
    for i in range(first, end, at_once()):
        a = 2.0 - x[i]
        b = y[i + 4] * a + min(x[i], 0.5) / (1.0 + a * a)
        z[i] = where(b > 0.7, max(b, y[i]), z[i + 4])
        z[end + i] = 3.0


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_a_loop_through_fours_has_the_bits_of_one_number_at_a_time(steps):
    generator = np.random.default_rng(steps)
    values, others, out = generator.random((3, 64))
    compiled, plain = out.copy(), out.tolist()
    numba.njit(**OPTIONS)(blended)(values, others, compiled, 4, 4 + 4 * steps)
    blended(values.tolist(), others.tolist(), plain, 4, 4 + 4 * steps)
    assert compiled.tolist() == plain
    assert steps == 0 or plain != out.tolist()


@pytest.mark.parametrize("end", [3, 7, 31])
def test_sums_in_columns_have_the_bits_of_sums_from_left_to_right(end):
    values = np.random.default_rng(end).random(80)

    @numba.njit(**OPTIONS)
    def both(values, end):
        return column_sums(values, 3, end), column_moments(values, 3, end, 40)

    sums, moments = both(values, end)
    assert sums == column_sums(values.tolist(), 3, end)
    assert moments == column_moments(values.tolist(), 3, end, 40)
    assert sums == tuple(sum(values[3 + column : end + column : 4].tolist()) for column in range(4))
    assert moments[5] == pytest.approx(sum(values[3:end] * values[43 : end + 40] ** 2))
