"""New runs of `DriftTS`, and the binary counter that keeps their number to the logarithm of the time.

Every 16 rounds each bank gets a new run, which assumes that the environment has just changed. Its weight comes from the
older hypotheses at a rate that falls like 1 / t, and that is higher for those that have seen more changes: an
environment that has changed often is expected to change again. At the same time the drifts get a little of all weight,
so that none is ever lost. In all other rounds weights are multiplied by likelihoods and nothing else.

A run of level l stands for 2**l starts, and a level holds one or two runs. A new run that finds two on level 0 merges
them into one of level 1, and so on, as a counter carries. A bank is a row of runs, the oldest first and no place left
empty: the pairs that merge are the last of the row. How many there are follows from t. Runs of the two banks in the
same place start together and merge together, so that they share their evidence about the arms."""

from typing import Any

from driftbandit.core.primitives import compilable, index
from driftbandit.policies.drift.hypotheses import (
    A_SUMS,
    CHANGES,
    COLUMNS,
    DRIFT_RECORD,
    DRIFT_SUMS,
    EVERY,
    HYPOTHESES,
    LEVELS,
    LOSSES,
    LOST,
    OLD,
    PLACES,
    RATES,
    RUN_RECORD,
    RUNS,
    count_runs,
    run_counter,
)

# Constants, with the ratio of regret (docs/drift-ts/variants.md) that other values give in environments that change, in
# stationary ones, and in traps.
RATE = 1.0 / 16.0  # changes per unit of log time at first; 1/8: 1.03, 1.16, 0.94; 1/32: 1.01, 0.92, 1.17
GROW = 1.0 / 4.0  # and more for every change seen; 0: 1.06, 0.82, 1.64; 1: 1.05, 1.08, 1.00
SHARE = 1.0 / 4.0  # of all weight times EVERY / t, moves to drifts; 1/16: 0.98, 0.99, 0.98; 1: 1.07, 1.07, 0.86
COMMON_SHARE = 1.0 / 4.0  # common drifts' part of that and of the prior; 1/16: 0.99, 1.09, 1.05; 1/2: 1.03, 1.01, 1.08
RHO = 0.5  # probability that an arm changes with a new run of bank S; 1/4: 1.00, 1.12, 0.78; 3/4: 1.01, 0.87, 1.42
NOTHING = 1e-200  # a run of less weight gets weight 0
TINIEST = 1e-300  # a drift has more, unless a variant leaves out its kind; avoids a division by 0 there
TO_INDEPENDENT, TO_COMMON = (1.0 - COMMON_SHARE) / RATES, COMMON_SHARE / RATES


