"""Does the best arm move? Forgetting pays where the ranking of arms changes and stays changed for a while; it does not
pay where all arms rise and fall together.

Two gains over the best fixed arm answer, at the scale of hours, days, weeks and months. The *oracle* picks the best arm
of each period on one half of the period's rows and is scored on the other half, since picked and scored on the same
rows it would gain from noise alone. *Last period's best* plays what was best by the rewards that became known one
period ago: what a memory of that length can have, late rewards included. The fixed arm is chosen by halves too. (Chosen
for each block on all other blocks it would be the one that does worst in that block, where arms that move are about as
good on the whole.) Where arms come and go, it is a fixed order: the best of those that were available at half of a
period's events. Rows are weighted by inverse propensities, around the arms' averages."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs import report
from driftbandit.logs.bootstrap import Estimate, block_mean
from driftbandit.logs.events import half_of
from driftbandit.logs.log import Log
from driftbandit.logs.periods import FEWEST_BLOCKS, block_length, period_of, scales
from driftbandit.logs.refusals import refuse_what_cannot_tell, warnings_about
from driftbandit.logs.report import About
from driftbandit.logs.suited import SUITED
from driftbandit.logs.verdict import Scale, hardly_known, verdict_of

_TICK = 1e-6  # seconds
_LEAN = 10.0  # plays: an arm's average of a period leans on its average of the whole log with this weight


class Drift(NamedTuple):
    """The answer, scale by scale, and in a sentence."""

    scales: list[Scale]
    verdict: str  # "ranking", "fleeting", "unclear", "levels", "nothing", "cannot tell"
    sentence: str
    family: str  # which policies suit
    block: float
    warnings: list[str]
    means: Any  # periods × arms, for the figure
    mean_times: Any
    arms: list[str]
    about: About = About()

    def __str__(self) -> str:
        return report.text(report.drift_parts(self))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from driftbandit.logs import notebook

        return notebook.drift_html(self)


class Cells(NamedTuple):
    """Sums by period, arm and half."""

    events: Any  # periods × halves
    weight: Any  # periods × arms × halves: sum of 1 / mu
    reward: Any  # sum of reward / mu
    heard: Any  # periods × arms: as weight, by the period in which the reward became known
    earned: Any  # as reward, likewise
    offered: Any  # periods × arms: number of events at which the arm was available


def drift(log: Log, *, block: Any = None, seed: int = 0) -> Drift:
    """Ask a log whether its best arm moves.

    >>> from driftbandit.logs.simulated import uniform_log
    >>> from driftbandit.environments import phased
    >>> found = drift(uniform_log(phased([[0.2, 0.6], [0.6, 0.2]] * 4, range(0, 8000, 1000), 8000), seed=1))
    >>> found.verdict
    'ranking'
    """
    refuse_what_cannot_tell(log)
    summary = log.summary
    length = block_length(summary.start, summary.end, summary.dates, block)
    lengths = {
        name: size
        for name, size in scales(summary.start, summary.end, summary.dates).items()
        if summary.span / size < 200_000 and summary.n * size / summary.span >= 2 * log.n_arms
    }
    cells = {name: _empty(log, size) for name, size in lengths.items()}
    weights = np.zeros((2, log.n_arms))
    for events in log.pieces():
        inverse = 1.0 / events.propensity
        weights[0] += np.bincount(events.arm, inverse, minlength=log.n_arms)
        weights[1] += np.bincount(events.arm, inverse * inverse, minlength=log.n_arms)
        half = half_of(events.row, seed)
        for name, size in lengths.items():
            period = period_of(events.time, summary.start, size, summary.dates)
            _count(cells[name], events, half, period)
            _hear(cells[name], events, _period_known(events, period, summary, size))
    found = []
    level = 1.0 - 0.05 / max(1, len(lengths))  # several scales are asked
    for name, size in lengths.items():
        block_of = _blocks(log, size, max(length, size), len(cells[name].events))
        if len(np.unique(block_of[cells[name].events.sum(axis=1) > 0])) >= FEWEST_BLOCKS:
            found.append(_scale(log, name, size, cells[name], block_of, level))
    effective = weights[0] ** 2 / np.maximum(weights[1], 1e-300)  # plays' worth of evidence about each arm
    verdict, sentence = verdict_of(log, found, effective)
    shown = _shown(lengths, cells, summary.n, log.n_arms)
    times, means = _means(log, lengths[shown], cells[shown]) if shown else (np.zeros(0), np.zeros((0, log.n_arms)))
    family, warnings = SUITED[verdict], warnings_about(log) + hardly_known(log.arms, effective)
    return Drift(found, verdict, sentence, family, length, warnings, means, times, log.arms, log.about)


def _empty(log: Log, size: float) -> Cells:
    summary = log.summary
    periods = int(period_of(np.array([summary.end]), summary.start, size, summary.dates)[0]) + 1
    k = log.n_arms
    return Cells(*(np.zeros((periods, *rest)) for rest in ((2,), (k, 2), (k, 2), (k,), (k,), (k,))))


def _period_known(events: Any, period: np.ndarray, summary: Any, size: float) -> np.ndarray:
    """The period in which each reward became known, far beyond the end for what never did. What is known as a period
    begins was known in the one before."""
    late = (events.known > events.time) & np.isfinite(events.known)
    out = np.where(np.isfinite(events.known), period, np.iinfo(np.int64).max)
    just_before = events.known[late] - _TICK
    out[late] = np.maximum(period[late], period_of(just_before, summary.start, size, summary.dates))
    return out


def _hear(cells: Cells, events: Any, known: np.ndarray) -> None:
    there = np.flatnonzero(known < len(cells.heard))
    known = known[there]
    np.add.at(cells.heard, (known, events.arm[there]), 1.0 / events.propensity[there])
    np.add.at(cells.earned, (known, events.arm[there]), events.reward[there] / events.propensity[there])


def _count(cells: Cells, events: Any, half: np.ndarray, period: np.ndarray) -> None:
    np.add.at(cells.events, (period, half), 1.0)
    np.add.at(cells.weight, (period, events.arm, half), 1.0 / events.propensity)
    np.add.at(cells.reward, (period, events.arm, half), events.reward / events.propensity)
    if events.allowed is None:
        cells.offered[:] += np.bincount(period, minlength=len(cells.offered))[:, None]
    else:
        np.add.at(cells.offered, period, events.allowed)


def _blocks(log: Log, size: float, length: float, periods: int) -> np.ndarray:
    """The block each period lies in."""
    if length == size:
        return np.arange(periods)
    start, dates = log.summary.start, log.summary.dates
    middle = np.clip(start + size * (np.arange(periods) + (0.0 if dates else 0.5)), start, log.summary.end)
    return period_of(middle, start, length, dates)


def _scale(log: Log, name: str, size: float, cells: Cells, block_of: np.ndarray, level: float) -> Scale:
    base = cells.reward.sum(axis=0) / np.maximum(cells.weight.sum(axis=0), 1e-300)  # arms × halves
    pulls = np.maximum(log.summary.pulls, 1)
    lean = _LEAN * cells.weight.sum(axis=(0, 2)) / pulls
    events = np.bincount(block_of, cells.events.sum(axis=1))
    there = np.flatnonzero(cells.events.sum(axis=1) > 0)
    heard = np.flatnonzero(cells.heard.sum(axis=1) > 0)
    latest = np.searchsorted(heard, there) - 1  # the latest period before this one in which anything was heard of
    now, before = there[latest >= 0], heard[latest[latest >= 0]]
    rows = np.arange(len(block_of))
    oracle, last = np.zeros(len(block_of)), np.zeros(len(block_of))
    for scored in (0, 1):
        other = 1 - scored
        value = scores(cells, scored, base[:, other])
        seen = estimates(cells.weight[:, :, other], cells.reward[:, :, other], base[:, other], lean)
        fixed = value[rows, best_offered(base[:, other], cells.offered)]
        oracle += value[rows, best_offered(seen, cells.offered)] - fixed
        remembered = estimates(cells.heard[before], cells.earned[before], base[:, other], lean)
        last[now] += value[now, best_offered(remembered, cells.offered[now])] - fixed[now]
    width = log.reward_range[1] - log.reward_range[0]
    gains = [_sure_mean(np.bincount(block_of, gain), events, level).scaled(width) for gain in (oracle, last)]
    shared, own = _movements(cells, base, block_of, level)
    return Scale(
        name=name,
        seconds=size,
        periods=len(there),
        oracle=gains[0],
        last=gains[1],
        level=width * math.sqrt(max(shared.mean, 0.0)),
        ranking=width * math.sqrt(max(own.mean, 0.0)),
        levels_move=shared.low > 0.0,
        ranking_moves=own.low > 0.0,
    )


def scores(cells: Cells, half: int, base: np.ndarray) -> np.ndarray:
    """Periods × arms: the sum over a period's rows of what playing this arm would have earned, unbiased."""
    return np.asarray(cells.events[:, half, None] * base + cells.reward[:, :, half] - base * cells.weight[:, :, half])


