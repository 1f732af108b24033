"""What a policy brings over its baseline: decisions of the two compared within each period of one configuration.

All decisions of a period were held back with the same probability, so its two groups lived through the same times.
Groups pooled over periods of different shares did not: whatever else changed between the periods would look like the
policy's doing."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.beliefs import beta_cdf
from driftbandit.checks import counted
from driftbandit.live.records import FLOOR, HOLDBACK, POLICY, Change, Config

_FEW = 20  # outcomes: shorter periods have too few to judge their spread by, and are put together


class Uplift(NamedTuple):
    """Mean reward with the policy and without, and an interval for the difference; NaN where nothing can be said. Means
    and difference are averages over the periods compared, each weighing as much as it has outcomes. With `wait`, only
    decisions that are old enough count.

    The interval is Welch's. Where all outcomes of a group are equal, their variance says nothing; the interval then
    uses that of the group with one more outcome at either end of reward_range, so it never has width 0."""

    policy: float
    baseline: float
    difference: float
    low: float
    high: float
    n_policy: int  # outcomes compared
    n_baseline: int
    confidence: float
    periods: int  # of one configuration, compared each within itself
    left_out: int  # outcomes of periods in which nobody, or everybody but one, was held back
    holdback: float  # the share held back by the latest configuration

    def __str__(self) -> str:
        if math.isnan(self.low) and self.holdback == 0.0:
            return (
                "Nothing to compare with: no decision is held back. "
                'Set a holdback and its baseline: change(holdback=0.05, baseline="uniform").'
            )
        if math.isnan(self.low):
            return (
                f"Nothing can be said yet: {counted(self.n_policy, 'outcome')} with the policy, {self.n_baseline} held "
                "back, and a period needs two of each."
            )
        return (
            f"{self.policy:.4g} with the policy ({counted(self.n_policy, 'outcome')}), {self.baseline:.4g} held back "
            f"({self.n_baseline}): {self.difference:+.4g}, {100 * self.confidence:g} % interval "
            f"{self.low:+.4g} to {self.high:+.4g}"
            + (f"; compared within {self.periods} periods of one configuration each" if self.periods > 1 else "")
            + (f"; {counted(self.left_out, 'outcome')} had nothing to be compared with" if self.left_out else "")
        )


def measured(journal: Any, number: int, since: int, confidence: float, until: int) -> Uplift:
    """The uplift of decisions made since a time and before another, from sums that the store makes by period and way of
    deciding."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence lies between 0 and 1; got {confidence!r:.60}.")
    starts, configs = _periods([(event.at, Change.read(event.body).config) for _, event in journal.changes(number)])
    first = sum(start <= since for start in starts[1:])  # the period that was under way
    starts, configs = [since, *starts[first + 1 :]], configs[first:]
    return compared(configs, journal.groups(number, starts, until), confidence)


def _periods(changes: list[tuple[int, Config]]) -> tuple[list[int], list[Config]]:
    """When each period begins, and its configuration; a change of something else begins none."""

    def what(config: Config) -> tuple[Any, ...]:
        return (config.policy, config.half_life, config.floor, config.holdback, config.baseline, config.active,
                config.fixed)  # fmt: skip

    starts, configs = [changes[0][0]], [changes[0][1]]
    for at, config in changes[1:]:
        if what(config) == what(configs[-1]):
            continue
        if at == starts[-1]:  # several changes at once: the last one counts
            starts.pop(), configs.pop()
        starts.append(at)
        configs.append(config)
    return starts, configs


def compared(configs: list[Config], groups: list[tuple[int, int, int, float, float]], confidence: float) -> Uplift:
    """From counts, sums and sums of squares by period and way of deciding. Decisions by the policy and by its floor
    belong to the policy; those of a fixed arm belong to neither.

    A period's weight is its number of outcomes: so this estimates what the policy brings on average over all rounds
    that are compared. Periods with few outcomes are put together where their share held back is the same."""
    sides = [[(0, 0.0, 0.0), (0, 0.0, 0.0)] for _ in configs]
    for period, how, *sums in groups:
        if how in (POLICY, FLOOR, HOLDBACK):
            side = int(how == HOLDBACK)
            sides[period][side] = _added(sides[period][side], tuple(sums))
    strata: dict[Any, list[Any]] = {}
    members: dict[Any, int] = {}
    for period, (ours, theirs) in enumerate(sides):
        if ours[0] + theirs[0]:
            few = min(ours[0], theirs[0]) < _FEW
            key = ("few", configs[period].holdback) if few else period
            before = strata.get(key, [(0, 0.0, 0.0), (0, 0.0, 0.0)])
            strata[key] = [_added(before[0], ours), _added(before[1], theirs)]
            members[key] = members.get(key, 0) + 1
    usable = {key: pair for key, pair in strata.items() if min(pair[0][0], pair[1][0]) > 1}
    n, m = (sum(pair[side][0] for pair in (usable or strata).values()) for side in (0, 1))
    left_out = sum(pair[0][0] + pair[1][0] for key, pair in strata.items() if key not in usable)
    policy = baseline = low = high = math.nan
    if usable:
        weights = [(pair[0][0] + pair[1][0]) / (n + m) for pair in usable.values()]
        means = [[_mean(side) for side in pair] for pair in usable.values()]
        policy, baseline = (math.fsum(w * x[k] for w, x in zip(weights, means, strict=True)) for k in (0, 1))
        ends = configs[-1].reward_range
        parts = [
            (w * w * _variance(side, ends) / side[0], side[0])
            for w, pair in zip(weights, usable.values(), strict=True)
            for side in pair
        ]
        variance = math.fsum(part for part, _ in parts)
        freedom = variance**2 / math.fsum(part * part / (count - 1) for part, count in parts)
        width = t_quantile(0.5 + 0.5 * confidence, freedom) * math.sqrt(variance)
        low, high = policy - baseline - width, policy - baseline + width
    return Uplift(
        policy, baseline, policy - baseline, low, high, n, m, confidence, sum(members[key] for key in usable), left_out,
        configs[-1].holdback,
    )  # fmt: skip


Sums = tuple[int, float, float]  # how many, their sum, their sum of squares


def _added(one: Any, other: Any) -> Sums:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _mean(sums: Sums) -> float:
    return sums[1] / sums[0]


def _variance(sums: Sums, ends: tuple[float, float]) -> float:
    """Of outcomes that are all equal, the variance with one more at either end of their range."""
    spread = sums[2] - sums[0] * _mean(sums) ** 2
    if spread > 1e-12 * sums[2]:
        return spread / (sums[0] - 1)
    more = _added(sums, (2, ends[0] + ends[1], ends[0] ** 2 + ends[1] ** 2))
    return (more[2] - more[0] * _mean(more) ** 2) / (more[0] - 1)


def t_quantile(p: float, freedom: float) -> float:
    """The p-quantile (p > 1/2) of Student's t: what the base install has instead of SciPy.

    >>> round(t_quantile(0.975, 10.0), 6)
    2.228139
    """
    low, high = 0.0, 1.0

    def tail(x: float) -> float:
        return 0.5 * float(beta_cdf(freedom / 2.0, 0.5, np.array([freedom / (freedom + x * x)]))[0])

    while tail(high) > 1.0 - p and high < 1e6:
        high *= 2.0
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tail(middle) > 1.0 - p else (low, middle)
    return 0.5 * (low + high)
