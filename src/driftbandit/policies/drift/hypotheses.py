"""The hypotheses of `DriftTS`: their layout in arrays, and how a reward changes their weights.

*Runs* assume that arms changed when the run started and have been stationary since. The evidence of a run about an arm
is a difference of cumulative sums, now less at its start, so a reward changes nothing in a run but its weight. Bank A
assumes that every arm changed at the start, bank S that each arm did with some probability; each start has a run in
both banks.

*Drifts* assume that the means wander at a rate q: each arm independently, or all together with the differences between
arms fixed (common drift, a Kalman filter for a common level plus the arm's offset, without covariances).

Wins and losses are kept rather than wins and pulls, so that a reward of 0 reads the same numbers as a reward of 1 from
other places. A division takes as long as twenty products, so factors are multiplied first and divided by once.

To choose, a hypothesis is drawn by its weight. Weights are not normalised in every round: a common factor changes
nothing, and leaving it out saves a division and a pass over all weights. They are added up bank by bank (A, S, drifts)
in four columns, the first being places 0, 4, 8, ... of the bank, so that no addition waits for the one before. A draw
finds the bank, the column and the row, in this order."""

import math
from typing import Any

from driftbandit.core.draws import _LOG
from driftbandit.core.primitives import (
    bit_count,
    bit_length,
    compilable,
    exponent_and_rest,
    index,
    nearest_whole,
    times_power_of_two,
)

EVERY = 16  # rounds between new runs; 8 takes longer and gains nothing, 64 costs 12% in environments that change fast
LEVELS = 19  # of the binary counter; everything older than 16 * 2**19 rounds is one run, which bounds the memory
PLACES = 40  # of a bank of runs: two per level, one for the oldest, one for the newest
RUNS = 2 * PLACES  # A, then S
RATES = 8  # rates q of drift, in units of reward variance per round: 8**-2, 8**-3, ..., 8**-9
FASTEST, APART = 1.0 / 64.0, 8.0  # the first, and the factor between; 4: 21% more if stationary, 33% less in traps
COMMON = RUNS + RATES  # runs, independent drifts, common drifts
HYPOTHESES = COMMON + RATES
V0 = 1.0 / 4.0  # prior variance of a common level and of each offset, in units of a reward's; half or twice: 1.01
COLUMNS = 4  # weights are added up in four columns

# In `shared`: a weight for each hypothesis, then how many changes it has seen, then the levels of the common drifts and
# the variances of these.
CHANGES = HYPOTHESES
LEVEL = 2 * HYPOTHESES
LEVEL_SPREAD = LEVEL + RATES
SHARED = LEVEL_SPREAD + RATES

# In `runs`, for each arm: its wins at each start, and the wins that a run of S counts from if the arm did not change
# then; then its losses likewise. In `changed`, for each arm: the probability that it did.
OLD = PLACES
LOSSES = 2 * PLACES
RUN_RECORD = 4 * PLACES

# In `drifts`, for each arm: wins and losses by each independent drift, its offset from each common level, and the
# variance of that.
LOST = RATES
OFFSET = 2 * RATES
SPREAD = 3 * RATES
DRIFT_RECORD = 4 * RATES


@compilable
def run_counter(starts: int) -> int:
    """The binary counter of the runs that exist after so many starts, the first run not counted: level l holds
    1 + (bit l) runs, for l below the top bit. The last level holds one run forever."""
    count = 2 + starts
    if (count >> (LEVELS + 1)) > 0:
        count = (1 << (LEVELS + 1)) + count % (1 << LEVELS)
    return count


@compilable
def count_runs(counter: int) -> int:
    """How many runs a bank holds at this state of the counter."""
    return bit_length(counter) - 2 + bit_count(counter)


