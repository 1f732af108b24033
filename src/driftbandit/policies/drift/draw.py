"""Drawing a hypothesis of `DriftTS` by its weight, and the posterior of every arm under it.

Weights are not normalised in every round: a common factor changes nothing, and leaving it out saves a division and a
pass over all weights. They are added up bank by bank (A, S, drifts) in four columns, the first being places 0, 4,
8, ... of the bank, so that no addition waits for the one before. A draw finds the bank, the column and the row, in this
order."""

import math
from typing import Any

from driftbandit.core.primitives import compilable, index
from driftbandit.policies.drift.hypotheses import (
    COLUMNS,
    COMMON,
    DRIFT_RECORD,
    HYPOTHESES,
    LEVEL,
    LOSSES,
    LOST,
    OFFSET,
    OLD,
    PLACES,
    RUN_RECORD,
    RUNS,
    SPREAD,
    V0,
)

# Constants, with the ratio of regret (docs/drift-ts/variants.md) that other values give in environments that change, in
# stationary ones, and in traps.
SURE = 2.0  # how often runs and common drifts count evidence in a draw; 1: 1.10, 1.46, 1.14; 3: 1.02, 0.85, 1.23
LEAST = 1.0  # times its mean, below which no arm's value is drawn; 0, plain Thompson sampling: 1.02, 1.21, 1.11
HASTE = 4.0  # how much less exploring a drifting arm is worth; 0: 1.05, 1.14, 0.94; 8: 1.04, 1.01, 0.95

A_SUMS, S_SUMS, DRIFT_SUMS, SUMS = 0, COLUMNS, 2 * COLUMNS, 3 * COLUMNS  # in `cumulative`: of columns up to each


@compilable
def update_sums(shared: Any, cumulative: Any, slots: int) -> Any:
    """Write the cumulative sums, and return the sum of all weights."""
    runs = sum_bank(shared, 0, slots, cumulative, A_SUMS)
    split = sum_bank(shared, PLACES, PLACES + slots, cumulative, S_SUMS)
    return (runs + split) + sum_bank(shared, RUNS, HYPOTHESES, cumulative, DRIFT_SUMS)


@compilable
def sum_bank(shared: Any, first: int, end: int, cumulative: Any, at: int) -> Any:
    """Write the sums of a bank's weights up to each of its four columns, and return the last."""
    a = b = c = d = 0.0
    for i in range(first, end, COLUMNS):
        a = a + shared[i]
        b = b + shared[i + 1]
        c = c + shared[i + 2]
        d = d + shared[i + 3]
    b = a + b
    c = b + c
    d = c + d
    cumulative[at] = a
    cumulative[at + 1] = b
    cumulative[at + 2] = c
    cumulative[at + 3] = d
    return d


@compilable
def draw_hypothesis(shared: Any, cumulative: Any, u: Any) -> Any:
    """The first hypothesis, in the order of banks, columns and rows, whose cumulative weight exceeds u times the total,
    u uniform on [0, 1). Where rounding leaves none in its column, the last there with a positive weight."""
    runs = cumulative[A_SUMS + 3]
    all_runs = runs + cumulative[S_SUMS + 3]
    rest = u * (all_runs + cumulative[DRIFT_SUMS + 3])
    first = 0
    end = PLACES
    sums = A_SUMS
    if rest >= all_runs:
        first = RUNS
        end = HYPOTHESES
        sums = DRIFT_SUMS
        rest = rest - all_runs
    elif rest >= runs:
        first = PLACES
        end = RUNS
        sums = S_SUMS
        rest = rest - runs
    column = 0
    below = 0.0
    for j in range(1, COLUMNS):
        up_to = cumulative[index(sums + (j - 1))]
        further = (rest >= up_to) & (cumulative[index(sums + j)] > up_to)
        column = j if further else column
        below = up_to if further else below
    rest = rest - below
    place = first + column
    mass = shared[index(place)]
    at = place + COLUMNS
    while mass <= rest and at < end:
        weight = shared[index(at)]
        place = at if weight > 0.0 else place
        mass = mass + weight
        at = at + COLUMNS
    return place


@compilable
def write_posteriors(state: Any, t: int, rng: Any, drawn: int, sure: Any, haste: Any) -> None:
    """Write the Beta parameters of every arm under a hypothesis; in bank S a uniform number for each arm decides
    whether it changed.

    Plain posterior draws explore more than needed, so runs and common drifts count their evidence twice (`sure`). What
    is learned of a drifting arm is useful for a while only, and the more arms there are, the more it costs to learn
    them all: the parameters of an independent drift are multiplied by 1 + haste sqrt(K q) (a + b)."""
    known = state.known
    if drawn < RUNS:
        slot = drawn - (PLACES if drawn >= PLACES else 0)
        for arm in range(len(known.wins)):
            at = index(arm * RUN_RECORD + slot)
            if drawn >= PLACES and rng.uniform(1 + arm) >= known.changed[index(arm * PLACES + slot)]:
                at = index(at + OLD)  # the arm did not change
            state.a[arm] = sure * (1.0 + max(known.wins[arm] - known.runs[at], 0.0))
            state.b[arm] = sure * (1.0 + max(known.losses[arm] - known.runs[at + LOSSES], 0.0))
    elif drawn < COMMON:
        rate = known.rates[index(drawn - RUNS)]
        sharpen = haste * math.sqrt(rate * len(known.wins))
        for arm in range(len(known.wins)):
            at = index(arm * DRIFT_RECORD + (drawn - RUNS))
            wins = known.drifts[at]
            losses = known.drifts[at + LOST]
            stays = 1.0 / (1.0 + (rate * (t - known.last[arm])) * (wins + losses))
            a = 1.0 + wins * stays
            b = 1.0 + losses * stays
            sharper = 1.0 + sharpen * (a + b)
            state.a[arm] = a * sharper
            state.b[arm] = b * sharper
    else:
        level = known.shared[index(drawn - COMMON + LEVEL)]
        for arm in range(len(known.wins)):
            at = index(arm * DRIFT_RECORD + OFFSET + (drawn - COMMON))
            pulls = max(1.0 / known.drifts[at + (SPREAD - OFFSET)] - 1.0 / V0, 0.0)
            won = pulls * min(max(level + known.drifts[at], 0.0), 1.0)
            state.a[arm] = sure * (1.0 + won)
            state.b[arm] = sure * (1.0 + (pulls - won))
