"""Intervals over blocks."""

import tracemalloc

import numpy as np
import pytest
import scipy.stats

from driftbandit.logs.estimates import RESAMPLES, Estimate, block_mean


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


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_equal_blocks_leave_a_doubt_that_falls_with_the_evidence(value):
    """Of 1,000 events none differed: at 95% up to 3.7 in 1,000 may."""
    few, many = (block_mean([value * n / 10] * 10, [n / 10] * 10, size=n) for n in (100.0, 1000.0))
    assert many.low < value < many.high
    assert 3.7e-3 < many.high - value < 6e-3
    assert few.high - value == pytest.approx(10.0 * (many.high - value))


@pytest.mark.parametrize("rate", [0.0005, 0.002, 0.01])
def test_the_interval_covers_the_rate_of_rare_events(rate):
    """1,000 independent events in 20 blocks, with 0.5, 2 or 10 rewards expected. Of 400 intervals at least 95% hold the
    rate, but for 4.5 standard errors: fewer happen in one suite of 100,000."""
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(400):
        found = block_mean(rng.binomial(50, rate, 20), np.full(20, 50.0), size=1000.0)
        hits += found.low <= rate <= found.high
    assert hits / 400 > 0.95 - 4.5 * np.sqrt(0.95 * 0.05 / 400)


def obvious(sums, events, level=0.95):
    """Blocks redrawn one at a time, each redrawn mean divided by its own standard error."""
    b, mean = len(sums), sums.sum() / events.sum()

    def error(s, e):
        rest = s - s.sum() / e.sum() * e
        return np.sqrt(b / (b - 1.0) * (rest * rest).sum()) / e.sum()

    t = []
    for chosen in np.random.default_rng(np.random.SeedSequence(0, spawn_key=(b,))).integers(0, b, (RESAMPLES, b)):
        s, e = sums[chosen], events[chosen]
        t.append((s.sum() / e.sum() - mean) / error(s, e))
    low, high = np.clip(np.quantile(t, [0.5 * (1.0 - level), 0.5 * (1.0 + level)]), -6.0, 6.0)
    student = scipy.stats.t.ppf(0.5 * (1.0 + level), b - 1)
    low, high = min(low, -student), max(high, student)  # never narrower
    return mean, mean - high * error(sums, events), mean - low * error(sums, events), error(sums, events)


@pytest.mark.parametrize("blocks", [13, 60])
def test_the_interval_is_that_of_the_obvious_bootstrap(blocks):
    rng = np.random.default_rng(blocks)
    events = rng.integers(1, 60, blocks).astype(float)
    for column in (events[:, None] * (5.0 + rng.normal(size=(blocks, 3)) ** 3)).T:
        assert block_mean(column, events) == pytest.approx(obvious(column, events), rel=1e-3)


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


def test_an_estimate_is_kept_to_the_possible_values():
    assert Estimate(1.1, -0.2, 1.3, 0.2).clipped(0.0, 1.0) == (1.0, 0.0, 1.0, 0.2)
