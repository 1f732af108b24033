"""Does the best arm move, and does forgetting pay? It pays where the ranking of arms changes and stays changed for a
while; it does not pay where all arms rise and fall together.

Two gains over the best fixed arm answer, at the scale of hours, days, weeks and months. *This period's best* is the arm
that was best in each period by one half of the period's rows, scored on the other half. Scored on the same rows it
would gain from noise alone. With few rows a period the choice is mostly noise, and its gain may be negative. *Last
period's best* is the arm that was best by the rewards that became known one period ago, as a memory of that length has
it. The fixed arm is chosen by halves too; where arms come and go, it is a fixed order. Rows are weighted by inverse
propensities, around the arms' averages."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs import report
from driftbandit.logs.blocks import FEWEST_BLOCKS, Estimate, block_length, block_mean, period_of, said, scales
from driftbandit.logs.checks import FEWEST_ODD, refuse_one_sided, warnings_about
from driftbandit.logs.log import Log, half_of
from driftbandit.logs.report import About

FEWEST_EFFECTIVE = 200  # plays' worth of evidence about every arm, below which nothing is excluded
_TICK = 1e-6  # seconds
_LEAN = 10.0  # plays: an arm's average of a period leans on its average of the whole log with this weight
_HARDLY = 0.25  # of what this period's best gains: "does not stay" is said if no memory can gain more


class Scale(NamedTuple):
    """What was found at one length of time; values in the log's own unit."""

    name: str
    seconds: float
    periods: int
    current: Estimate  # gain of this period's best over the best fixed arm
    last: Estimate  # gain of last period's best
    level: float  # standard deviation of what all arms share from period to period
    ranking: float  # of each arm's own movement
    levels_move: bool
    ranking_moves: bool


