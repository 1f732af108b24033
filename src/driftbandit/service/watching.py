"""The bandits of a journal that another program writes: for `driftbandit watch`, which only looks."""

import asyncio
import threading
from typing import Any

from driftbandit.live.errors import Unknown
from driftbandit.live.opening import reading
from driftbandit.live.view import View
from driftbandit.service.problems import Refused


class Watched:
    """What `Bandits` is for a service, without anything that writes."""

    read_only = True
    waiting = commits = 0
    lag = 0.0

    def __init__(self, target: str) -> None:
        self.target = target
        self._reader = reading(target)
        self._held: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def journal(self) -> Any:
        """A journal for reading."""
        return self._reader

    @property
    def held(self) -> dict[str, Any]:
        """Those that are open, by name."""
        return dict(self._held)

    def names(self) -> list[str]:
        """All that the journal has."""
        return sorted(self._reader.bandits())

    def ready(self, name: str) -> Any:
        """The bandit if it is open already."""
        return self._held.get(name)

    def get(self, name: str) -> Any:
        """The bandit of this name."""
        with self._lock:
            if name not in self._held:
                if name not in self._reader.bandits():
                    raise Unknown(f"There is no bandit {name!r:.60} in this journal.")
                self._held[name] = View(self.target, name)
            return self._held[name]

    async def find(self, name: str) -> Any:
        """`get` for asyncio."""
        return self._held.get(name) or await asyncio.to_thread(self.get, name)

    def create(self, *what: Any, **options: Any) -> Any:
        """A page that watches makes nothing."""
        raise Refused(403, "scope", "This page watches a journal that another program writes; it changes nothing.")

    def open_all(self) -> None:
        """Open every bandit."""
        for name in self.names():
            self.get(name)

    async def writable(self, seconds: float) -> None:
        """Whether the journal can be read is all that matters here."""
        async with asyncio.timeout(seconds):
            await asyncio.to_thread(self.names)

    def close(self) -> None:
        """Let go of the journal."""
        for view in self._held.values():
            view.close()
        self._held = {}
        self._reader.close()
