"""A log of decisions: read once, checked from the first row to the last, and kept in memory."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from driftbandit.draws import mix
from driftbandit.logs import convert
from driftbandit.logs.checks import LogSummary, summarise
from driftbandit.logs.read import Faults, Source, refuse
from driftbandit.logs.report import About
from driftbandit.logs.rows import Columns, Events, Rows
from driftbandit.primitives import stride

MOST_ROWS = 100_000_000  # about 4 GB
_NEGLIGIBLE = 0.01  # of a reward's standard deviation


class Log:
    """A checked log.

    >>> log = Log({"time": [1, 2, 3], "arm": ["a", "b", "a"], "reward": [0, 1, 1]}, propensity="uniform")
    >>> log.arms, log.n, log.summary.mean
    (['a', 'b'], 3, 0.6666666666666666)

    `source` is the path of a CSV, JSON-lines or Parquet file, a data frame, a dict of columns, or the journal of a live
    bandit (a SQLite file or postgresql://...; `bandit` names it where there are several). The keywords `time`, `arm`,
    `reward`, `propensity`, `reward_time`, `available` and `outcome` give the columns' names; `propensity` may be
    "uniform". `arms` lists the arms, `reward_range` gives the possible rewards. `time_unit` is the unit of times given
    as numbers, `date_format` the format of dates, `delimiter` that of a CSV file; each is inferred if not given. `sort`
    sorts the rows by time; `drop_missing` leaves out rows in which a value is missing."""

    def __init__(
        self,
        source: Any,
        *,
        arms: Sequence[Any] | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        time_unit: str | None = None,
        date_format: str | None = None,
        delimiter: str | None = None,
        sort: bool = False,
        drop_missing: bool = False,
        seed: int = 0,
        bandit: str | None = None,
        **columns: str,
    ) -> None:
        unknown = [name for name in columns if name not in Columns._fields]
        if unknown:
            raise TypeError(f"A log has no column {unknown[0]!r}; it has: {', '.join(Columns._fields)}.")
        low, high = (float(side) for side in reward_range)
        if not (np.isfinite([low, high]).all() and low < high):
            raise refuse(f"the range of rewards is ({low:g}, {high:g})", "It needs finite low < high.")
        self.reward_range = low, high
        found = Source(source, bandit, delimiter)
        self.name = found.name
        names = Columns(**columns)
        declared = None if arms is None else [str(arm) for arm in arms]
        clock = convert.TimeReader(convert.checked_unit(time_unit), date_format)
        rows = Rows(names, list(columns), declared, self.reward_range, clock, drop_missing)
        faults = Faults()
        events = self._read(found, rows, faults)
        if not sort:
            back = events.row[1:][np.diff(events.time) < 0]
            faults.add(
                "the time goes back",
                "Rows are in order of time; sort=True (--sort) sorts them. Local times go back when summer time ends: "
                "write them with their offset, as in 02:30:00+02:00.",
                back,
            )
        unordered = self._settled(events, rows, declared, faults)
        faults.raise_if_any(self.name)
        self._events = _in_order(unordered, seed)
        self.summary: LogSummary = summarise(self, rows, unordered, faults)
        faults.raise_if_any(self.name)
        self.summary.warnings.extend(self._about_times(clock, names.time))

    def _read(self, found: Source, rows: Rows, faults: Faults) -> Events:
        pieces, n = [], 0
        for piece in found.pieces(faults, rows.used, not rows.uniform):
            rows.comma = found.decimal_comma
            pieces.append(rows.events(piece, faults))
            n += pieces[-1].n
            if n > MOST_ROWS:
                raise refuse(f"the log has more than {MOST_ROWS:,} rows", "Take a part of it.")
        if not n:
            faults.add("the log has no events", "It needs one row per decision with its reward.")
            faults.raise_if_any(self.name)
        return Events(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))

    def _settled(self, events: Events, rows: Rows, declared: list[str] | None, faults: Faults) -> Events:
        """The events with arms numbered in their final order; lay out which were available."""
        met = list(rows.codes) or ["?"]
        self.arms: list[str] = [arm for arm in (declared or sorted(met, key=_natural)) if arm in rows.codes]
        place = np.array([self.arms.index(arm) if arm in self.arms else 0 for arm in met])
        self.menus = np.zeros((len(rows.menus), max(len(self.arms), 1)), bool)
        for menu, at in rows.menus.items():
            self.menus[at, slice(None) if menu is None else place[list(menu)]] = True
        arm = place[events.arm].astype(np.int16)
        absent = ~self.menus[events.menu, arm]
        faults.add("the arm played was not among the available ones", "One of the two is wrong.", events.row[absent])
        mu = events.propensity
        if rows.uniform:
            mu = (1.0 / np.maximum(self.menus.sum(axis=1), 1))[events.menu]
        return events._replace(arm=arm, propensity=mu)

    @property
    def n(self) -> int:
        """The number of events."""
        return self._events.n

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return len(self.arms)

    @property
    def about(self) -> About:
        """The log in a line."""
        summary = self.summary
        return About(self.name, self.n, self.n_arms, summary.span, summary.said_in, self.reward_range == (0.0, 1.0))

    def __str__(self) -> str:
        return str(self.about)

    def __repr__(self) -> str:
        return f"<Log {self.about}>"

    @property
    def negligible(self) -> float:
        """A gain too small to matter: a hundredth of the standard deviation of a reward that is 0 or 1, at the log's
        average."""
        (low, high), mean = self.reward_range, self.summary.mean
        return _NEGLIGIBLE * (high - low) * math.sqrt(max(mean * (1.0 - mean), 0.0))

    def value(self, reward: Any) -> Any:
        """A reward or value from [0, 1] in the log's own unit."""
        low, high = self.reward_range
        return low + (high - low) * reward

    def whole(self) -> Events:
        """All events."""
        return self._events

    def pieces(self, size: int = 1 << 16) -> Iterator[Events]:
        """All events in order, some at a time; rows of equal time are shuffled."""
        for start in range(0, self.n, size):
            yield self._events.take(slice(start, start + size))

    def _about_times(self, clock: convert.TimeReader, name: str) -> list[str]:
        """Warnings about times that are bare numbers."""
        if clock.given is not None or not clock.unit:
            hint = "" if clock.dates else convert.unix_hint(self.summary.start, clock.given or "")
            return [hint] if hint else []
        if clock.unit == "s":
            if self.summary.end >= convert.BARE:
                raise convert.unclear_unit(self.summary.end, name)
            return []
        return [
            f"Times are bare numbers that must count from 1970, the first being {convert.date_of(self.summary.start)}: "
            f"they were read as {clock.unit}; time_unit= (--time-unit) changes that."
        ]


def half_of(row: Any, seed: int = 0) -> np.ndarray:
    """Which half of a log each row belongs to, 0 or 1, by a hash of its number."""
    hashed = mix(np.asarray(row, np.uint64) * stride(3) + stride(seed + 7))
    return np.asarray((hashed >> np.uint64(63)).astype(np.int64))


def _in_order(events: Events, seed: int) -> Events:
    """The events in order of time, those of equal time by a hash of their row and the seed.

    A file is often sorted by something that is known only afterwards, as departures by when they really left. Learning
    row by row within a minute would then use the future."""
    steps = np.diff(events.time)
    if (steps > 0).all():
        return events
    hashed = mix(np.asarray(events.row, np.uint64) * stride(1) + stride(seed + 1))
    return events.take(np.lexsort((hashed, events.time)))


def _natural(name: str) -> tuple[int, float, str]:
    """Names in the order people expect: numbers by size, then texts."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