class Drift(NamedTuple):
    """The answer, scale by scale, in a sentence, and as a recommendation."""

    scales: list[Scale]
    verdict: str  # "ranking", "fleeting", "unclear", "levels", "nothing", "cannot tell"
    sentence: str
    policy: str  # the policy to use, by its short name
    block: float
    warnings: list[str]
    means: Any  # periods × arms, for the figure
    mean_times: Any
    arms: list[str]
    about: About = About()

    @property
    def recommendation(self) -> str:
        """The policy to use, and why."""
        return RECOMMENDATIONS[self.policy]

    def __str__(self) -> str:
        return report.text(report.drift_parts(self))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        return report.html(report.drift_parts(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists and numbers, None for what is infinite or unknown."""
        return {**report.plain(self), "recommendation": self.recommendation}

    def plot(self, log: Log, path: str | Path) -> Path:
        """Draw levels, ranks and gains into a file: .svg, .png or .pdf."""
        from driftbandit.logs.figures import save_drift

        return save_drift(log, self, path)


RECOMMENDATIONS = {
    "drift-ts": "Use drift-ts, the default: it finds out how fast to forget and has nothing to tune.",
    "ts": "Use ts, which never forgets, or drift-ts, the default, if the future may differ from this log.",
}


def recommended(verdict: str, sure: bool) -> str:
    """The one recommendation: ts only if nothing changes and the log excludes that forgetting pays."""
    return "ts" if verdict == "nothing" and sure else "drift-ts"


class Cells(NamedTuple):
    """Sums by period, arm and half."""

    events: Any  # periods × halves
    weight: Any  # periods × arms × halves: sum of 1 / mu
    reward: Any  # sum of reward / mu
    heard: Any  # periods × arms: as weight, by the period in which the reward became known
    earned: Any  # as reward, likewise
    offered: Any  # periods × arms: number of events at which the arm was available


def drift(log: Log, *, block: Any = None, seed: int = 0) -> Drift:
    """Find out whether the best arm of a log moves.

    >>> rng = np.random.default_rng(1)
    >>> arm, second = rng.integers(0, 2, 8000), np.arange(8000) // 1000 % 2
    >>> reward = rng.random(8000) < np.where(arm == second, 0.6, 0.2)
    >>> drift(Log({"time": np.arange(8000), "arm": arm, "reward": reward}, propensity="uniform")).verdict
    'ranking'
    """
    refuse_one_sided(log)
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
            _count(cells[name], events, half, period, log.menus)
            _hear(cells[name], events, _period_known(events, period, summary, size))
    found = []
    level = 1.0 - 0.05 / max(1, len(lengths))  # the scales share 5%
    for name, size in lengths.items():
        block_of = _blocks(log, size, max(length, size), len(cells[name].events))
        if len(np.unique(block_of[cells[name].events.sum(axis=1) > 0])) >= FEWEST_BLOCKS:
            found.append(_scale(log, name, size, cells[name], block_of, level))
    effective = weights[0] ** 2 / np.maximum(weights[1], 1e-300)  # plays' worth of evidence about each arm
    verdict, sentence, sure = verdict_of(log, found, effective)
    shown = _shown(lengths, cells, summary.n, log.n_arms)
    times, means = _means(log, lengths[shown], cells[shown]) if shown else (np.zeros(0), np.zeros((0, log.n_arms)))
    warnings = warnings_about(log) + hardly_known(log.arms, effective)
    policy = recommended(verdict, sure)
    return Drift(found, verdict, sentence, policy, length, warnings, means, times, log.arms, log.about)


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


def _count(cells: Cells, events: Any, half: np.ndarray, period: np.ndarray, menus: np.ndarray) -> None:
    np.add.at(cells.events, (period, half), 1.0)
    np.add.at(cells.weight, (period, events.arm, half), 1.0 / events.propensity)
    np.add.at(cells.reward, (period, events.arm, half), events.reward / events.propensity)
    offers = np.zeros((len(cells.offered), len(menus)))
    np.add.at(offers, (period, events.menu), 1.0)
    cells.offered[:] += offers @ menus


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
    current, last = np.zeros(len(block_of)), np.zeros(len(block_of))
    for scored in (0, 1):
        other = 1 - scored
        value = scores(cells, scored, base[:, other])
        seen = estimates(cells.weight[:, :, other], cells.reward[:, :, other], base[:, other], lean)
        fixed = value[rows, best_offered(base[:, other], cells.offered)]
        current += value[rows, best_offered(seen, cells.offered)] - fixed
        remembered = estimates(cells.heard[before], cells.earned[before], base[:, other], lean)
        last[now] += value[now, best_offered(remembered, cells.offered[now])] - fixed[now]
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
    level = _mean(both, np.bincount(block_of, weight), sure)
    w0, w1 = cells.weight[:, :, 0], cells.weight[:, :, 1]
    own = np.where(cells.weight > 0, rest / np.maximum(cells.weight, 1e-300) - shared[:, None, :], 0.0)
    omega = w0 * w1 / np.maximum(w0 + w1, 1e-300)
    product = (omega * own[:, :, 0] * own[:, :, 1]).sum(axis=1)
    return level, _mean(np.bincount(block_of, product), np.bincount(block_of, omega.sum(axis=1)), sure)


def _shown(lengths: dict[str, float], cells: dict[str, Cells], n: int, k: int) -> str:
    """The scale the figure shows: the finest with at most 80 periods and about 60 rows per period and arm."""
    enough = [name for name in lengths if len(cells[name].events) <= min(80, n / (60 * k))]
    return min(enough, key=lambda name: lengths[name]) if enough else (list(lengths)[-1] if lengths else "")


def _means(log: Log, size: float, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    weight, reward = cells.weight.sum(axis=2), cells.reward.sum(axis=2)
    means = np.where(weight > 0, reward / np.maximum(weight, 1e-300), np.nan)
    return log.summary.start + size * (np.arange(len(means)) + 0.5), log.value(means)


def verdict_of(log: Log, found: list[Scale], effective: np.ndarray) -> tuple[str, str, bool]:
    """The verdict, the sentence, and whether the log excludes that forgetting pays: only if there is enough evidence
    about every arm (`effective`, in plays)."""
    known = bool(effective.min() >= FEWEST_EFFECTIVE)
    width = log.reward_range[1] - log.reward_range[0]

    def points(value: float) -> str:
        value = min(max(value, -width), width)  # no gain is larger, whatever a few heavy rows say
        return f"{100.0 * value:+.1f} points" if log.reward_range == (0.0, 1.0) else f"{value:+.3g}"

    few = min(log.summary.odd, log.summary.heard)
    if few < FEWEST_ODD:
        why = f"it takes {FEWEST_ODD} rewards that differ from the rest and became known in time, and there are {few}"
        return "cannot tell", f"This log cannot tell whether the best arm moves: {why}.", False
    if not found:
        why = "it is too short, or has events in too few blocks of time"
        return "cannot tell", f"This log cannot tell whether the best arm moves: {why}.", False
    stays = [scale for scale in found if scale.last.low > 0.0]
    if stays:
        best = max(stays, key=lambda scale: scale.last.mean)
        much = f"{points(best.last.mean)} over the best fixed one"
        return (
            "ranking",
            f"The ranking moves and stays: {_last(log, best)} gains {much}; forgetting can pay.",
            False,
        )
    moves = [scale for scale in found if scale.current.low > 0.0]
    most = max(found, key=lambda scale: scale.last.high)
    bound = max(most.last.high, 0.0)
    excluded = f"Gains above {points(bound)} are excluded at every scale."
    sure = known and bound <= log.negligible
    unpaid = f"forgetting will not pay. {excluded}"
    if not sure:
        unpaid = f"no sign that forgetting pays, but gains up to {points(bound)} are not excluded."
    top = max(moves, key=lambda scale: scale.current.mean) if moves else None
    by_current = "" if top is None else f" ({points(top.current.mean)} for each {top.name}'s best arm)"
    if known and top is not None and most.last.high < _HARDLY * top.current.mean:
        return (
            "fleeting",
            f"The ranking moves{by_current} but does not stay: forgetting will hardly pay. {excluded}",
            sure,
        )
    if top is not None or any(scale.ranking_moves for scale in found):
        return (
            "unclear",
            f"The ranking moves{by_current}, but this log cannot tell whether a memory could follow it: "
            f"{_last(log, most)} gains between {points(most.last.low)} and {points(most.last.high)}.",
            False,
        )
    if any(scale.levels_move for scale in found):
        return (
            "levels",
            f"The levels move, the ranking {'does not' if sure else 'is not seen to'}: {unpaid}",
            sure,
        )
    return "nothing", f"Nothing seems to move: {unpaid}", sure


def _last(log: Log, scale: Scale) -> str:
    """ "last hour's best arm", "the last 6 hours' best arm", "the best arm of the last 1/32 of the log (4.7 h)"."""
    if scale.name.isalpha():
        return f"last {scale.name}'s best arm"
    if scale.name.endswith("s"):
        return f"the last {scale.name}' best arm"
    return f"the best arm of the last {scale.name} of the log ({said(scale.seconds, log.summary.said_in)})"


def hardly_known(arms: list[str], effective: np.ndarray) -> list[str]:
    """A warning, if there is hardly any evidence about some arms."""
    few = np.flatnonzero(effective < FEWEST_EFFECTIVE)
    if not len(few):
        return []
    least = int(few[np.argmin(effective[few])])
    others = f" and {len(few) - 1} other{'s' if len(few) > 2 else ''}" if len(few) > 1 else ""
    return [
        f"Of arm {arms[least]:.40}{others} the log holds only {effective[least]:.0f} plays' worth of evidence or "
        f"little more (fewer than {FEWEST_EFFECTIVE}): the sentence above says hardly anything about it."
    ]
