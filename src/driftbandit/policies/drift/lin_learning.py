"""How `DriftLinTS` learns: the units of rewards and features, a second look at the first rewards, and every 16 rounds
a renewal of the hypotheses: new runs, merged runs, and priors fitted to the rewards."""

import math
from typing import Any

from driftbandit.core.checks import LARGEST_REWARD
from driftbandit.core.primitives import WIDTH, compilable, index
from driftbandit.policies.drift.regressions import (
    BLOCKS,
    CENTRE,
    CLASSES,
    EVERY,
    FOURTH,
    HYPOTHESES,
    MEAN,
    N_CUT,
    N_RUNS,
    NOISE,
    ORIGIN,
    PAIRS,
    RATES,
    RUNS,
    TOP,
    VARIANCE,
    WITHIN,
    absorb,
    add_arrow,
    live,
    measure,
    multiply_pairs,
    place,
    scratch,
    set_arrow,
    write,
)

LARGEST = LARGEST_REWARD  # those of simulations can be larger, and are cut
CUT = 3.0  # rewards are cut at 3 sqrt(fourth moment / variance); 1.07 without, 7.3 with outliers
FAR = 3.0  # times the third largest distance from the median of the first 16 rewards: beyond that they are cut
FARTHER = 8.0  # the same of features; later on, times farther from its mean than ever a feature is cut
MEMORY = 1.0 / 512.0  # least share of a new error in the estimate of the noise; 1.06 without
COMMON = 1.0 / 16.0  # share of common drifts in the prior and in every renewal; 1.19 without them
KEPT = 0.25  # groups that the former variance of a coefficient counts for in the estimate; 1.13 without estimates
DEAD = 1e-25  # the weight below which a run is dropped


@compilable
def learn_rewards(state: Any, t: int, arm: Any, reward: Any, features: Any) -> None:
    """Learn a reward after t others.

    After 1, 2, 4, 8 and 16 rewards the hypotheses begin anew, in the units that all rewards show, and learn these from
    the first on. If one or two of the first 16 rewards, or of a feature, lie absurdly far from the others, they are
    cut. All is then forgotten and the 16 are learned again, less the first reward that was not cut."""
    y = min(max(reward, -LARGEST), LARGEST)
    if t == 0:
        state.numbers[ORIGIN] = y
        for j in range(1, len(state.x)):
            state.origin[j] = features[j - 1]
    take_features(state, t, features, 0)
    if t < EVERY:
        state.first_reward[t] = y  # as it is: a difference from an absurd first reward would lose its last digits
    origin = state.numbers[ORIGIN]  # still to be subtracted from the rewards that are kept
    y -= origin
    group = arm if len(state.last) == len(state.scores) else 0
    again, n = False, t
    while n <= t:
        if again:
            group = recall(state.x, state.first_x, state.first_group, n)
            y = state.first_reward[n]
        y = note_reward(state, n, group, y, origin)
        n += 1
        note_features(state, n)
        i, anew = n - 1, False
        while i < n:  # one reward, or all so far if the hypotheses begin anew
            if anew:
                group = recall(state.x, state.first_x, state.first_group, i)
                y = state.first_reward[i] - origin
            i += 1
            error = absorb(state, i, group, y)
            if not anew:
                note_error(state.numbers, n, y, error)
                if n % EVERY == 0 or n == 1 or n == 2 or n == 4 or n == 8:
                    set_priors(state, n, origin)
                    renew(state, n)
                    if n <= EVERY:
                        i, anew = 0, True
        if n == EVERY and not again:
            moved = subtract_origin(state.numbers, state.first_reward, scratch(state.forecast), state.gain)
            origin = 0.0
            cut = cut_far(state.first_reward, 0, 1, FAR, state.gain)
            state.counts[N_CUT] += cut
            for j in range(1, len(state.x)):
                cut += cut_far(state.first_x, j, len(state.x), FARTHER, state.gain)
            if cut > 0 or moved:
                n, again = 0, True
                forget(state)


