"""Checks that every room makes of what it is given: whole numbers, and names that are almost right."""

import difflib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np


def is_whole(value: Any, least: int | None = None) -> bool:
    """Is it a whole number (of at least `least`)? True and False are not, and neither is 3.0: a count is written 3."""
    return (
        isinstance(value, int | np.integer) and not isinstance(value, bool) and (least is None or int(value) >= least)
    )


def whole(name: str, value: Any, least: int, error: type[Exception] = ValueError) -> int:
    """The value as an int, or one sentence that names what needed it."""
    if not is_whole(value, least):
        raise error(f"{name} needs a whole number, {least} or more; got {value!r:.60}.")
    return int(value)


def whole_from_float(value: Any, least: int) -> int | None:
    """The value as an int if it is one, also when it is written 1e5; None if it is not, or below `least`."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value != int(value) or value < least:
        return None
    return int(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """ "; did you mean X?" for the known name that looks most like this one, or nothing if none does."""
    folded: dict[str, str] = {}
    for other in known:
        folded.setdefault(other.casefold(), other)
    match = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    return f"; did you mean {folded[match[0]]}?" if match else ""


def counted(number: int, thing: str) -> str:
    """So many of a thing.

    >>> counted(1, "decision"), counted(2, "decision")
    ('1 decision', '2 decisions')
    """
    return f"{number} {thing}" + ("" if number == 1 else "s")
