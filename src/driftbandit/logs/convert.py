"""Raw columns as numbers, times and names; whatever cannot be read is a fault with its row.

A column is read by its different values, each of which is parsed once; columns of numbers or dates in ISO form are
converted whole."""

import datetime
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs.read import Faults, LogError, refuse

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86400.0}
UNIX = {f"unix-{unit}": UNITS[unit] for unit in ("s", "ms", "us", "ns")}  # numbers that count from 1970
BARE = 1e9  # bare numbers from here on are not taken for seconds: they would be 31 years
_MISSING = ("", "na", "nan", "nat", "null", "none", "n/a")
_BOOLEANS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "t": 1.0, "f": 0.0}
_OFFSET = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
_COMMA = re.compile(r"[-+]?\d*,\d+")
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d")
_HOURS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")


class Different(NamedTuple):
    """A column as its different values, None for what is missing, and which of them each row has."""

    values: list[Any]
    which: np.ndarray

    def rows_of(self, place: int, rows: np.ndarray) -> np.ndarray:
        """The rows that have this value."""
        return np.asarray(rows[self.which == place])


def _is_arrow(column: Any) -> bool:
    return type(column).__module__.startswith("pyarrow")


def different(column: Any) -> Different:
    """The different values of a column."""
    if _is_arrow(column) and not str(column.type).startswith(("struct", "list", "large_list", "map", "fixed_size")):
        coded = column if str(column.type).startswith("dictionary") else column.dictionary_encode()
        values = coded.dictionary.to_pylist()
        which = coded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False).astype(np.int64)
        return Different([*(_plain(value) for value in values), None], which)
    items = column.to_pylist() if _is_arrow(column) else list(column)
    places: dict[Any, int] = {}
    values = []
    which = np.empty(len(items), np.int64)
    for at, item in enumerate(items):
        item = item.item() if isinstance(item, np.generic) else item
        key = item if isinstance(item, str) or item is None else (type(item).__name__, repr(item))
        place = places.setdefault(key, len(values))
        if place == len(values):
            values.append(_plain(item))
        which[at] = place
    return Different(values, which)


def _plain(item: Any) -> Any:
    """A value, or None for what is missing."""
    if isinstance(item, str):
        return None if item.strip().lower() in _MISSING else item.strip()
    nothing = item is None or type(item).__name__ in ("NAType", "NaTType") or item != item
    return None if nothing is True else item


def number_of(item: Any, comma: bool = False) -> float:
    """One value as a number; a ValueError says what it is instead."""
    if isinstance(item, bool | int | float | np.number):
        try:
            return float(item)
        except OverflowError:
            raise ValueError("infinite") from None
    if type(item).__name__ == "Decimal":
        return float(item)
    if not isinstance(item, str):
        raise ValueError(f"a {type(item).__name__}, not a number")
    if item.lower() in _BOOLEANS:
        return _BOOLEANS[item.lower()]
    text = item.replace(",", ".") if comma and _COMMA.fullmatch(item) else item
    try:
        if "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise ValueError(f"{item!r:.40}, not a number") from None


def numbers(
    column: Any, name: str, rows: np.ndarray, faults: Faults, missing: float | None = None, comma: bool = False
) -> np.ndarray:
    """A column as float64. What is missing becomes `missing`, or is a fault if that is None."""
    values = _whole_numbers(column)
    if values is not None and np.isfinite(values).all():
        return values
    found = different(column)
    out = np.full(len(found.values), math.nan)
    for at, item in enumerate(found.values):
        here = found.rows_of(at, rows)
        if item is None:
            out[at] = math.nan if missing is None else missing
            if missing is None:
                faults.add(f"{name} is missing", DROP, here, f"{name} missing")
            continue
        try:
            out[at] = number_of(item, comma)
        except ValueError as error:
            faults.add(f"{name} is {error}", "Write it as in 0.25.", here, f"{name} text")
            continue
        if math.isinf(out[at]):
            faults.add(f"{name} is infinite", "Numbers must be finite.", here, f"{name} infinite")
    return np.asarray(out[found.which])


DROP = "Every row needs one; drop_missing=True (--drop-missing) leaves such rows out."


