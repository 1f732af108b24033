"""A policy that forgets by the clock, for a live agent: `PlainPolicy` with a half-life in time.

Traffic is not a clock: with a discount per reward, memory is short in the rush hour and long at night. Here evidence
loses half its weight in a given time, however many rewards come in, and a late reward weighs what it would weigh had it
come at once (`driftbandit.half_life`)."""

import math
import time
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from driftbandit.agent.inputs import checked_count
from driftbandit.agent.interpreted import PlainPolicy
from driftbandit.half_life import SECOND, half_to_the, learn_by_time
from driftbandit.state import to_arrays, to_lists


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


def written(half_life: int | None, player: Any) -> dict[str, int]:
    """What a snapshot holds of the clock, where there is one."""
    return {} if half_life is None else {"half_life": half_life, "time": player.time}


def restored_half_life(data: dict[str, Any]) -> timedelta | None:
    """The half-life of a snapshot, if it has one."""
    if "half_life" not in data and "time" not in data:
        return None
    checked_count(data["time"], 1 << 62)
    return timedelta(microseconds=checked_count(data["half_life"], 1 << 60))


class ClockedPolicy(PlainPolicy):
    """`kept` is what was learnt, as it stood at `time`; `state` is a copy that has faded to the moment of the last
    `look`, to choose from. Asking changes nothing but that copy."""

    def __init__(self, policy: Any, state: Any, key: int, half_life: int, time: int) -> None:
        super().__init__(policy, state, key)
        self._kept = to_lists(state)
        self.half_life, self.time = half_life, time

    @property
    def kept(self) -> Any:
        """What was learnt."""
        return self._kept

    def look(self, now: int) -> None:
        """See what is known as it stands now."""
        self.state = tuple.__new__(type(self._kept), [list(field) for field in self._kept])
        if now > self.time:
            self.policy.fade(self.state, half_to_the((now - self.time) / self.half_life))

    def learn_at(self, t: int, arm: int, reward: float, decided: int) -> None:
        """Take in the t-th reward, of an arm chosen at this time."""
        if self.behind is not None:
            reward = self.policy.seen(reward, self.behind.at(t))
        self.time = learn_by_time(self.policy, self._kept, self.time, self.half_life, arm, reward, decided)


def playing(policy: Any, state: Any, key: int, half_life: int, time: int, compiled: bool, n_arms: int) -> Any:
    """A player that forgets by the clock."""
    if compiled:
        from driftbandit.lab.engine.clocked_player import ClockedLivePolicy

        arrays = to_arrays(to_lists(state), policy.init(n_arms))
        return ClockedLivePolicy(policy, arrays, key, n_arms, half_life, time)
    return ClockedPolicy(policy, state, key, half_life, time)


def look(half_life: int | None, player: Any, now: Any) -> None:
    """With a half-life: see what is known as it stands now."""
    if half_life is not None:
        player.look(microseconds(now, "now"))
    elif now is not None:
        raise ValueError("now is for an agent with a half-life; this one counts rewards.")
