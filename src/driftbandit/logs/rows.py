"""Arrow columns become events: times in seconds, numbered arms, rewards, sets of available arms as menus."""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.checks import LARGEST_REWARD
from driftbandit.logs.read import Piece, as_texts, coded, is_number, no_column, refuse

MOST_ARMS = 1000
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86400.0}
UNIX = {f"unix-{unit}": UNITS[unit] for unit in ("s", "ms", "us", "ns")}  # numbers that count from 1970
_BARE = 1e9  # numbers without a unit from here on are not taken for seconds: they would be 31 years
_OPTIONAL = ("propensity", "reward_time", "available", "outcome")
_ISO = "Write it as in 2026-11-16T08:30:00, with an offset such as +01:00 in all rows or in none."


class Columns(NamedTuple):
    """The names of a log's columns."""

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
    reward: Any  # as written by `RowReader`; in a `Log` mapped to [0, 1]
    propensity: Any  # the probability with which the logger chose this arm
    known: Any  # when the reward was known; the time of the decision if the log has no such column
    row: Any  # the row in the file, from 1
    menu: Any  # which set of arms was available: a row of `Log.menus`
    context: Any  # events × features, as `FeatureColumns` reads them

    @property
    def n(self) -> int:
        return len(self.time)

    def take(self, which: Any) -> "Events":
        return Events(*(field[which] for field in self))