@compilable
def count_slots(t: int) -> int:
    """How many places of a bank are processed after t rewards: the runs, and empty places up to a whole row."""
    return (count_runs(run_counter(t // EVERY)) + (COLUMNS - 1)) // COLUMNS * COLUMNS


@compilable
def weigh_runs(known: Any, arm: Any, slots: int, y: Any, fractional: bool) -> None:
    """Multiply the weights of both banks by the likelihood of reward y of an arm, and update the probability that the
    arm changed with a run of S. `fractional` means that y is neither 0 nor 1.

    The likelihood is a / whole under a run of A and both / wholes under one of S, where `new` is the part of `both`
    in which the arm changed. All three quotients come from one division."""
    shared, runs, changed = known.shared, known.runs, known.changed
    lost = y == 0.0
    hit = arm * RUN_RECORD + (LOSSES if lost else 0)
    miss = arm * RUN_RECORD + (0 if lost else LOSSES)
    hits = 1.0 + (known.losses[arm] if lost else known.wins[arm])
    misses = 1.0 + (known.wins[arm] if lost else known.losses[arm])
    first = arm * PLACES
    for slot in range(slots):
        i = index(hit + slot)
        j = index(miss + slot)
        k = index(first + slot)
        a = hits - runs[i]
        b = misses - runs[j]
        old_a = hits - runs[i + OLD]
        old_b = misses - runs[j + OLD]
        whole = a + b
        old_whole = old_a + old_b
        if fractional:
            a, old_a = blend_pairs(a, b, old_a, old_b, y)
        new = changed[k] * (old_whole * a)
        both = new + (1.0 - changed[k]) * (whole * old_a)
        wholes = whole * old_whole
        per = 1.0 / (both * wholes)
        shared[slot] = shared[slot] * ((a * old_whole) * (both * per))
        shared[slot + PLACES] = shared[slot + PLACES] * (both * (both * per))
        changed[k] = min(new * (wholes * per), 1.0)


@compilable
def weigh_independent_drifts(known: Any, arm: Any, idle: Any, y: Any, fractional: bool) -> None:
    """Weigh the independent drifts and let them learn: discount their evidence about the arm and add the reward; `idle`
    is the number of rounds since the arm was last played.

    n pulls are discounted to n / fade with fade = 1 + q idle n, so that a win has the probability
    (1 + wins / fade) / (2 + n / fade): again all quotients from one division."""
    shared, drifts, rates = known.shared, known.drifts, known.rates
    lost = 1.0 - y
    first = arm * DRIFT_RECORD
    for g in range(RATES):
        at = index(first + g)
        wins = drifts[at]
        losses = drifts[at + LOST]
        fade = 1.0 + (rates[g] * idle) * (wins + losses)
        a = fade + wins
        b = fade + losses
        whole = a + b
        if fractional:
            per = 1.0 / (whole * fade * b)
            part = b * power(a * ((whole * fade) * per), y)
            per = b * per
        else:
            per = 1.0 / (whole * fade)
            part = y * a + lost * b
        likelihood = part * (fade * per)
        shared[g + RUNS] = shared[g + RUNS] * likelihood
        stays = whole * per
        drifts[at] = wins * stays + y
        drifts[at + LOST] = losses * stays + lost


@compilable
def weigh_common_drifts(known: Any, arm: Any, y: Any, fractional: bool) -> None:
    """Weigh the common drifts and let them learn: a Kalman step. The prior is part of their variances: with v the sum
    of those, at most 1/2, a win has the probability v + (1 - 2 v) m."""
    shared, drifts, rates = known.shared, known.drifts, known.rates
    lost = 1.0 - y
    sign = y - lost
    first = arm * DRIFT_RECORD + OFFSET
    for g in range(RATES):
        at = index(first + g)
        u = shared[g + LEVEL_SPREAD] + rates[g]
        r = drifts[at + (SPREAD - OFFSET)]
        m = shared[g + LEVEL] + drifts[at]
        whole = 1.0 + (u + r)
        v = min(u + r, 0.5)
        a = v + (1.0 - 2.0 * v) * min(max(m, 0.0), 1.0)
        if fractional:
            b = 1.0 - a
            per = 1.0 / (whole * b)
            likelihood = b * power(a * (whole * per), y)
            per = b * per
        else:
            per = 1.0 / whole
            likelihood = lost + sign * a
        shared[g + COMMON] = shared[g + COMMON] * likelihood
        e = (y - m) * per
        shared[g + LEVEL] = shared[g + LEVEL] + u * e
        drifts[at] = drifts[at] + r * e
        shared[g + LEVEL_SPREAD] = min(u * ((1.0 + r) * per), 1.0)
        drifts[at + (SPREAD - OFFSET)] = r * ((1.0 + u) * per)


# ---- the likelihood p**y (1 - p)**(1 - y) of a reward between 0 and 1 ------------------------------------------------
# Logarithm and exponential are short polynomials of +, -, * and /, so that vectors compute many at a time with the same
# bits everywhere.

# 2**f for f between -1/2 and 1/2: interpolation at Chebyshev's points, relative error below 4e-16.
_POWER = (
    1.0, 0.69314718055995, 0.24022650695910097, 0.05550410866444772,
    0.009618129107606888, 0.0013333558230164974, 0.0001540353044173605, 1.5252657260200837e-05,
    1.321544258792169e-06, 1.0208690299958306e-07, 7.072585949269224e-09,
)  # fmt: skip
_LOG2_E = 1.4426950408889634
_LOG2 = tuple(_LOG2_E * c for c in (2.0, *_LOG))  # the logarithm of `core.draws` in units of log 2


@compilable
def log2_of(k: Any, s: Any) -> Any:
    """log2 of 2**k (1 + f), where s = f / (2 + f) and 1 + f lies between sqrt(1/2) and sqrt(2)."""
    z = s * s
    p = _LOG2[1] + z * (_LOG2[2] + z * (_LOG2[3] + z * (_LOG2[4] + z * (_LOG2[5] + z * _LOG2[6]))))
    return k + s * (_LOG2[0] + z * p)


@compilable
def two_to_the(x: Any) -> Any:
    """2**x for |x| < 1000, entry by entry."""
    k = nearest_whole(x)
    f = x - k
    p = _POWER[6] + f * (_POWER[7] + f * (_POWER[8] + f * (_POWER[9] + f * _POWER[10])))
    p = _POWER[1] + f * (_POWER[2] + f * (_POWER[3] + f * (_POWER[4] + f * (_POWER[5] + f * p))))
    p = _POWER[0] + f * p
    return times_power_of_two(p, k)


@compilable
def power(x: Any, y: Any) -> Any:
    """x**y for positive normal x and y between 0 and 1."""
    k, f = exponent_and_rest(x)
    return two_to_the(y * log2_of(k, f / (2.0 + f)))


@compilable
def blend_pairs(a: Any, b: Any, c: Any, d: Any, y: Any) -> Any:
    """a**y b**(1 - y), and the same of c and d, by two divisions."""
    per = 1.0 / (b * d)
    k1, r1 = exponent_and_rest(a * (d * per))
    k2, r2 = exponent_and_rest(c * (b * per))
    g = 2.0 + r1
    h = 2.0 + r2
    per = 1.0 / (g * h)
    return (
        b * two_to_the(y * log2_of(k1, r1 * (h * per))),
        d * two_to_the(y * log2_of(k2, r2 * (g * per))),
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
