"""Rows become events: columns by name, arms as codes, sets of available arms as menus."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.checks import nearest
from driftbandit.logs.convert import DROP, Different, TimeReader, different, name_of, numbers
from driftbandit.logs.read import Faults, Piece, refuse

MOST_ARMS = 1000
_ROUNDING = 0.5e-4  # of probabilities written with four decimals
_OPTIONAL = ("propensity", "reward_time", "available", "outcome")


class Columns(NamedTuple):
    """What the columns of a log are called."""

    time: str = "time"
    arm: str = "arm"
    reward: str = "reward"
    propensity: str = "propensity"  # or "uniform": every available arm had the same probability
    reward_time: str = "reward_time"
    available: str = "available"
    outcome: str = "outcome"  # of a live journal: rows without a reward are decisions still open


class Events(NamedTuple):
    """Decisions of a log, in the order of their times."""

    time: Any  # seconds
    arm: Any  # the number of the arm in `Log.arms`
    reward: Any  # mapped to [0, 1]
    propensity: Any  # the probability with which the logger chose this arm
    known: Any  # when the reward was known; the time of the decision if the log has no such column
    row: Any  # the row in the file, from 1
    menu: Any  # which set of arms was available: a row of `Log.menus`

    @property
    def n(self) -> int:
        """How many."""
        return len(self.time)

    def take(self, which: Any) -> "Events":
        """Some of the events."""
        return Events(*(field[which] for field in self))


class Rows:
    """One reading of a log. `codes` numbers the arms, and `menus` the sets of available arms, as they are met."""

    def __init__(
        self,
        columns: Columns,
        given: Sequence[str],
        declared: list[str] | None,
        reward_range: tuple[float, float],
        clock: TimeReader,
        drop_missing: bool,
    ) -> None:
        self.columns, self.given, self.declared, self.clock = columns, given, declared, clock
        self.reward_range, self.drop_missing, self.comma = reward_range, drop_missing, False
        self.uniform = columns.propensity == "uniform"
        self.codes: dict[str, int] = {}
        self.menus: dict[tuple[int, ...] | None, int] = {None: 0}  # None: all arms
        self.left_out = 0  # rows without a reward (or whatever else is missing) that were left out
        self._p: list[str] = []

    def used(self, there: list[str]) -> list[str]:
        """Check the names of the columns; those that are read."""
        for role, name in self.columns._asdict().items():
            if name in there or (role == "propensity" and self.uniform):
                continue
            if role in _OPTIONAL and role not in self.given:
                continue
            hint = nearest(name, there) or "."
            uniform = ', or the word "uniform" if every arm had the same probability' if role == "propensity" else ""
            raise refuse(
                f"there is no column {name!r:.60} for the {role.replace('_', ' ')}{hint.rstrip('.?')}",
                f"The columns are {', '.join(there)[:200]}; name the right one by {role}= "
                f"(--{role.replace('_', '-')} COLUMN){uniform}."
                if there
                else "The log has no columns.",
            )
        self._p = [] if self.uniform else [name for name in there if name.startswith("p_") and len(name) > 2]
        if not self.uniform and self.columns.propensity not in there and not self._p:
            raise refuse(
                "there are no propensities, the probabilities with which the logger chose its arms",
                "Without them the value of another policy cannot be estimated; if every arm had the same probability, "
                "say propensity='uniform' (--propensity uniform).",
            )
        return [name for name in dict.fromkeys((*self.columns, *self._p)) if name in there]

    def events(self, piece: Piece, faults: Faults) -> Events:
        """A piece as events, arms numbered as they are met."""
        names = self.columns
        columns, rows = self._without_missing(piece)
        time = self.clock.read(columns[names.time], names.time, rows, faults)
        arm = self._arms(different(columns[names.arm]), rows, faults)
        reward = self._rewards(
            numbers(columns[names.reward], names.reward, rows, faults, None, self.comma), rows, faults
        )
        menu = self._menu(columns, rows, faults)
        propensity = self._propensities(columns, rows, arm, faults)
        known = time
        if names.reward_time in columns:
            known = self.clock.read(columns[names.reward_time], names.reward_time, rows, faults, np.inf)
            faults.add(
                "the reward was known before the decision",
                f"{names.reward_time} cannot be below {names.time}.",
                rows[known < time],
            )
        return Events(time, arm, reward, propensity, known, rows, menu)

    def _without_missing(self, piece: Piece) -> tuple[dict[str, Any], np.ndarray]:
        """Leave out decisions of a journal that have no reward yet; and, if asked for, all rows with gaps."""
        names, columns, rows = self.columns, piece.columns, piece.rows
        roles = [names.reward] if names.outcome in columns else []
        if self.drop_missing:
            roles = [names.time, names.arm, names.reward, *([] if self.uniform else [names.propensity])]
        there = np.ones(len(rows), bool)
        for name in roles:
            if name in columns:
                found = different(columns[name])
                there &= np.array([value is not None for value in found.values], bool)[found.which]
        self.left_out += int((~there).sum())
        if there.all():
            return columns, rows
        keep = np.flatnonzero(there)
        kept = {
            name: column.take(keep) if hasattr(column, "take") else [column[at] for at in keep]
            for name, column in columns.items()
        }
        return kept, rows[keep]

    def _code(self, name: str, rows: np.ndarray, faults: Faults) -> int:
        """The number of an arm."""
        code = self.codes.get(name)
        if code is not None:
            return code
        if self.declared is not None and name not in self.declared:
            arms = ", ".join(self.declared)[:200]
            faults.add(f"{name!r:.60} is not an arm", f"The arms are {arms}.", rows, "unknown arm")
            return 0
        if len(self.codes) == MOST_ARMS:
            raise refuse(
                f"more than {MOST_ARMS} different arms",
                "That looks like a column of ids; name the column that says what was played.",
                int(rows[0]),
            )
        self.codes[name] = len(self.codes)
        return self.codes[name]

    def _arms(self, found: Different, rows: np.ndarray, faults: Faults) -> np.ndarray:
        name, out = self.columns.arm, np.zeros(len(found.values), np.int64)
        met = np.unique(found.which)
        for at in sorted(met, key=lambda at: int(np.argmax(found.which == at)) if len(met) < 64 else int(at)):
            item, here = found.values[at], found.rows_of(at, rows)
            if isinstance(item, list | dict | tuple) or "\0" in name_of(item):
                faults.add(f"{name} is not a name", "An arm is a text or a number.", here, f"{name} kind")
            elif not name_of(item):
                faults.add(f"{name} is missing", DROP, here, f"{name} missing")
            else:
                out[at] = self._code(name_of(item), here, faults)
        return np.asarray(out[found.which])

    def _rewards(self, reward: np.ndarray, rows: np.ndarray, faults: Faults) -> np.ndarray:
        low, high = self.reward_range
        outside = (reward < low) | (reward > high)
        if outside.any():
            faults.add(
                f"reward {reward[outside][0]:g} lies outside ({low:g}, {high:g})",
                "Say what rewards can be, as in reward_range=(0, 100) (--reward-range 0 100).",
                rows[outside],
                "range",
            )
        return (reward - low) / (high - low)

    def _menu(self, columns: dict[str, Any], rows: np.ndarray, faults: Faults) -> np.ndarray:
        """Which set of arms was available in each row."""
        name = self.columns.available
        if name not in columns:
            return np.zeros(len(rows), np.int32)
        found = different(columns[name])
        out = np.zeros(len(found.values), np.int32)
        for at, item in enumerate(found.values):
            here = found.rows_of(at, rows)
            if item is None or not len(here):
                continue
            parts = _list(item)
            if parts is None:
                faults.add(f"{name} is not a list of arms", "Write it as in a|b|c.", here, f"{name} kind")
            elif not parts:
                faults.add(f"{name} names no arm", "At least the arm played was available.", here, f"{name} none")
            else:
                menu = tuple(sorted({self._code(part, here, faults) for part in parts}))
                out[at] = self.menus.setdefault(menu, len(self.menus))
        return np.asarray(out[found.which])

    def _propensities(self, columns: dict[str, Any], rows: np.ndarray, arm: np.ndarray, faults: Faults) -> np.ndarray:
        name = self.columns.propensity
        if self.uniform:
            return np.full(len(rows), np.nan)  # 1 / number of available arms, which is known at the end
        # Next to a column of propensities, p_ columns that name no arm (p_id, p_page) are about something else.
        about_arms = name not in columns or any(column[2:] in self.codes for column in self._p)
        each = self._each(columns, rows, arm, faults) if self._p and about_arms else None
        if name not in columns:
            assert each is not None
            return each
        out = numbers(columns[name], name, rows, faults, None, self.comma)
        faults.add(
            "propensity is 0 or below",
            "An arm that was played had a positive probability, which the log must hold.",
            rows[out <= 0.0],
        )
        faults.add("propensity is above 1", "It is a probability, in (0, 1].", rows[out > 1.0])
        if each is not None:
            off = np.abs(each - out) > 1e-6 + 1e-3 * out
            faults.add(f"{name} is not the p_ column of the arm played", "Both are the same probability.", rows[off])
        return out

    def _each(self, columns: dict[str, Any], rows: np.ndarray, arm: np.ndarray, faults: Faults) -> np.ndarray:
        """The probabilities of all arms, checked, and that of the arm played."""
        table = np.stack([numbers(columns[name], name, rows, faults, 0.0, self.comma) for name in self._p], axis=1)
        outside = ((table < 0) | (table > 1)).any(axis=1)
        faults.add("a p_ column is below 0 or above 1", "It holds probabilities.", rows[outside])
        off = np.abs(table.sum(axis=1) - 1.0) > _ROUNDING * (len(self._p) + 1)
        faults.add(
            "the p_ columns do not sum to 1",
            "They are the probabilities of all arms, with four decimals or more.",
            rows[off],
        )
        place = np.full(max(len(self.codes), 1), -1)
        for at, column in enumerate(self._p):
            if column[2:] in self.codes:
                place[self.codes[column[2:]]] = at
        for name, code in self.codes.items():
            if place[code] < 0:
                faults.add(f"there is no column 'p_{name}'", "Every arm needs one.", rows[arm == code], f"p_ {code}")
        return np.asarray(table[np.arange(len(rows)), place[arm]])


def _list(item: Any) -> list[str] | None:
    """A list of arms: a list, its JSON text, or a text with the arms separated by | or ;."""
    if isinstance(item, str) and item.lstrip().startswith("["):
        try:
            item = json.loads(item)
        except (ValueError, RecursionError):
            return None
    if isinstance(item, str):
        return [part.strip() for part in item.replace(";", "|").split("|") if part.strip()]
    if isinstance(item, list | tuple | np.ndarray):
        return [name_of(part) for part in item]
    return None
