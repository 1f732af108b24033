"""Raw columns as numbers, times and names; whatever cannot be one is a fault with its row."""

import datetime
import json
import math
from typing import Any

import numpy as np

from driftbandit.logs.faults import Faults, refuse

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86400.0}
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
                faults.add(f"{name} is NaN", "Leave such rows out, or mend what wrote them.", row, f"{name} nan")
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
            return column.cast(pa.timestamp("us")).cast("int64").to_numpy() * 1e-6, True
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
        return numbers(items, name, rows, faults, missing) * UNITS[unit], False
    out = np.empty(len(items))
    for at, item in enumerate(items):
        out[at] = _one_date(item, name, int(rows[at]), faults, missing)
    return out, True


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


def _one_date(item: Any, name: str, row: int, faults: Faults, missing: float | None) -> float:
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
        if item.tzinfo is None:
            item = item.replace(tzinfo=datetime.UTC)
        return float(item.timestamp())
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


def lists(column: Any, name: str, rows: np.ndarray, faults: Faults) -> list[list[str] | None]:
    """A column of lists of arms: a list, its JSON text, or a text with the arms separated by | or ;. None where
    nothing is said, which means all arms."""
    out: list[list[str] | None] = []
    for at, item in enumerate(plain(column)):
        if isinstance(item, str) and item.lstrip().startswith("["):
            try:
                item = json.loads(item)
            except (ValueError, RecursionError):
                item = math.nan
        if isinstance(item, str) and not item.strip():
            item = None
        if isinstance(item, str):
            parts = [part.strip() for part in item.replace(";", "|").split("|") if part.strip()]
        elif isinstance(item, list | tuple | np.ndarray):
            parts = [_name(part) for part in item]
        elif item is None:
            out.append(None)
            continue
        else:
            faults.add(f"{name} is not a list of arms", "Write it as in a|b|c.", int(rows[at]), f"{name} kind")
            parts = []
        if not parts:
            faults.add(f"{name} names no arm", "At least the arm played was available.", int(rows[at]), f"{name} none")
        out.append(parts)
    return out


def checked_unit(unit: str) -> str:
    """The unit of times given as numbers."""
    if unit not in UNITS:
        raise refuse(f"{unit!r:.40} is no unit of time", f"Numbers may be in {', '.join(UNITS)}.")
    return unit
