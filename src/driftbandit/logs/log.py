"""A log of decisions: read, checked from the first row to the last, then handed out a piece at a time, in order.

The first reading looks at every row and either refuses the log with row numbers or sums it up; the others trust it. A
log of up to two million events stays in memory, a longer one is read from its file again."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from driftbandit.logs import convert
from driftbandit.logs.checks import LogSummary, Scan
from driftbandit.logs.events import Events
from driftbandit.logs.faults import Faults, refuse
from driftbandit.logs.rows import Columns, Rows
from driftbandit.logs.sources import Source
from driftbandit.logs.ties import in_order

_KEPT = 2_000_000  # events kept in memory, about 120 MB


class Log:
    """A checked log.

    >>> log = Log({"time": [1, 2, 3], "arm": ["a", "b", "a"], "reward": [0, 1, 1]}, propensity="uniform")
    >>> log.arms, log.n, log.summary.mean
    (['a', 'b'], 3, 0.6666666666666666)

    `source` is the path of a CSV, JSON-lines or Parquet file, a data frame, a dict of columns, or the journal of a live
    bandit (a SQLite file or postgresql://...; `bandit` says which, where there are several). The keywords `time`,
    `arm`, `reward`, `propensity`, `reward_time`, `available` and `outcome` say what a column is called; `propensity`
    may be "uniform". `arms` lists the arms, `reward_range` gives the possible rewards; `time_unit` says what times
    given as numbers count (if not said: seconds, or what they must be if they count from 1970); `sort` sorts the rows
    by time if they are not in order."""

    def __init__(
        self,
        source: Any,
        *,
        arms: Sequence[Any] | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        time_unit: str | None = None,
        sort: bool = False,
        seed: int = 0,
        bandit: str | None = None,
        **columns: str,
    ) -> None:
        unknown = [name for name in columns if name not in Columns._fields]
        if unknown:
            raise TypeError(f"A log has no column {unknown[0]!r}; it has: {', '.join(Columns._fields)}.")
        self.source, self.columns, self.sort, self.seed = Source(source, bandit), Columns(**columns), sort, seed
        self.given = list(columns)
        self.name = self.source.name
        self.time_unit = None if time_unit is None else convert.checked_unit(time_unit)
        low, high = (float(side) for side in reward_range)
        if not (np.isfinite([low, high]).all() and low < high):
            raise refuse(f"reward_range is ({low:g}, {high:g})", "It needs finite low < high.")
        self.reward_range = low, high
        self.uniform = self.columns.propensity == "uniform"
        self._declared = None if arms is None else [str(arm) for arm in arms]
        self._codes: dict[str, int] = {}  # arms in the order in which they were met
        self._kept: list[Events] | None = []
        self.summary: LogSummary = self._scan()
        self.arms: list[str] = self.summary.arms

    @property
    def n(self) -> int:
        """The number of events."""
        return self.summary.n

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return len(self.arms)

    def value(self, reward: Any) -> Any:
        """A reward or value from [0, 1] back in the log's own unit."""
        low, high = self.reward_range
        return low + (high - low) * reward

    def pieces(self) -> Iterator[Events]:
        """All events in order, some at a time; rows of equal time are shuffled."""
        if self._kept is not None:
            return iter(self._kept)
        return self._renumbered(in_order(self._events(self._rows(), Faults()), self.seed))

    def whole(self) -> Events:
        """All events at once."""
        pieces = list(self.pieces())
        out = pieces[0]
        for piece in pieces[1:]:
            out = out.joined(piece)
        return out

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _rows(self) -> Rows:
        return Rows(self.columns, self.given, self._declared, self.reward_range, self.time_unit, self._codes)

    def _scan(self) -> LogSummary:
        faults, scan, rows = Faults(), Scan(self.uniform), self._rows()
        pieces: Iterable[Events] = self._events(rows, faults)
        if self.sort:
            pieces = self._sorted(pieces)
        for events in in_order(scan.before(pieces, faults), self.seed):
            scan.take(events)
            if self._kept is not None:
                self._kept.append(events)
                if scan.n > _KEPT and not self.sort and self.source.kind != "journal":  # a journal goes on growing
                    self._kept = None
        recognised = self._recognised(rows, scan)
        names = list(self._codes)
        order = [names.index(arm) for arm in (self._declared or sorted(names, key=_natural)) if arm in self._codes]
        summary = scan.summary([names[code] for code in order], order, rows.left_out, rows.dates, faults)
        faults.raise_if_any(self.name)
        summary.warnings.extend(recognised)
        self._place = np.argsort(order)
        if self._kept is not None:
            self._kept = list(self._renumbered(self._kept))
        return summary

    def _recognised(self, rows: Rows, scan: Scan) -> list[str]:
        """Settle what bare numbers count, where nobody said it, and tell if it is more than seconds."""
        if self.time_unit is not None:
            return []
        self.time_unit = unit = rows.time_unit or "s"
        if unit == "s" and not rows.dates and scan.last >= convert.BARE:
            raise convert.unclear_unit(scan.last, self.columns.time)
        if unit == "s":
            return []
        return [
            f"Times are bare numbers that must count from 1970, the first being {convert.date_of(scan.start)}: they "
            f"were read as {unit}; time_unit= (--time-unit) says otherwise."
        ]

    def _renumbered(self, pieces: Iterable[Events]) -> Iterator[Events]:
        for events in pieces:
            allowed = events.allowed
            if allowed is not None:
                wide = np.zeros((events.n, len(self._place)), bool)
                wide[:, self._place] = events.widened(len(self._place))[:, : len(self._place)]
                allowed = wide
            mu = events.propensity
            if self.uniform:  # where nothing was said all arms were available, and only now their number is known
                mu = np.where(np.isnan(mu), 1.0 / len(self._place), mu)
            yield events._replace(arm=self._place[events.arm], propensity=mu, allowed=allowed)

    @staticmethod
    def _sorted(pieces: Iterable[Events]) -> Iterator[Events]:
        whole: Events | None = None
        for events in pieces:
            whole = events if whole is None else whole.joined(events)
        if whole is not None:
            yield whole.take(np.argsort(whole.time, kind="stable"))

    def _events(self, rows: Rows, faults: Faults) -> Iterator[Events]:
        """The rows as events with arms numbered as they are met."""
        for piece in self.source.pieces(faults, chances=not self.uniform):
            events = rows.events(piece, faults)
            if events is not None:
                yield events


def _natural(name: str) -> tuple[int, float, str]:
    """Names in the order people expect: numbers by size, then texts."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