@compilable
def note_reward(state: Any, n: int, group: Any, y: Any, origin: Any) -> Any:
    """Cut a reward if it is absurd, and count it in the moments; the result is the reward as it is learned. Of the
    first ones, two of one group in succession show the noise. `origin` is to be subtracted from those that are kept."""
    numbers, size = state.numbers, len(state.x)
    if n >= EVERY and numbers[VARIANCE] > 0.0:
        most = CUT * math.sqrt(numbers[FOURTH] / numbers[VARIANCE])
        if abs(y - numbers[MEAN]) > most:
            state.counts[N_CUT] += 1
        y = min(max(y, numbers[MEAN] - most), numbers[MEAN] + most)
    share = 4.0 / (4.0 + n)
    error = y - numbers[MEAN]
    square = error * error
    numbers[MEAN] += share * error
    numbers[VARIANCE] = (1.0 - share) * (numbers[VARIANCE] + share * square)
    numbers[FOURTH] = (1.0 - share) * (numbers[FOURTH] + share * (square * square))
    if n > 0:
        numbers[TOP] = max(numbers[TOP], square)
    if n < EVERY:
        before = n - 1
        while before >= 0 and state.first_group[before] != group:
            before -= 1
        if before >= 0:
            apart = y - (state.first_reward[before] - origin)
            state.counts[PAIRS] += 1
            numbers[WITHIN] += (apart * apart / 2.0 - numbers[WITHIN]) / state.counts[PAIRS]
        for i in range(size):
            state.first_x[n * size + i] = state.x[i]
        state.first_group[n] = group
    return y


@compilable
def recall(x: Any, first_x: Any, first_group: Any, n: int) -> Any:
    """Take the features of one of the first rewards; the result is its group."""
    for j in range(len(x)):
        x[j] = first_x[n * len(x) + j]
    return first_group[n]


@compilable
def note_error(numbers: Any, t: int, y: Any, error: Any) -> None:
    """Count the squared error of round t in the noise; early on, count the reward in the prior mean."""
    noise = numbers[NOISE]
    if noise > 0.0:
        error = min(error, noise * (1.0 + t) / 2.0)
    if t > 1:
        noise += (error - noise) * max(min(1.0, 2.0 / t), MEMORY)
    numbers[NOISE] = max(noise, numbers[TOP] * 2.0**-40)
    if t <= 2 * EVERY:
        numbers[CENTRE] += (y - numbers[CENTRE]) / t


@compilable
def take_features(state: Any, t: int, features: Any, first: Any) -> None:
    """Write the features, less the first ones, behind the 1; a difference that is only rounding counts as 0. After 16
    rewards, a feature that lies absurdly far from its mean is cut."""
    x, origin, centre = state.x, state.origin, state.centre
    for j in range(1, len(x)):
        away = features[first + j - 1] - origin[j]
        x[j] = 0.0 if abs(away) <= 2.0**-40 * abs(origin[j]) else away
        most = FARTHER * max(state.reach[j], math.sqrt(state.known[j]))
        if t >= EVERY and most > 0.0:
            x[j] = min(max(x[j], centre[j] - most), centre[j] + most)


@compilable
def note_features(state: Any, t: int) -> None:
    """Count the features of round t. Where one moves for the first time, no reward has shown its effect yet, and every
    hypothesis becomes uncertain of it."""
    x, centre, reach, size = state.x, state.centre, state.reach, len(state.prior)
    for j in range(1, len(x)):
        away = x[j] - centre[j]
        if t > EVERY and away != 0.0 and max(reach[j], state.known[j]) == 0.0:
            variance = 1.0 / (away * away * max((len(x) - 1.0) / t, 0.125))
            for h in range(len(state.last) * HYPOTHESES):
                add_arrow(state.covariance, place(h, size), WIDTH, j, centre[j], variance)
        if t > 1:
            reach[j] = max(reach[j], abs(away))
        centre[j] += away / t
        state.variance[j] += (away * (x[j] - centre[j]) - state.variance[j]) / t


