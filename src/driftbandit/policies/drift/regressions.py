"""The hypotheses of `DriftLinTS`: Bayesian regressions that compete by how well they predict.

*Own drifts* assume that the coefficients of each group drift independently, *common drifts* that one level shared by
all arms does, *runs* that nothing has changed since they began. Variances are in units of the noise variance.

Four hypotheses make a block: each number of a vector or matrix is a row of four, one per hypothesis, and the rows of a
block follow each other. A run keeps its place as long as it lives. Of symmetric matrices the lower triangle is stored.
Compiled code takes one block after the other, the interpreter all of them together. No function that is long when
compiled is called in two places, since compiled code has a copy for each."""

from functools import cache
from typing import Any

import numpy as np

from driftbandit.core.primitives import WIDTH, add_row, compilable, compiled_as, index, open_rows, where
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


# ---- vectors and triangles, for NumPy and as loops to be compiled: the same sums in the same order -------------------


@compiled_as(lambda blocks: 1)
def at_once(blocks: int) -> int:
    """How many of so many blocks are computed together."""
    return blocks


@compiled_as(lambda values: values)
def column(values: Any) -> Any:
    """Numbers by which the rows of a table are multiplied."""
    return np.array(values).reshape(-1, 1, 1)


@compiled_as(lambda values: values)
def scratch(values: Any) -> Any:
    """Memory to be written before it is read."""
    return np.empty(len(values))


@compiled_as(lambda table, first, count: table)
def blocks_of(table: Any, first: int, count: int) -> Any:
    """Some blocks of a row, or of all rows of a table."""
    return table[..., first : first + count, :]


def _sum_products_loops(
    out: Any, start: int, stop: int, values: Any, first: Any, step: int, factors: Any, begin: Any
) -> None:
    at, apart = index(first), HYPOTHESES * len(factors)
    for place in range(start, stop):
        total = begin
        for i in range(len(factors)):
            total += values[at + i * step] * factors[i]
        out[place] = total
        at = index(at + apart)


@compiled_as(_sum_products_loops)
def sum_products(out: Any, start: int, stop: int, values: Any, first: Any, step: int, factors: Any, begin: Any) -> None:
    """For each place of `out` and each group, the sum of `begin` and of factors times numbers `step` apart."""
    groups, count = stop - start, len(factors)
    if groups == 1 or count == 1:  # too few numbers for NumPy to be faster
        return _sum_products_loops(out, start, stop, values, first, step, factors, begin)
    rows = values.reshape(-1, HYPOTHESES * count)[:groups, first : first + count * step : step]
    out[start:stop] = np.add.reduce(np.multiply(rows, factors).T.copy(), axis=0, initial=begin).tolist()


def _write_loops(values: Any, first: Any, step: int, numbers: Any) -> None:
    at = index(first)
    for i in range(len(numbers)):
        values[at + i * step] = numbers[i]


@compiled_as(_write_loops)
def write(values: Any, first: Any, step: int, numbers: Any) -> None:
    """Write these numbers, each `step` after the one before."""
    values[first : first + len(numbers) * step : step] = numbers


def _dot_loops(rows: Any, x: Any) -> Any:
    total = rows[0] * x[0]
    for i in range(1, len(x)):
        total = total + rows[i] * x[i]
    return total


@compiled_as(_dot_loops)
def dot(rows: Any, x: Any) -> Any:
    """The sum of rows multiplied by numbers."""
    return np.add.reduce(rows * x, axis=0)


def _multiply_loops(triangle: Any, x: Any, out: Any) -> Any:
    gain = open_rows(out, 0, len(x), 0, 1)
    at = 0
    for i in range(len(x)):
        row = triangle[at] * x[0]
        for j in range(1, i + 1):
            row = row + triangle[at + j] * x[j]
        for j in range(i):
            gain[j] = gain[j] + triangle[at + j] * x[i]
        gain[i] = row
        at += i + 1
    return gain


@compiled_as(_multiply_loops)
def multiply(triangle: Any, x: Any, out: Any) -> Any:
    """The product of symmetric matrices and a vector; compiled code has it in the memory of `out`."""
    return np.add.reduce(triangle.take(_places(len(x))[3], axis=0) * x, axis=1)


def _combine_loops(rows: Any, keep: Any, others: Any, factor: Any) -> None:
    for i in range(len(others)):
        rows[i] = rows[i] * keep + others[i] * factor


