"""The hypotheses of `DriftLinTS`: Bayesian regressions that compete by how well they predict.

*Own drifts* assume that the coefficients of each group drift independently, *common drifts* that one level shared by
all arms does, *runs* that nothing has changed since they began. Variances are in units of the noise variance.

Four hypotheses make a block: each number of a vector or matrix is a row of four, one per hypothesis, and the rows of a
block follow each other. A run keeps its place as long as it lives. Of symmetric matrices the lower triangle is stored.
The functions marked `compiled_as` are written twice, for NumPy and as loops to be compiled: the same operations in the
same order. No function that is long when compiled is called in two places, since compiled code has a copy for each."""

from functools import cache
from typing import Any

import numpy as np

from driftbandit.core.primitives import WIDTH, add_row, blank_rows, compilable, compiled_as, index, open_rows, where
from driftbandit.policies.drift.hypotheses import two_to_the

# What other values of constants and other rules cost is in docs/drift-ts/lin-variants.md. Ratios next to constants are
# of slightly earlier forms of the policy: regret without the rule over regret with it, geometric means over 30 design
# environments with a standard error of about 0.02.
HYPOTHESES = 64  # places for hypotheses in every group
EVERY = 16  # rounds between renewals, and rewards kept to estimate the first units from
RATES = 8  # speeds of drift, in units of the noise variance a round: 8**-2, ..., 8**-9
RUNS = 2 * RATES  # places of hypotheses: own drifts, common drifts, runs
CLASSES = 23  # age classes of runs; those older than 16 * 2**23 rounds are merged within the last class
MOST_RUNS = 2 * CLASSES + 1  # RUNS and these fit into HYPOTHESES
CAP = 9.0  # a surprise counts for at most so many noise variances; 1.05 without a cap
LEAST = 1e-200  # the least weight
GROWTH = 1.0 + 2.0**-42  # of every variance that is learned: more than rounding takes away, so that it stays positive
_LOG2_E = 1.4426950408889634
_OWN, _DRIFTS = RATES // WIDTH, RUNS // WIDTH  # blocks of own drifts, and of both kinds

# Places in `numbers` and in `counts`.
ORIGIN, CENTRE, NOISE, TOP, MEAN, VARIANCE, FOURTH, WITHIN = range(8)
N_RUNS, PAIRS, BLOCKS, N_CUT = range(4)


