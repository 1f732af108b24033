"""The latest rewards of every arm, stored so that the sum of an arm's last n is one subtraction: for subsampling duels.

Each reward is stored as the sum of its arm's rewards *before* it; the sum of the last n is then the arm's running total
less one stored number. Plain floats would not do: 0.1 + 0.2 + 0.3 - (0.1 + 0.2) is not 0.3, and a duel between equal
rewards, which the challenger must win, would be decided by rounding. So a sum is a pair of floats (value and rounding
error), good for 32 digits, and needs no rebasing however long a policy runs.

Arms share one pool of memory, in chunks of about sqrt(longest) places. An arm holds a chunk only while it has
rewards there, so that the whole takes the rewards held plus O(K sqrt(longest)), not K times the longest store."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.primitives import TIES, compilable, index
from driftbandit.core.validity import REALS, ROUNDS, fits, need


class Blocks(NamedTuple):
    """Rewards of all arms in chunks. Reward number j of an arm (numbered in order of arrival) lies in the chunk
    `table[row(j)]`."""

    count: Any  # rewards held, one per arm
    sums: Any  # their sum
    arrived: Any  # number of the next reward of each arm
    total: Any  # running total of each arm, upper part
    total_low: Any  # and lower part
    before: Any  # pool: the total before each reward, upper part
    before_low: Any  # and lower part
    table: Any  # which chunk holds an arm's rewards: arm * rows + (j >> shift) % rows
    free: Any  # the chunks not in use, after as many places as there are chunks in use
    shape: Any  # shift, rows - 1, chunks in use


def new_blocks(n_arms: int, entries: int, longest: int) -> Blocks:
    """Places for `entries` rewards in all and `longest` of one arm."""
    shift = max(2, math.ceil(math.log2(longest) / 2.0))
    size = 1 << shift
    rows = 1 << math.ceil(math.log2(longest // size + 2))
    chunks = entries // size + 2 * n_arms + 1  # an arm's first and last chunk may be partly empty
    return Blocks(
        np.zeros(n_arms, np.int64),
        np.zeros(n_arms),
        np.zeros(n_arms, np.int64),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(chunks * size),
        np.zeros(chunks * size),
        np.zeros(n_arms * rows, np.int64),
        np.arange(chunks, dtype=np.int64),
        np.array([shift, rows - 1, 0], np.int64),
    )


class Tail(NamedTuple):
    """The numbers needed to sum an arm's last rewards, read once for many duels."""

    count: Any
    arrived: Any
    total: Any
    total_low: Any
    row: Any  # where the arm's part of the table begins
    shift: Any
    last_row: Any


@compilable
def tail_of(blocks: Any, arm: int) -> Tail:
    """The tail of an arm's rewards."""
    shift = blocks.shape[0]
    last_row = blocks.shape[1]
    row = arm * (last_row + 1)
    return Tail(blocks.count[arm], blocks.arrived[arm], blocks.total[arm], blocks.total_low[arm], row, shift, last_row)


@compilable
def place(blocks: Any, tail: Any, j: int) -> Any:
    """Where in the pool reward number j of an arm lies."""
    chunk = blocks.table[index(tail.row + ((j >> tail.shift) & tail.last_row))]
    return (chunk << tail.shift) + (j & ((1 << tail.shift) - 1))


@compilable
def last_sum(blocks: Any, tail: Any, n: int) -> Any:
    """The sum of an arm's last n rewards, 1 <= n <= count: total less the sum before the first of them, rounded
    once."""
    at = index(place(blocks, tail, tail.arrived - n))
    before = blocks.before[at]
    upper = tail.total - before
    lower = tail.total_low - blocks.before_low[at]
    # Whole rewards have no lower parts. The upper parts' difference is then the answer, rounded once as it should be,
    # and the branch lets a processor go on with it without waiting for the chain below, which would give the same.
    if lower == 0.0:
        return upper
    # What rounding took from that difference, exactly (Knuth).
    back = upper - tail.total
    lost = (tail.total - (upper - back)) - (before + back)
    return upper + (lost + lower)


@compilable
def add_reward(blocks: Any, arm: int, reward: float) -> None:
    """Store a reward as the arm's latest."""
    tail = tail_of(blocks, arm)
    j = tail.arrived
    if j & ((1 << tail.shift) - 1) == 0:
        row = tail.row + ((j >> tail.shift) & tail.last_row)
        blocks.table[index(row)] = blocks.free[index(blocks.shape[2])]
        blocks.shape[2] += 1
    at = index(place(blocks, tail, j))
    blocks.before[at] = tail.total
    blocks.before_low[at] = tail.total_low
    upper = tail.total + reward
    back = upper - tail.total
    low = tail.total_low + ((tail.total - (upper - back)) + (reward - back))
    total = upper + low
    total_low = low - (total - upper)
    blocks.arrived[arm] = j + 1
    blocks.count[arm] = tail.count + 1
    blocks.total[arm] = total
    blocks.total_low[arm] = total_low
    longer = Tail(tail.count + 1, j + 1, total, total_low, tail.row, tail.shift, tail.last_row)
    blocks.sums[arm] = last_sum(blocks, longer, longer.count)