def _whole_numbers(column: Any) -> np.ndarray | None:
    """A column without gaps, converted at once."""
    if not _is_arrow(column):
        values = np.asarray(column) if isinstance(column, np.ndarray) or hasattr(column, "dtype") else None
        return values.astype(np.float64) if values is not None and values.dtype.kind in "biuf" else None
    import pyarrow as pa

    kind = str(column.type)
    if column.null_count or not kind.startswith(("int", "uint", "float", "double", "halffloat", "bool", "string")):
        return None
    try:
        return np.asarray(column.cast("float64").to_numpy(zero_copy_only=False), np.float64)
    except pa.ArrowInvalid:
        return None


def _whole_dates(column: Any) -> np.ndarray | None:
    """A column of dates, or of texts all in ISO form, in seconds since 1970."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        micros = column.astype("datetime64[us]")
        return None if np.isnat(micros).any() else np.asarray(micros.astype(np.int64) * 1e-6)
    kind = str(column.type) if _is_arrow(column) else ""
    if not kind.startswith(("timestamp", "date", "string")) or column.null_count or not len(column):
        return None
    import pyarrow as pa

    try:
        if kind == "string":
            first = column[0].as_py()
            if _looks_like_number(first):
                return None
            column = column.cast(pa.timestamp("us", "UTC" if _OFFSET.search(first[10:]) else None))
        whole = column.cast(pa.timestamp("us"), safe=False).cast("int64")
    except pa.ArrowInvalid:
        return None
    return np.asarray(whole.to_numpy(zero_copy_only=False) * 1e-6)


def _looks_like_number(item: Any) -> bool:
    try:
        return not isinstance(item, datetime.date) and number_of(item, True) is not None
    except ValueError:
        return False


class TimeReader:
    """How the times of one log are written: numbers of a unit, dates in ISO form, or dates of a format."""

    def __init__(self, unit: str | None, date_format: str | None) -> None:
        self.unit, self.given, self.format = unit, unit, date_format
        self.dates: bool | None = None  # known with the first rows

    def read(
        self, column: Any, name: str, rows: np.ndarray, faults: Faults, missing: float | None = None
    ) -> np.ndarray:
        """A column of times in seconds; since 1970 if they are dates. Dates without an offset are taken as UTC."""
        values = None if self.format else _whole_dates(column)
        if values is not None:
            return self._agreed(values, True, rows, faults)
        if isinstance(column, np.ndarray) and column.dtype.kind == "M":
            column = column.astype("datetime64[us]")  # nanoseconds would come as numbers
        found = different(column)
        there = [item for item in found.values if item is not None]
        like_numbers = sum(map(_looks_like_number, there))
        numeric = self.dates is False or 2 * like_numbers > len(there) or not there
        if not self.format and self.dates is not True and numeric:
            if self.unit is None:
                self.unit = unit_of(next((number_of(one, True) for one in there if _looks_like_number(one)), 0.0), name)
            size = (UNITS | UNIX)[self.unit]
            values = numbers(column, name, rows, faults, missing, True) * size
            return self._agreed(values, self.unit in UNIX, rows, faults)
        return self._agreed(self._texts(found, there, name, rows, faults, missing), True, rows, faults)

    def _agreed(self, values: np.ndarray, dates: bool, rows: np.ndarray, faults: Faults) -> np.ndarray:
        if self.dates is not None and self.dates != dates and len(rows):
            faults.add("times are dates in some rows and numbers in others", "Write all of them alike.", int(rows[0]))
        self.dates = dates
        return values

    def _texts(
        self, found: Different, there: list[Any], name: str, rows: np.ndarray, faults: Faults, missing: float | None
    ) -> np.ndarray:
        read = self._reader(there, name)
        out = np.full(len(found.values), math.nan)
        bad: list[tuple[Any, np.ndarray]] = []
        placed: dict[bool, int] = {}
        for at, item in enumerate(found.values):
            here = found.rows_of(at, rows)
            if item is None:
                out[at] = math.nan if missing is None else missing
                if missing is None:
                    faults.add(f"{name} is missing", DROP, here, f"{name} missing")
                continue
            try:
                moment = read(item)
                placed.setdefault(moment.tzinfo is not None, int(here[0]))
                zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
                out[at] = (zoned - _EPOCH) / _SECOND
            except (ValueError, OverflowError, TypeError):
                bad.append((item, here))
        others = " as in the other rows" if len(bad) < len(there) else ""
        for item, here in bad:
            said = f"{item!r:.40}" if isinstance(item, str | int | float) else f"a {type(item).__name__}"
            faults.add(
                f"{name} is {said}, not a date{others}",
                "Write 2026-11-16T08:30:00, or name the format, as in date_format='%d.%m.%Y %H:%M' (--date-format).",
                here,
                f"{name} date",
            )
        if len(placed) > 1:
            faults.add(
                f"{name} has an offset from UTC in some rows and none in others",
                "Write it in all of them, as in 2026-11-16T08:30:00+01:00, or in none.",
                max(placed.values()),
                f"{name} offset",
            )
        return np.asarray(out[found.which])

    def _reader(self, there: list[Any], name: str) -> Callable[[Any], datetime.datetime]:
        """What parses one date: ISO form, or the format that was named or that fits all texts seen first."""
        texts = [item for item in there if isinstance(item, str)]
        if self.format is None and texts and not any(_fits(_iso, text) for text in texts):
            self.format = self._detected(texts, name)
        return _iso if self.format is None else lambda item: _by_format(item, self.format or "")

    def _detected(self, texts: list[str], name: str) -> str | None:
        fitting = [day + hour for day in _DAYS for hour in _HOURS if _all_fit(texts, day + hour)]
        if len(fitting) > 1:  # 03/04/2026 may be March or April: rows are in order of time
            ordered = []
            for form in fitting:
                moments = [_by_format(text, form) for text in texts]
                ordered += [form] if moments == sorted(moments) else []
            fitting = ordered if len(ordered) == 1 else fitting
        if len(fitting) > 1:
            raise refuse(
                f"{name} is written as {texts[0]!r:.40}, which may begin with the day or with the month",
                f"Say which by date_format={fitting[0]!r} (--date-format) or {fitting[1]!r}.",
            )
        return fitting[0] if fitting else None


_EPOCH, _SECOND = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(seconds=1)


def _fits(read: Callable[[Any], Any], item: Any) -> bool:
    try:
        read(item)
    except (ValueError, OverflowError, TypeError):
        return False
    return True


def _all_fit(texts: list[str], form: str) -> bool:
    return all(_fits(lambda text: _by_format(text, form), text) for text in texts)


def _iso(item: Any) -> datetime.datetime:
    if isinstance(item, str):
        if _looks_like_number(item):
            raise ValueError
        return datetime.datetime.fromisoformat(item)
    if isinstance(item, datetime.datetime):
        return item
    if isinstance(item, datetime.date):
        return datetime.datetime(item.year, item.month, item.day)
    raise ValueError


def _by_format(item: Any, form: str) -> datetime.datetime:
    return datetime.datetime.strptime(item, form) if isinstance(item, str) else _iso(item)


def unit_of(value: float, name: str) -> str:
    """The unit of times that are numbers: seconds, unless the first is so large that it must count from 1970. Seconds,
    milliseconds and so on since then are told apart by their size, from 2001 to 2103."""
    if not math.isfinite(value) or abs(value) < BARE:
        return "s"
    for unit, size in UNIX.items():
        if 1e9 <= value * size < 4.2e9:
            return unit
    raise unclear_unit(value, name)


def unclear_unit(value: float, name: str) -> LogError:
    """Numbers this large may count anything."""
    return refuse(
        f"{name} holds bare numbers such as {value:.0f}, whose unit is not clear",
        f"Say it by time_unit= (--time-unit): {', '.join(UNITS)}; or, if they count from 1970, {', '.join(UNIX)}.",
    )


def unix_hint(start: float, unit: str) -> str:
    """A sentence, if times that were read as bare numbers look as if they counted from 1970."""
    raw = start / UNITS.get(unit, math.nan)
    for name, size in UNIX.items():
        if 1e9 <= raw * size < 4.2e9:
            return (
                f"Times such as {raw:.0f} look as if they counted from 1970 ({date_of(raw * size)}): time_unit="
                f"{name!r} (--time-unit {name}) reads them as dates."
            )
    return ""


def date_of(seconds: float) -> str:
    """Seconds since 1970 as a date."""
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%d %H:%M}"


def checked_unit(unit: str | None) -> str | None:
    """The unit of times given as numbers."""
    if unit is not None and unit not in UNITS and unit not in UNIX:
        raise refuse(
            f"{unit!r:.40} is not a unit of time",
            f"Numbers may be in {', '.join(UNITS)}; or, counted since 1970, in {', '.join(UNIX)}.",
        )
    return unit


def name_of(item: Any) -> str:
    """An arm's name; "" if there is none. Arms are compared by their text: 3 and "3" are one arm."""
    if item is None:
        return ""
    if isinstance(item, float) and item.is_integer():
        return str(int(item))
    return str(item).strip()
