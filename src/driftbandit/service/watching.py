"""The bandits of a journal that another program writes: for `driftbandit watch`, which only looks."""

import asyncio
from typing import Any

from driftbandit.live.view import View
from driftbandit.service.held import Held
from driftbandit.service.problems import HttpProblem


class Watched(Held):
    """What `Bandits` is for a service, without anything that writes."""

    waiting = commits = 0
    lag = 0.0

    def _open(self, name: str) -> Any:
        return View(self.target, name)

    def create(self, *what: Any, **options: Any) -> Any:
        """A page that watches makes nothing."""
        raise HttpProblem(403, "scope", "This page watches a journal that another program writes; it changes nothing.")

    async def writable(self, seconds: float) -> None:
        """Whether the journal can be read is all that matters here."""
        async with asyncio.timeout(seconds):
            await asyncio.to_thread(self.names)
