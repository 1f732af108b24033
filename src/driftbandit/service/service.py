"""One running service: its bandits, its keys, its numbers and its charts, begun and ended together."""

import asyncio
import time
from collections import Counter
from typing import Any

from driftbandit.service.access import Access
from driftbandit.service.bandits import Bandits
from driftbandit.service.charts.jobs import Jobs
from driftbandit.service.charts.series import Charts
from driftbandit.service.keys import Keys
from driftbandit.service.metrics import Metrics
from driftbandit.service.problems import HttpProblem

_WRITABLE = 1.5  # seconds for the store to answer
_AGAIN = 1.0  # seconds for which that answer stands


class Admission:
    """Requests being answered at once. Above a limit one more is refused at the door: a queue that nobody sees grows
    until every answer is late."""

    def __init__(self, most: int) -> None:
        self.most, self.inside = most, 0

    def __enter__(self) -> None:
        if self.inside >= self.most:
            raise HttpProblem(
                503, "busy", f"{self.most} requests are being answered; try again in a moment.", retry=True
            )
        self.inside += 1

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self.inside -= 1


class Service:
    """Everything that handlers use."""

    def __init__(
        self,
        bandits: Bandits | Any,
        keys: Keys | None = None,
        truth: Any = None,
        most: int = 512,
        max_lag: float = 5.0,
    ) -> None:
        self.bandits = bandits
        self.read_only = bandits.read_only
        self.access = Access(keys, b"" if keys is None else bandits.secret(), self.read_only)
        self.metrics = Metrics()
        self.admission = Admission(most)
        self.charts = Charts(bandits, truth)
        self.jobs = Jobs(bandits.target)
        self.max_lag = max_lag
        self.streams: Counter[str] = Counter()  # open ones, by key
        self.ending = asyncio.Event()
        self._tried: tuple[float, asyncio.Task[None]] | None = None

    async def start(self) -> None:
        """Begin to record. Bandits are opened when they are first used."""
        self.charts.recorder.start()

    async def writable(self) -> None:
        """Raises when the store cannot be written. Anybody may ask, and asking writes: so whoever asks within the same
        second gets the same answer."""
        if self._tried is None or time.monotonic() - self._tried[0] > _AGAIN:
            self._tried = time.monotonic(), asyncio.create_task(self.bandits.writable(_WRITABLE))
        await asyncio.shield(self._tried[1])

    async def pause(self, seconds: float) -> None:
        """Wait, but not when the service ends."""
        try:
            async with asyncio.timeout(seconds):
                await self.ending.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        """Write everything that was taken, then let go."""
        self.ending.set()
        await asyncio.to_thread(self.charts.close)
        await asyncio.to_thread(self.jobs.close)
        await asyncio.to_thread(self.bandits.close)
