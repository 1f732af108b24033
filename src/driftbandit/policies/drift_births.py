"""New runs for `DriftTS`, and the binary counter that keeps their number to the logarithm of the time.

Every 16 rounds each bank of runs gets a new one, which says that the world has just changed. Its weight flows from the
older hypotheses at a rate that falls like 1 / t, and is higher for those that have seen more changes: a world that has
changed often will do so again. The movers get a little of all weight then, so that none is ever lost. In all other
rounds weights are multiplied by likelihoods and nothing else.

A run of level l stands for 2**l births, and a level holds one or two runs. A new run that finds two on level 0 pushes
them as one onto level 1, and so on, as a counter carries. A bank is a row of runs, the oldest first and no place left
empty: the pairs that merge are the last of the row. How many there are follows from the clock alone. Runs of the two
banks in the same place were born together and merge together, so that they share what they remember of the arms."""

from typing import Any

from driftbandit.policies.drift_bank import (
    CHANGES,
    EVERY,
    HYPOTHESES,
    LEVELS,
    LOSSES,
    LOST,
    MOVER_RECORD,
    OLD,
    RATES,
    ROOM,
    RUN_RECORD,
    RUNS,
    counter_at,
    runs_in,
)
from driftbandit.policies.drift_draw import A_SUMS, MOVER_SUMS
from driftbandit.primitives import column_moments, compilable, index

# Constants, and what others do to regret in docs/drift-ts/variants.md: in worlds that change, at rest, in traps.
RATE = 1.0 / 16.0  # changes per unit of log time at first; 1/8: 1.03, 1.16, 0.94; 1/32: 1.01, 0.92, 1.17
GROW = 1.0 / 4.0  # and more for every change seen; 0: 1.06, 0.82, 1.64; 1: 1.05, 1.08, 1.00
SHARE = 1.0 / 4.0  # of all weight times EVERY / t, for movers at births; 1/16: 0.98, 0.99, 0.98; 1: 1.07, 1.07, 0.86
TIDE = 1.0 / 4.0  # the tides' part of that and of the prior; 1/16: 0.99, 1.09, 1.05; 1/2: 1.03, 1.01, 1.08
RHO = 0.5  # probability that an arm changes with a new run of bank S; 1/4: 1.00, 1.12, 0.78; 3/4: 1.01, 0.87, 1.42
NOTHING = 1e-200  # a run of less weight is given none
TINIEST = 1e-300  # a mover has more, unless a variant leaves out its kind; nobody is to divide by 0 there
TO_DRIFTER, TO_TIDE = (1.0 - TIDE) / RATES, TIDE / RATES


