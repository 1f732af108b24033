"""Durations as people write them, and forgetting with a half-life. Every time is a whole number of microseconds."""

import math
import re
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from driftbandit.core.primitives import compilable

SECOND = 1_000_000
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_WORDS = {
    "µs": "us", "microsecond": "us", "millisecond": "ms", "sec": "s", "second": "s", "m": "min", "minute": "min",
    "hr": "h", "hour": "h", "day": "d", "week": "w",
}  # fmt: skip
_TEXT = re.compile(r"\s*([0-9.eE+-]+)\s*([a-zA-Zµ]+)\s*")
_LONGEST = 1 << 60  # 36,000 years: sums of two times stay within 64 bits


def duration(value: Any, name: str) -> int:
    """Microseconds from "6 h", a timedelta or a number of seconds; messages call the value `name`.

    >>> duration("6 h", "half_life"), duration(90, "wait")
    (21600000000, 90000000)
    """
    seconds = math.nan
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and (match := _TEXT.fullmatch(value)):
        word = match[2] if match[2] in ("m", "M") else match[2].lower()
        unit = _UNITS.get(word, _UNITS.get(_WORDS.get(word, _WORDS.get(word.rstrip("s"), ""))))
        try:
            seconds = float(match[1]) * unit if unit is not None else math.nan
        except ValueError:
            seconds = math.nan
    microseconds = seconds * SECOND
    if not 1.0 <= microseconds < _LONGEST:
        raise ValueError(
            f"{name} is a positive time such as '6 h', '15 min', '2 days', a timedelta or seconds; got {value!r:.60}."
        )
    return round(microseconds)


def moment(value: Any, now: int, name: str) -> int:
    """Microseconds since 1970 from a datetime with a zone, or from how long ago it was: "7 days", a timedelta or a
    number of seconds.

    >>> from datetime import UTC
    >>> moment("1 min", 100 * SECOND, "since"), moment(datetime(1970, 1, 2, tzinfo=UTC), 0, "since")
    (40000000, 86400000000)
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return round(value.timestamp() * SECOND)
    try:
        return now - duration(value, name)
    except ValueError:
        raise ValueError(
            f"{name} is a datetime with a zone, or how long ago: '7 days', a timedelta or seconds; got {value!r:.60}."
        ) from None


def format_duration(microseconds: float, digits: int | None = None) -> str:
    """A duration as text that `duration` reads back: exactly, or to this many digits.

    >>> format_duration(duration("6 h", "wait")), format_duration(1_500_000), format_duration(95e6, digits=2)
    ('6 h', '1.5 s', '1.6 min')
    """
    seconds = microseconds / SECOND
    if digits is not None:
        unit = next((unit for unit in ("d", "h", "min", "s", "ms") if seconds >= _UNITS[unit]), "us")
        return f"{float(f'{seconds / _UNITS[unit]:.{digits}g}'):g} {unit}"
    for unit in ("w", "d", "h", "min"):
        if seconds >= _UNITS[unit] and (seconds / _UNITS[unit]).is_integer():
            return f"{seconds / _UNITS[unit]:g} {unit}"
    return f"{seconds!r} s".replace(".0 s", " s")


_LN2 = math.log(2.0)
_EXP = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))  # the rest is below 2e-16 below ln(2) / 2
_LEAST = 2.0**-1000  # a weight never becomes 0: counts may be divided by its square root


@compilable
def half_to_the(x: float) -> float:
    """2**-x for x >= 0, at least 2**-1000: the weight that is left after x half-lives.

    Uses only +, -, * and exact scaling, so every machine computes the same bits; power functions of libraries differ in
    the last bit."""
    if x >= 1000.0:
        return _LEAST
    n = math.floor(x + 0.5)
    y = (n - x) * _LN2
    p = 0.0
    for coefficient in _EXP:
        p = coefficient + y * p
    return math.ldexp(p, -int(n))


@compilable
def learn_by_time(
    policy: Any, state: Any, time: int, half_life: int, arm: Any, reward: Any, decided: int, features: Any
) -> Any:
    """Learn the reward of a decision made at `decided`, with these features or None, into a state of time `time`;
    return the state's new time.

    A reward has the weight it would have had without any delay, in whatever order rewards arrive."""
    weight = 1.0
    if decided > time:
        policy.fade(state, half_to_the((decided - time) / half_life))
        time = decided
    elif decided < time:
        weight = half_to_the((time - decided) / half_life)
    if features is None:
        policy.take(state, arm, reward, weight)
    else:
        policy.take_in(state, arm, reward, weight, features)
    return time


def describe_policy(policy: object, half_life: int | None) -> str:
    """The policy's text; with a half-life, without `gamma`, which is then not used."""
    fields = getattr(policy, "_fields", ())
    if half_life is None or "gamma" not in fields:
        return repr(policy)
    kept = ", ".join(f"{name}={getattr(policy, name)!r}" for name in fields if name != "gamma")
    return f"{type(policy).__name__}({kept})"


def checked_half_life(half_life: Any, policy: object) -> int:
    """The half-life in microseconds, if this policy can forget by the clock."""
    microseconds = duration(half_life, "half_life")
    if not (hasattr(policy, "fade") and hasattr(policy, "take")):
        from driftbandit.spec.parse import policies

        able = ", ".join(sorted(_names(cls) for cls in policies().values() if hasattr(cls, "fade")))
        raise ValueError(
            f"half_life needs a policy that can forget by the clock, and {_names(type(policy))} cannot; these can: "
            f"{able}."
        )
    return microseconds


def _names(cls: Any) -> str:
    """A policy by all its names, such as "DiscountedBetaTS (dts, dots)"."""
    shorts = [*filter(None, [getattr(cls, "short", "")]), *getattr(cls, "aliases", {})]
    return f"{cls.__name__} ({', '.join(shorts)})" if shorts else str(cls.__name__)