def estimates(weight: np.ndarray, reward: np.ndarray, base: np.ndarray, lean: np.ndarray) -> np.ndarray:
    """Periods × arms: averages that lean on the arm's own average, moved by what all arms share in that period, so
    that an arm not seen on a bad day does not look good."""
    shift = (reward - base * weight).sum(axis=1) / np.maximum(weight.sum(axis=1) + lean.sum() / len(lean), 1e-300)
    return np.asarray((reward + lean * (base + shift[:, None])) / (weight + lean))


def best_offered(value: np.ndarray, offered: np.ndarray) -> np.ndarray:
    """For each period the arm of largest value among those available at half of its events, or else most often."""
    most = offered.max(axis=1, keepdims=True)
    return np.asarray(np.where(offered >= 0.5 * most, value, -np.inf).argmax(axis=1))


def _movements(cells: Cells, base: np.ndarray, block_of: np.ndarray, sure: float) -> tuple[Estimate, Estimate]:
    """Variances over periods of what all arms share and of what each does for itself: noise differs between the halves
    of a period, movement does not, so the product of the halves has no noise in it on average."""
    rest = cells.reward - base[None] * cells.weight
    total = np.maximum(cells.weight.sum(axis=1), 1e-300)
    shared = rest.sum(axis=1) / total  # periods × halves
    weight = np.minimum(cells.events[:, 0], cells.events[:, 1])
    both = np.bincount(block_of, weight * shared[:, 0] * shared[:, 1])
    level = _sure_mean(both, np.bincount(block_of, weight), sure)
    w0, w1 = cells.weight[:, :, 0], cells.weight[:, :, 1]
    own = np.where(cells.weight > 0, rest / np.maximum(cells.weight, 1e-300) - shared[:, None, :], 0.0)
    omega = w0 * w1 / np.maximum(w0 + w1, 1e-300)
    product = (omega * own[:, :, 0] * own[:, :, 1]).sum(axis=1)
    return level, _sure_mean(np.bincount(block_of, product), np.bincount(block_of, omega.sum(axis=1)), sure)


def _sure_mean(sums: np.ndarray, events: np.ndarray, level: float) -> Estimate:
    """A mean per event with an interval far out, since several scales are asked."""
    return block_mean(sums, events, level).widened(int((events > 0).sum()), level)


def _shown(lengths: dict[str, float], cells: dict[str, Cells], n: int, k: int) -> str:
    """The scale the figure shows: the finest with at most 80 periods and about 60 rows per period and arm."""
    enough = [name for name in lengths if len(cells[name].events) <= min(80, n / (60 * k))]
    return min(enough, key=lambda name: lengths[name]) if enough else (list(lengths)[-1] if lengths else "")


def _means(log: Log, size: float, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    weight, reward = cells.weight.sum(axis=2), cells.reward.sum(axis=2)
    means = np.where(weight > 0, reward / np.maximum(weight, 1e-300), np.nan)
    return log.summary.start + size * (np.arange(len(means)) + 0.5), log.value(means)
