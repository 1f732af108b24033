"""Intervals over blocks."""

import numpy as np
import pytest

from driftbandit.logs.bootstrap import block_mean, needed


def test_the_mean_and_error_are_those_of_a_ratio_of_sums():
    sums, events = np.array([3.0, 1.0, 4.0, 1.0]), np.array([4.0, 2.0, 6.0, 2.0])
    found = block_mean(sums, events)
    rest = sums - found.mean * events
    assert found.mean == pytest.approx(9.0 / 14.0)
    assert found.error == pytest.approx(np.sqrt(4.0 / 3.0 * (rest**2).sum()) / 14.0)


@pytest.mark.parametrize("blocks", [10, 32])
def test_the_interval_covers_the_mean_of_dependent_events(blocks):
    """Events of a block share a shift. Of 600 intervals 95 % hold the truth, but for 4.5 standard errors and for what
    few blocks cost."""
    rng = np.random.default_rng(blocks)
    hits = 0
    for number in range(600):
        events = rng.integers(20, 60, blocks).astype(float)
        sums = events * (0.4 + 0.1 * rng.normal(size=blocks)) + np.sqrt(events) * 0.5 * rng.normal(size=blocks)
        found = block_mean(sums, events, seed=number)
        hits += found.low <= 0.4 <= found.high
    assert abs(hits / 600 - 0.95) < 4.5 * np.sqrt(0.95 * 0.05 / 600) + 0.01


def test_blocks_without_events_say_nothing():
    with_empty = block_mean([1.0, 0.0, 2.0, 3.0], [5, 0, 5, 5])
    assert with_empty == block_mean([1.0, 2.0, 3.0], [5, 5, 5])
    assert block_mean([1.0], [2.0]).low == -np.inf


def test_equal_blocks_leave_no_doubt():
    assert block_mean([1.0] * 8, [2.0] * 8)[:3] == (0.5, 0.5, 0.5)


def test_four_times_the_error_takes_sixteen_times_the_events():
    assert needed(1000, 0.04, 0.01) == pytest.approx(16 * needed(1000, 0.01, 0.01))
    assert needed(1000, 0.01, 0.028) == pytest.approx(1000.0)
