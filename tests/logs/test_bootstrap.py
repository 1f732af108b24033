"""Intervals over blocks."""

import tracemalloc

import numpy as np
import pytest
import scipy.stats

from driftbandit.logs.bootstrap import REDRAWN, Estimate, block_mean, block_means, needed


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


def obvious(sums, events, level=0.95):
    """Blocks redrawn one at a time, each redrawn mean divided by its own standard error."""
    b, mean = len(sums), sums.sum() / events.sum()

    def error(s, e):
        rest = s - s.sum() / e.sum() * e
        return np.sqrt(b / (b - 1.0) * (rest * rest).sum()) / e.sum()

    t = []
    for chosen in np.random.default_rng(np.random.SeedSequence(0, spawn_key=(b,))).integers(0, b, (REDRAWN, b)):
        s, e = sums[chosen], events[chosen]
        t.append((s.sum() / e.sum() - mean) / error(s, e))
    low, high = np.clip(np.quantile(t, [0.5 * (1.0 - level), 0.5 * (1.0 + level)]), -6.0, 6.0)
    return mean, mean - high * error(sums, events), mean - low * error(sums, events), error(sums, events)


@pytest.mark.parametrize("blocks", [13, 60])
def test_many_columns_redrawn_together_are_the_obvious_bootstrap_of_each(blocks):
    rng = np.random.default_rng(blocks)
    events = rng.integers(1, 60, blocks).astype(float)
    sums = events[:, None] * (5.0 + rng.normal(size=(blocks, 3)) ** 3)
    for found, column in zip(block_means(sums, events), sums.T, strict=True):
        assert found == pytest.approx(obvious(column, events), rel=1e-9)
        assert found == pytest.approx(block_mean(column, events), rel=1e-9)


def test_a_million_blocks_take_the_memory_of_a_few_thousand():
    rng = np.random.default_rng(1)
    sums, events = rng.normal(size=200_000), np.ones(200_000)
    tracemalloc.start()
    found = block_mean(sums, events)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 200e6  # redrawing all of them would take 3 GB
    assert found.mean == pytest.approx(sums.mean())
    assert found.error == pytest.approx(sums.std() / np.sqrt(len(sums)), rel=0.1)


@pytest.mark.parametrize(("blocks", "share"), [(8, 0.975), (13, 0.99375), (101, 0.99375)])
def test_a_widened_interval_is_no_narrower_than_students(blocks, share):
    level = 2.0 * share - 1.0
    half = 0.5 * scipy.stats.t.ppf(share, blocks - 1)
    narrow, wide = Estimate(1.0, 0.9, 1.1, 0.5), Estimate(1.0, -9.0, 9.0, 0.5)
    assert narrow.widened(blocks, level)[1:3] == pytest.approx((1.0 - half, 1.0 + half), rel=4e-3)
    assert wide.widened(blocks, level) == wide


def test_the_other_way_round_the_ends_change_places():
    assert -Estimate(1.0, 0.5, 3.0, 0.2) == (-1.0, -3.0, -0.5, 0.2)