@compilable
def add_runs(known: Any, now: int, slots: int, whole: Any) -> None:
    """Move weight to a new run of each bank and to the drifts, and normalise. `whole` is the sum of all weights, which
    those in `cumulative` add up to."""
    shared, cumulative = known.shared, known.cumulative
    counter = run_counter(now // EVERY - 1)
    newest = count_runs(counter)
    write_new_run(known, newest, heaviest(shared, slots), now)
    given = EVERY * SHARE / now
    keep = 1.0 / (whole * (1.0 + given))
    hazard = EVERY / (1.0 + now)
    rate = keep * (1.0 - hazard * RATE)
    growth = keep * (hazard * GROW)
    drifting = 0.5 * cumulative[DRIFT_SUMS + 3]  # a new run's weight comes from its bank and from half of the drifts
    once, twice = moments_of_changes(shared, RUNS, HYPOTHESES)
    seen = once
    for bank in range(2):
        first = bank * PLACES
        b0 = cumulative[index(A_SUMS + 4 * bank + 3)] + drifting
        b1, b2 = moments_of_changes(shared, first, first + slots)
        seen = seen + b1
        b1 = b1 + 0.5 * once
        b2 = b2 + 0.5 * twice
        for slot in range(first, first + slots):
            at = index(slot)
            left = shared[at] * (rate - growth * shared[at + CHANGES])
            shared[at] = 0.0 if left < NOTHING else left
        flow = RATE * b0 + GROW * b1
        at = index(first + newest)
        shared[at] = keep * hazard * flow
        shared[at + CHANGES] = min(1.0 + (RATE * b1 + GROW * b2) / flow, 1.0 * (now // EVERY))
    merge_full_levels(known, counter, newest)
    share_with_drifts(known, rate, growth, keep * (given * whole), seen / whole)


@compilable
def moments_of_changes(shared: Any, first: int, end: int) -> Any:
    """The sums of weight times changes and of weight times changes squared, added up in four columns."""
    a, a2 = moments_of_column(shared, first, end)
    b, b2 = moments_of_column(shared, first + 1, end)
    c, c2 = moments_of_column(shared, first + 2, end)
    d, d2 = moments_of_column(shared, first + 3, end)
    return (a + b) + (c + d), (a2 + b2) + (c2 + d2)


@compilable
def moments_of_column(shared: Any, first: int, end: int) -> Any:
    """The same of every fourth place from `first` on."""
    once = 0.0
    twice = 0.0
    for i in range(first, end, COLUMNS):
        x = shared[i] * shared[i + CHANGES]
        once = once + x
        twice = twice + x * shared[i + CHANGES]
    return once, twice


@compilable
def share_with_drifts(known: Any, rate: Any, growth: Any, amount: Any, changes: Any) -> None:
    """Take from the drifts what goes to new runs, and give each its part of `amount`, the weight that all hypotheses
    give up; these have seen `changes` changes on average."""
    shared = known.shared
    for g in range(2 * len(known.rates)):  # a loop of known length is unrolled instead of vectorised
        seen = shared[g + (RUNS + CHANGES)]
        left = shared[g + RUNS] * (rate - growth * seen)
        given = amount * (TO_INDEPENDENT if g < RATES else TO_COMMON)
        shared[g + RUNS] = left + given
        shared[g + (RUNS + CHANGES)] = (left * seen + given * changes) / max(left + given, TINIEST)


@compilable
def heaviest(shared: Any, slots: int) -> int:
    """The heaviest hypothesis of bank S and the independent drifts."""
    found = PLACES
    most = shared[PLACES]
    for at in range(PLACES + 1, PLACES + slots):
        if shared[at] > most:
            most = shared[at]
            found = at
    for at in range(RUNS, RUNS + RATES):
        if shared[at] > most:
            most = shared[at]
            found = at
    return found


@compilable
def write_new_run(known: Any, newest: int, parent: int, now: int) -> None:
    """What the new runs remember of the arms. An arm that does not change with the new run of bank S keeps what the
    parent, the heaviest of S and the independent drifts, has about it."""
    runs, drifts = known.runs, known.drifts
    rate = known.rates[index(max(parent - RUNS, 0))]
    for arm in range(len(known.wins)):
        at = index(arm * RUN_RECORD + newest)
        wins = known.wins[arm]
        losses = known.losses[arm]
        runs[at] = wins
        runs[at + LOSSES] = losses
        old = index(at + OLD)
        place = index(arm * PLACES + (parent - PLACES))
        if parent >= RUNS:
            i = index(arm * DRIFT_RECORD + (parent - RUNS))
            fade = 1.0 + (rate * (now - known.last[arm])) * (drifts[i] + drifts[i + LOST])
            runs[old] = wins - drifts[i] / fade
            runs[old + LOSSES] = losses - drifts[i + LOST] / fade
        else:
            i = index(arm * RUN_RECORD + (parent - PLACES) + (0 if known.changed[place] >= 0.5 else OLD))
            runs[old] = runs[i]
            runs[old + LOSSES] = runs[i + LOSSES]
        known.changed[index(arm * PLACES + newest)] = RHO


@compilable
def merge_full_levels(known: Any, counter: int, newest: int) -> None:
    """Merge the pairs at the end of the row for which the newest run leaves no place, and close the gaps."""
    ones = 0
    while (counter >> ones) & 1 == 1 and (counter >> (ones + 1)) > 0:
        ones += 1
    if ones == 0:
        return
    into = newest - 2 * ones
    for pair in range(ones):
        older = newest - 2 * (ones - pair)
        merge_runs(known, older, older + 1, into)
        if ones == LEVELS and newest > 2 * ones:  # the last level is full: two become one forever
            if pair == 0:
                merge_runs(known, into - 1, into, into - 1)
                into -= 1
        into += 1
    copy_run(known, newest, into)
    shared = known.shared
    for first in range(0, RUNS, PLACES):
        shared[index(first + into)] = shared[index(first + newest)]
        shared[index(first + into + CHANGES)] = shared[index(first + newest + CHANGES)]
        for at in range(first + into + 1, first + newest + 1):
            shared[index(at)] = 0.0


@compilable
def merge_runs(known: Any, older: int, newer: int, into: int) -> None:
    """Two neighbouring runs become one: in each bank weights are added and changes averaged; the arms are remembered
    as by the heavier run, both banks together."""
    shared = known.shared
    heavier = older
    if shared[index(newer)] + shared[index(newer + PLACES)] > shared[index(older)] + shared[index(older + PLACES)]:
        heavier = newer
    if heavier != into:
        copy_run(known, heavier, into)
    for first in range(0, RUNS, PLACES):
        i = index(first + older)
        j = index(first + newer)
        w = shared[i]
        v = shared[j]
        whole = w + v
        mean = shared[i + CHANGES]
        if whole > 0.0:
            mean = (w * mean + v * shared[j + CHANGES]) / whole
        shared[index(first + into)] = whole
        shared[index(first + into + CHANGES)] = mean


@compilable
def copy_run(known: Any, source: int, into: int) -> None:
    """Copy what a run remembers of the arms to another place."""
    runs, changed = known.runs, known.changed
    for arm in range(len(known.wins)):
        i = index(arm * RUN_RECORD + source)
        j = index(arm * RUN_RECORD + into)
        runs[j] = runs[i]
        runs[j + LOSSES] = runs[i + LOSSES]
        runs[j + OLD] = runs[i + OLD]
        runs[j + (OLD + LOSSES)] = runs[i + (OLD + LOSSES)]
        changed[index(arm * PLACES + into)] = changed[index(arm * PLACES + source)]
