"""A log of decisions: read once, checked completely, and kept in memory.

A correct log exceeds the threshold of 4.4 standard deviations with probability 1 in 100,000."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.bandit.features import Features
from driftbandit.core.draws import mix
from driftbandit.core.parameters import LARGEST
from driftbandit.core.primitives import stride
from driftbandit.errors import LogError
from driftbandit.logs.estimates import About, format_duration
from driftbandit.logs.read import FeatureColumns, Source, refuse
from driftbandit.logs.rows import Columns, Events, RowReader

MOST_ROWS = 100_000_000  # about 4 GB
_NEGLIGIBLE = 0.01  # of a reward's standard deviation
CERTAIN = 1.0 - 1e-9
_INCREDIBLE = 1e-6  # the smallest propensity times the number of events
_FAR, _STRANGE = 6.0, 4.4  # standard deviations: refused, and warned of
_STRETCHES = 128
_NEARLY_ALWAYS = 0.98
FEWEST_ODD = 100


class LogSummary(NamedTuple):
    """A log in a few numbers."""

    n: int
    pulls: np.ndarray
    start: float  # seconds; since 1970 if `dates`
    end: float
    dates: bool
    time_unit: bool | str  # of printed durations, as `format_duration` takes it
    mean: float  # of the rewards, mapped to [0, 1]
    sd: float  # of the rewards, mapped to [0, 1]
    several: bool  # whether rewards have more than two values
    odd: int  # rewards that differ from the most common one
    highest: int  # rewards equal to the highest possible one
    least: float  # the smallest propensity
    delay: float  # median time until a reward was known, seconds
    never: int  # rewards that never became known
    known_in_time: int  # rewards that became known before the log ended
    adaptive: bool  # did the logger's probabilities for the same arm vary?
    left_out: int  # rows without a reward
    offered: np.ndarray  # share of the events at which each arm was available
    forced: int  # events at which one arm had probability 1 though others were available
    warnings: list[str]

    @property
    def span(self) -> float:
        return self.end - self.start

    @property
    def one_sided(self) -> bool:
        """Whether it seems that only successes were reported."""
        return self.left_out >= self.n // 2 and self.left_out > 0 and self.highest >= _NEARLY_ALWAYS * self.n


class Log:
    """A checked log.

    >>> log = Log({"time": [1, 2, 3], "arm": ["a", "b", "a"], "reward": [0, 1, 1]}, propensity="uniform")
    >>> log.arms, log.n, log.summary.mean
    (['a', 'b'], 3, 0.6666666666666666)

    `source` is the path of a CSV, JSON-lines or Parquet file, a data frame, a dict of columns, or the journal of a live
    bandit (a SQLite file or postgresql://...; `bandit` names it where there are several). The keywords `time`, `arm`,
    `reward`, `propensity`, `reward_time`, `available` and `outcome` give the columns' names; `propensity` may be
    "uniform". Rewards outside `reward_range` are refused; without it any up to 1e30 is accepted, and the range is
    [0, 1] or, where rewards lie outside, from the smallest to the largest. Policies for [0, 1] play rewards that are
    mapped from this range. `time_unit` is the unit of times that are numbers. Rows out of order are sorted by time.

    `features` are declared as in `Bandit`, or as a text such as "device,basket:number,time:hour"; "all" stands for all
    columns that are not named otherwise. The contexts of a journal are used without it."""

    def __init__(
        self,
        source: Any,
        *,
        reward_range: tuple[float, float] | None = None,
        time_unit: str | None = None,
        seed: int = 0,
        bandit: str | None = None,
        features: Any = None,
        **columns: str,
    ) -> None:
        unknown = [name for name in columns if name not in Columns._fields]
        if unknown:
            raise TypeError(f"A log has no column {unknown[0]!r}; it has: {', '.join(Columns._fields)}.")
        if reward_range is not None:
            low, high = (float(side) for side in reward_range)
            if not (np.isfinite([low, high]).all() and 1.0 / LARGEST <= high - low <= LARGEST):
                raise refuse(
                    f"the range of rewards is ({low:g}, {high:g})",
                    f"It needs finite low < high, at most {LARGEST:g} apart.",
                )
        found = Source(source, bandit)
        self.name = found.name
        names = Columns(**columns)
        try:
            reader = RowReader(names, list(columns), reward_range, time_unit, FeatureColumns(features, found))
            events, self.arms, self.menus = reader.number_arms(_read(found, reader))
            if reward_range is None:
                low, high = _range_of(events.reward)
            self.reward_range = low, high
            events = events._replace(reward=(events.reward - low) / (high - low))
            back = int((np.diff(events.time) < 0).sum())
            self._events = _order(events, seed)
            self.features, context = reader.features.finish(self._events.context, bool(reader.dates))
            self._events = self._events._replace(context=context)
            self.summary: LogSummary = summarise(self, reader)
        except LogError as error:
            raise LogError(f"{self.name}: {error}") from None
        self.summary.warnings.extend(describe_gaps(self.features, context))
        if back:
            self.summary.warnings.append(
                f"The time goes back at {back:,} rows, which were sorted. Local times go back when summer time ends: "
                "write them with their offset, as in 02:30:00+02:00."
            )

    @property
    def n(self) -> int:
        return self._events.n

    @property
    def n_arms(self) -> int:
        return len(self.arms)

    @property
    def about(self) -> About:
        summary = self.summary
        return About(self.name, self.n, self.n_arms, summary.span, summary.time_unit, self.reward_range == (0.0, 1.0))

    def __str__(self) -> str:
        return str(self.about)

    def __repr__(self) -> str:
        return f"<Log {self.about}>"

    @property
    def negligible(self) -> float:
        """A gain too small to matter: a hundredth of a reward's standard deviation."""
        return _NEGLIGIBLE * (self.reward_range[1] - self.reward_range[0]) * self.summary.sd

    @property
    def default_policy(self) -> str:
        """What a bandit plays by default: DriftAuto, which on rewards of two values is DriftTS."""
        return "drift-auto" if self.summary.several else "drift-ts"

    def whole(self) -> Events:
        return self._events


def _read(found: Source, reader: RowReader) -> Events:
    pieces, n = [], 0
    for piece in found.pieces(reader.select, not reader.uniform):
        reader.decimal_comma = found.delimiter != ","
        pieces.append(reader.events(piece))
        n += pieces[-1].n
        if n > MOST_ROWS:
            raise refuse(f"the log has more than {MOST_ROWS:,} rows", "Take a part of it.")
    if not n:
        raise refuse("the log has no events", "It needs one row per decision with its reward.")
    return Events(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def _range_of(rewards: np.ndarray) -> tuple[float, float]:
    """[0, 1], or the range of the rewards if some lie outside."""
    low, high = float(rewards.min()), float(rewards.max())
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    return low, high if high > low else low + 1.0


def half_of(row: Any, seed: int = 0) -> np.ndarray:
    """Which half of a log each row belongs to, 0 or 1, by a hash of its number."""
    hashed = mix(np.asarray(row, np.uint64) * stride(3) + stride(seed + 7))
    return np.asarray((hashed >> np.uint64(63)).astype(np.int64))


def _order(events: Events, seed: int) -> Events:
    """The events in order of time, those of equal time by a hash of their row and the seed.

    A file is often sorted by something that is known only afterwards, such as departures by their real time. Learning
    row by row within a minute would then use the future."""
    if (np.diff(events.time) > 0).all():
        return events
    hashed = mix(np.asarray(events.row, np.uint64) * stride(1) + stride(seed + 1))
    return events.take(np.lexsort((hashed, events.time)))


# ---- checks of the whole log -----------------------------------------------------------------------------------------


def summarise(log: Log, reader: RowReader) -> LogSummary:
    """Check the whole log and summarise it."""
    events, k = log.whole(), log.n_arms
    arm, mu = events.arm, events.propensity
    least = int(mu.argmin())
    forced = int(((mu > CERTAIN) & (log.menus.sum(axis=1)[events.menu] > 1)).sum())
    if k < 2:
        raise refuse(f"there is only one arm, {log.arms[0]!r:.60}", "A choice needs two arms.")
    if not events.time[-1] > events.time[0]:
        raise refuse("all times are the same", "Name the column that holds the times of the decisions.")
    if mu[least] * events.n < _INCREDIBLE:
        raise refuse(
            f"propensity {mu[least]:.2g} is too small to be true",
            "An arm with that probability is played in one of a million such logs; write the real one.",
            int(events.row[least]),
        )
    if forced > 0.5 * events.n:
        raise refuse(
            f"propensity is 1 in {forced:,} of {events.n:,} events",
            "Write the probability that the arm had when it was chosen, or list in `available` the arms that could be "
            "chosen.",
        )
    values, counts = np.unique(events.reward, return_counts=True)
    return LogSummary(
        n=events.n,
        pulls=np.bincount(arm, minlength=k),
        start=float(events.time[0]),
        end=float(events.time[-1]),
        dates=bool(reader.dates),
        time_unit=reader.printed_unit,
        mean=float(events.reward.mean()),
        sd=float(events.reward.std()),
        several=len(values) > 2,
        odd=int(events.n - counts.max()),
        highest=int(counts[-1]) if values[-1] == 1.0 else 0,
        least=float(mu[least]),
        delay=float(np.median(events.known - events.time)),
        never=int(np.isinf(events.known).sum()),
        known_in_time=int((events.known <= events.time[-1]).sum()),
        adaptive=not reader.uniform and len(log.menus) == 1 and _adaptive(arm, mu, k),
        left_out=reader.left_out,
        offered=np.bincount(events.menu, minlength=len(log.menus)) @ log.menus / events.n,
        forced=forced,
        warnings=fit_counts(log, reader.uniform),
    )


def _adaptive(arm: np.ndarray, mu: np.ndarray, k: int) -> bool:
    pulls = np.maximum(np.bincount(arm, minlength=k), 1)
    mean = np.bincount(arm, mu, minlength=k) / pulls
    spread = np.sqrt(np.maximum(np.bincount(arm, mu * mu, minlength=k) / pulls - mean * mean, 0.0))
    return bool(((pulls > 50) & (spread > 0.1 * mean)).any())


def warnings_about(log: Log, half_lives: Sequence[float] = ()) -> list[str]:
    """Warnings for the reader of a result."""
    summary = log.summary
    rare = int(np.argmin(summary.offered))
    few = f"Only {summary.odd} rewards differ from the rest" if summary.odd else "All rewards are the same"
    shortest = min((length for length in half_lives if length < summary.delay), default=None)
    checks = [
        (summary.one_sided, one_sided_sentence(log)),
        (summary.odd < FEWEST_ODD, f"{few}: intervals are wide, and policies that learn have little to learn from."),
        (
            summary.known_in_time < FEWEST_ODD,
            f"Only {summary.known_in_time} rewards became known before the log ended: policies that learn have little "
            "to learn from. Log for longer, or check the column reward_time.",
        ),
        (
            summary.offered[rare] < _NEARLY_ALWAYS,
            f"Arm {log.arms[rare]:.40} was available at {100.0 * summary.offered[rare]:.0f}% of the events only: gains "
            "over the best arm assume that an arm earns as usual where it was not available.",
        ),
        (
            summary.adaptive,
            "The logger's probabilities changed over time (an adaptive logger): estimates are several times less "
            "certain than on a log of uniformly drawn arms.",
        ),
        (
            summary.forced > 0,
            f"In {summary.forced:,} of {summary.n:,} events the logger had no choice (propensity 1 though other arms "
            "were available): no interval covers what those would have earned there.",
        ),
        (
            summary.least < 0.01,
            f"Some propensities are as small as {summary.least:.2g}: a few rows carry much of the weight.",
        ),
        (
            summary.never > 0,
            f"{summary.never:,} rewards never became known: policies do not learn from them, values count them.",
        ),
        (summary.left_out > 0, f"{summary.left_out:,} decisions without a reward were left out."),
    ]
    out = [*summary.warnings, *(sentence for applies, sentence in checks if applies)]
    if shortest is not None:  # first, because late rewards can reverse the order of half-lives
        delay, length = (format_duration(seconds, summary.time_unit) for seconds in (summary.delay, shortest))
        late = f"Half of the rewards come {delay} late or later, longer than a half-life of {length}"
        out.insert(0, f"{late}: evidence is mostly forgotten when it arrives.")
    return out


def one_sided_sentence(log: Log) -> str:
    """Describes a log in which failures seem not to be reported."""
    summary = log.summary
    share = "All" if summary.highest == summary.n else f"{summary.highest:,} of"
    return (
        f"{share} {summary.n:,} rewards are {log.reward_range[1]:g} and {summary.left_out:,} decisions have no reward: "
        "only successes seem to be reported, so every arm looks perfect and arms cannot be compared. Report failures "
        "too, or open the bandit with wait and default, so that a decision without a reward counts as a failure."
    )


def refuse_one_sided(log: Log) -> None:
    """Refuse a log in which all rewards are successes and the rest is missing."""
    if log.summary.one_sided and not log.summary.odd:
        raise LogError(f"{log.name}: {one_sided_sentence(log)}")


def fit_counts(log: Log, uniform: bool) -> list[str]:
    """Compare the propensities with the plays: warnings, or a `LogError` where they do not fit.

    Over the events at which an arm was offered, 1[played] / propensity has their number as its expected sum: for each
    arm over the whole log, and over stretches of it. With true propensities the misses of successive stretches are
    uncorrelated for every logger. Events with probability 1 always fit."""
    events = log.whole()
    events = events.take(~(events.propensity > CERTAIN))
    warnings: list[str] = []
    if not events.n:
        return warnings
    arm, mu, k = events.arm, events.propensity, log.n_arms
    offered = (np.bincount(events.menu, minlength=len(log.menus)) @ log.menus).astype(float)
    total = np.bincount(arm, 1.0 / mu, minlength=k)
    variance = np.bincount(arm, (1.0 - mu) / (mu * mu), minlength=k)
    lowest, highest = np.ones(k), np.zeros(k)
    np.minimum.at(lowest, arm, mu)
    np.maximum.at(highest, arm, mu)
    # A sum is too small where an arm had a small propensity and was not played; no row shows how small. It may have
    # been as small as the smallest of the log, or as far below the arm's smallest as that is below its largest, or as
    # all that a logger which was nearly certain left to the other arms: then no small sum is a fault.
    varied = np.where(highest > 0.0, lowest**2 / np.maximum(highest, 1e-300), 1.0)
    least = np.minimum(min(lowest.min(), 1.0 - mu.max()), varied)
    variance += np.maximum(offered - total, 0.0) * (1.0 / least - 1.0)
    z = (total - offered) / np.sqrt(np.maximum(variance, 1.0))
    for at, name in enumerate(log.arms):
        if abs(z[at]) > _FAR and abs(total[at] / max(offered[at], 1.0) - 1.0) > 0.1:
            raise refuse(
                f"the propensities {'declared uniform' if uniform else 'given'} do not fit the counts: 1/propensity "
                f"over the plays of {name!r:.40} sums to {total[at]:.0f} where {offered[at]:.0f} events are expected",
                "Write the probability that the arm had when it was chosen; where an arm could not be chosen, leave it "
                "out of `available`.",
            )
        if abs(z[at]) > _STRANGE:
            warnings.append(
                f"1/propensity over the plays of {name!r:.40} sums to {total[at]:.0f}, expected about "
                f"{offered[at]:.0f} ({z[at]:+.1f} standard deviations)."
            )
    correlation = correlate_misses(events, log.menus)
    if correlation > _STRANGE:
        warnings.append(
            f"The propensities fit the counts on the whole but not over time ({correlation:.1f} standard deviations). "
            "Averages in place of the probability at decision time make the values below wrong."
        )
    return warnings


def correlate_misses(events: Events, menus: np.ndarray) -> float:
    """The correlation of successive stretches' misses, in standard deviations: the products are martingale differences,
    whose squares give the scale of their sum."""
    size = max(256, -(-events.n // _STRETCHES))
    count = events.n // size
    if count < 24:
        return 0.0
    misses = np.zeros((count, menus.shape[1]))
    stretch = np.arange(count * size) // size
    part = events.take(slice(0, count * size))
    np.add.at(misses, (stretch, part.arm), 1.0 / part.propensity)
    offers = np.zeros((count, len(menus)))
    np.add.at(offers, (stretch, part.menu), 1.0)
    misses -= offers @ menus
    products = (misses[:-1] * misses[1:]).sum(axis=1)
    scale = math.sqrt(float((products * products).sum()))
    return float(products.sum()) / scale if scale > 0.0 else 0.0


def describe_gaps(features: Features, values: np.ndarray) -> list[str]:
    """Sentences about missing values and about levels that were not declared."""
    out = []
    for feature, column in zip(features, values.T, strict=True):
        missing = int(np.isnan(column).sum())
        if missing:
            out.append(f"Feature {feature.name:.40} is missing in {missing:,} events; the mean so far stands for it.")
        other = int((column == len(feature.levels)).sum()) if feature.kind == "levels" else 0
        if other:
            out.append(f"Feature {feature.name:.40} has other levels than those named in {other:,} events.")
    return out
