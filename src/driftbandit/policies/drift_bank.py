"""The hypotheses of `DriftTS`: where they stand, and how a reward weighs them.

*Runs* say that the world changed when they were born and has stood still since. What one knows of an arm is a
difference of cumulative sums, now less at birth, so a reward changes nothing in it but its weight. Bank A says that
every arm changed at the birth, bank S that each arm did so with some probability; each birth has a run in both.

*Movers* say that the means wander at a rate q: each for itself (drifters), or all together with the differences
between arms fixed (tides, a Kalman filter for a common level plus the arm's offset, covariances left out).

Compiled, loops over hypotheses take four at a time (`fours`): neighbours stand side by side, wins and
losses are kept rather than wins and pulls (then a reward of 0 reads the same numbers as one of 1 from another place),
and what has to be divided by is multiplied first and divided by once, since a division takes as long as twenty
products."""

from typing import Any

from driftbandit.policies.likelihood import logarithm_of, power, two_to_the
from driftbandit.primitives import at_once, bit_count, bit_length, compilable, exponent_and_rest, fours, index

EVERY = 16  # rounds between births of runs; 8 cost time and gain nothing, 64 cost 12 % in worlds that change fast
LEVELS = (
    19  # of the binary counter; what is older than 16 * 2**19 rounds is one run, so that memory is bounded for ever
)
ROOM = 40  # places of a bank of runs: two per level, one for the oldest, one for the newborn
RUNS = 2 * ROOM  # A, then S
RATES = 8  # rates q at which the world may wander, in units of reward variance per round: 8**-2, 8**-3, ..., 8**-9
FASTEST, APART = 1.0 / 64.0, 8.0  # the first, and the factor between; 4: 21 % more at rest, 33 % less in traps
TIDES = RUNS + RATES  # runs, drifters, tides
HYPOTHESES = TIDES + RATES
V0 = 1.0 / 4.0  # prior variance of a tide's level and of each offset, in units of a reward's; half or twice: 1.01
AT_ONCE = 4  # hypotheses a vector holds; the places of a bank are gone through in such steps

# In `world`: a weight for each hypothesis, then how many changes it has seen, then the levels of the tides and
# the variances of these.
CHANGES = HYPOTHESES
LEVEL = 2 * HYPOTHESES
LEVEL_SPREAD = LEVEL + RATES
WORLD = LEVEL_SPREAD + RATES

# In `runs`, for each arm: its wins at each birth, and the wins that a run of S counts from if the arm did not change
# then; then its losses likewise. In `changed`, for each arm: the probability that it did.
OLD = ROOM
LOSSES = 2 * ROOM
RUN_RECORD = 4 * ROOM

# In `movers`, for each arm: wins and losses by each drifter, its offset from each tide's level, the variance of that.
LOST = RATES
OFFSET = 2 * RATES
SPREAD = 3 * RATES
MOVER_RECORD = 4 * RATES


@compilable
def counter_at(births: int) -> int:
    """The binary counter that says which runs there are after so many births, the first run not counted: level l holds
    1 + (bit l) of them, for l below the top bit. The last level holds one run for ever."""
    count = 2 + births
    if (count >> (LEVELS + 1)) > 0:
        count = (1 << (LEVELS + 1)) + count % (1 << LEVELS)
    return count


@compilable
def runs_in(count: int) -> int:
    """How many runs a bank holds at this state of the counter."""
    return bit_length(count) - 2 + bit_count(count)


