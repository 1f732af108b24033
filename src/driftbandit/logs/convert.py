"""Raw columns as numbers, times and names; whatever cannot be one is a fault with its row."""

import datetime
import json
import math
from typing import Any

import numpy as np

from driftbandit.logs.faults import Faults, LogError, refuse

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86400.0}
UNIX = {f"unix-{unit}": UNITS[unit] for unit in ("s", "ms", "us", "ns")}  # numbers that are dates, counted since 1970
BARE = 1e9  # bare numbers from here on are not taken for seconds: they would be 31 years of them
_MISSING = ("", "na", "null", "none", "n/a")


def is_arrow(column: Any) -> bool:
    """An array of Arrow's, which has types and missing values of its own?"""
    return type(column).__module__.startswith("pyarrow")


def numbers(column: Any, name: str, rows: np.ndarray, faults: Faults, missing: float | None = None) -> np.ndarray:
    """A column as float64. What is missing becomes `missing`, or is a fault if that is None."""
    try:  # all is well in nearly every piece: one conversion then does it
        values = _fast_numbers(column)
        if values is not None and np.isfinite(values).all():
            return values
    except (ValueError, TypeError, OverflowError):
        pass
    out = np.empty(len(rows))
    for at, item in enumerate(plain(column)):
        row = int(rows[at])
        out[at] = math.nan
        if item is None or (isinstance(item, str) and item.strip().lower() in _MISSING):
            if missing is None:
                faults.add(f"{name} is missing", "Every row needs one.", row, f"{name} missing")
            else:
                out[at] = missing
        elif isinstance(item, bool | np.bool_):
            out[at] = float(item)
        elif isinstance(item, str | int | float | np.number):
            try:
                out[at] = float(item)
            except (ValueError, OverflowError):
                faults.add(f"{name} is {item!r:.40}, not a number", "Write it as in 0.25.", row, f"{name} text")
                continue
            if math.isnan(out[at]):
                faults.add(f"{name} is NaN", "Leave such rows out, or fix what wrote them.", row, f"{name} nan")
            elif math.isinf(out[at]):
                faults.add(f"{name} is infinite", "Numbers must be finite.", row, f"{name} infinite")
        else:
            faults.add(f"{name} is a {type(item).__name__}, not a number", "Write it as in 0.25.", row, f"{name} kind")
    return out


def _fast_numbers(column: Any) -> np.ndarray | None:
    if is_arrow(column):
        kind = str(column.type)
        if column.null_count or not kind.startswith(("int", "uint", "float", "double", "halffloat", "bool", "decimal")):
            return None
        return np.asarray(column.cast("float64").to_numpy(zero_copy_only=False), np.float64)
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "U":
        return values.astype(np.float64)
    return None


def plain(column: Any) -> list[Any]:
    """A column as a list of Python values, None for what is missing."""
    if is_arrow(column):
        return list(column.to_pylist())
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def times(
    column: Any, name: str, rows: np.ndarray, unit: str, faults: Faults, missing: float | None = None
) -> tuple[np.ndarray, bool]:
    """A column of times in seconds (since 1970 if they are dates), and whether they are dates.

    Dates without an offset are taken as they stand, as if in UTC: a log in local time has one hour twice in autumn,
    which is then a time that goes back."""
    if is_arrow(column) and str(column.type).startswith(("timestamp", "date")):
        import pyarrow as pa

        if not column.null_count:
            micros = column.cast(pa.timestamp("us"), safe=False).cast("int64")
            return micros.to_numpy(zero_copy_only=False) * 1e-6, True
    elif isinstance(column, np.ndarray) and column.dtype.kind == "M":
        if not np.isnat(column).any():
            return column.astype("datetime64[us]").astype(np.int64) * 1e-6, True
    elif not is_arrow(column) and len(column) and isinstance(column[0], str) and not _is_number(column[0]):
        try:
            values = np.array(column, "datetime64[us]") if _plain_dates(column) else None
            if values is not None and not np.isnat(values).any():
                return values.astype(np.int64) * 1e-6, True
        except ValueError:
            pass
    items = plain(column)
    dates = [item for item in items if isinstance(item, datetime.datetime | datetime.date)]
    texts = [item for item in items if isinstance(item, str) and item.strip() and not _is_number(item)]
    if not dates and not texts:
        return numbers(items, name, rows, faults, missing) * (UNITS | UNIX)[unit], unit in UNIX
    out = np.empty(len(items))
    placed: bool | None = None  # do the dates say their offset?
    for at, item in enumerate(items):
        row = int(rows[at])
        moment = _one_date(item, name, row, faults, missing)
        if isinstance(moment, datetime.datetime):
            if placed is not None and placed != (moment.tzinfo is not None):
                faults.add(
                    f"{name} has an offset from UTC in some rows and none in others",
                    "Write it in all of them, as in 2026-11-16T08:30:00+01:00, or in none.",
                    row,
                    f"{name} offset",
                )
            placed = moment.tzinfo is not None
            out[at] = (moment if placed else moment.replace(tzinfo=datetime.UTC)).timestamp()
        else:
            out[at] = moment
    return out, True