@compiled_as(_combine_loops)
def combine(rows: Any, keep: Any, others: Any, factor: Any) -> None:
    """Multiply rows by one factor, and add other rows, or numbers, times another."""
    rows *= keep
    rows += others * factor


def _subtract_square_loops(triangle: Any, gain: Any, inverse: Any) -> None:
    at = 0
    for i in range(len(gain)):
        part = gain[i] * inverse
        triangle[at + i] = triangle[at + i] * GROWTH
        for j in range(i + 1):
            triangle[at + j] = triangle[at + j] - part * gain[j]
        at += i + 1


@compiled_as(_subtract_square_loops)
def subtract_square(triangle: Any, gain: Any, inverse: Any) -> None:
    """Subtract gain gain' / variance from symmetric matrices whose diagonal has grown by the factor `GROWTH`."""
    i, j, _, _, diagonal = _places(len(gain))
    triangle[diagonal] *= GROWTH
    triangle -= (gain * inverse).take(i, axis=0) * gain.take(j, axis=0)


@cache
def _places(n: int) -> Any:
    """Of each number of a triangle the row, the column and how often it is in the matrix; the places in the triangle
    of the numbers of the matrix, and of its diagonal."""
    square = np.zeros((n, n), np.int64)
    i, j = np.tril_indices(n)
    square[i, j] = square[j, i] = np.arange(len(i))
    return i, j, np.where(i == j, 1.0, 2.0), square, np.diagonal(square)


def _multiply_pairs_loops(x: Any, out: Any) -> Any:
    at = 0
    for i in range(len(x)):
        for j in range(i):
            out[at + j] = 2.0 * x[i] * x[j]
        out[at + i] = x[i] * x[i]
        at += i + 1
    return out


@compiled_as(_multiply_pairs_loops)
def multiply_pairs(x: Any, out: Any) -> Any:
    """What the numbers of a triangle A are multiplied by in x' A x; compiled code writes it into `out`."""
    x, (i, j, times, _, _) = np.array(x), _places(len(x))
    return times * x[i] * x[j]


@compilable
def measure(state: Any, h: Any, pairs: Any, start: int, stop: int) -> None:
    """Write a hypothesis' mean and variance of x' theta for some arms, the first of which is of the first group."""
    level = 1.0 * state.level[h - RATES] if RATES <= h < RUNS else 0.0
    sum_products(state.middles, start, stop, state.mean, place(h, len(state.x)), WIDTH, state.x, level)
    sum_products(state.variances, start, stop, state.covariance, place(h, len(pairs)), WIDTH, pairs, 0.0)


# ---- learning a reward -----------------------------------------------------------------------------------------------