@compilable
def drop_oldest(blocks: Any, arm: int) -> None:
    """Forget the oldest reward held of an arm, and everything about the arm when it was the last."""
    tail = tail_of(blocks, arm)
    count = tail.count - 1
    j = tail.arrived - tail.count
    last_place = (1 << tail.shift) - 1
    blocks.count[arm] = count
    if count == 0 or j & last_place == last_place:
        blocks.shape[2] -= 1
        row = tail.row + ((j >> tail.shift) & tail.last_row)
        blocks.free[index(blocks.shape[2])] = blocks.table[index(row)]
    if count == 0:
        blocks.arrived[arm] = 0
        blocks.total[arm] = 0.0
        blocks.total_low[arm] = 0.0
        blocks.sums[arm] = 0.0
    else:
        blocks.sums[arm] = last_sum(blocks, tail, count)


@compilable
def take_turn(blocks: Any, recent: Any, cursor: Any, arm: int, reward: float) -> None:
    """Store a reward; if the ring `recent` of the arms of all rewards held is full, drop the oldest reward first."""
    at = index(cursor[0])
    gone = recent[at]
    if gone >= 0:
        drop_oldest(blocks, gone)
    add_reward(blocks, arm, reward)
    recent[at] = arm
    cursor[0] = at + 1 if at + 1 < len(recent) else 0


_MOMENT = 3  # the slot of the number by which a round of draws is recognised


@compilable
def moment(n_arms: int, rng: Any) -> Any:
    """A number that identifies a plan: the same for the same draws and the same number of arms.

    A plan costs K duels, and where every choice is followed by its reward `learn` would make the plan that `choose`
    has just made. So the plan is kept under this number, and anything learned in between makes it void (-1)."""
    return n_arms + rng.uniform(_MOMENT)


@compilable
def beats(blocks: Any, challenger: int, leader: Any) -> Any:
    """Whether the challenger's mean is at least that of the leader's last rewards, as many as the challenger has. Both
    must have some.

    `leader` is the leader's `Tail`. With equal numbers, sums are compared instead of means, which saves the rounding
    of two divisions."""
    mine = blocks.count[challenger]
    if mine <= leader.count:
        return blocks.sums[challenger] >= last_sum(blocks, leader, mine)
    return blocks.sums[challenger] / mine >= last_sum(blocks, leader, leader.count) / leader.count


@compilable
def elect(eligible: Any, counts: Any, sums: Any, previous: int, rng: Any) -> int:
    """The eligible arm with the largest count, then the largest sum; then the previous leader, then a fair draw."""
    leader = -1
    ties = 0
    kept = False
    for k in range(len(counts)):
        if eligible[k] == 0:
            continue
        if leader < 0 or counts[k] > counts[leader] or (counts[k] == counts[leader] and sums[k] > sums[leader]):
            leader = k
            ties = 1
            kept = k == previous
        elif counts[k] == counts[leader] and sums[k] == sums[leader]:
            ties += 1
            kept = kept or k == previous
    if kept:
        return previous
    if ties == 1:
        return leader
    skip = int(rng.uniform(TIES) * ties)
    for k in range(leader, len(counts)):
        if eligible[k] != 0 and counts[k] == counts[leader] and sums[k] == sums[leader]:
            if skip == 0:
                return k
            skip -= 1
    return leader


# ---- what a snapshot may hold ----------------------------------------------------------------------------------------


def blocks_fit(blocks: Any) -> None:
    """Refuse blocks whose chunks are not each either one arm's or free."""
    fits(blocks, count=ROUNDS, arrived=ROUNDS, sums=REALS, total=REALS, total_low=REALS, before=REALS, before_low=REALS)
    need((blocks.count <= blocks.arrived).all(), "an arm holds no more rewards than it got")
    n_arms, chunks = len(blocks.count), len(blocks.free)
    shift, last_row, used = (int(number) for number in blocks.shape)
    shaped = 0 <= shift < 40 and len(blocks.before) == chunks << shift and n_arms * (last_row + 1) == len(blocks.table)
    need(shaped and 0 <= used <= chunks, "the memory of rewards has the shape it began with")
    taken: list[int] = []
    for arm in range(n_arms):
        held, arrived = int(blocks.count[arm]), int(blocks.arrived[arm])
        need(held > 0 or arrived == 0, "an arm without rewards begins anew")
        if held > 0:
            rows = range((arrived - held) >> shift, ((arrived - 1) >> shift) + 1)
            need(len(rows) <= last_row + 1, "an arm holds no more rewards than it has places for")
            taken += [int(blocks.table[arm * (last_row + 1) + (row & last_row)]) for row in rows]
    both = np.sort(np.concatenate([np.array(taken, np.int64), blocks.free[used:]]))
    need(len(taken) == used and np.array_equal(both, np.arange(chunks)), "each piece of memory is one arm's or free")


def need_held_plays(blocks: Any, recent: Any, cursor: Any) -> None:
    """Refuse blocks that do not hold exactly the plays in the ring `recent`."""
    blocks_fit(blocks)
    n_arms = len(blocks.count)
    need(((recent >= -1) & (recent < n_arms)).all(), "the ring of plays holds arms")
    held = np.bincount(recent[recent >= 0], minlength=n_arms)
    need(np.array_equal(held, blocks.count), "an arm holds as many rewards as it has plays in the ring")
    need(0 <= cursor[0] < len(recent), "the next play has a place in the ring")
    filled = int((recent >= 0).sum())
    in_order = (recent[:filled] >= 0).all()
    need(in_order and (filled == len(recent) or cursor[0] == filled), "the ring is filled from its beginning")


def queue_fits(queue: Any, n_arms: int) -> None:
    """Refuse plays of a round that do not belong to it."""
    done, plays, planned = (int(number) for number in queue)
    need(0 <= done <= plays <= n_arms and 0 <= planned <= n_arms, "a round plays each arm at most once")
