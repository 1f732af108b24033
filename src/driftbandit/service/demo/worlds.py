"""Three worlds whose best arm changes: all at once, slowly, and with the time of day. Time runs fast here: a change
every half minute, a day every minute and a half."""

import math
from typing import Any, NamedTuple

from driftbandit.environments import Abrupt, Smooth

RATE = 40  # rounds of a world per second
_PHASE = 30  # seconds between two changes of the abrupt world
_DAY = 90  # seconds


class DayNight(NamedTuple):
    """Arms with a best hour each: the mean of arm i follows a cosine of one day that peaks at its hour."""

    n_arms: int = 4
    day: int = _DAY * RATE  # rounds

    def mean(self, t: int, arm: int) -> float:
        """The mean of an arm in round t."""
        return 0.45 + 0.35 * math.cos(2.0 * math.pi * (t / self.day - arm / self.n_arms))


class ShownBandit(NamedTuple):
    """A bandit of the demonstration: its world, the names of the arms, and how it learns."""

    name: str
    world: Any
    arms: list[str]
    policy: str
    options: dict[str, Any]


def shown(hours: float = 2.0) -> list[ShownBandit]:
    """What is shown: the default policy first, next to one that never forgets, and two other worlds."""
    horizon = int(hours * 3600 * RATE)
    abrupt = Abrupt(n_arms=4, horizon=horizon, phases=horizon // (_PHASE * RATE), world="11").realise(0)
    smooth = Smooth(n_arms=5, horizon=horizon, sigma=2.0 * math.pi / (120 * RATE))
    colours = ["red", "green", "blue", "gold"]
    rules: dict[str, Any] = {"wait": "4 s", "default": 0.0, "floor": 0.05, "holdback": 0.1, "baseline": "uniform"}
    places = [f"place {n}" for n in range(1, 6)]
    times = ["morning", "noon", "evening", "night"]
    return [
        ShownBandit("abrupt", abrupt, colours, "drift-ts", rules),
        ShownBandit("abrupt-never-forgets", abrupt, colours, "ts", rules),
        ShownBandit("day-night", DayNight(), times, "ds-ts", {**rules, "half_life": "6 s"}),
        ShownBandit("smooth", smooth, places, "drift-ts", rules),
    ]