@compilable
def slots_at(t: int) -> int:
    """How many places of a bank are gone through after t rewards: those in use, and empty ones up to a whole vector."""
    return (runs_in(counter_at(t // EVERY)) + (AT_ONCE - 1)) // AT_ONCE * AT_ONCE


@compilable
def weigh_runs(known: Any, arm: Any, slots: int, y: Any, odd: bool) -> None:
    """Multiply the weights of both banks by the likelihood of reward y from an arm, and renew the probability that it
    changed with a run of S; `odd` says that y is neither 0 nor 1.

    A run of A says a / whole. One of S says both / wholes, of which `new` is what the arm's having changed says. All
    three quotients come from one division."""
    world, runs, changed = fours(known.world), fours(known.runs), fours(known.changed)
    lost = y == 0.0
    hit = arm * RUN_RECORD + (LOSSES if lost else 0)
    miss = arm * RUN_RECORD + (0 if lost else LOSSES)
    hits = 1.0 + (known.losses[arm] if lost else known.wins[arm])
    misses = 1.0 + (known.wins[arm] if lost else known.losses[arm])
    first = arm * ROOM
    for slot in range(0, slots, at_once()):
        i = index(hit + slot)
        j = index(miss + slot)
        k = index(first + slot)
        a = hits - runs[i]
        b = misses - runs[j]
        old_a = hits - runs[i + OLD]
        old_b = misses - runs[j + OLD]
        whole = a + b
        old_whole = old_a + old_b
        if odd:
            a, old_a = two_parts_of_win(a, b, old_a, old_b, y)
        new = changed[k] * (old_whole * a)
        both = new + (1.0 - changed[k]) * (whole * old_a)
        wholes = whole * old_whole
        per = 1.0 / (both * wholes)
        world[slot] = world[slot] * ((a * old_whole) * (both * per))
        world[slot + ROOM] = world[slot + ROOM] * (both * (both * per))
        changed[k] = min(new * (wholes * per), 1.0)


@compilable
def two_parts_of_win(a: Any, b: Any, c: Any, d: Any, y: Any) -> Any:
    """a**y b**(1 - y), and the same of c and d, by two divisions."""
    per = 1.0 / (b * d)
    k1, r1 = exponent_and_rest(a * (d * per))
    k2, r2 = exponent_and_rest(c * (b * per))
    g = 2.0 + r1
    h = 2.0 + r2
    per = 1.0 / (g * h)
    return (
        b * two_to_the(y * logarithm_of(k1, r1 * (h * per))),
        d * two_to_the(y * logarithm_of(k2, r2 * (g * per))),
    )


@compilable
def weigh_drifters(known: Any, arm: Any, idle: Any, y: Any, odd: bool) -> None:
    """Weigh the drifters and let them learn: what they know of the arm fades, and the reward is added; `idle` is the
    number of rounds since its last play.

    n pulls fade to n / fade with fade = 1 + q idle n, so that a win has the probability
    (1 + wins / fade) / (2 + n / fade): again all quotients from one division."""
    world, movers, rates = fours(known.world), fours(known.movers), fours(known.rates)
    lost = 1.0 - y
    first = arm * MOVER_RECORD
    for g in range(0, RATES, at_once()):
        at = index(first + g)
        wins = movers[at]
        losses = movers[at + LOST]
        fade = 1.0 + (rates[g] * idle) * (wins + losses)
        a = fade + wins
        b = fade + losses
        whole = a + b
        if odd:
            per = 1.0 / (whole * fade * b)
            part = b * power(a * ((whole * fade) * per), y)
            per = b * per
        else:
            per = 1.0 / (whole * fade)
            part = y * a + lost * b
        likelihood = part * (fade * per)
        world[g + RUNS] = world[g + RUNS] * likelihood
        stays = whole * per
        movers[at] = wins * stays + y
        movers[at + LOST] = losses * stays + lost


@compilable
def weigh_tides(known: Any, arm: Any, y: Any, odd: bool) -> None:
    """Weigh the tides and let them learn: a Kalman step. The prior is part of their spreads: with v the sum of those,
    at most 1/2, a win has the probability v + (1 - 2 v) m."""
    world, movers, rates = fours(known.world), fours(known.movers), fours(known.rates)
    lost = 1.0 - y
    sign = y - lost
    first = arm * MOVER_RECORD + OFFSET
    for g in range(0, RATES, at_once()):
        at = index(first + g)
        u = world[g + LEVEL_SPREAD] + rates[g]
        r = movers[at + (SPREAD - OFFSET)]
        m = world[g + LEVEL] + movers[at]
        whole = 1.0 + (u + r)
        v = min(u + r, 0.5)
        a = v + (1.0 - 2.0 * v) * min(max(m, 0.0), 1.0)
        if odd:
            b = 1.0 - a
            per = 1.0 / (whole * b)
            likelihood = b * power(a * (whole * per), y)
            per = b * per
        else:
            per = 1.0 / whole
            likelihood = lost + sign * a
        world[g + TIDES] = world[g + TIDES] * likelihood
        e = (y - m) * per
        world[g + LEVEL] = world[g + LEVEL] + u * e
        movers[at] = movers[at] + r * e
        world[g + LEVEL_SPREAD] = min(u * ((1.0 + r) * per), 1.0)
        movers[at + (SPREAD - OFFSET)] = r * ((1.0 + u) * per)