@compilable
def cut_far(values: Any, first: int, step: int, factor: Any, ordered: Any) -> Any:
    """Cut those of 16 values that lie absurdly far from their median, `factor` times as far as the third farthest; the
    result is how many. Nothing is cut where 14 of them are equal."""
    middle = 0.0
    for look in range(2):
        for i in range(EVERY):  # sorted, first the values, then their distances from the median
            value = values[first + i * step]
            value = value if look == 0 else abs(value - middle)
            at = i
            while at > 0 and ordered[at - 1] > value:
                ordered[at] = ordered[at - 1]
                at -= 1
            ordered[at] = value
        if look == 0:
            middle = (ordered[EVERY // 2 - 1] + ordered[EVERY // 2]) / 2.0
    far, cut = factor * ordered[EVERY - 3], 0
    for i in range(EVERY):
        value = values[first + i * step]
        if far > 0.0 and abs(value - middle) > far:
            values[first + i * step] = min(max(value, middle - far), middle + far)
            cut += 1
    return cut


@compilable
def subtract_origin(numbers: Any, rewards: Any, kept: Any, ordered: Any) -> bool:
    """Subtract from the first 16 rewards the first of them that is not absurdly far away; the result is whether that is
    another one than so far."""
    for i in range(EVERY):
        kept[i] = rewards[i]
    cut_far(kept, 0, 1, FAR, ordered)
    first = 0
    while kept[first] != rewards[first]:
        first += 1
    numbers[ORIGIN] = rewards[first]
    for i in range(EVERY):
        rewards[i] -= numbers[ORIGIN]
    return first > 0


@compilable
def forget(state: Any) -> None:
    """Forget everything but the first reward and the first features. The hypotheses begin anew with the next reward."""
    for i in range(1, len(state.numbers)):
        state.numbers[i] = 0.0
    state.counts[PAIRS] = 0
    for j in range(len(state.x)):
        state.centre[j] = 0.0
        state.variance[j] = 0.0
        state.reach[j] = 0.0


# ---- renewal ---------------------------------------------------------------------------------------------------------


@compilable
def renew(state: Any, t: int) -> None:
    """Add a run that begins now, merge old ones, and give every drift a little weight. Up to round
    16 all hypotheses begin anew instead."""
    counts, weights, slots, began, age_class = state.counts, state.weights, state.slots, state.began, state.age_class
    anew, part = t <= EVERY, 1.0 / (1.0 + t)
    given = 0.0
    for i in range(RUNS + counts[N_RUNS]):
        h = live(slots, i)
        if anew:
            weights[h] = 0.0
        elif i < RATES or i >= RUNS:
            given += part * weights[h]
            weights[h] *= 1.0 - part
    if anew:
        part = RATES / (1.0 + RATES)
        given = 1.0 / (1.0 + RATES)
        for group in range(len(state.last)):
            state.last[group] = 0.0
    for run in range(counts[N_RUNS] - 1, -1, -1):
        if weights[slots[run]] < DEAD:
            remove_run(weights, counts, slots, began, age_class, run)
    new = RUNS  # the place of the new run: the first free one
    while weights[new] > 0.0:
        new += 1
    weights[new] = given
    slots[counts[N_RUNS]] = new
    began[counts[N_RUNS]] = 0 if anew else t
    age_class[counts[N_RUNS]] = 0
    counts[N_RUNS] += 1
    merge_runs(weights, counts, slots, began, age_class)
    counts[BLOCKS] = RUNS // WIDTH
    for h in range(HYPOTHESES):
        common = RATES <= h < RUNS
        added = 0.0 if h >= RUNS else (COMMON if common else 1.0 - COMMON) * part / RATES
        if not anew:
            weights[h] *= 1.0 - part
        if h == new or (anew and h < RUNS) or (common and weights[h] < added / 10.0):
            for group in range(len(state.last)):
                refresh(state, h, group)
            if common:
                state.level[h - RATES] = state.numbers[CENTRE]
                state.level_variance[h - RATES] = 1.0
                state.fade[h - RATES] = 1.0
        weights[h] += added
        if weights[h] > 0.0:
            counts[BLOCKS] = max(counts[BLOCKS], h // WIDTH + 1)


@compilable
def refresh(state: Any, h: Any, group: Any) -> None:
    """Let a hypothesis be as uncertain of a group as before the first reward."""
    n, size = len(state.x), len(state.prior)
    at, first = index(group * HYPOTHESES * n + place(h, n)), index(group * HYPOTHESES * size + place(h, size))
    for i in range(n):
        state.mean[at + i * WIDTH] = 0.0
    write(state.covariance, first, WIDTH, state.prior)
    if RATES <= h < RUNS:
        at = index(group * RATES * n + place(h - RATES, n))
        for i in range(n):
            state.link[at + i * WIDTH] = 0.0
    else:
        state.mean[at] = state.numbers[CENTRE]


@compilable
def remove_run(weights: Any, counts: Any, slots: Any, began: Any, age_class: Any, run: int) -> None:
    """Free the place of a run; the younger ones move up in the order, not in the blocks."""
    weights[slots[run]] = 0.0
    counts[N_RUNS] -= 1
    for i in range(run, counts[N_RUNS]):
        slots[i] = slots[i + 1]
        began[i] = began[i + 1]
        age_class[i] = age_class[i + 1]


@compilable
def merge_runs(weights: Any, counts: Any, slots: Any, began: Any, age_class: Any) -> None:
    """Of three runs of an age class the two oldest become one of the next: the heavier, with the weight of both."""
    stop = counts[N_RUNS]
    for age in range(CLASSES):
        first = stop
        while first > 0 and age_class[first - 1] == age:
            first -= 1
        if stop - first < 3:
            break
        older, newer = slots[first], slots[first + 1]
        lighter = first if weights[newer] > weights[older] else first + 1
        weight = weights[older] + weights[newer]
        remove_run(weights, counts, slots, began, age_class, lighter)
        weights[slots[first]] = weight
        age_class[first] = min(age + 1, CLASSES - 1)
        stop = first + 1


# ---- priors ----------------------------------------------------------------------------------------------------------


@compilable
def set_priors(state: Any, t: int, origin: Any) -> None:
    """Set the covariance by which own drifts move, in which each coefficient moves predictions by about one noise
    deviation, and the prior covariance, which is fitted to the rewards."""
    n, own = len(state.x), state.own
    own[0] = 1.0
    for j in range(1, n):
        size = max((n - 1.0) * max(state.variance[j], state.known[j]), state.reach[j] * state.reach[j] / 8.0)
        own[j] = 1.0 / size if size > 0.0 else 0.0
    set_arrow(state.wander, state.centre, own)
    if t <= EVERY:
        fit_first(state.numbers, own, state.first_reward, origin, 1.0 * state.counts[PAIRS], t)
    elif state.numbers[NOISE] > 0.0:
        fit_prior(state)
    set_arrow(state.prior, state.centre, own)
    if t > EVERY and len(state.last) < len(state.scores):
        for i in range(len(state.prior)):
            state.wander[i] = state.prior[i]


@compilable
def fit_first(numbers: Any, own: Any, rewards: Any, origin: Any, pairs: Any, t: int) -> None:
    """Estimate the noise from the first t rewards less the origin, and multiply the variances of the prior by a factor
    accordingly."""
    middle = 0.0
    for i in range(t):
        middle += (rewards[i] - origin) / t
    variance = 0.0
    for i in range(t):
        away = rewards[i] - origin - middle
        variance += away * away / t
    if numbers[NOISE] > 0.0 and pairs > 0.0:
        least = max(numbers[WITHIN] * (1.0 + 4.0 / pairs), variance / (pairs * pairs))
        numbers[NOISE] = min(numbers[NOISE], least)
    factor = max(1.0, variance / numbers[NOISE] - 1.0) if numbers[NOISE] > 0.0 else 1.0
    for j in range(len(own)):
        own[j] *= factor


@compilable
def fit_prior(state: Any) -> None:
    """Set the prior mean and variances by what the heaviest hypothesis has learned of all groups."""
    numbers, own, n, groups = state.numbers, state.own, len(state.x), len(state.last)
    noise, heaviest, middle, size = numbers[NOISE], 0, 0.0, len(state.prior)
    for h in range(1, HYPOTHESES):
        if state.weights[h] > state.weights[heaviest]:
            heaviest = h
    for j in range(n):
        own[j] *= KEPT
        state.x[j] = state.centre[j] if j > 0 else 1.0
    measure(state, heaviest, multiply_pairs(state.x, state.factor), 0, groups)
    for group in range(groups):
        middle += state.middles[group]
        away = state.middles[group] - numbers[CENTRE]
        own[0] += away * away / noise + state.variances[group]
        first = index(group * HYPOTHESES * n + place(heaviest, n))
        diagonal = index(group * HYPOTHESES * size + place(heaviest, size))
        for j in range(1, n):
            if own[j] > 0.0:
                effect = state.mean[first + j * WIDTH]
                own[j] += effect * effect / noise + state.covariance[diagonal + j * (j + 3) // 2 * WIDTH]
    numbers[CENTRE] = middle / groups
    for j in range(n):
        own[j] /= KEPT + groups
