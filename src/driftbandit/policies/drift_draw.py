"""Drawing a hypothesis of `DriftTS` by its weight.

Weights are not normalised between births: a factor common to all changes nothing, and leaving it out takes a division
and a pass over everything from every round. They are added up in blocks of 8, and the sums of all blocks up to one are
kept, so that a draw first finds the block and then the place in it."""

from typing import Any

from driftbandit.policies.drift_bank import CHANGES, HYPOTHESES, MOVERS, RATES, ROOM, RUNS, SHARES
from driftbandit.primitives import compilable, index, where

SHARE = 1.0 / 4.0  # of one round in t, given to the movers each round, so that none is ever lost
TIDE = 1.0 / 4.0  # the tides' part of that and of the prior; between .03 and .5 it changes little

BLOCK = 8
BLOCKS = HYPOTHESES // BLOCK
RUN_BLOCKS = ROOM // BLOCK
MOVER_BLOCKS = MOVERS // BLOCK
TO_DRIFTER, TO_TIDE = (1.0 - TIDE) / RATES, TIDE / RATES


@compilable
def block_sum(world: Any, first: int) -> Any:
    """The sum of 8 neighbours, three additions deep."""
    i = index(first)
    return ((world[i] + world[i + 1]) + (world[i + 2] + world[i + 3])) + (
        (world[i + 4] + world[i + 5]) + (world[i + 6] + world[i + 7])
    )


@compilable
def changes_sums(world: Any, first: int, count: int) -> Any:
    """The sums of weight times number of changes, and of weight times its square, over neighbouring runs: four sums
    side by side."""
    a = 0.0 * world[0]
    b = a
    c = a
    d = a
    a2 = a
    b2 = a
    c2 = a
    d2 = a
    for slot in range(first, first + count, 4):
        i = index(slot)
        j = index(slot + CHANGES)
        wa = world[i] * world[j]
        wb = world[i + 1] * world[j + 1]
        wc = world[i + 2] * world[j + 2]
        wd = world[i + 3] * world[j + 3]
        a = a + wa
        b = b + wb
        c = c + wc
        d = d + wd
        a2 = a2 + wa * world[j]
        b2 = b2 + wb * world[j + 1]
        c2 = c2 + wc * world[j + 2]
        d2 = d2 + wd * world[j + 3]
    return (a + b) + (c + d), (a2 + b2) + (c2 + d2)


@compilable
def add_up(world: Any, cumulative: Any, slots: int) -> Any:
    """Renew the cumulative sums; the sum of all weights, and of all weights times numbers of changes.

    The three kinds are added up side by side: one long chain would take longer than all else."""
    used = (slots + (BLOCK - 1)) // BLOCK
    runs = 0.0 * world[0]
    split = runs
    moving = runs
    moving_seen = runs
    for i in range(used):
        runs = runs + block_sum(world, BLOCK * i)
        split = split + block_sum(world, ROOM + BLOCK * i)
        cumulative[i] = runs
        cumulative[RUN_BLOCKS + i] = split
    for i in range(used):
        cumulative[RUN_BLOCKS + i] += runs
    split = runs + split
    for i in range(used, RUN_BLOCKS):
        cumulative[i] = runs
        cumulative[RUN_BLOCKS + i] = split
    for i in range(MOVER_BLOCKS):
        moving = moving + block_sum(world, RUNS + BLOCK * i)
        moving_seen = moving_seen + block_sum(world, (CHANGES + RUNS) + BLOCK * i)
        cumulative[2 * RUN_BLOCKS + i] = split + moving
    seen, _ = changes_sums(world, 0, slots)
    split_seen, _ = changes_sums(world, ROOM, slots)
    return split + moving, (seen + split_seen) + moving_seen


@compilable
def share_out(world: Any, cumulative: Any, gift: Any, changes: Any) -> None:
    """Give every mover its part of a gift of weight, with its part of the givers' changes."""
    for g in range(len(world) - SHARES):  # MOVERS, but a loop of known length is unrolled instead of vectorised
        world[g + RUNS] += gift * world[g + SHARES]
        world[g + (RUNS + CHANGES)] += changes * world[g + SHARES]
    cumulative[2 * RUN_BLOCKS] += gift * (8.0 * TO_DRIFTER)
    cumulative[2 * RUN_BLOCKS + 1] += gift * (12.0 * TO_DRIFTER + 4.0 * TO_TIDE)
    cumulative[2 * RUN_BLOCKS + 2] += gift


@compilable
def draw_hypothesis(world: Any, cumulative: Any, u: Any) -> Any:
    """The first hypothesis whose cumulative weight exceeds u times the total, u uniform on [0, 1). Where rounding
    leaves none in its block, the last there with a positive weight."""
    target = u * cumulative[BLOCKS - 1]
    block = where(cumulative[0] <= target, 1, 0)
    for i in range(1, BLOCKS - 1):
        block = where(cumulative[i] <= target, i + 1, block)
    rest = target - where(block > 0, cumulative[index(max(block - 1, 0))], 0.0)
    first = index(block * BLOCK)
    mass = world[first]
    place = where((mass <= rest) & (world[first + 1] > 0.0), first + 1, first)
    for i in range(2, BLOCK):
        mass = mass + world[first + (i - 1)]
        place = where((mass <= rest) & (world[first + i] > 0.0), first + i, place)
    return place
