"""Traffic for the demonstration: decides all the time, and rewards a moment later, or never."""

import asyncio
import random
import time
from typing import Any

from driftbandit.live.errors import StoreError
from driftbandit.service.demo.worlds import RATE, ShownBandit

_DECISIONS = 20  # per second and bandit
_DELAY = 0.4  # seconds, on average
_NEVER = 0.1  # of rewards


class Feeder:
    """Decisions and rewards for some bandits; knows the truth, which no real service does."""

    def __init__(self, shown: list[ShownBandit], seed: int) -> None:
        self.shown = {one.name: one for one in shown}
        self._began = time.time()
        self._random = random.Random(seed)
        self._pending: set[asyncio.Task[None]] = set()

    def _round(self, seconds: float) -> int:
        return max(0, int((seconds - self._began) * RATE))

    def truth(self, name: str, times: list[int]) -> list[list[float]] | None:
        """The means of a bandit's arms at these times (microseconds)."""
        one = self.shown.get(name)
        if one is None:
            return None
        rounds = [self._round(at / 1e6) for at in times]
        return [[float(one.world.mean(t, arm)) for arm in range(len(one.arms))] for t in rounds]

    async def start(self, service: Any) -> "asyncio.Future[Any]":
        """Begin; cancel what is returned to end."""
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
                mean = float(one.world.mean(self._round(time.time()), one.arms.index(decision.arm)))
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
