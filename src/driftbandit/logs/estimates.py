"""A log cut into periods and blocks of time, intervals by a bootstrap over blocks, and how results are printed.

Events of a day are correlated, so whole blocks are drawn. The bootstrap is studentised: each resampled mean is divided
by its own standard error. No interval is narrower than Student's, nor than the interval after one more reward that
differs from the rest; so none has width zero."""

import contextlib
import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.beliefs import t_quantile
from driftbandit.logs.read import refuse
from driftbandit.logs.rows import UNITS
from driftbandit.spec import half_life

MINUTE, HOUR, DAY, WEEK = 60.0, 3600.0, 86400.0, 604800.0
MONTH = 2629746.0  # a twelfth of a mean year
_LENGTHS = {"minute": MINUTE, "10 minutes": 10 * MINUTE, "hour": HOUR, "6 hours": 6 * HOUR, "day": DAY, "week": WEEK,
            "month": MONTH}  # fmt: skip
FEWEST_BLOCKS = 8
_ENOUGH_BLOCKS = 20
RESAMPLES = 999
_MOST_BLOCKS = 4096


def parse_duration(text: Any) -> float:
    """Seconds from "6 h", "90 min", "2 weeks" or a number.

    >>> parse_duration("6 h"), parse_duration("1.5 days"), parse_duration(30)
    (21600.0, 129600.0, 30.0)
    """
    with contextlib.suppress(TypeError, ValueError):
        text = float(text)
    return half_life.duration(text, "a length of time") / half_life.SECOND


def format_duration(seconds: float, unit: bool | str = True) -> str:
    """A length of time to about three digits: in natural units, in the unit named, or as a bare number (False) if the
    log's times have no unit.

    >>> format_duration(21600.0), format_duration(5400.0), format_duration(5400.0, "min"), format_duration(200.0, False)
    ('6 h', '1.5 h', '90 min', '200')
    """
    if unit is not True:
        number = seconds / UNITS[unit] if unit else seconds
        plain = f"{number:.0f}" if 1e4 <= number < 1e7 else f"{number:.4g}"
        return f"{plain} {unit}" if unit else plain
    for name, size in (("weeks", 2 * WEEK), ("d", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds >= size:
            return f"{seconds / (WEEK if name == 'weeks' else size):.3g} {name}"
    return f"{seconds:.3g} s"


def scales(start: float, end: float, dates: bool) -> dict[str, float]:
    """The lengths at which `drift` looks for changes: hour, 6 hours, day, week and month; parts of the log if its times
    are bare numbers."""
    span = end - start
    if dates:
        return {name: length for name, length in _LENGTHS.items() if HOUR <= length <= span / 4}
    return {f"1/{parts}": span / parts for parts in (512, 128, 32, 8)}


def period_of(time: np.ndarray, start: float, length: float, dates: bool) -> np.ndarray:
    """The number of each time's period: calendar months, weeks from Monday, days and hours by the clock; parts counted
    from the start if times are bare numbers."""
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
    """The length of the bootstrap's blocks: as given, else the longest of month, week, day, 6 hours, hour, 10 minutes
    and minute that gives 20 of them, or at least 8; otherwise a 32nd of the log."""
    span = end - start
    if given is not None:
        length = _LENGTHS.get(str(given)) or parse_duration(given)
        if span / length < FEWEST_BLOCKS:
            raise refuse(
                f"blocks of {given} give only {span / length:.1f} of them",
                f"An interval needs at least {FEWEST_BLOCKS}: take shorter blocks or a longer log.",
            )
        return length
    for least in (_ENOUGH_BLOCKS, FEWEST_BLOCKS) if dates else ():
        for length in reversed(_LENGTHS.values()):
            if span / length >= least:
                return length
    return span / 32.0 * (1 + 1e-12)


class Estimate(NamedTuple):
    """A mean per event with an interval, of 95% by default, and the standard error over blocks."""

    mean: float
    low: float
    high: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} [{self.low:.4f}, {self.high:.4f}]"

    def scaled(self, factor: float, shift: float = 0.0) -> "Estimate":
        mean, low, high = (shift + factor * value for value in self[:3])
        return Estimate(mean, low, high, factor * self.error)

    def clipped(self, low: float, high: float) -> "Estimate":
        mean, least, most = (min(max(value, low), high) for value in self[:3])
        return Estimate(mean, least, most, self.error)


def block_mean(sums: Any, events: Any, level: float = 0.95, size: float = math.inf, seed: int = 0) -> Estimate:
    """The mean per event, from each block's sum and number of events; blocks without events are left out. `size` is
    the effective number of events, for values that differ by 1 at most.

    >>> block_mean([1.0, 2.0, 3.0, 2.0, 1.0, 3.0, 2.0, 2.0], [10] * 8).mean
    0.2
    """
    sums, events = np.asarray(sums, np.float64), np.asarray(events, np.float64)
    sums, events = _merge_blocks(sums[events > 0], events[events > 0])
    b = len(sums)
    if b < 2:
        return Estimate(float(sums.sum() / events.sum()) if b else math.nan, -math.inf, math.inf, math.inf)
    mean = float(sums.sum() / events.sum())
    rest = sums - events * mean
    error = float(np.sqrt(b / (b - 1.0) * (rest * rest).sum()) / events.sum())
    student = t_quantile(0.5 * (1.0 + level), b - 1)
    half = student * math.hypot(error, 1.0 / size) + 0.5 * student * student / size
    low, high = mean - half, mean + half
    if error > 0.0:
        below, above = _resample(rest, events, error, level, seed)
        low, high = min(low, mean - above * error), max(high, mean - below * error)
    return Estimate(mean, low, high, error)


def _resample(rest: np.ndarray, events: np.ndarray, error: float, level: float, seed: int) -> tuple[float, float]:
    """The quantiles of resampled means divided by their own standard errors. With eight blocks a resampled error can be
    close to 0, so no quantile goes beyond 6."""
    b = len(rest)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(b,)))
    drawn = rng.integers(0, b, (RESAMPLES, b)) + b * np.arange(RESAMPLES)[:, None]
    times = np.bincount(drawn.ravel(), minlength=RESAMPLES * b).reshape(RESAMPLES, b).astype(np.float64)
    total = times @ events
    moved = times @ rest / total
    squares = times @ rest**2 - 2.0 * moved * (times @ (rest * events)) + moved**2 * (times @ events**2)
    errors = np.sqrt(b / (b - 1.0) * np.maximum(squares, 0.0)) / total
    good = errors > 1e-6 * error
    if not good.any():
        return -6.0, 6.0
    tails = np.quantile(moved[good] / errors[good], [0.5 * (1.0 - level), 0.5 * (1.0 + level)])
    return float(max(tails[0], -6.0)), float(min(tails[1], 6.0))


