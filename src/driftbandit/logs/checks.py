"""What only the whole log can show: times that go back, rows of equal time in an order that tells, and the summary."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs.faults import Faults
from driftbandit.logs.fit import CERTAIN, Fit, RoundingTest
from driftbandit.logs.rows import MOST_ARMS
from driftbandit.logs.ties import CopyTest, OrderTest

_SAMPLE = 200_000  # events whose delays and gaps are looked at
_INCREDIBLE = 1e-6  # the smallest propensity times the number of events
_VALUES = 2_000  # different rewards counted one by one


class LogSummary(NamedTuple):
    """A log in a few numbers."""

    n: int
    arms: list[str]
    pulls: np.ndarray
    start: float  # seconds; since 1970 if `dates`
    end: float
    dates: bool
    mean: float  # of the rewards, mapped to [0, 1]
    odd: int  # rewards that differ from the most common one
    least: float  # the smallest propensity
    delay: float  # median time until a reward was known, seconds
    never: int  # rewards that never became known
    gaps: np.ndarray  # median time between two plays of the same arm, seconds
    adaptive: bool  # did the logger's chances for the same arm vary?
    left_out: int  # open decisions of a journal
    restricted: bool  # were some arms unavailable at times?
    offered: np.ndarray  # share of the events at which each arm was available
    forced: int  # events at which one arm had all the chance though others were available
    warnings: list[str]
    unit: str = ""  # of times that are numbers, if somebody said one

    @property
    def said_in(self) -> bool | str:
        """How `periods.said` says lengths of time: as people do, in the unit of the log, or as bare numbers."""
        return self.dates or self.unit or False

    @property
    def span(self) -> float:
        """From the first event to the last, in seconds."""
        return self.end - self.start


class Scan:
    """The first reading of a log."""

    def __init__(self, uniform: bool) -> None:
        self.uniform = uniform
        self.n = 0
        self.order, self.copies, self.rounding = OrderTest(), CopyTest(), RoundingTest()
        self.last = -math.inf
        self.start = math.inf
        self.total = 0.0
        self.least, self.least_row = 1.0, 0
        self.never = 0
        self.restricted = False
        self.values: Counter[float] = Counter()
        self.many = False
        shape = MOST_ARMS + 2
        self.pulls, self.fit = np.zeros(shape, np.int64), Fit(shape)
        self.chance, self.chance2, self.offered, self.forced = np.zeros(shape), np.zeros(shape), np.zeros(shape), 0
        self.delays: list[np.ndarray] = []
        self.times: list[np.ndarray] = []
        self.arms: list[np.ndarray] = []

    def before(self, pieces: Iterable[Any], faults: Faults) -> Iterator[Any]:
        """Look at the rows as the file has them: do times go back, and does the order of ties tell?"""
        for events in pieces:
            time = events.time
            back = np.flatnonzero(np.diff(time, prepend=self.last if math.isfinite(self.last) else time[:1]) < 0)
            faults.add(
                "the time goes back",
                "Rows are in order of time; sort=True (--sort) puts them so. Local times go back when summer time "
                "ends: write them with their offset, as in 02:30:00+02:00.",
                events.row[back],
            )
            finite = np.isfinite(time) & np.isfinite(events.reward)
            if len(back) == 0 and finite.all():
                self.order.take(time, events.reward)
                self.copies.take(events)
            if len(time):
                self.last = float(time[-1])
            if faults:  # what is wrong needs no order; sorting NaN would only confuse
                events = events.take(finite)
            yield events

    def take(self, events: Any) -> None:
        """Count a piece in order."""
        if not events.n:
            return
        arm, mu = events.arm, events.propensity
        if self.n == 0:
            self.start = float(events.time[0])
        if self.n < _SAMPLE:
            self.delays.append(events.known - events.time)
            self.times.append(events.time)
            self.arms.append(arm)
        self.n += events.n
        self.total += float(events.reward.sum())
        self.never += int(np.isinf(events.known).sum())
        if not self.many:
            values, counts = np.unique(events.reward, return_counts=True)
            self.values.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            self.many = len(self.values) > _VALUES
        size = len(self.pulls)
        self.pulls += np.bincount(arm, minlength=size)
        if events.allowed is None:
            self.offered += events.n
        else:
            self.restricted = True
            width = min(events.allowed.shape[1], size)
            self.offered[:width] += events.allowed[:, :width].sum(axis=0)
            self.offered[width:] += events.allowed[:, -1].sum()
        self.fit.take(arm, mu, events.allowed)
        good = np.isfinite(mu) & (mu > 0)
        if good.any():
            a, m = arm[good], mu[good]
            if m.min() < self.least:
                self.least, self.least_row = float(m.min()), int(events.row[good][m.argmin()])
            self.rounding.take(m)
            self.chance += np.bincount(a, m, minlength=size)
            self.chance2 += np.bincount(a, m * m, minlength=size)
            several = True if events.allowed is None else events.allowed[good].sum(axis=1) > 1
            self.forced += int(((m > CERTAIN) & several).sum())

    def summary(self, arms: list[str], order: list[int], left_out: int, dates: bool, faults: Faults) -> LogSummary:
        """The numbers, after the last checks."""
        k = len(arms)
        if self.n == 0 and not faults:
            faults.add("the log has no events", "It needs one row per decision.")
        if self.n and k < 2 and not faults:
            faults.add(
                f"there is only one arm, {arms[0]!r:.60}" if arms else "there is no arm", "A choice needs two arms."
            )
        if self.n and not faults and not self.last > self.start:
            faults.add("all times are the same", "Name the column that says when each decision was made.")
        if self.least * self.n < _INCREDIBLE and not faults:
            faults.add(
                f"propensity {self.least:.2g} is too small to be true",
                "An arm with that chance is played once in a million logs like this; write the chance it really had.",
                self.least_row,
            )
        if self.forced > 0.5 * self.n and not faults:
            faults.add(
                f"propensity is 1 in {self.forced:,} of {self.n:,} events",
                "A logger without a choice says nothing about other arms: write the chance the arm had at that moment, "
                "or in `available` that no other could be chosen.",
            )
        tests = (self.order, self.copies, self.rounding)
        warnings = [text for text in (test.warning() for test in tests) if text]
        if not faults:
            self.fit.judge(arms, order, self.uniform, faults, warnings)
        delays = np.concatenate(self.delays) if self.delays else np.zeros(1)
        common = max(self.values.values(), default=0)
        return LogSummary(
            n=self.n,
            arms=arms,
            pulls=self.pulls[order],
            start=self.start,
            end=self.last,
            dates=dates,
            mean=self.total / max(self.n, 1),
            odd=self.n - common,
            least=min(self.least, 1.0 / max(k, 1)) if self.uniform else self.least,
            delay=float(np.median(delays)) if len(delays) else 0.0,
            never=self.never,
            gaps=self._gaps(order),
            adaptive=self._adaptive(order),
            left_out=left_out,
            restricted=self.restricted,
            offered=self.offered[order] / max(self.n, 1),
            forced=self.forced,
            warnings=warnings,
        )

    def _adaptive(self, order: list[int]) -> bool:
        if self.uniform or self.restricted:
            return False
        for code in order:
            pulls = self.pulls[code]
            mean = self.chance[code] / max(pulls, 1)
            variance = max(self.chance2[code] / max(pulls, 1) - mean * mean, 0.0)
            if pulls > 50 and math.sqrt(variance) > 0.1 * mean:
                return True
        return False

    def _gaps(self, order: list[int]) -> np.ndarray:
        if not self.times:
            return np.zeros(len(order))
        time, arm = np.concatenate(self.times), np.concatenate(self.arms)
        gaps = [np.diff(time[arm == code]) for code in order]
        return np.array([float(np.median(gap)) if len(gap) else math.inf for gap in gaps])
