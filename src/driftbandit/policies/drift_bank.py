"""The hypotheses of `DriftTS`: where they stand, and how a reward weighs them.

*Runs* say that the world changed when they were born and has stood still since. What one knows of an arm is a
difference of cumulative sums, now less at birth, so a reward changes nothing in it but its weight. Bank A says that
every arm changed at the birth, bank S that each arm did so with some probability.

*Movers* say that the means wander at a rate q: each for itself (drifters) or all together, with the differences
between arms fixed (tides). Both are one Kalman filter, for a common level plus the arm's offset from it, in which the
offsets wander or the level does; covariances are left out.

Whatever a loop over hypotheses reads stands in two arrays, one for the world and one for the arm: then the compiler
sees which numbers are neighbours and which cannot be the same, and takes four or eight hypotheses at a time."""

from typing import Any

from driftbandit.policies.likelihood import part_of_win
from driftbandit.primitives import bit_length, compilable, index

EVERY = 8  # rounds between births of runs; 64 are too coarse for worlds that change fast
LEVELS = 19  # of the binary counter; what is older than 8 * 2**19 rounds is one run, so that memory is bounded for ever
ROOM = 40  # slots of a bank of runs: two a level, one for the oldest, a spare one
RUNS = 2 * ROOM  # A, then S
RATES = 12  # rates q at which the world may wander: 4**-3, 4**-4, ..., 4**-14, in units of a reward's variance a round
MOVERS = 2 * RATES  # drifters, then tides
HYPOTHESES = RUNS + MOVERS
V0 = 1.0 / 4.0  # prior variance of a tide's level and of each offset, in units of a reward's
NEVER = 1e18  # a drifter's spread, 1 / (pulls' worth of evidence), of an arm it has not seen

# In `world`: a weight for each hypothesis, then how many changes it has seen (of a mover, times its weight), then the
# movers' levels, the variances of these and the movers' constants.
CHANGES = HYPOTHESES
LEVEL = 2 * HYPOTHESES
LEVEL_SPREAD = LEVEL + MOVERS
LEVEL_RATE = LEVEL_SPREAD + MOVERS  # what a round adds to the variance of the level
ARM_RATE = LEVEL_RATE + MOVERS  # and to that of an offset
UNSEEN = ARM_RATE + MOVERS  # pulls' worth of prior that the spread does not hold: 2 for drifters, 0 for tides
SHARES = UNSEEN + MOVERS  # a mover's part of what is given to all
WORLD = SHARES + MOVERS

# In `runs`, for each arm: its sum of rewards and its pulls at the birth of each run; for bank S also the probability
# that it changed with that birth, and the sums it counts from if it did not.
PULLS = RUNS
CHANGED = 2 * RUNS
OLD_SUM = CHANGED + ROOM
OLD_PULLS = OLD_SUM + ROOM
RUN_RECORD = OLD_PULLS + ROOM

# In `movers`, for each arm: its offset from each mover's level, and the variance of that.
SPREAD = MOVERS
MOVER_RECORD = 2 * MOVERS


@compilable
def slots_at(t: int) -> int:
    """How many slots of each bank of runs are in use after t rewards: two a level, of which the second may be empty."""
    return 2 * min(bit_length(2 + t // EVERY) - 1, LEVELS + 1)


@compilable
def weigh_runs(world: Any, runs: Any, arm: Any, slots: int, won: Any, played: Any, y: Any, odd: bool) -> None:
    """Multiply the weights of bank A by the likelihood of reward y; `won` and `played` are the arm's sums before it,
    `odd` says that y may be neither 0 nor 1.

    For 0 and 1, (1 - y) whole + (2 y - 1) a is whole - a and a to the last bit, and takes no choice."""
    first = arm * RUN_RECORD
    a_now = 1.0 + won
    whole_now = 2.0 + played
    lost = 1.0 - y
    sign = y - lost
    for slot in range(slots):
        at = index(first + slot)
        whole = whole_now - runs[at + PULLS]
        a = a_now - runs[at]
        world[slot] *= (part_of_win(a, whole - a, y) if odd else lost * whole + sign * a) / whole


@compilable
def weigh_split_runs(world: Any, runs: Any, arm: Any, slots: int, won: Any, played: Any, y: Any, odd: bool) -> None:
    """The same for bank S, where the arm changed with the run or goes on from older sums. Both likelihoods and the new
    probability of a change take one division together."""
    first = arm * RUN_RECORD
    a_now = 1.0 + won
    whole_now = 2.0 + played
    lost = 1.0 - y
    sign = y - lost
    for slot in range(slots):
        at = index(first + slot)
        whole = whole_now - runs[at + (PULLS + ROOM)]
        a = a_now - runs[at + ROOM]
        old_whole = whole_now - runs[at + OLD_PULLS]
        old_a = a_now - runs[at + OLD_SUM]
        changed = runs[at + CHANGED]
        new = changed * old_whole * (part_of_win(a, whole - a, y) if odd else lost * whole + sign * a)
        old_part = part_of_win(old_a, old_whole - old_a, y) if odd else lost * old_whole + sign * old_a
        old = (1.0 - changed) * whole * old_part
        both = new + old
        wholes = whole * old_whole
        per = 1.0 / (both * wholes)
        world[slot + ROOM] *= both * both * per
        runs[at + CHANGED] = min(new * (wholes * per), 1.0)


@compilable
def weigh_movers(world: Any, movers: Any, arm: Any, idle: Any, y: Any, odd: bool) -> None:
    """Weigh the movers and let them learn: a Kalman step; `idle` is the number of rounds since the arm's last play.

    A drifter that has n pulls' worth of evidence has the spread 1 / n and expects a win with probability (1 + n m) /
    (2 + n), which is v + (1 - 2 v) m with v = spread / (1 + 2 spread); in a tide, whose prior is part of its spreads, v
    is their sum."""
    first = arm * MOVER_RECORD
    lost = 1.0 - y
    sign = y - lost
    for g in range(MOVERS):
        at = index(first + g)
        u = world[g + LEVEL_SPREAD] + world[g + LEVEL_RATE]
        r = movers[at + SPREAD] + world[g + ARM_RATE] * idle
        m = world[g + LEVEL] + movers[at]
        unseen = 1.0 + world[g + UNSEEN] * r
        whole = 1.0 + u + r
        per = 1.0 / (whole * unseen)
        v = min((u + r) * (whole * per), 0.5)
        a = v + (1.0 - 2.0 * v) * min(max(m, 0.0), 1.0)
        likelihood = part_of_win(a, 1.0 - a, y) if odd else lost + sign * a
        world[g + RUNS] *= likelihood
        world[g + (CHANGES + RUNS)] *= likelihood
        gain = unseen * per
        e = (y - m) * gain
        world[g + LEVEL] += u * e
        movers[at] += r * e
        world[g + LEVEL_SPREAD] = min(u * (1.0 + r) * gain, 1.0)
        movers[at + SPREAD] = r * (1.0 + u) * gain
