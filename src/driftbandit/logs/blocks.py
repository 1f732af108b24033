"""Blocks of time: a log cut into periods and blocks, and intervals from blocks that are drawn again.

What happens within a day hangs together, so whole blocks are drawn. The bootstrap is studentised: each redrawn mean is
divided by its own standard error. No interval is narrower than Student's, nor than what one more reward that differs
from the rest would make it; so none has width zero."""

import contextlib
import math
import re
import statistics
from typing import Any, NamedTuple

import numpy as np

from driftbandit import half_life
from driftbandit.logs.convert import UNITS
from driftbandit.logs.read import refuse

MINUTE, HOUR, DAY, WEEK = 60.0, 3600.0, 86400.0, 604800.0
MONTH = 2629746.0  # a twelfth of a mean year
_LONG = re.compile(r"\s*([\d.]+)\s*(months?|years?)\s*")
NAMED = {"hour": HOUR, "day": DAY, "week": WEEK, "month": MONTH}
FEWEST_BLOCKS = 8
_PLENTY = 20
REDRAWN = 999
_MOST = 4096  # blocks


def duration(text: Any) -> float:
    """Seconds from "6 h", "90 min", "2 weeks" or a number.

    >>> duration("6 h"), duration("1.5 days"), duration(30)
    (21600.0, 129600.0, 30.0)
    """
    try:
        if match := _LONG.fullmatch(str(text).strip().lower()):
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
    """A length of time to about three digits: in natural units, in the unit named, or as a bare number (False) if the
    log's times have no unit.

    >>> said(21600.0), said(5400.0), said(5400.0, "min"), said(200.0, False)
    ('6 h', '1.5 h', '90 min', '200')
    """
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


def block_length(start: float, end: float, dates: bool, given: Any = None) -> float:
    """How long the blocks of the bootstrap are: as asked for, else the longest of month, week, day, 6 hours, hour, 10
    minutes, minute that gives 20 of them, or at least 8; of bare numbers and shorter logs, a 32nd of the log."""
    span = end - start
    if given is not None:
        length = NAMED.get(str(given)) or duration(given)
        if span / length < FEWEST_BLOCKS:
            raise refuse(
                f"blocks of {given} give only {span / length:.1f} of them",
                f"An interval needs at least {FEWEST_BLOCKS}: take shorter blocks or a longer log.",
            )
        return length
    lengths = [MONTH, WEEK, DAY, 6 * HOUR, HOUR, 10 * MINUTE, MINUTE] if dates else []
    for least in (_PLENTY, FEWEST_BLOCKS):
        for length in lengths:
            if span / length >= least:
                return length
    return span / 32.0 * (1 + 1e-12)


class Estimate(NamedTuple):
    """A mean per event with an interval (of 95% unless said otherwise) and the standard error over blocks."""

    mean: float
    low: float
    high: float
    error: float

    def scaled(self, factor: float, shift: float = 0.0) -> "Estimate":
        """The same in another unit."""
        mean, low, high = (shift + factor * value for value in self[:3])
        return Estimate(mean, low, high, factor * self.error)

    def clipped(self, low: float, high: float) -> "Estimate":
        """Kept to the values that are possible."""
        mean, least, most = (min(max(value, low), high) for value in self[:3])
        return Estimate(mean, least, most, self.error)


def block_mean(sums: Any, events: Any, level: float = 0.95, size: float = math.inf, seed: int = 0) -> Estimate:
    """The mean per event, from each block's sum and number of events; blocks without events are left out. `size` is
    how many events' worth of evidence there are, for values that differ by 1 at most.

    >>> block_mean([1.0, 2.0, 3.0, 2.0, 1.0, 3.0, 2.0, 2.0], [10] * 8).mean
    0.2
    """
    sums, events = np.asarray(sums, np.float64), np.asarray(events, np.float64)
    sums, events = _fewer(sums[events > 0], events[events > 0])
    b = len(sums)
    if b < 2:
        return Estimate(float(sums.sum() / events.sum()) if b else math.nan, -math.inf, math.inf, math.inf)
    mean = float(sums.sum() / events.sum())
    rest = sums - events * mean
    error = float(np.sqrt(b / (b - 1.0) * (rest * rest).sum()) / events.sum())
    student = student_quantile(0.5 * (1.0 + level), b - 1)
    half = student * math.hypot(error, 1.0 / size) + 0.5 * student * student / size
    low, high = mean - half, mean + half
    if error > 0.0:
        below, above = _redrawn(rest, events, error, level, seed)
        low, high = min(low, mean - above * error), max(high, mean - below * error)
    return Estimate(mean, low, high, error)


def _redrawn(rest: np.ndarray, events: np.ndarray, error: float, level: float, seed: int) -> tuple[float, float]:
    """The quantiles of redrawn means divided by their own standard errors. With eight blocks a redrawn error can be
    next to nothing: no quantile goes beyond 6."""
    b = len(rest)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(b,)))
    drawn = rng.integers(0, b, (REDRAWN, b)) + b * np.arange(REDRAWN)[:, None]
    times = np.bincount(drawn.ravel(), minlength=REDRAWN * b).reshape(REDRAWN, b).astype(np.float64)
    total = times @ events
    moved = times @ rest / total
    squares = times @ rest**2 - 2.0 * moved * (times @ (rest * events)) + moved**2 * (times @ events**2)
    errors = np.sqrt(b / (b - 1.0) * np.maximum(squares, 0.0)) / total
    good = errors > 1e-6 * error
    if not good.any():
        return -6.0, 6.0
    tails = np.quantile(moved[good] / errors[good], [0.5 * (1.0 - level), 0.5 * (1.0 + level)])
    return float(max(tails[0], -6.0)), float(min(tails[1], 6.0))


def _fewer(sums: np.ndarray, events: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours put together where there are very many blocks, so that memory stays bounded."""
    if len(events) <= _MOST:
        return sums, events
    starts = np.arange(_MOST) * len(events) // _MOST
    return np.add.reduceat(sums, starts), np.add.reduceat(events, starts)


def student_quantile(share: float, freedom: int) -> float:
    """The quantile of Student's distribution, by its expansion in 1 / degrees of freedom; good from seven on."""
    z = statistics.NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / freedom + second / freedom**2 + third / freedom**3
