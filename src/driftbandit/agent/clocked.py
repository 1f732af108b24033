"""The times that an agent with a half-life is given."""

import math
import time
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from driftbandit.agent.inputs import checked_count
from driftbandit.half_life import SECOND


def microseconds(moment: Any, name: str) -> int:
    """A time given as seconds since 1970 or as a datetime with a time zone; now, if none is given."""
    if moment is None:
        return time.time_ns() // 1000
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        moment = moment.timestamp()
    number = isinstance(moment, int | float | np.integer | np.floating) and not isinstance(moment, bool)
    if not number or not math.isfinite(moment) or abs(moment) > 1e11:
        raise ValueError(
            f"{name} is a time: seconds since 1970, as time.time() gives them, or a datetime with a time zone; "
            f"got {moment!r:.60}. Nothing was learnt."
        )
    return round(float(moment) * SECOND)


def decided_at(half_life: int | None, at: Any, now: Any) -> int | None:
    """When a reward's arm was chosen, for an agent with a half-life; others are given no times."""
    if half_life is None:
        if at is not None or now is not None:
            raise ValueError("at and now are for agents with a half-life; this one counts rewards. Nothing was learnt.")
        return None
    present = microseconds(now, "now")
    past = present if at is None else microseconds(at, "at")
    if past > present:
        raise ValueError("at is when the arm was chosen, and lies in the future. Nothing was learnt.")
    return past


def restored_half_life(data: dict[str, Any]) -> timedelta | None:
    """The half-life of a snapshot, if it has one."""
    if data["half_life"] is None:
        return None
    return timedelta(microseconds=checked_count(data["half_life"], 1 << 60))


def asked_at(half_life: int | None, now: Any) -> int:
    """The time at which an agent is asked; those without a half-life are given none."""
    if half_life is not None:
        return microseconds(now, "now")
    if now is not None:
        raise ValueError("now is for an agent with a half-life; this one counts rewards.")
    return 0