def _merge_blocks(sums: np.ndarray, events: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbouring blocks merged where there are very many, which bounds the memory."""
    if len(events) <= _MOST_BLOCKS:
        return sums, events
    starts = np.arange(_MOST_BLOCKS) * len(events) // _MOST_BLOCKS
    return np.add.reduceat(sums, starts), np.add.reduceat(events, starts)


# ---- how results are printed -----------------------------------------------------------------------------------------


class About(NamedTuple):
    """Which log a result is about, and how its numbers are printed."""

    name: str = "the log"
    events: int = 0
    arms: int = 0
    span: float = 0.0
    unit: bool | str = True  # of durations, as `format_duration` takes it
    points: bool = True  # rewards are 0 to 1, and gains are printed in points

    def __str__(self) -> str:
        return f"{self.name}: {self.events:,} events, {self.arms} arms, {self.duration(self.span)}"

    def duration(self, seconds: float) -> str:
        return format_duration(seconds, self.unit)

    def gain(self, estimate: Any) -> str:
        """A gain with its interval, in points if rewards are 0 to 1."""
        if estimate is None:
            return "-"
        mean, low, high = (format_signed((100.0 if self.points else 1.0) * value) for value in estimate[:3])
        return f"{mean} [{low}, {high}]"


def format_signed(value: float, digits: int = 2) -> str:
    """A number with its sign; zero has none.

    >>> format_signed(0.126), format_signed(-0.126), format_signed(-0.001)
    ('+0.13', '-0.13', '0.00')
    """
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]
