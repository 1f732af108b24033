"""New runs for `DriftTS`, and the shelves of a binary counter that keep their number to the logarithm of the time.

Every 8 rounds each bank of runs gets a new one, which says that the world has just changed. Its weight flows from the
older hypotheses at a rate that falls like 1 / t, and is higher for those that have seen more changes: a world that has
changed often will do so again.

Level l of a bank has the slots 2l and 2l + 1, older run first, and each run on it stands for 2**l births. A new run
that finds level 0 full pushes its two runs as one onto level 1, and so on, as a counter carries. Which slots are in use
follows from the clock alone, so runs of a simulation in lockstep agree on it."""

from typing import Any

from driftbandit.policies.drift_bank import (
    ARM_RATE,
    CHANGED,
    CHANGES,
    EVERY,
    LEVELS,
    MOVER_RECORD,
    MOVERS,
    OLD_PULLS,
    OLD_SUM,
    PULLS,
    RATES,
    ROOM,
    RUN_RECORD,
    RUNS,
    SPREAD,
)
from driftbandit.policies.drift_draw import BLOCK, RUN_BLOCKS, block_sum, changes_sums
from driftbandit.primitives import compilable, index, where

RATE = 1.0 / 16.0  # changes a unit of log time to begin with: 1/8 gives stationary 131 and trap 997, 1/16 102 and 1,132
GROW = 1.0 / 4.0  # and more for every change seen: 0 leaves a heavy tail, 1 starves the drifters
RHO = 0.5  # probability that an arm changes with a new run of bank S
NOTHING = 1e-200  # a run of less weight is given none


@compilable
def give_birth(known: Any, now: int, slots: int, keep: Any) -> None:
    """Let weight flow into a new run of each bank. `keep` is what every weight is multiplied by to become a
    probability that leaves room for the movers' gift."""
    world = known.world
    inherit(known, now, slots)
    hazard = EVERY / (1.0 + now)
    moving = 0.0 * keep
    once = moving
    twice = moving
    for g in range(MOVERS):
        weight = world[g + RUNS]
        weighed = world[g + (RUNS + CHANGES)]
        seen = weighed / weight
        moving = moving + weight
        once = once + weighed
        twice = twice + weighed * seen
        stays = keep * (1.0 - hazard * (RATE + GROW * seen))
        world[g + RUNS] = weight * stays
        world[g + (RUNS + CHANGES)] = weighed * stays
    for bank in range(2):
        first = bank * ROOM
        b0 = 0.5 * moving
        for block in range(RUN_BLOCKS):
            b0 = b0 + block_sum(world, first + BLOCK * block)
        b1, b2 = changes_sums(world, first, slots)
        b1 = b1 + 0.5 * once
        b2 = b2 + 0.5 * twice
        for slot in range(first, first + slots):
            at = index(slot)
            left = world[at] * (keep * (1.0 - hazard * (RATE + GROW * world[at + CHANGES])))
            world[at] = where(left < NOTHING, 0.0, left)
        flow = RATE * b0 + GROW * b1
        born = index(shelve(known, bank, now // EVERY))
        world[born] = keep * hazard * flow
        world[born + CHANGES] = min(1.0 + (RATE * b1 + GROW * b2) / flow, 1.0 * (now // EVERY))
        for arm in range(len(known.sums)):
            at = arm * RUN_RECORD + born
            known.runs[at] = known.sums[arm]
            known.runs[at + PULLS] = known.pulls[arm]
            if bank == 1:
                known.runs[at + (CHANGED - ROOM)] = RHO
                known.runs[at + (OLD_SUM - ROOM)] = known.heir_sums[arm]
                known.runs[at + (OLD_PULLS - ROOM)] = known.heir_pulls[arm]


@compilable
def inherit(known: Any, now: int, slots: int) -> None:
    """What arms that do not change with the new run of bank S keep: what the heaviest hypothesis of S and the drifters
    knows of them."""
    world = known.world
    most = world[ROOM]
    heir = where(world[ROOM + 1] > most, ROOM + 1, ROOM)
    most = max(most, world[ROOM + 1])
    for slot in range(2, slots):
        weight = world[ROOM + slot]
        heir = where(weight > most, ROOM + slot, heir)
        most = max(most, weight)
    for g in range(RATES):
        weight = world[RUNS + g]
        heir = where(weight > most, RUNS + g, heir)
        most = max(most, weight)
    drifts = heir >= RUNS
    run = min(heir, RUNS - 1)
    g = max(heir - RUNS, 0)
    rate = world[index(g + ARM_RATE)]
    for arm in range(len(known.sums)):
        at = index(arm * RUN_RECORD + run)
        old = index(at - ROOM)
        moving = index(arm * MOVER_RECORD + g)
        pulls = 1.0 / (known.movers[moving + SPREAD] + rate * (now - known.last[arm]))
        new = known.runs[old + CHANGED] >= 0.5
        run_sum = where(new, known.runs[at], known.runs[old + OLD_SUM])
        run_pulls = where(new, known.runs[at + PULLS], known.runs[old + OLD_PULLS])
        known.heir_sums[arm] = where(drifts, known.sums[arm] - pulls * known.movers[moving], run_sum)
        known.heir_pulls[arm] = where(drifts, known.pulls[arm] - pulls, run_pulls)


@compilable
def shelve(known: Any, bank: int, births: int) -> int:
    """Make room for a new run of a bank that has had so many, the first run included; the position for it."""
    count = 1 + births
    if (count >> (LEVELS + 1)) > 0:  # the last level holds one run for ever
        count = (1 << (LEVELS + 1)) + count % (1 << LEVELS)
    ones = 0
    while (count >> ones) & 1 == 1 and (count >> (ones + 1)) > 0:
        ones += 1
    first = bank * ROOM
    exists = (count >> (ones + 1)) > 0
    for n in range(ones):
        level = ones - 1 - n
        into = 2 * (level + 1) + (1 if n == 0 and exists else 0)
        merge(known, first + 2 * level, first + into)
        if into == 2 * LEVELS + 1:
            merge(known, first + 2 * LEVELS, first + 2 * LEVELS)
    return first + (1 if ones == 0 else 0)


@compilable
def merge(known: Any, pair: int, into: int) -> None:
    """Two neighbours become one run: weights added, changes averaged, all else the heavier's."""
    world, runs = known.world, known.runs
    older = index(pair)
    newer = index(pair + 1)
    here = index(into)
    w = world[older]
    v = world[newer]
    heavier = w >= v
    whole = w + v
    mean = (w * world[older + CHANGES] + v * world[newer + CHANGES]) / where(whole > 0.0, whole, 1.0)
    world[older] = 0.0
    world[newer] = 0.0
    world[here] = whole
    world[here + CHANGES] = mean
    for arm in range(len(known.sums)):
        row = arm * RUN_RECORD
        for field in range(2):
            at = index(row + field * PULLS)
            runs[at + here] = where(heavier, runs[at + older], runs[at + newer])
        if pair >= ROOM:
            for field in range(3):
                at = index(row + (CHANGED - ROOM) + field * ROOM)
                runs[at + here] = where(heavier, runs[at + older], runs[at + newer])