@compilable
def give_birth(known: Any, now: int, slots: int, whole: Any) -> None:
    """Let weight flow into a new run of each bank and to the movers, and normalise. `whole` is the sum of all weights,
    which those in `cumulative` add up to."""
    world, cumulative = known.world, known.cumulative
    count = counter_at(now // EVERY - 1)
    born = runs_in(count)
    write_newborn(known, born, heaviest(world, slots), now)
    gift = EVERY * SHARE / now
    keep = 1.0 / (whole * (1.0 + gift))
    hazard = EVERY / (1.0 + now)
    rate = keep * (1.0 - hazard * RATE)
    growth = keep * (hazard * GROW)
    moving = 0.5 * cumulative[MOVER_SUMS + 3]  # each bank is born from its own runs and from half of the movers
    _, _, _, _, once, twice = column_moments(world, RUNS, HYPOTHESES, CHANGES)
    seen = once
    for bank in range(2):
        first = bank * ROOM
        b0 = cumulative[index(A_SUMS + 4 * bank + 3)] + moving
        _, _, _, _, b1, b2 = column_moments(world, first, first + slots, CHANGES)
        seen = seen + b1
        b1 = b1 + 0.5 * once
        b2 = b2 + 0.5 * twice
        for slot in range(first, first + slots):
            at = index(slot)
            left = world[at] * (rate - growth * world[at + CHANGES])
            world[at] = 0.0 if left < NOTHING else left
        flow = RATE * b0 + GROW * b1
        at = index(first + born)
        world[at] = keep * hazard * flow
        world[at + CHANGES] = min(1.0 + (RATE * b1 + GROW * b2) / flow, 1.0 * (now // EVERY))
    carry(known, count, born)
    share_out(known, rate, growth, keep * (gift * whole), seen / whole)


@compilable
def share_out(known: Any, rate: Any, growth: Any, gift: Any, changes: Any) -> None:
    """Take from the movers what flows into new runs, and give every one its part of a gift of weight, whose givers have
    seen so many changes on average."""
    world = known.world
    for g in range(2 * len(known.rates)):  # a loop of known length is unrolled instead of vectorised
        seen = world[g + (RUNS + CHANGES)]
        left = world[g + RUNS] * (rate - growth * seen)
        given = gift * (TO_DRIFTER if g < RATES else TO_TIDE)
        world[g + RUNS] = left + given
        world[g + (RUNS + CHANGES)] = (left * seen + given * changes) / max(left + given, TINIEST)


@compilable
def heaviest(world: Any, slots: int) -> int:
    """The heaviest hypothesis of bank S and the drifters."""
    heir = ROOM
    most = world[ROOM]
    for at in range(ROOM + 1, ROOM + slots):
        if world[at] > most:
            most = world[at]
            heir = at
    for at in range(RUNS, RUNS + RATES):
        if world[at] > most:
            most = world[at]
            heir = at
    return heir


@compilable
def write_newborn(known: Any, born: int, heir: int, now: int) -> None:
    """What the new runs remember of the arms. An arm that does not change with the new run of bank S keeps what the
    heir, the heaviest of S and the drifters, knows of it."""
    runs, movers = known.runs, known.movers
    rate = known.rates[index(max(heir - RUNS, 0))]
    for arm in range(len(known.wins)):
        at = index(arm * RUN_RECORD + born)
        wins = known.wins[arm]
        losses = known.losses[arm]
        runs[at] = wins
        runs[at + LOSSES] = losses
        old = index(at + OLD)
        place = index(arm * ROOM + (heir - ROOM))
        if heir >= RUNS:
            i = index(arm * MOVER_RECORD + (heir - RUNS))
            fade = 1.0 + (rate * (now - known.last[arm])) * (movers[i] + movers[i + LOST])
            runs[old] = wins - movers[i] / fade
            runs[old + LOSSES] = losses - movers[i + LOST] / fade
        else:
            i = index(arm * RUN_RECORD + (heir - ROOM) + (0 if known.changed[place] >= 0.5 else OLD))
            runs[old] = runs[i]
            runs[old + LOSSES] = runs[i + LOSSES]
        known.changed[index(arm * ROOM + born)] = RHO


@compilable
def carry(known: Any, count: int, born: int) -> None:
    """Merge the pairs at the end of the row that a newborn behind them pushes up, and close the gaps."""
    ones = 0
    while (count >> ones) & 1 == 1 and (count >> (ones + 1)) > 0:
        ones += 1
    if ones == 0:
        return
    into = born - 2 * ones
    for pair in range(ones):
        older = born - 2 * (ones - pair)
        merge(known, older, older + 1, into)
        if ones == LEVELS and born > 2 * ones:  # the last level is full: two become one for ever
            if pair == 0:
                merge(known, into - 1, into, into - 1)
                into -= 1
        into += 1
    move(known, born, into)
    world = known.world
    for first in range(0, RUNS, ROOM):
        world[index(first + into)] = world[index(first + born)]
        world[index(first + into + CHANGES)] = world[index(first + born + CHANGES)]
        for at in range(first + into + 1, first + born + 1):
            world[index(at)] = 0.0


@compilable
def merge(known: Any, older: int, newer: int, into: int) -> None:
    """Two neighbouring births become one: in each bank weights are added and changes averaged; what is remembered of
    the arms is what the heavier birth does, both banks together."""
    world = known.world
    heavier = older
    if world[index(newer)] + world[index(newer + ROOM)] > world[index(older)] + world[index(older + ROOM)]:
        heavier = newer
    if heavier != into:
        move(known, heavier, into)
    for first in range(0, RUNS, ROOM):
        i = index(first + older)
        j = index(first + newer)
        w = world[i]
        v = world[j]
        whole = w + v
        mean = world[i + CHANGES]
        if whole > 0.0:
            mean = (w * mean + v * world[j + CHANGES]) / whole
        world[index(first + into)] = whole
        world[index(first + into + CHANGES)] = mean


@compilable
def move(known: Any, source: int, into: int) -> None:
    """Copy what a birth remembers of the arms to another place."""
    runs, changed = known.runs, known.changed
    for arm in range(len(known.wins)):
        i = index(arm * RUN_RECORD + source)
        j = index(arm * RUN_RECORD + into)
        runs[j] = runs[i]
        runs[j + LOSSES] = runs[i + LOSSES]
        runs[j + OLD] = runs[i + OLD]
        runs[j + (OLD + LOSSES)] = runs[i + (OLD + LOSSES)]
        changed[index(arm * ROOM + into)] = changed[index(arm * ROOM + source)]
