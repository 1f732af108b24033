"""Rows become events: columns by name, texts as numbers, arms as codes; whatever cannot be is a fault with its row."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.checks import nearest
from driftbandit.logs import convert
from driftbandit.logs.events import Events
from driftbandit.logs.faults import Faults, refuse
from driftbandit.logs.sources import Piece

MOST_ARMS = 1000
_NEVER = np.inf  # when a reward that did not come becomes known
_OPTIONAL = ("propensity", "reward_time", "available", "outcome")


class Columns(NamedTuple):
    """What the columns of a log are called."""

    time: str = "time"
    arm: str = "arm"
    reward: str = "reward"
    propensity: str = "propensity"  # or "uniform": every available arm had the same chance
    reward_time: str = "reward_time"
    available: str = "available"
    outcome: str = "outcome"  # of a live journal: rows without a reward are decisions still open


class Rows:
    """One reading of a log from its first piece to its last. `codes` numbers the arms as they are met; a reading that
    goes on from another's codes numbers them alike."""

    def __init__(
        self,
        columns: Columns,
        given: Sequence[str],
        declared: list[str] | None,
        reward_range: tuple[float, float],
        time_unit: str | None,
        codes: dict[str, int],
    ) -> None:
        self.columns, self.given, self.declared, self.time_unit = columns, given, declared, time_unit
        self.reward_range, self.codes = reward_range, codes
        self.uniform = columns.propensity == "uniform"
        self.left_out = 0  # decisions of a journal that are still open
        self.dates = False
        self._p: list[str] = []

    def events(self, piece: Piece, faults: Faults) -> Events | None:
        """A piece as events; None if it has no rows."""
        if piece.first == 1:
            self._check_columns(list(piece.columns))
        return self._converted(piece, faults) if len(piece) else None

    def _check_columns(self, there: list[str]) -> None:
        for role, name in self.columns._asdict().items():
            if name in there or (role == "propensity" and self.uniform):
                continue
            if role in _OPTIONAL and role not in self.given:
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
        if self.time_unit is None:
            self.time_unit = convert.unit_of(columns[names.time], names.time)
        time, dates = convert.times(columns[names.time], names.time, rows, self.time_unit, faults)
        if dates != self.dates and piece.first > 1 and len(rows):
            faults.add("times are dates in some rows and numbers in others", "Write all of them alike.", int(rows[0]))
        self.dates = dates if len(rows) else self.dates
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
        self.left_out += int((~there).sum())
        if there.all():
            return columns, rows
        keep = np.flatnonzero(there)
        kept = {
            name: [column[int(at)] for at in keep] if isinstance(column, list | tuple) else column.take(keep)
            for name, column in columns.items()
        }
        return kept, rows[keep]

    def _arm_codes(self, names: np.ndarray, rows: np.ndarray, faults: Faults) -> np.ndarray:
        codes = self.codes
        out = np.empty(len(names), np.int64)
        for at, name in enumerate(names):
            code = codes.get(name)
            if code is None:
                if self.declared is not None and name and name not in self.declared:
                    faults.add(
                        f"{name!r:.60} is not an arm",
                        f"The arms are {', '.join(self.declared)[:200]}.",
                        int(rows[at]),
                        "unknown arm",
                    )
                    code = 0
                elif not name:
                    code = 0
                else:
                    code = codes[name] = len(codes)
                if len(codes) > MOST_ARMS:
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
        several, which = convert.lists(columns[self.columns.available], self.columns.available, rows, faults)
        if all(some is None for _, some in several):
            return None
        for row, some in several:
            if some:  # arms that are only ever offered are arms too
                self._arm_codes(np.array(some, dtype=object), np.full(len(some), row), faults)
        width = 64 if len(self.codes) < 64 else MOST_ARMS + 1  # the last column is for arms not met so far
        offered = np.zeros((len(several), width), bool)
        for place, (_, some) in enumerate(several):
            known = slice(None) if some is None else [self.codes[name] for name in some if name in self.codes]
            offered[place, known] = True
        out = offered[which]
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
            return np.where(allowed[:, -1], np.nan, 1.0 / np.maximum(allowed.sum(axis=1), 1))
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
        place = {self.codes[column[2:]]: at for at, column in enumerate(self._p) if column[2:] in self.codes}
        strange = [code for code in np.unique(arm) if int(code) not in place]
        for code in strange:
            faults.add(
                f"there is no column 'p_{list(self.codes)[code]}'",
                "Every arm needs one.",
                rows[arm == code],
                f"p_ {code}",
            )
        return np.array([table[at, place.get(int(code), 0)] for at, code in enumerate(arm)])
