"""Lengths of time in words, and a log cut into periods and blocks."""

import contextlib
import math
import re
from typing import Any

import numpy as np

from driftbandit import half_life
from driftbandit.logs.convert import UNITS
from driftbandit.logs.faults import refuse

MINUTE, HOUR, DAY, WEEK = 60.0, 3600.0, 86400.0, 604800.0
MONTH = 2629746.0  # a twelfth of a mean year
_LONG = re.compile(r"\s*([\d.]+)\s*(months?|years?)\s*")
NAMED = {"hour": HOUR, "day": DAY, "week": WEEK, "month": MONTH}
FEWEST_BLOCKS = 8
_PLENTY = 20


def duration(text: Any) -> float:
    """Seconds from "6 h", "90 min", "2 weeks", "inf" or a number.

    >>> duration("6 h"), duration("1.5 days"), duration(30)
    (21600.0, 129600.0, 30.0)
    """
    word = str(text).strip().lower()
    if word in ("inf", "infinity"):
        return math.inf
    try:
        if match := _LONG.fullmatch(word):
            seconds = float(match[1]) * (MONTH if match[2].startswith("month") else 12 * MONTH)
        else:
            with contextlib.suppress(TypeError, ValueError):
                text = float(text)  # a text that is a bare number counts seconds
            seconds = half_life.duration(text, "") / half_life.SECOND
    except ValueError:
        raise ValueError(
            f"{text!r:.40} is not a length of time; write it as in 6 h, 90 min, 2 weeks: above 0, at most 36,000 years."
        ) from None
    if not seconds > 0.0:
        raise ValueError(f"A length of time is above 0; got {text!r:.40}.")
    return seconds


def said(seconds: float, unit: bool | str = True) -> str:
    """A length of time as people say it, to about three digits; in a unit, if one is named; as a bare number, if nobody
    said what the log's times count (False). `LogSummary.said_in` knows which of them.

    >>> said(21600.0), said(5400.0), said(float("inf")), said(5400.0, "min"), said(200.0, False)
    ('6 h', '1.5 h', 'inf', '90 min', '200')
    """
    if math.isinf(seconds):
        return "inf"
    if unit is not True:
        number = seconds / UNITS[unit] if unit else seconds
        plain = f"{number:.0f}" if 1e4 <= number < 1e7 else f"{number:.4g}"
        return f"{plain} {unit}" if unit else plain
    for unit, size in (("weeks", WEEK), ("d", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds >= 2 * size or (seconds >= size and unit in ("d", "h", "min")):
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def scales(start: float, end: float, dates: bool) -> dict[str, float]:
    """The lengths at which to ask whether the best arm moves: hour, 6 hours (from hour to day it is far), day, week and
    month; of a log whose times are bare numbers, parts of it."""
    span = end - start
    if dates:
        lengths = {"hour": HOUR, "6 hours": 6 * HOUR, "day": DAY, "week": WEEK, "month": MONTH}
        return {name: length for name, length in lengths.items() if length * 4 <= span}
    return {f"1/{parts}": span / parts for parts in (512, 128, 32, 8)}


def period_of(time: np.ndarray, start: float, length: float, dates: bool) -> np.ndarray:
    """The number of the period each time lies in: calendar months, weeks from Monday, days and hours by the clock; of
    bare numbers, parts counted from the start."""
    if not dates:
        return np.floor((time - start) / length).astype(np.int64)
    if length == MONTH:
        return np.asarray(months(time) - months(np.array([start]))[0])
    shift = 3 * DAY if length == WEEK else 0.0  # 1 January 1970 was a Thursday
    return (np.floor((time + shift) / length) - math.floor((start + shift) / length)).astype(np.int64)


def months(time: np.ndarray) -> np.ndarray:
    """Calendar months since 1970."""
    return (np.asarray(time) * 1e6).astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)


def block_length(start: float, end: float, dates: bool, asked: Any = None) -> float:
    """How long the blocks of the bootstrap are: what is asked for, else the longest of month, week, day, 6 hours, hour
    that gives 20 of them, or at least 8; of bare numbers, a 32nd of the log."""
    span = end - start
    if asked is not None:
        length = NAMED.get(str(asked)) or duration(asked)
        if span / length < FEWEST_BLOCKS:
            raise refuse(
                f"blocks of {asked} give only {span / length:.1f} of them",
                f"An interval needs at least {FEWEST_BLOCKS}: take shorter blocks or a longer log.",
            )
        return length
    if not dates:
        return span / 32.0 * (1 + 1e-12)
    lengths = [MONTH, WEEK, DAY, 6 * HOUR, HOUR, 10 * MINUTE, MINUTE]
    for least in (_PLENTY, FEWEST_BLOCKS):
        for length in lengths:
            if span / length >= least:
                return length
    raise refuse(
        f"the log spans {said(span)}, fewer than {FEWEST_BLOCKS} blocks of a minute",
        "It is too short to say anything about other times.",
    )


def piece_length(block: float, dates: bool) -> float:
    """The shorter pieces that a block is cut into: days of weeks and months, hours of days, a sixteenth otherwise."""
    if not dates:
        return block / 16.0
    return next(
        (piece for whole, piece in ((WEEK, DAY), (6 * HOUR, HOUR), (HOUR, 5 * MINUTE)) if block >= whole), block / 10
    )
