"""Finds out from a log whether the best arm changes and whether forgetting pays: where the ranking of arms changes and
stays changed for a while, not where all arms rise and fall together.

Two gains over the best fixed arm are estimated by hour, day, week and month: of the arm that is best in each period,
and of the one that was best by the rewards that became known one period ago. Arms are chosen by one half of the rows
and scored on the other, since on the same rows noise would gain. Rows are weighted by inverse propensities."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.summaries import Contents, Report, ShownTable
from driftbandit.logs.context import ContextGain, context_gains, describe_gains
from driftbandit.logs.estimates import (
    FEWEST_BLOCKS,
    About,
    Estimate,
    block_length,
    block_mean,
    period_of,
    scales,
)
from driftbandit.logs.log import FEWEST_ODD, Log, half_of, refuse_one_sided, warnings_about
from driftbandit.logs.means import draw_drift

FEWEST_EFFECTIVE = 200  # effective plays of every arm, below which nothing is excluded
_TICK = 1e-6  # seconds
_TITLE = "gain over the best fixed arm, 95% intervals (arms chosen on one half of the rows, scored on the other):"
_PRIOR = 10.0  # plays: weight of an arm's average over the whole log in its average of a period


class Scale(NamedTuple):
    """The findings at one length of time, in the unit of the rewards."""

    name: str
    seconds: float
    periods: int
    current: Estimate  # gain of this period's best over the best fixed arm
    last: Estimate  # gain of last period's best
    level: float  # standard deviation of what all arms share from period to period
    ranking: float  # of each arm's own movement
    levels_move: bool
    ranking_moves: bool

    def row(self, about: About) -> list[str]:
        """The printed line of a table."""
        moved = [
            f"{(100.0 if about.points else 1.0) * size:.2f}{'' if sure else ' (not sure)'}"
            for size, sure in ((self.level, self.levels_move), (self.ranking, self.ranking_moves))
        ]
        name = self.name if about.unit is True else f"{self.name} ({about.duration(self.seconds)})"
        return [name, str(self.periods), about.gain(self.current), about.gain(self.last), *moved]


@dataclass(frozen=True, repr=False)
class Drift(Report):
    """The findings at every scale, a sentence and a recommendation."""

    scales: list[Scale]
    verdict: str  # "ranking", "unclear", "levels", "nothing", "cannot tell"
    sentence: str
    context: list[ContextGain]  # what choosing by the features gains; empty without features
    context_sentence: str  # empty without features
    policy: str  # the policy to use, by its short name
    block: float
    warnings: list[str]
    means: Any  # periods × arms, for the figure
    mean_times: Any
    arms: list[str]
    about: About

    @property
    def recommendation(self) -> str:
        return RECOMMENDATIONS[self.policy]

    def _contents(self) -> Contents:
        """Gains by time scale, the verdict and the recommendation."""
        about, tables = self.about, []
        if self.scales:
            head = ["scale", "periods", "this period's best", "last period's best", "levels move by", "arms move by"]
            tables.append(ShownTable(_TITLE, head, [scale.row(about) for scale in self.scales]))
        if self.context:
            title = "gain of the best arm by context over the best single arm, 95% intervals for all lines at once:"
            rows = [[gain.feature, str(gain.cells), about.gain(gain.gain)] for gain in self.context]
            tables.append(ShownTable(title, ["by", "cells", "gain"], rows))
        sentences = filter(None, [self.sentence, self.context_sentence, self.recommendation])
        return [str(about), *tables, *sentences, *(f"warning: {warning}" for warning in self.warnings)]

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "recommendation": self.recommendation}

    def plot(self, log: Log, path: str | Path) -> Path:
        """Draw levels over time, and gains at each time scale."""
        return draw_drift(log, self, path)


RECOMMENDATIONS = {
    "drift-ts": "Use drift-ts, the default: it finds out how fast to forget and has nothing to tune.",
    "drift-auto": "Use drift-auto, the default: it finds out how fast to forget and has nothing to tune.",
    "drift-lin-ts": "Use drift-lin-ts with these features: it finds out how fast to forget and has nothing to tune.",
    "ts": "Use ts, which never forgets, or the default policy if the future may differ from this log.",
}


class Cells(NamedTuple):
    """Sums by period, arm and half."""

    events: Any  # periods × halves
    weight: Any  # periods × arms × halves: sum of 1 / mu
    reward: Any  # sum of reward / mu
    known: Any  # periods × arms: as weight, by the period in which the reward became known
    known_reward: Any  # as reward, likewise
    offered: Any  # periods × arms: events at which the arm was available


def drift(log: Log, *, block: Any = None, seed: int = 0) -> Drift:
    """Find out whether the best arm of a log changes.

    >>> rng = np.random.default_rng(1)
    >>> arm, second = rng.integers(0, 2, 8000), np.arange(8000) // 1000 % 2
    >>> reward = rng.random(8000) < np.where(arm == second, 0.6, 0.2)
    >>> drift(Log({"time": np.arange(8000), "arm": arm, "reward": reward}, propensity="uniform")).verdict
    'ranking'
    """
    refuse_one_sided(log)
    summary, events = log.summary, log.whole()
    length = block_length(summary.start, summary.end, summary.dates, block)
    lengths = {
        name: size
        for name, size in scales(summary.start, summary.end, summary.dates).items()
        if summary.span / size < 200_000 and summary.n * size / summary.span >= 2 * log.n_arms
    }
    half = half_of(events.row, seed)
    cells = {name: _count(log, size, half) for name, size in lengths.items()}
    found = []
    level = 1.0 - 0.05 / max(1, len(lengths))  # the scales share 5%
    for name, size in lengths.items():
        block_of = _blocks(log, size, max(length, size), len(cells[name].events))
        if len(np.unique(block_of[cells[name].events.sum(axis=1) > 0])) >= FEWEST_BLOCKS:
            found.append(_scale(log, name, size, cells[name], block_of, level))
    inverse = 1.0 / events.propensity
    weight, square = (np.bincount(events.arm, values, minlength=log.n_arms) for values in (inverse, inverse * inverse))
    effective = weight**2 / np.maximum(square, 1e-300)  # effective plays of each arm
    verdict, sentence, sure = verdict_of(log, found, bool(effective.min() >= FEWEST_EFFECTIVE))
    shown = _choose_scale(lengths, cells, summary.n, log.n_arms)
    times, means = _means(log, lengths[shown], cells[shown]) if shown else (np.zeros(0), np.zeros((0, log.n_arms)))
    warnings = warnings_about(log)
    if effective.min() < FEWEST_EFFECTIVE:
        warnings.append(
            f"The effective number of plays of arm {log.arms[effective.argmin()]:.40} is {effective.min():.0f}, below "
            f"{FEWEST_EFFECTIVE}: the sentence above is not reliable for it."
        )
    gains = context_gains(log, length)
    about = describe_gains(log, gains, lambda gain: show_gain(log, gain)) if log.features else ""
    policy = "ts" if verdict == "nothing" and sure else log.default_policy
    policy = "drift-lin-ts" if any(gain.pays for gain in gains) else policy
    return Drift(found, verdict, sentence, gains, about, policy, length, warnings, means, times, log.arms, log.about)


def _count(log: Log, size: float, half: np.ndarray) -> Cells:
    """The sums over periods of this length. A reward that is known when a period begins belongs to the period before;
    one that never became known belongs to none."""
    events, summary, k = log.whole(), log.summary, log.n_arms
    period = period_of(events.time, summary.start, size, summary.dates)
    count = int(period[-1]) + 1
    cells = Cells(*(np.zeros((count, *rest)) for rest in ((2,), (k, 2), (k, 2), (k,), (k,), (k,))))
    weight = 1.0 / events.propensity
    np.add.at(cells.events, (period, half), 1.0)
    np.add.at(cells.weight, (period, events.arm, half), weight)
    np.add.at(cells.reward, (period, events.arm, half), events.reward * weight)
    offers = np.zeros((count, len(log.menus)))
    np.add.at(offers, (period, events.menu), 1.0)
    cells.offered[:] = offers @ log.menus
    ever = np.flatnonzero(events.known <= summary.end)
    just_before = period_of(events.known[ever] - _TICK, summary.start, size, summary.dates)
    at = np.maximum(period[ever], just_before), events.arm[ever]
    np.add.at(cells.known, at, weight[ever])
    np.add.at(cells.known_reward, at, (events.reward * weight)[ever])
    return cells


def _blocks(log: Log, size: float, length: float, count: int) -> np.ndarray:
    """The block of each period."""
    if length == size:
        return np.arange(count)
    start, dates = log.summary.start, log.summary.dates
    middle = np.clip(start + size * (np.arange(count) + (0.0 if dates else 0.5)), start, log.summary.end)
    return period_of(middle, start, length, dates)


def _scale(log: Log, name: str, size: float, cells: Cells, block_of: np.ndarray, level: float) -> Scale:
    base = cells.reward.sum(axis=0) / np.maximum(cells.weight.sum(axis=0), 1e-300)  # arms × halves
    pulls = np.maximum(log.summary.pulls, 1)
    lean = _PRIOR * cells.weight.sum(axis=(0, 2)) / pulls
    events = np.bincount(block_of, cells.events.sum(axis=1))
    there = np.flatnonzero(cells.events.sum(axis=1) > 0)
    informed = np.flatnonzero(cells.known.sum(axis=1) > 0)
    latest = np.searchsorted(informed, there) - 1  # the latest period before this one in which a reward became known
    now, before = there[latest >= 0], informed[latest[latest >= 0]]
    rows = np.arange(len(block_of))
    current, last = np.zeros(len(block_of)), np.zeros(len(block_of))
    for scored in (0, 1):
        other = 1 - scored
        value = scores(cells, scored, base[:, other])
        seen = estimates(cells.weight[:, :, other], cells.reward[:, :, other], base[:, other], lean)
        fixed = value[rows, find_best_offered(base[:, other], cells.offered)]
        current += value[rows, find_best_offered(seen, cells.offered)] - fixed
        remembered = estimates(cells.known[before], cells.known_reward[before], base[:, other], lean)
        last[now] += value[now, find_best_offered(remembered, cells.offered[now])] - fixed[now]
    width = log.reward_range[1] - log.reward_range[0]
    gains = [_mean(np.bincount(block_of, gain), events, level).scaled(width) for gain in (current, last)]
    shared, own = _movements(cells, base, block_of, level)
    return Scale(
        name=name,
        seconds=size,
        periods=len(there),
        current=gains[0],
        last=gains[1],
        level=width * math.sqrt(max(shared.mean, 0.0)),
        ranking=width * math.sqrt(max(own.mean, 0.0)),
        levels_move=shared.low > 0.0,
        ranking_moves=own.low > 0.0,
    )


def _mean(sums: np.ndarray, events: np.ndarray, level: float) -> Estimate:
    return block_mean(sums, events, level, max(float(events.sum()), 1.0))


def scores(cells: Cells, half: int, base: np.ndarray) -> np.ndarray:
    """Periods × arms: an unbiased estimate of the sum of rewards if this arm were always played."""
    return np.asarray(cells.events[:, half, None] * base + cells.reward[:, :, half] - base * cells.weight[:, :, half])


def estimates(weight: np.ndarray, reward: np.ndarray, base: np.ndarray, lean: np.ndarray) -> np.ndarray:
    """Periods × arms: averages, shrunk towards the arm's own average plus the shift that all arms share in that period,
    so that an arm without rows on a bad day does not look good."""
    shift = (reward - base * weight).sum(axis=1) / np.maximum(weight.sum(axis=1) + lean.sum() / len(lean), 1e-300)
    return np.asarray((reward + lean * (base + shift[:, None])) / (weight + lean))


def find_best_offered(value: np.ndarray, offered: np.ndarray) -> np.ndarray:
    """For each period the arm of largest value among those that were available at least half as often as the most
    available one."""
    most = offered.max(axis=1, keepdims=True)
    return np.asarray(np.where(offered >= 0.5 * most, value, -np.inf).argmax(axis=1))


def _movements(cells: Cells, base: np.ndarray, block_of: np.ndarray, sure: float) -> tuple[Estimate, Estimate]:
    """Variances over periods of the shift that all arms share and of each arm's own shift. The noise of the two halves
    of a period is independent, so the mean of their product contains only the shifts."""
    rest = cells.reward - base[None] * cells.weight
    total = np.maximum(cells.weight.sum(axis=1), 1e-300)
    shared = rest.sum(axis=1) / total  # periods × halves
    weight = np.minimum(cells.events[:, 0], cells.events[:, 1])
    both = np.bincount(block_of, weight * shared[:, 0] * shared[:, 1])
    level = _mean(both, np.bincount(block_of, weight), sure)
    w0, w1 = cells.weight[:, :, 0], cells.weight[:, :, 1]
    own = np.where(cells.weight > 0, rest / np.maximum(cells.weight, 1e-300) - shared[:, None, :], 0.0)
    omega = w0 * w1 / np.maximum(w0 + w1, 1e-300)
    product = (omega * own[:, :, 0] * own[:, :, 1]).sum(axis=1)
    return level, _mean(np.bincount(block_of, product), np.bincount(block_of, omega.sum(axis=1)), sure)


def _choose_scale(lengths: dict[str, float], cells: dict[str, Cells], n: int, k: int) -> str:
    """The scale of the figure: the finest with at most 80 periods and about 60 rows per period and arm."""
    enough = [name for name in lengths if len(cells[name].events) <= min(80, n / (60 * k))]
    return min(enough, key=lambda name: lengths[name]) if enough else (list(lengths)[-1] if lengths else "")


def _means(log: Log, size: float, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    weight, reward = cells.weight.sum(axis=2), cells.reward.sum(axis=2)
    means = np.where(weight > 0, reward / np.maximum(weight, 1e-300), np.nan)
    low, high = log.reward_range
    return log.summary.start + size * (np.arange(len(means)) + 0.5), low + (high - low) * means


def verdict_of(log: Log, found: list[Scale], known: bool) -> tuple[str, str, bool]:
    """The verdict, the sentence, and whether the log excludes that forgetting pays. `known` is whether every arm has
    enough effective plays for that."""

    def points(value: float) -> str:
        return show_gain(log, value)

    few = min(log.summary.odd, log.summary.known_in_time)
    if few < FEWEST_ODD or not found:
        why = "it is too short, or has events in too few blocks of time"
        if few < FEWEST_ODD:
            why = f"it takes {FEWEST_ODD} rewards that differ from the rest and became known in time, and it has {few}"
        return "cannot tell", f"This log cannot show whether the best arm moves: {why}.", False
    stays = [scale for scale in found if scale.last.low > 0.0]
    if stays:
        best = max(stays, key=lambda scale: scale.last.mean)
        gain = f"{_last(log, best)} gains {points(best.last.mean)} over the best fixed one"
        return "ranking", f"The ranking moves and stays: {gain}; forgetting can pay.", False
    most = max(found, key=lambda scale: scale.last.high)
    bound = max(most.last.high, 0.0)
    sure = known and bound <= log.negligible
    if any(scale.current.low > 0.0 or scale.ranking_moves for scale in found):
        limits = f"between {points(most.last.low)} and {points(most.last.high)}"
        return (
            "unclear",
            f"The ranking moves, but whether it stays long enough to follow is unclear: {_last(log, most)} gains "
            f"{limits}.",
            False,
        )
    unpaid = f"no sign that forgetting pays, but gains up to {points(bound)} are not excluded."
    if sure:
        unpaid = f"forgetting will not pay. Gains above {points(bound)} are excluded at every scale."
    if any(scale.levels_move for scale in found):
        return "levels", f"The levels move, the ranking {'does not' if sure else 'is not seen to'}: {unpaid}", sure
    return "nothing", f"Nothing seems to move: {unpaid}", sure


def show_gain(log: Log, value: float) -> str:
    """A gain as sentences print it."""
    width = log.reward_range[1] - log.reward_range[0]
    value = min(max(value, -width), width)  # a few rows of large weight can give impossible bounds
    return f"{100.0 * value:+.1f} points" if log.reward_range == (0.0, 1.0) else f"{value:+.3g}"


def _last(log: Log, scale: Scale) -> str:
    if scale.name.isalpha():
        return f"last {scale.name}'s best arm"
    if scale.name.endswith("s"):
        return f"the last {scale.name}' best arm"
    return f"the best arm of the last {scale.name} of the log ({log.about.duration(scale.seconds)})"
