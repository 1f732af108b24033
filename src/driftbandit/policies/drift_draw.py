"""Drawing a hypothesis of `DriftTS` by its weight.

Weights are not normalised between births: a factor common to all changes nothing, and leaving it out takes a division
and a pass over everything from every round. They are added up bank by bank (A, S, movers) in four columns, the first
being places 0, 4, 8, ... of the bank: so the compiler adds four neighbours to four sums at once. A draw finds the
bank, the column and the row, in this order."""

import math
from typing import Any

from driftbandit.policies.drift_bank import (
    AT_ONCE,
    HYPOTHESES,
    LEVEL,
    LOSSES,
    LOST,
    MOVER_RECORD,
    OFFSET,
    OLD,
    ROOM,
    RUN_RECORD,
    RUNS,
    SPREAD,
    TIDES,
    V0,
)
from driftbandit.primitives import column_sums, compilable, index

# Constants, and what others do to regret in docs/drift-ts/variants.md: in worlds that change, at rest, in traps.
SURE = 2.0  # how often runs and tides count what they know when drawing; 1: 1.10, 1.46, 1.14; 3: 1.02, 0.85, 1.23
LEAST = 1.0  # times its mean, below which no arm's value is drawn; 0, plain Thompson sampling: 1.02, 1.21, 1.11
HASTE = 4.0  # how much less exploring a drifting arm is worth; 0: 1.05, 1.14, 0.94; 8: 1.04, 1.01, 0.95

A_SUMS, S_SUMS, MOVER_SUMS, SUMS = 0, AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE  # in `cumulative`: of columns up to each


@compilable
def add_up(world: Any, cumulative: Any, slots: int) -> Any:
    """Renew the cumulative sums; the sum of all weights."""
    a, b, c, d = column_sums(world, 0, slots)
    runs = put_sums(cumulative, A_SUMS, a, b, c, d)
    a, b, c, d = column_sums(world, ROOM, ROOM + slots)
    split = put_sums(cumulative, S_SUMS, a, b, c, d)
    a, b, c, d = column_sums(world, RUNS, HYPOTHESES)
    return (runs + split) + put_sums(cumulative, MOVER_SUMS, a, b, c, d)


@compilable
def put_sums(cumulative: Any, at: int, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Write a bank's four sums up to each column, and return the last."""
    b = a + b
    c = b + c
    d = c + d
    cumulative[at] = a
    cumulative[at + 1] = b
    cumulative[at + 2] = c
    cumulative[at + 3] = d
    return d


@compilable
def draw_hypothesis(world: Any, cumulative: Any, u: Any) -> Any:
    """The first hypothesis, in the order of banks, columns and rows, whose cumulative weight exceeds u times the total,
    u uniform on [0, 1). Where rounding leaves none in its column, the last there with a positive weight."""
    runs = cumulative[A_SUMS + 3]
    all_runs = runs + cumulative[S_SUMS + 3]
    rest = u * (all_runs + cumulative[MOVER_SUMS + 3])
    first = 0
    end = ROOM
    sums = A_SUMS
    if rest >= all_runs:
        first = RUNS
        end = HYPOTHESES
        sums = MOVER_SUMS
        rest = rest - all_runs
    elif rest >= runs:
        first = ROOM
        end = RUNS
        sums = S_SUMS
        rest = rest - runs
    column = 0
    below = 0.0
    for j in range(1, AT_ONCE):
        up_to = cumulative[index(sums + (j - 1))]
        further = (rest >= up_to) & (cumulative[index(sums + j)] > up_to)
        column = j if further else column
        below = up_to if further else below
    rest = rest - below
    place = first + column
    mass = world[index(place)]
    at = place + AT_ONCE
    while mass <= rest and at < end:
        weight = world[index(at)]
        place = at if weight > 0.0 else place
        mass = mass + weight
        at = at + AT_ONCE
    return place


@compilable
def take_its_word(state: Any, t: int, rng: Any, drawn: int, sure: Any, haste: Any) -> None:
    """Write down the Beta parameters of every arm by what a hypothesis knows of it; in bank S a coin for each arm says
    whether it changed.

    Draws from what is known explore more than they need to, so runs and tides count it twice (`sure`). What is learnt
    of a drifting arm is of use for a while only, and the more arms there are, the dearer it is to know them all: a
    drifter's parameters are multiplied by 1 + haste sqrt(K q) (a + b)."""
    known = state.known
    if drawn < RUNS:
        slot = drawn - (ROOM if drawn >= ROOM else 0)
        for arm in range(len(known.wins)):
            at = index(arm * RUN_RECORD + slot)
            if drawn >= ROOM and rng.uniform(1 + arm) >= known.changed[index(arm * ROOM + slot)]:
                at = index(at + OLD)  # the arm did not change
            state.a[arm] = sure * (1.0 + max(known.wins[arm] - known.runs[at], 0.0))
            state.b[arm] = sure * (1.0 + max(known.losses[arm] - known.runs[at + LOSSES], 0.0))
    elif drawn < TIDES:
        rate = known.rates[index(drawn - RUNS)]
        sharpen = haste * math.sqrt(rate * len(known.wins))
        for arm in range(len(known.wins)):
            at = index(arm * MOVER_RECORD + (drawn - RUNS))
            wins = known.movers[at]
            losses = known.movers[at + LOST]
            stays = 1.0 / (1.0 + (rate * (t - known.last[arm])) * (wins + losses))
            a = 1.0 + wins * stays
            b = 1.0 + losses * stays
            sharper = 1.0 + sharpen * (a + b)
            state.a[arm] = a * sharper
            state.b[arm] = b * sharper
    else:
        level = known.world[index(drawn - TIDES + LEVEL)]
        for arm in range(len(known.wins)):
            at = index(arm * MOVER_RECORD + OFFSET + (drawn - TIDES))
            pulls = max(1.0 / known.movers[at + (SPREAD - OFFSET)] - 1.0 / V0, 0.0)
            won = pulls * min(max(level + known.movers[at], 0.0), 1.0)
            state.a[arm] = sure * (1.0 + won)
            state.b[arm] = sure * (1.0 + (pulls - won))
