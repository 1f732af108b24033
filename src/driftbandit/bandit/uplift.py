"""The gain of a policy over its baseline: their decisions are compared within each period of one configuration.

All decisions of a period were held back with the same probability, so its two groups saw the same conditions. Groups
pooled over periods of different shares did not, and any other change between the periods would look like an effect of
the policy."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.bandit.records import FIRST, FLOOR, HOLDBACK, POLICY, Change, StoredConfig
from driftbandit.core.beliefs import t_quantile
from driftbandit.core.checks import counted
from driftbandit.errors import report_damage


class Uplift(NamedTuple):
    """Mean reward with the policy and without, and an interval for the difference; NaN where there are too few
    outcomes. Means and difference are averages over the periods compared, weighted by their outcomes. With `wait`, only
    decisions that are old enough count.

    The interval is Welch's. Where all outcomes of a group are equal, the variance is that of the group with one more
    outcome at either end of the range of rewards. So the width is never 0. If none is declared, it reaches from 0 to
    a typical outcome other than 0."""

    policy: float
    baseline: float
    difference: float
    low: float
    high: float
    n_policy: int  # outcomes compared
    n_baseline: int
    confidence: float
    periods: int  # of one configuration, compared each within itself
    left_out: int  # outcomes of periods that have fewer than two in one of the groups
    holdback: float  # the share held back by the latest configuration
    goal: str = "maximise"

    def __str__(self) -> str:
        if math.isnan(self.low) and self.holdback == 0.0:
            return (
                "Nothing to compare with: no decision is held back. "
                'Set a holdback and its baseline: change(holdback=0.05, baseline="uniform").'
            )
        if math.isnan(self.low):
            return (
                f"Too few outcomes to compare: {self.n_policy} with the policy, {self.n_baseline} held back; a period "
                "needs two of each."
            )
        return (
            f"{self.policy:.4g} with the policy ({counted(self.n_policy, 'outcome')}), {self.baseline:.4g} held back "
            f"({self.n_baseline}): {self.difference:+.4g}, {100 * self.confidence:g}% interval "
            f"{self.low:+.4g} to {self.high:+.4g}"
            + (" (smaller is better)" if self.goal == "minimise" else "")
            + (f"; compared within {self.periods} periods of one configuration each" if self.periods > 1 else "")
            + (f"; {counted(self.left_out, 'outcome')} had nothing to be compared with" if self.left_out else "")
        )


def measure_uplift(journal: Any, number: int, since: int, confidence: float, until: int) -> Uplift:
    """The uplift of decisions made since a time and before another, from sums that the store makes by period and way of
    deciding."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence lies between 0 and 1; got {confidence!r:.60}.")
    starts: list[int] = []
    configs: list[StoredConfig] = []
    for _, event in journal.changes(number):
        config = Change.read(event.body).config
        if configs and _relevant(config) == _relevant(configs[-1]):
            continue
        if starts and event.at == starts[-1]:  # several changes at once: the last one counts
            starts.pop(), configs.pop()
        starts.append(event.at)
        configs.append(config)
    first = sum(start <= since for start in starts[1:])  # the period that was under way
    starts, configs = [since, *starts[first + 1 :]], configs[first:]
    with report_damage():
        return compare(configs, journal.groups(number, starts, until), confidence)


def _relevant(config: StoredConfig) -> tuple[Any, ...]:
    """A change of any of these begins a period."""
    return (config.policy, config.half_life, config.floor, config.first, config.holdback, config.baseline,
            config.active, config.fixed, config.features)  # fmt: skip


def compare(configs: list[StoredConfig], groups: list[tuple[int, int, int, float, float]], confidence: float) -> Uplift:
    """From counts, sums and sums of squares by period and way of deciding. Decisions by the policy, its floor and first
    tries belong to the policy; those of a fixed arm belong to neither group.

    A period is weighted by its outcomes, so this estimates the average gain over all rounds compared."""
    sums = np.zeros((len(configs), 2, 3))  # by period and group: the number of outcomes, their sum and sum of squares
    for period, how, *three in groups:
        if how in (POLICY, FLOOR, FIRST, HOLDBACK):
            sums[period, int(how == HOLDBACK)] += three
    usable = sums[(sums[:, :, 0] > 1).all(axis=1)]
    n, m = (usable if len(usable) else sums)[:, :, 0].sum(axis=0)
    left_out = sums[:, :, 0].sum() - usable[:, :, 0].sum()
    policy = baseline = low = high = math.nan
    if len(usable):
        counts, means = usable[:, :, 0], usable[:, :, 1] / usable[:, :, 0]
        weights = counts.sum(axis=1) / (n + m)
        policy, baseline = (float(value) for value in weights @ means)
        ends = configs[-1].reward_range or _typical_ends(*usable.sum(axis=(0, 1)))
        parts = weights[:, None] ** 2 * _variances(usable, ends) / counts
        variance = parts.sum()
        freedom = 1.0 / ((parts / variance) ** 2 / (counts - 1)).sum()
        width = t_quantile(0.5 + 0.5 * confidence, float(freedom)) * math.sqrt(variance)
        low, high = policy - baseline - width, policy - baseline + width
    return Uplift(policy, baseline, policy - baseline, low, high, int(n), int(m), confidence, len(usable),
                  int(left_out), configs[-1].holdback, configs[-1].goal)  # fmt: skip


def _variances(sums: np.ndarray, ends: tuple[float, float]) -> np.ndarray:
    """Of each group; where all outcomes of a group are equal, with one more at either end of their range."""
    low, high = ends
    more = sums + np.where(_spread(sums) > 1e-12 * sums[:, :, 2], 0.0, 1.0)[:, :, None] * np.array(
        [2.0, low + high, low * low + high * high]
    )
    return np.asarray(_spread(more) / (more[:, :, 0] - 1.0))


def _typical_ends(n: float, total: float, squares: float) -> tuple[float, float]:
    """0 and the mean of all outcomes weighted by their size: 0 and 1 if these are the outcomes."""
    if squares == 0.0:
        return 0.0, 1.0
    size = min(math.sqrt(squares), squares / abs(total)) if total else math.sqrt(squares)
    return (0.0, size) if total >= 0.0 else (-size, 0.0)


def _spread(sums: np.ndarray) -> np.ndarray:
    """The sum of squares of differences to the mean."""
    return np.asarray(sums[:, :, 2] - sums[:, :, 1] ** 2 / sums[:, :, 0])