@compilable
def absorb(state: Any, t: int, group: Any, y: Any) -> Any:
    """Let every hypothesis predict the reward of round t and learn from it, and weigh them. The result is the mean
    squared error, each in units of 1 plus the variance of its prediction.

    The covariance of a common drift's level with all other groups shrinks by one factor, kept in `fade` and applied
    every 16 rounds."""
    x, n, size, stop = column(state.x), len(state.x), len(state.prior), state.counts[BLOCKS]
    blocks, drifts = at_once(stop), at_once(_OWN)
    predictions, variances = scratch(state.forecast), scratch(state.spread)
    total = 0.0
    expected = 0.0
    for block in range(0, stop, blocks):
        mean = open_rows(state.mean, group * HYPOTHESES * n, n, block, blocks)
        covariance = open_rows(state.covariance, group * HYPOTHESES * size, size, block, blocks)
        if block < _OWN:
            rates = open_rows(state.rates, 0, 1, block, drifts)
            combine(blocks_of(covariance, 0, drifts), 1.0, column(state.wander), rates[0] * (t - state.last[group]))
        gain = multiply(covariance, x, state.gain)
        predicted = open_rows(predictions, 0, 1, block, blocks)
        variance = open_rows(variances, 0, 1, block, blocks)
        predicted[0] = dot(mean, x)
        variance[0] = dot(gain, x)
        weights = open_rows(state.weights, 0, 1, block, blocks)
        common, first = block < _DRIFTS and block + blocks > _OWN, max(block - _OWN, 0)
        link = open_rows(state.link, group * RATES * n, n, first, drifts)
        fade = open_rows(state.fade, 0, 1, first, drifts)
        level = open_rows(state.level, 0, 1, first, drifts)
        before = open_rows(state.level_variance, 0, 1, first, drifts)
        gains, cover = blocks_of(gain, _OWN, drifts), fade[0]
        if common:
            cover = dot(link, x) * fade[0]
            combine(gains, 1.0, link, fade[0])
            before[0] = before[0] + open_rows(state.rates, 0, 1, first, drifts)[0]
            expected_level, spread = blocks_of(predicted, _OWN, drifts), blocks_of(variance, _OWN, drifts)
            expected_level[0] = expected_level[0] + level[0]
            spread[0] = spread[0] + (before[0] + 2.0 * cover)
            cover = before[0] + cover
        variance[0] = where(variance[0] > 0.0, 1.0 + variance[0], 1.0)
        inverse = 1.0 / variance[0]
        pull = (y - predicted[0]) * inverse
        if common:
            share = cover * blocks_of(inverse, _OWN, drifts)
            left = before[0] - share * cover
            left = where(left > 0.0, left, 0.0)
            stays = np.sqrt(left / before[0])
            stays = where(1.0 - share < stays, 1.0 - share, stays)
            stays = where(stays < 0.001, 0.001, stays)
            before[0] = left
            fade[0] = fade[0] * stays
            combine(link, 1.0 / stays, gains, -(share / fade[0]))
            level[0] = level[0] + cover * blocks_of(pull, _OWN, drifts)
        combine(mean, 1.0, gain, pull)
        subtract_square(covariance, gain, inverse)
        total = add_row(total, weights[0])
        expected = add_row(expected, weights[0] * predicted[0])
    state.last[group] = 1.0 * t
    if t % EVERY == 0:
        for block in range(len(state.link) // (WIDTH * n)):
            link = open_rows(state.link, 0, n, block, 1)
            fade = open_rows(state.fade, 0, 1, block % _OWN, 1)
            for i in range(n):
                link[i] = link[i] * fade[0]
        for h in range(RATES):
            state.fade[h] = 1.0
    return weigh(state, y, expected / total, predictions, variances) / total


@compilable
def weigh(state: Any, y: Any, expected: Any, predictions: Any, variances: Any) -> Any:
    """Multiply the weights by the likelihoods of a reward, capped, and divide them by their sum. The result is the sum
    of weights before times errors."""
    stop, noise, surprise = state.counts[BLOCKS], state.numbers[NOISE], y - expected
    most = min(surprise * surprise, CAP * noise) / 2.0
    error = 0.0
    whole = 0.0
    for block in range(0, stop, at_once(stop)):
        predicted = open_rows(predictions, 0, 1, block, at_once(stop))[0]
        variance = open_rows(variances, 0, 1, block, at_once(stop))[0]
        weights = open_rows(state.weights, 0, 1, block, at_once(stop))
        apart = y - predicted
        error = add_row(error, weights[0] * (apart * apart / variance))
        if noise > 0.0:
            ahead = predicted - expected
            exponent = ((surprise - ahead / 2.0) * ahead - most) / (noise * variance)
            exponent = where(exponent < -600.0, -600.0, where(exponent > 600.0, 600.0, exponent))
            weights[0] = weights[0] * (two_to_the(exponent * _LOG2_E) / np.sqrt(variance))
        whole = add_row(whole, weights[0])
    for i in range(RUNS + state.counts[N_RUNS]):
        h = live(state.slots, i)
        state.weights[h] = max(state.weights[h] / whole, LEAST)
    return error


@compilable
def set_arrow(matrix: Any, centre: Any, variances: Any) -> None:
    """Set the covariance of coefficients of these variances that belong to the features less their means."""
    for i in range(len(matrix)):
        matrix[i] = 0.0
    for j in range(len(variances)):
        add_arrow(matrix, 0, 1, j, centre[j], variances[j])


@compilable
def add_arrow(matrix: Any, first: Any, step: int, j: int, centre: Any, variance: Any) -> None:
    """Add the covariance of a coefficient of this variance that belongs to feature j less its mean."""
    at, row = index(first), j * (j + 1) // 2 * step
    matrix[at + row + j * step] += variance
    if j > 0:
        matrix[at + row] -= centre * variance
        matrix[at] += centre * centre * variance