@compilable
def place(h: Any, count: Any) -> Any:
    """Where the numbers of a hypothesis begin, in steps of `WIDTH`, if each hypothesis has `count` of them."""
    return index(h // WIDTH * count * WIDTH + h % WIDTH)


@compilable
def live(slots: Any, i: int) -> Any:
    """The place of the i-th hypothesis: own drifts, common drifts, then runs from the oldest on."""
    return i if i < RUNS else index(slots[i - RUNS])


@compilable
def quadratic_form(matrix: Any, first: Any, step: int, x: Any) -> Any:
    """x' A x for the triangle whose numbers begin at `first`, each `step` after the one before."""
    at = index(first)
    total = 0.0
    for i in range(len(x)):
        for j in range(i):
            total += matrix[at + j * step] * (2.0 * x[i] * x[j])
        total += matrix[at + i * step] * (x[i] * x[i])
        at += (i + 1) * step
    return total


def _measure_loops(state: Any, h: Any, start: int, stop: int) -> None:
    x, n, size = state.x, len(state.x), len(state.prior)
    at, first = place(h, n), place(h, size)
    level = state.level[h - RATES] if RATES <= h < RUNS else 0.0
    for arm in range(start, stop):
        total = level
        for i in range(n):
            total += state.mean[at + i * WIDTH] * x[i]
        state.middles[arm] = total
        state.variances[arm] = quadratic_form(state.covariance, first, WIDTH, x)
        at = index(at + HYPOTHESES * n)
        first = index(first + HYPOTHESES * size)


@compiled_as(_measure_loops)
def measure(state: Any, h: Any, start: int, stop: int) -> None:
    """Write a hypothesis' mean and variance of x' theta for some arms, the first of which is of the first group."""
    if stop - start == 1 or len(state.x) < 3:  # too few numbers for NumPy to be faster
        return _measure_loops(state, h, start, stop)
    x, (i, j, _) = np.array(state.x), _places(len(state.x))
    level = state.level[h - RATES] if RATES <= h < RUNS else 0.0
    factors = np.where(i == j, 1.0, 2.0) * x[i] * x[j]
    for out, values, parts, first in (
        (state.middles, state.mean, x, level),
        (state.variances, state.covariance, factors, 0.0),
    ):
        count = len(parts)
        starts = range(place(h, count), len(values), HYPOTHESES * count)
        numbers = np.array([values[at : at + count * WIDTH : WIDTH] for at in starts]).T
        out[start:stop] = np.add.reduce(np.multiply(numbers, parts[:, None], order="C"), initial=first).tolist()


# ---- learning a reward -----------------------------------------------------------------------------------------------


def _absorb_loops(state: Any, t: int, group: Any, y: Any) -> Any:
    x, n, size, idle = state.x, len(state.x), len(state.prior), t - state.last[group]
    total = 0.0
    expected = 0.0
    for block in range(state.counts[BLOCKS]):
        mean = open_rows(state.mean, group * HYPOTHESES * n, n, block)
        covariance = open_rows(state.covariance, group * HYPOTHESES * size, size, block)
        gain = blank_rows(state.gain, n)
        if block < _OWN:
            step = open_rows(state.rates, 0, 1, block)[0] * idle
            for i in range(size):
                covariance[i] = covariance[i] + step * state.wander[i]
        at = 0
        for i in range(n):
            row = covariance[at] * x[0]
            for j in range(1, i + 1):
                row = row + covariance[at + j] * x[j]
            for j in range(i):
                gain[j] = gain[j] + covariance[at + j] * x[i]
            gain[i] = row
            at += i + 1
        predicted = mean[0] * x[0]
        variance = gain[0] * x[0]
        for i in range(1, n):
            predicted = predicted + mean[i] * x[i]
            variance = variance + gain[i] * x[i]
        common = _OWN <= block < _DRIFTS
        link = open_rows(state.link, group * RATES * n, n, max(block - _OWN, 0))
        fade = open_rows(state.fade, 0, 1, max(block - _OWN, 0))
        level = open_rows(state.level, 0, 1, max(block - _OWN, 0))
        level_variance = open_rows(state.level_variance, 0, 1, max(block - _OWN, 0))
        cover = variance
        if common:
            cover = link[0] * x[0]
            for i in range(1, n):
                cover = cover + link[i] * x[i]
            cover = cover * fade[0]
            for i in range(n):
                gain[i] = gain[i] + link[i] * fade[0]
            before = level_variance[0] + open_rows(state.rates, 0, 1, block - _OWN)[0]
            predicted = predicted + level[0]
            variance = variance + (before + 2.0 * cover)
            level_variance[0] = before
            cover = before + cover
        variance = where(variance > 0.0, 1.0 + variance, 1.0)
        inverse = 1.0 / variance
        pull = (y - predicted) * inverse
        if common:
            share = cover * inverse
            before = level_variance[0]
            left = before - share * cover
            level_variance[0] = where(left > 0.0, left, 0.0)
            stays = np.sqrt(level_variance[0] / before)
            stays = where(1.0 - share < stays, 1.0 - share, stays)
            stays = where(stays < 0.001, 0.001, stays)
            fade[0] = fade[0] * stays
            grow, loss = 1.0 / stays, share / fade[0]
            for i in range(n):
                link[i] = link[i] * grow - gain[i] * loss
            level[0] = level[0] + cover * pull
        at = 0
        for i in range(n):
            mean[i] = mean[i] + gain[i] * pull
            part = gain[i] * inverse
            covariance[at + i] = covariance[at + i] * GROWTH
            for j in range(i + 1):
                covariance[at + j] = covariance[at + j] - part * gain[j]
            at += i + 1
        open_rows(state.forecast, 0, 1, block)[0] = predicted
        open_rows(state.spread, 0, 1, block)[0] = variance
        weight = open_rows(state.weights, 0, 1, block)[0]
        total = add_row(total, weight)
        expected = add_row(expected, weight * predicted)
    expected = expected / total
    noise, surprise = state.numbers[NOISE], y - expected
    most = min(surprise * surprise, CAP * noise) / 2.0
    error = 0.0
    whole = 0.0
    for block in range(state.counts[BLOCKS]):
        predicted = open_rows(state.forecast, 0, 1, block)[0]
        variance = open_rows(state.spread, 0, 1, block)[0]
        weights = open_rows(state.weights, 0, 1, block)
        apart = y - predicted
        error = add_row(error, weights[0] * (apart * apart / variance))
        if noise > 0.0:
            ahead = predicted - expected
            exponent = ((surprise - ahead / 2.0) * ahead - most) / (noise * variance)
            exponent = where(exponent < -600.0, -600.0, where(exponent > 600.0, 600.0, exponent))
            weights[0] = weights[0] * (two_to_the(exponent * _LOG2_E) / np.sqrt(variance))
        whole = add_row(whole, weights[0])
    if t % EVERY == 0:
        for block in range(len(state.link) // (WIDTH * n)):
            link = open_rows(state.link, 0, n, block)
            fade = open_rows(state.fade, 0, 1, block % _OWN)[0]
            for i in range(n):
                link[i] = link[i] * fade
        for h in range(RATES):
            state.fade[h] = 1.0
    finish(state.weights, state.slots, RUNS + state.counts[N_RUNS], whole)
    state.last[group] = 1.0 * t
    return error / total


@compiled_as(_absorb_loops)
def absorb(state: Any, t: int, group: Any, y: Any) -> Any:
    """Let every hypothesis predict the reward of round t and learn from it, and weigh them. The result is the mean
    squared error, each in units of 1 plus the variance of its prediction.

    The covariance of a common drift's level with all other groups shrinks by one factor, kept in `fade` and applied
    every 16 rounds."""
    n, size, blocks, idle = len(state.x), len(state.prior), state.counts[BLOCKS], t - state.last[group]
    x, commons, vectors = np.array(state.x)[:, None], slice(_OWN, _DRIFTS), group * HYPOTHESES * n
    mean = _open(state.mean, vectors, blocks, n)
    covariance = _open(state.covariance, group * HYPOTHESES * size, blocks, size)
    link = _open(state.link, group * RATES * n, _DRIFTS - _OWN, n)
    rates, fade, level, level_variance = (
        np.array(field).reshape(-1, 1, WIDTH) for field in (state.rates, state.fade, state.level, state.level_variance)
    )
    i, j, square = _places(n)
    covariance[:_OWN] += rates * idle * np.array(state.wander)[:, None]
    gain = np.add.reduce(covariance[:, square] * x[:, None], axis=1)
    predicted = np.add.reduce(mean * x, axis=1, keepdims=True)
    variance = np.add.reduce(gain * x, axis=1, keepdims=True)
    cover = np.add.reduce(link * x, axis=1, keepdims=True) * fade
    gain[commons] += link * fade
    level_variance += rates
    predicted[commons] += level
    variance[commons] += level_variance + 2.0 * cover
    cover += level_variance
    variance = np.where(variance > 0.0, 1.0 + variance, 1.0)
    inverse = 1.0 / variance
    pull = (y - predicted) * inverse
    share = cover * inverse[commons]
    left = np.maximum(level_variance - share * cover, 0.0)
    stays = np.maximum(np.minimum(1.0 - share, np.sqrt(left / level_variance)), 0.001)
    fade *= stays
    link = link * (1.0 / stays) - gain[commons] * (share / fade)
    level += cover * pull[commons]
    level_variance = left
    mean += gain * pull
    covariance[:, i == j] *= GROWTH
    covariance -= (gain * inverse)[:, i] * gain[:, j]
    _write(state.mean, vectors, mean)
    _write(state.covariance, group * HYPOTHESES * size, covariance)
    _write(state.link, group * RATES * n, link)
    for field, row in ((state.fade, fade), (state.level, level), (state.level_variance, level_variance)):
        _write(field, 0, row)
    weights = _open(state.weights, 0, blocks, 1)
    total = _add(weights)
    expected = _add(weights * predicted) / total
    noise, surprise = state.numbers[NOISE], y - expected
    most = min(surprise * surprise, CAP * noise) / 2.0
    apart = y - predicted
    error = _add(weights * (apart * apart / variance))
    if noise > 0.0:
        ahead = predicted - expected
        exponent = ((surprise - ahead / 2.0) * ahead - most) / (noise * variance)
        exponent = np.minimum(np.maximum(exponent, -600.0), 600.0)
        weights *= two_to_the(exponent * _LOG2_E) / np.sqrt(variance)
        _write(state.weights, 0, weights)
    if t % EVERY == 0:
        _write(state.link, 0, _open(state.link, 0, len(state.last), 2 * n).reshape(-1, _OWN, n, WIDTH) * fade)
        state.fade[:] = [1.0] * RATES
    finish(state.weights, state.slots, RUNS + state.counts[N_RUNS], _add(weights))
    state.last[group] = 1.0 * t
    return error / total


def _open(values: Any, first: int, blocks: int, count: int) -> Any:
    """A copy of rows as an array: blocks, rows of each, hypotheses."""
    size = blocks * count * WIDTH
    return np.fromiter(values[first : first + size], float, size).reshape(blocks, count, WIDTH)


def _write(values: Any, first: int, rows: Any) -> None:
    values[first : first + rows.size] = rows.ravel().tolist()


def _add(row: Any) -> float:
    total = 0.0
    for a, b, c, d in row.reshape(-1, WIDTH).tolist():
        total += (a + b) + (c + d)
    return total


@cache
def _places(n: int) -> Any:
    """Row and column of each number of a triangle, and the place in the triangle of each number of the matrix."""
    square = np.zeros((n, n), np.int64)
    i, j = np.tril_indices(n)
    square[i, j] = square[j, i] = np.arange(len(i))
    return i, j, square


@compilable
def finish(weights: Any, slots: Any, count: int, whole: Any) -> None:
    """Divide the weights by their sum."""
    for i in range(count):
        h = live(slots, i)
        weights[h] = max(weights[h] / whole, LEAST)
