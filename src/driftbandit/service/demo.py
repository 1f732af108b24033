"""`driftbandit demo`: a service with traffic from environments whose best arm changes: all at once, slowly, and with
the time of day. Time runs fast: a change every half minute, a day every minute and a half."""

import asyncio
import math
import random
import time
from typing import Any, NamedTuple

from driftbandit.environments import Abrupt, Smooth
from driftbandit.live.errors import StoreError

_RATE = 40  # rounds of an environment per second
_PHASE = 30  # seconds between two changes of the abrupt environment
_DAY = 90  # seconds
_DECISIONS = 20  # per second and bandit
_DELAY = 0.4  # seconds, on average
_NEVER = 0.1  # of rewards


class DayNight(NamedTuple):
    """Arms with a best hour each: the mean of arm i follows a cosine of one day that peaks at its hour."""

    n_arms: int = 4
    day: int = _DAY * _RATE  # rounds

    def mean(self, t: int, arm: int) -> float:
        """The mean of an arm in round t."""
        return 0.45 + 0.35 * math.cos(2.0 * math.pi * (t / self.day - arm / self.n_arms))


class ShownBandit(NamedTuple):
    """A bandit of the demonstration: its environment, the names of its arms, and its settings."""

    name: str
    environment: Any
    arms: list[str]
    policy: str
    options: dict[str, Any]


def shown(hours: float = 2.0) -> list[ShownBandit]:
    """The bandits: the default policy first, then one that never forgets, and two other environments."""
    horizon = int(hours * 3600 * _RATE)
    abrupt = Abrupt(n_arms=4, horizon=horizon, phases=horizon // (_PHASE * _RATE), world="11").realise(0)
    smooth = Smooth(n_arms=5, horizon=horizon, sigma=2.0 * math.pi / (120 * _RATE))
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


class Feeder:
    """Traffic for some bandits: decides all the time, and rewards a moment later, or never."""

    def __init__(self, shown: list[ShownBandit], seed: int) -> None:
        self.shown = {one.name: one for one in shown}
        self._began = time.time()
        self._random = random.Random(seed)
        self._pending: set[asyncio.Task[None]] = set()

    def _round(self, seconds: float) -> int:
        return max(0, int((seconds - self._began) * _RATE))

    def truth(self, name: str, times: list[int]) -> list[list[float]] | None:
        """The means of a bandit's arms at these times (microseconds)."""
        one = self.shown.get(name)
        if one is None:
            return None
        rounds = [self._round(at / 1e6) for at in times]
        return [[float(one.environment.mean(t, arm)) for arm in range(len(one.arms))] for t in rounds]

    async def start(self, service: Any) -> "asyncio.Future[Any]":
        """Begin; cancelling the returned future ends it."""
        for one in self.shown.values():
            make = service.bandits.create
            await asyncio.to_thread(make, one.name, one.policy, one.arms, "demo", **one.options)
        self._began = time.time()
        return asyncio.gather(*(self._feed(service, one) for one in self.shown.values()))

    async def _feed(self, service: Any, one: ShownBandit) -> None:
        bandit = service.bandits.get(one.name)
        while True:
            await asyncio.sleep(self._random.expovariate(_DECISIONS))
            try:
                decision = await bandit.adecide()
            except StoreError:
                return
            service.metrics.decided(one.name, 1)
            if self._random.random() >= _NEVER:
                mean = float(one.environment.mean(self._round(time.time()), one.arms.index(decision.arm)))
                value = 1.0 if self._random.random() < mean else 0.0
                task = asyncio.create_task(self._pay(service, bandit, decision.id, value))
                self._pending.add(task)
                task.add_done_callback(self._pending.discard)

    async def _pay(self, service: Any, bandit: Any, id: str, value: float) -> None:
        await asyncio.sleep(self._random.expovariate(1.0 / _DELAY))
        try:
            service.metrics.rewarded(bandit.name, await bandit.areward(id, value))
        except StoreError:  # the demonstration ends
            return