class RowReader:
    """Turns the rows of a log into events. Arms (`codes`) and sets of available arms (`menus`) are numbered in the
    order in which they appear."""

    def __init__(
        self, columns: Columns, given: Sequence[str], reward_range: Any, unit: str | None, features: Any
    ) -> None:
        if unit is not None and unit not in UNITS and unit not in UNIX:
            raise refuse(f"{unit!r:.40} is not a unit of time", f"Units are {', '.join([*UNITS, *UNIX])}.")
        self.columns, self.given, self.reward_range, self.unit = columns, given, reward_range, unit
        self.features = features  # `FeatureColumns`
        self.uniform = columns.propensity == "uniform"
        self.decimal_comma = False
        self.dates: bool | None = None  # whether times are dates, known with the first rows
        self.codes: dict[str, int] = {}
        self.menus: dict[tuple[int, ...] | None, int] = {None: 0}  # None: all arms
        self.left_out = 0  # decisions of a journal without a reward
        self._first = 1  # the row with which the present piece begins

    def select(self, present: list[str]) -> list[str]:
        """Check the names of the columns and return those to read."""
        if not self.uniform and "propensity" not in self.given and self.columns.propensity not in present:
            raise refuse(
                "there are no propensities, the probabilities with which the logger chose its arms",
                "Without them the value of another policy cannot be estimated; if every arm had the same probability, "
                "use propensity='uniform' (--propensity uniform).",
            )
        for role, name in self.columns._asdict().items():
            if name in present or (role == "propensity" and self.uniform):
                continue
            if role in _OPTIONAL and role not in self.given:
                continue
            uniform = ', or the word "uniform" if every arm had the same probability' if role == "propensity" else ""
            how = f"name the right one by {role}= (--{role.replace('_', '-')} COLUMN){uniform}."
            raise no_column(name, f"the {role.replace('_', ' ')}", present, how)
        named = [name for name in self.columns if name in present]
        return list(dict.fromkeys([*named, *self.features.select(present, named, self.columns.time)]))

    def events(self, piece: Piece) -> Events:
        """A piece as events."""
        names, rows = self.columns, np.arange(self._first, self._first + len(piece[self.columns.time]))
        time = self._times(piece[names.time], names.time)
        reward = self.numbers(piece[names.reward], names.reward)
        there = np.ones(len(rows), bool)
        if names.outcome in piece:
            there = ~np.isnan(reward)
            self.left_out += int((~there).sum())
        self._refuse_missing(np.isnan(time), names.time)
        self._refuse_missing(np.isnan(reward) & there, names.reward)
        if self.reward_range is None:
            cure = f"Rewards beyond {LARGEST_REWARD:g} need a range: reward_range (--reward-range LOW HIGH)."
            self.refuse_rows(np.abs(reward) > LARGEST_REWARD, f"{self.columns.reward} is too large", cure)
        else:
            low, high = self.reward_range
            outside = (reward < low) | (reward > high)
            if outside.any():
                cure = "Give the range of all rewards, or none: reward_range (--reward-range) is optional."
                self.refuse_rows(outside, f"reward {reward[outside][0]:g} lies outside ({low:g}, {high:g})", cure)
        arm = self._arms(piece[names.arm])
        menu = self._menu(piece[names.available]) if names.available in piece else np.zeros(len(rows), np.int32)
        mu = np.full(len(rows), np.nan)  # if uniform, 1 / number of available arms, which is known at the end
        if not self.uniform:
            mu = self.numbers(piece[names.propensity], names.propensity)
            self._refuse_missing(np.isnan(mu), names.propensity)
            cure = "It is the probability with which the arm was chosen, above 0 and at most 1."
            self.refuse_rows((mu <= 0.0) | (mu > 1.0), "propensity lies outside (0, 1]", cure)
        known = time
        if names.reward_time in piece:
            known = self._times(piece[names.reward_time], names.reward_time)
            known = np.where(np.isnan(known), np.inf, known)
            cure = f"{names.reward_time} cannot be below {names.time}."
            self.refuse_rows(known < time, "the reward was known before the decision", cure)
        context = self.features.read(piece, time, self)
        self._first += len(rows)
        return Events(time, arm, reward, mu, known, rows, menu, context).take(there)

    def refuse_rows(self, bad: np.ndarray, what: str, cure: str) -> None:
        if bad.any():
            raise refuse(what, cure, self._first + int(bad.argmax()))

    def _refuse_missing(self, missing: np.ndarray, name: str) -> None:
        self.refuse_rows(missing, f"{name} is missing", "Every row needs one: fill it in, or remove the row.")

    def _parse(self, texts: Any, kind: Any, name: str, what: str, cure: str) -> Any:
        """Texts as another type; the first that cannot be read is named with its row."""
        import pyarrow as pa

        try:
            return texts.cast(kind)
        except pa.ArrowInvalid as error:
            found = re.search(r"string: '(.*?)' as a", str(error), re.DOTALL)
            at = texts.to_pylist().index(found[1]) if found and found[1] in texts.to_pylist() else 0
            raise refuse(f"{name} is {texts[at].as_py()!r:.40}, not {what}", cure, self._first + at) from None

    def numbers(self, column: Any, name: str) -> np.ndarray:
        """A column as float64, with NaN for missing values. Infinite ones are refused."""
        import pyarrow as pa
        from pyarrow import compute, types

        if types.is_null(column.type) or types.is_decimal(column.type):
            column = column.cast("float64")
        column = as_texts(column)
        if types.is_string(column.type):
            if self.decimal_comma:
                column = compute.replace_substring(column, ",", ".")
            try:
                column = column.cast("float64")
            except pa.ArrowInvalid:
                if not all(text is None or text.lower() in ("true", "false") for text in column.unique().to_pylist()):
                    self._parse(column, "float64", name, "a number", "Write it as in 0.25.")
                column = column.cast("bool")
        if types.is_boolean(column.type):
            column = column.cast("uint8")
        if not (types.is_integer(column.type) or types.is_floating(column.type)):
            raise refuse(f"the column {name} holds {column.type!s:.60}, not numbers", "Write them as in 0.25.")
        values = np.asarray(column.cast("float64", safe=False).to_numpy(zero_copy_only=False), np.float64)
        self.refuse_rows(np.isinf(values), f"{name} is infinite", "Numbers must be finite.")
        return values

    def _times(self, column: Any, name: str) -> np.ndarray:
        """A column of times in seconds, since 1970 if they are dates; NaN for missing ones. Dates without an offset are
        taken as UTC."""
        import pyarrow as pa
        from pyarrow import types

        column = as_texts(column)
        dates = True
        if types.is_string(column.type) and not is_number(next((text for text in column.to_pylist() if text), "0")):
            first = next((text for text in column.to_pylist() if text), "")
            zone = "UTC" if re.search(r"(Z|[+-]\d\d:?\d\d)$", first[10:]) else None
            column = self._parse(column, pa.timestamp("ns", zone), name, "a date like the others", _ISO)
        if types.is_timestamp(column.type) or types.is_date(column.type):
            micros = column.cast(pa.timestamp("us"), safe=False).cast("int64")
            values = np.asarray(micros.to_numpy(zero_copy_only=False), np.float64) * 1e-6
        else:
            values = self.numbers(column, name)
            if self.unit is None and (np.abs(values) >= _BARE).any():
                raise refuse(
                    f"the column {name} holds numbers such as {np.nanmax(np.abs(values)):.0f}, whose unit is not clear",
                    f"Name it by time_unit= (--time-unit): {', '.join(UNITS)}; or, if they count from 1970, "
                    f"{', '.join(UNIX)}.",
                )
            unit = self.unit or "s"
            values, dates = values * (UNITS | UNIX)[unit], unit in UNIX
        if np.isnan(values).all():
            return values
        if self.dates not in (None, dates):
            raise refuse("times are dates in some rows and numbers in others", "Use one form.", self._first)
        self.dates = dates
        return values

    def _arms(self, column: Any) -> np.ndarray:
        """Numbers of arms, which are compared by their text: 3 and "3" are one arm."""
        import pyarrow as pa

        try:
            names, which = coded(column)
        except pa.ArrowException:
            raise refuse(f"{self.columns.arm} is not a name", "An arm is a text or a number.", self._first) from None
        missing = np.array([not name for name in [*names, None]])[which]
        self._refuse_missing(missing, self.columns.arm)
        return np.asarray(np.array([self._code(name) if name else -1 for name in [*names, None]], np.int64)[which])

    def _code(self, name: str) -> int:
        if name not in self.codes and len(self.codes) == MOST_ARMS:
            raise refuse(
                f"there are more than {MOST_ARMS} different arms",
                "That looks like a column of ids; name the column that holds the arms.",
            )
        return self.codes.setdefault(name, len(self.codes))

    def _menu(self, column: Any) -> np.ndarray:
        """The number of the set of arms that was available in each row."""
        found: dict[Any, int] = {None: 0}
        out = np.zeros(len(column), np.int32)
        for at, item in enumerate(column.to_pylist()):
            key = tuple(item) if isinstance(item, list) else item
            if key not in found:
                arms = _parse_list(item)
                if not arms:
                    what = f"{self.columns.available} is not a list of arms"
                    raise refuse(what, "Write it as in a|b|c.", self._first + at)
                menu = tuple(sorted({self._code(arm) for arm in arms}))
                found[key] = self.menus.setdefault(menu, len(self.menus))
            out[at] = found[key]
        return out

    def number_arms(self, events: Events) -> tuple[Events, list[str], np.ndarray]:
        """The events with arms numbered in their order: numbers by size, then texts; the arms; and the menus, one row
        per set and one column per arm."""
        arms = sorted(self.codes, key=_natural)
        place = np.array([arms.index(arm) for arm in self.codes])
        menus = np.zeros((len(self.menus), len(arms)), bool)
        for menu, at in self.menus.items():
            menus[at, slice(None) if menu is None else place[list(menu)]] = True
        arm = place[events.arm].astype(np.int16)
        absent = ~menus[events.menu, arm]
        if absent.any():
            row = int(events.row[absent.argmax()])
            raise refuse("the arm played was not among the available ones", "One of the two is wrong.", row)
        mu = (1.0 / np.maximum(menus.sum(axis=1), 1))[events.menu] if self.uniform else events.propensity
        return events._replace(arm=arm, propensity=mu), arms, menus

    @property
    def printed_unit(self) -> bool | str:
        """The unit of printed durations, as `format_duration` takes it."""
        return bool(self.dates) or self.unit or False


def _parse_list(item: Any) -> list[str]:
    """A list of arms: a list, its JSON text, or a text with the arms separated by |; empty for anything else."""
    if isinstance(item, str) and item.lstrip().startswith("["):
        try:
            item = json.loads(item)
        except (ValueError, RecursionError):
            return []
    parts = item.split("|") if isinstance(item, str) else item if isinstance(item, list) else []
    return [name for part in parts if (name := str(part).strip())]


def _natural(name: str) -> tuple[int, float, str]:
    """Sorts numbers by size, then texts."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