def unit_of(column: Any, name: str) -> str:
    """The unit of times whose owner did not say one: seconds, unless the first is so large that it must count from
    1970. Seconds, milliseconds and so on since then are told apart by their size, from 2001 to 2103."""
    first = next((item for item in plain(column) if item is not None and str(item).strip()), None)
    try:
        value = float(first)
    except (TypeError, ValueError, OverflowError):
        return "s"  # dates, or a fault that is found later
    if not math.isfinite(value) or abs(value) < BARE:
        return "s"
    for unit, size in UNIX.items():
        if 1e9 <= value * size < 4.2e9:
            return unit
    raise unclear_unit(value, name)


def unclear_unit(value: float, name: str) -> LogError:
    """Numbers this large may count anything."""
    return refuse(
        f"{name} holds bare numbers such as {value:.0f}, which do not say what they count",
        f"Say it by time_unit= (--time-unit): {', '.join(UNITS)}; or, if they count from 1970, {', '.join(UNIX)}.",
    )


def date_of(seconds: float) -> str:
    """Seconds since 1970 as a date."""
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%d %H:%M}"


def _plain_dates(column: Any) -> bool:
    """Texts that NumPy reads as dates as we do: no offset, no Z, which it would read with a warning."""
    return all(
        "T" not in text[-6:] and text[-1:] != "Z" and "+" not in text and text.count("-") == 2 for text in column
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _one_date(item: Any, name: str, row: int, faults: Faults, missing: float | None) -> "float | datetime.datetime":
    if item is None or (isinstance(item, str) and item.strip().lower() in _MISSING):
        if missing is None:
            faults.add(f"{name} is missing", "Every row needs one.", row, f"{name} missing")
            return math.nan
        return missing
    try:
        if isinstance(item, str):
            if _is_number(item):
                raise ValueError
            item = datetime.datetime.fromisoformat(item.strip())
        if isinstance(item, datetime.date) and not isinstance(item, datetime.datetime):
            item = datetime.datetime(item.year, item.month, item.day)
        if not isinstance(item, datetime.datetime):
            raise ValueError
        return item
    except (ValueError, OverflowError):
        faults.add(
            f"{name} is {item!r:.40}, not a date as in the other rows",
            "Write 2026-11-16T08:30:00, or a number.",
            row,
            f"{name} date",
        )
        return math.nan


def names(column: Any, name: str, rows: np.ndarray, faults: Faults) -> np.ndarray:
    """A column as texts, "" where it is a fault. Arms are compared by their text: 3 and "3" are one arm."""
    items = plain(column)
    if all(type(item) is str for item in items):
        texts: list[str] = [item.strip() for item in items]
    else:
        texts = [_name(item) for item in items]
    out = np.array(texts, dtype=object)
    empty = rows[np.array([not text for text in texts], bool)] if texts else rows[:0]
    faults.add(f"{name} is missing", "Every row needs the arm that was played.", empty, f"{name} missing")
    strange = [at for at, item in enumerate(items) if isinstance(item, list | dict | tuple)]
    faults.add(f"{name} is not a name", "An arm is a text or a number.", rows[strange], f"{name} kind")
    return out


def _name(item: Any) -> str:
    if item is None or (isinstance(item, float) and math.isnan(item)):
        return ""
    if isinstance(item, float | np.floating) and float(item).is_integer():
        return str(int(item))
    return str(item).strip()


def lists(
    column: Any, name: str, rows: np.ndarray, faults: Faults
) -> tuple[list[tuple[int, list[str] | None]], np.ndarray]:
    """A column of lists of arms: the different lists there are, each with the row it was first met in, and which of
    them each row has. A list is a list, its JSON text, or a text with the arms separated by | or ;. None where nothing
    is said, which means all arms."""
    places: dict[Any, int] = {}  # nearly all rows have the same few, which are taken apart once
    items: list[Any] = []
    which = np.empty(len(rows), np.int64)
    for at, item in enumerate(plain(column)):
        key = item if isinstance(item, str) or item is None else repr(item)
        place = places.get(key)
        if place is None:
            place = places[key] = len(items)
            items.append(item)
        which[at] = place
    first = [int(rows[at]) for at in np.unique(which, return_index=True)[1]]
    return [(row, _list(item, name, row, faults)) for row, item in zip(first, items, strict=True)], which


def _list(item: Any, name: str, row: int, faults: Faults) -> list[str] | None:
    """One list, first met in this row."""
    if item is None or (isinstance(item, str) and not item.strip()) or (isinstance(item, float) and math.isnan(item)):
        return None
    if isinstance(item, str) and item.lstrip().startswith("["):
        try:
            item = json.loads(item)
        except (ValueError, RecursionError):
            item = {}
    parts = []
    if isinstance(item, str):
        parts = [part.strip() for part in item.replace(";", "|").split("|") if part.strip()]
    elif isinstance(item, list | tuple | np.ndarray):
        parts = [_name(part) for part in item]
    else:
        faults.add(f"{name} is not a list of arms", "Write it as in a|b|c.", row, f"{name} kind")
    if not parts:
        faults.add(f"{name} names no arm", "At least the arm played was available.", row, f"{name} none")
    return parts


def checked_unit(unit: str) -> str:
    """The unit of times given as numbers."""
    if unit not in UNITS and unit not in UNIX:
        raise refuse(
            f"{unit!r:.40} is not a unit of time",
            f"Numbers may be in {', '.join(UNITS)}; or, counted since 1970, in {', '.join(UNIX)}.",
        )
    return unit
