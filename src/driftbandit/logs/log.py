"""A log of decisions: read, checked from the first row to the last, then handed out a piece at a time, in order.

The first reading looks at every row and either refuses the log with row numbers or sums it up; the others trust it. A
log of up to two million events stays in memory, a longer one is read from its file again."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs import convert
from driftbandit.logs.checks import Scan, Summary
from driftbandit.logs.faults import Faults, refuse
from driftbandit.logs.sources import Piece, Source
from driftbandit.logs.ties import in_order

_KEPT = 2_000_000  # events kept in memory, about 120 MB
_NEVER = np.inf  # when a reward that did not come becomes known


class Events(NamedTuple):
    """Some consecutive decisions of a log, in the order of their times."""

    time: Any  # seconds
    arm: Any  # the number of the arm in `Log.arms`
    reward: Any  # mapped to [0, 1]
    propensity: Any  # the chance with which the logger chose this arm
    known: Any  # when the reward was there to be learnt from; the time of the decision if the log does not say
    row: Any  # the row in the file, from 1
    allowed: Any = None  # events × arms: which were available; None if all were

    @property
    def n(self) -> int:
        """How many."""
        return len(self.time)

    def take(self, which: Any) -> "Events":
        """Some of the events."""
        return Events(*(None if field is None else field[which] for field in self))

    def joined(self, other: "Events") -> "Events":
        """These events and more."""
        allowed = self.allowed
        if allowed is not None or other.allowed is not None:
            width = max(each.allowed.shape[1] for each in (self, other) if each.allowed is not None)
            allowed = np.concatenate([each.widened(width) for each in (self, other)])
        both = (np.concatenate([mine, yours]) for mine, yours in zip(self[:6], other[:6], strict=True))
        return Events._make([*both, allowed])

    def widened(self, width: int) -> np.ndarray:
        """Which arms were available, with room for so many arms."""
        if self.allowed is None:
            return np.ones((self.n, width), bool)
        return np.pad(self.allowed, ((0, 0), (0, width - self.allowed.shape[1])))


class Columns(NamedTuple):
    """What the columns of a log are called."""

    time: str = "time"
    arm: str = "arm"
    reward: str = "reward"
    propensity: str = "propensity"  # or "uniform": every available arm had the same chance
    reward_time: str = "reward_time"
    available: str = "available"
    outcome: str = "outcome"  # of a live journal: rows without a reward are decisions still open


class Log:
    """A checked log.

    >>> log = Log({"time": [1, 2, 3], "arm": ["a", "b", "a"], "reward": [0, 1, 1]}, propensity="uniform")
    >>> log.arms, log.n, log.summary.mean
    (['a', 'b'], 3, 0.6666666666666666)

    `source` is the path of a CSV, JSON-lines or Parquet file, a data frame or a dict of columns. The keywords `time`,
    `arm`, `reward`, `propensity`, `reward_time`, `available` and `outcome` say what a column is called; `propensity`
    may be "uniform". `arms` lists the arms there are, `reward_range` the rewards that can be; `time_unit` says what
    times given as numbers count; `sort` puts rows in order of time that are not."""

    def __init__(
        self,
        source: Any,
        *,
        arms: Sequence[Any] | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        time_unit: str = "s",
        sort: bool = False,
        seed: int = 0,
        **columns: str,
    ) -> None:
        unknown = [name for name in columns if name not in Columns._fields]
        if unknown:
            raise TypeError(f"A log has no column {unknown[0]!r}; it has: {', '.join(Columns._fields)}.")
        self.source, self.columns, self.sort, self.seed = Source(source), Columns(**columns), sort, seed
        self.given = columns
        self.name = self.source.name
        self.time_unit = convert.checked_unit(time_unit)
        low, high = (float(side) for side in reward_range)
        if not (np.isfinite([low, high]).all() and low < high):
            raise refuse(f"reward_range is ({low:g}, {high:g})", "It needs finite low < high.")
        self.reward_range = low, high
        self.uniform = self.columns.propensity == "uniform"
        self._declared = None if arms is None else [str(arm) for arm in arms]
        self._codes: dict[str, int] = {}  # arms in the order in which they were met
        self._kept: list[Events] | None = []
        self._left_out = 0
        self.summary: Summary = self._scan()
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
        return self._renumbered(in_order(self._events(Faults()), self.seed))

    def whole(self) -> Events:
        """All events at once."""
        pieces = list(self.pieces())
        out = pieces[0]
        for piece in pieces[1:]:
            out = out.joined(piece)
        return out

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _scan(self) -> Summary:
        faults, scan = Faults(), Scan(self.uniform)
        pieces: Iterable[Events] = self._events(faults)
        if self.sort:
            pieces = self._sorted(pieces)
        for events in in_order(scan.before(pieces, faults), self.seed):
            scan.take(events)
            if self._kept is not None:
                self._kept.append(events)
                if scan.n > _KEPT and not self.sort:
                    self._kept = None
        names = list(self._codes)
        order = [names.index(arm) for arm in (self._declared or sorted(names, key=_natural)) if arm in self._codes]
        summary = scan.summary([names[code] for code in order], order, self._left_out, self._dates, faults)
        faults.raise_if_any(self.name)
        self._place = np.argsort(order)
        if self._kept is not None:
            self._kept = list(self._renumbered(self._kept))
        return summary

    def _renumbered(self, pieces: Iterable[Events]) -> Iterator[Events]:
        for events in pieces:
            allowed = events.allowed
            if allowed is not None:
                wide = np.zeros((events.n, len(self._place)), bool)
                wide[:, self._place] = allowed[:, : len(self._place)]
                allowed = wide
            mu = events.propensity
            if self.uniform and allowed is None:
                mu = np.full(events.n, 1.0 / len(self._place))
            yield events._replace(arm=self._place[events.arm], propensity=mu, allowed=allowed)

    @staticmethod
    def _sorted(pieces: Iterable[Events]) -> Iterator[Events]:
        whole: Events | None = None
        for events in pieces:
            whole = events if whole is None else whole.joined(events)
        if whole is not None:
            yield whole.take(np.argsort(whole.time, kind="stable"))

    def _events(self, faults: Faults) -> Iterator[Events]:
        """The rows as events with arms numbered as they are met."""
        self._left_out = 0
        self._dates = False
        for number, piece in enumerate(self.source.pieces(faults)):
            if number == 0:
                self._check_columns(piece)
            if len(piece):
                yield self._converted(piece, faults)

    def _check_columns(self, piece: Piece) -> None:
        from driftbandit.checks import nearest

        there = list(piece.columns)
        optional = ("propensity", "reward_time", "available", "outcome")
        for role, name in self.columns._asdict().items():
            if name in there or (role == "propensity" and self.uniform):
                continue
            if role in optional and role not in self.given:
                continue
            hint = nearest(name, there) or "."
            raise refuse(
                f"there is no column {name!r:.60} for the {role.replace('_', ' ')}{hint.rstrip('.?')}",
                f"The columns are {', '.join(there)[:200]}; say which is meant, as in {role}={there[0]!r}."
                if there
                else "The log has no columns.",
            )
        self._p = [name for name in there if name.startswith("p_") and len(name) > 2]
        if not self.uniform and self.columns.propensity not in there and not self._p:
            raise refuse(
                "there are no propensities, the chances with which the logger chose its arms",
                "Without them nobody can say what another policy would have earned; if every arm had the same chance, "
                "say propensity='uniform' (--propensity uniform).",
            )

    def _converted(self, piece: Piece, faults: Faults) -> Events:
        names, columns, rows = self.columns, piece.columns, piece.rows
        missing = [role for role in ("time", "arm", "reward") if getattr(names, role) not in columns]
        if missing:  # JSON lines may begin to lack a key in mid-file
            raise refuse(f"{missing[0]} is missing", "Every row needs one.", int(rows[0]))
        if names.outcome in columns:
            columns, rows = self._without_open(columns, rows)
        time, dates = convert.times(columns[names.time], names.time, rows, self.time_unit, faults)
        if dates != self._dates and piece.first > 1 and len(rows):
            faults.add("times are dates in some rows and numbers in others", "Write all of them alike.", int(rows[0]))
        self._dates = dates if len(rows) else self._dates
        arm = self._arm_codes(convert.names(columns[names.arm], names.arm, rows, faults), rows, faults)
        reward = self._rewards(convert.numbers(columns[names.reward], names.reward, rows, faults), rows, faults)
        allowed = self._allowed(columns, rows, arm, faults)
        propensity = self._propensities(columns, rows, arm, allowed, faults)
        known = time.copy()
        if names.reward_time in columns:
            known, _ = convert.times(
                columns[names.reward_time], names.reward_time, rows, self.time_unit, faults, _NEVER
            )
            faults.add(
                "the reward was known before the decision",
                f"{names.reward_time} cannot be below {names.time}.",
                rows[known < time],
            )
        return Events(time, arm, reward, propensity, known, rows, allowed)

    def _without_open(self, columns: dict[str, Any], rows: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
        reward = convert.plain(columns[self.columns.reward])
        there = np.array([item is not None and item == item and item != "" for item in reward], bool)
        self._left_out += int((~there).sum())
        if there.all():
            return columns, rows
        keep = np.flatnonzero(there)
        kept = {
            name: [column[int(at)] for at in keep] if isinstance(column, list | tuple) else column.take(keep)
            for name, column in columns.items()
        }
        return kept, rows[keep]

    def _arm_codes(self, names: np.ndarray, rows: np.ndarray, faults: Faults) -> np.ndarray:
        codes = self._codes
        out = np.empty(len(names), np.int64)
        for at, name in enumerate(names):
            code = codes.get(name)
            if code is None:
                if self._declared is not None and name and name not in self._declared:
                    faults.add(
                        f"{name!r:.60} is no arm",
                        f"The arms are {', '.join(self._declared)[:200]}.",
                        int(rows[at]),
                        "unknown arm",
                    )
                    code = 0
                elif not name:
                    code = 0
                else:
                    code = codes[name] = len(codes)
                if len(codes) > Scan.MOST_ARMS:
                    raise refuse(
                        f"{len(codes)} different arms so far",
                        "That looks like a column of ids; name the column that says what was played.",
                        int(rows[at]),
                    )
            out[at] = code
        return out

    def _rewards(self, reward: np.ndarray, rows: np.ndarray, faults: Faults) -> np.ndarray:
        low, high = self.reward_range
        outside = (reward < low) | (reward > high)
        if outside.any():
            worst = reward[outside][0]
            faults.add(
                f"reward {worst:g} lies outside ({low:g}, {high:g})",
                "Say what rewards can be, as in reward_range=(0, 100).",
                rows[outside],
                "range",
            )
        return (reward - low) / (high - low)

    def _allowed(self, columns: dict[str, Any], rows: np.ndarray, arm: np.ndarray, faults: Faults) -> Any:
        if self.columns.available not in columns:
            return None
        several = convert.lists(columns[self.columns.available], self.columns.available, rows, faults)
        if all(some is None for some in several):
            return None
        for at, some in enumerate(several):
            if some:  # arms that are only ever offered are arms too
                self._arm_codes(np.array(some, dtype=object), np.full(len(some), rows[at]), faults)
        out = np.zeros((len(rows), Scan.MOST_ARMS if len(self._codes) > 64 else 64), bool)
        for at, some in enumerate(several):
            if some is None:
                out[at] = True
            else:
                out[at, [self._codes[name] for name in some if name in self._codes]] = True
        absent = ~out[np.arange(len(rows)), arm]
        faults.add("the arm played was not among the available ones", "One of the two is wrong.", rows[absent])
        return out

    def _propensities(
        self, columns: dict[str, Any], rows: np.ndarray, arm: np.ndarray, allowed: Any, faults: Faults
    ) -> np.ndarray:
        name = self.columns.propensity
        if self.uniform:
            if allowed is None:
                return np.full(len(rows), np.nan)  # 1 / number of arms, which is known at the end
            return np.asarray(1.0 / np.maximum(allowed.sum(axis=1), 1))
        each = self._each(columns, rows, arm, faults) if self._p else None
        if name not in columns:
            assert each is not None
            return np.asarray(each)
        out = convert.numbers(columns[name], name, rows, faults)
        faults.add(
            "propensity is 0 or below",
            "An arm that was played had a chance; what wrote the log must write that chance.",
            rows[out <= 0.0],
        )
        faults.add("propensity is above 1", "It is a chance, in (0, 1].", rows[out > 1.0])
        if each is not None:
            off = np.abs(each - out) > 1e-6 + 1e-3 * out
            faults.add(f"{name} is not the p_ column of the arm played", "Both say the same chance.", rows[off])
        return out

    def _each(self, columns: dict[str, Any], rows: np.ndarray, arm: np.ndarray, faults: Faults) -> np.ndarray:
        """The chances of all arms, checked, and that of the arm played."""
        table = np.stack([convert.numbers(columns[name], name, rows, faults, 0.0) for name in self._p], axis=1)
        faults.add(
            "a p_ column is below 0 or above 1", "It holds chances.", rows[((table < 0) | (table > 1)).any(axis=1)]
        )
        off = np.abs(table.sum(axis=1) - 1.0) > 1e-6
        faults.add("the p_ columns do not sum to 1", "They are the chances of all arms.", rows[off])
        place = {self._codes[column[2:]]: at for at, column in enumerate(self._p) if column[2:] in self._codes}
        strange = [code for code in np.unique(arm) if int(code) not in place]
        for code in strange:
            faults.add(
                f"there is no column 'p_{list(self._codes)[code]}'",
                "Every arm needs one.",
                rows[arm == code],
                f"p_ {code}",
            )
        return np.array([table[at, place.get(int(code), 0)] for at, code in enumerate(arm)])


def _natural(name: str) -> tuple[int, float, str]:
    """Names in the order people expect: numbers by size, then texts."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
