"""The bandits of one journal that a process holds open, each opened when somebody first asks for it."""

import asyncio
import secrets
import threading
from typing import Any

from driftbandit.live.errors import Unknown
from driftbandit.live.opening import reading

SECRET = 0, 1, 0  # bandit, width and start: among the cells of charts, of which the first that is written stays


class Held:
    """What a service that writes and a page that watches have in common: `_open` says how a bandit is opened."""

    read_only = True

    def __init__(self, target: str) -> None:
        self.target = target
        self._reader = reading(target)  # of its own: what a page asks for waits for no decision, and no decision for it
        self._held: dict[str, Any] = {}
        self._lock = threading.Lock()

    def _open(self, name: str) -> Any:
        raise NotImplementedError

    @property
    def journal(self) -> Any:
        """A journal for reading."""
        return self._reader

    @property
    def held(self) -> dict[str, Any]:
        """Those that are open, by name."""
        return dict(self._held)

    def secret(self) -> bytes:
        """What seals sessions of the page; one for this process if the journal has none."""
        bandit, width, start = SECRET
        found = self._reader.charts(bandit, width, start, start + 1)
        return bytes.fromhex(found[0][1]) if found else secrets.token_bytes(32)

    def names(self) -> list[str]:
        """All that the journal has."""
        return sorted(self._reader.bandits())

    def ready(self, name: str) -> Any:
        """The bandit if it is open already."""
        return self._held.get(name)

    def get(self, name: str) -> Any:
        """The bandit of this name; opening it reads its journal, so this may take a while."""
        found = self._held.get(name)
        if found is not None:
            return found
        with self._lock:
            if name not in self._held:
                if self._reader.number(name) is None:
                    raise Unknown(f"There is no bandit {name!r:.60} here; POST /v1/bandits makes one.")
                self._held[name] = self._open(name)
            return self._held[name]

    async def find(self, name: str) -> Any:
        """`get` for asyncio."""
        return self._held.get(name) or await asyncio.to_thread(self.get, name)

    def close(self) -> None:
        """Let go of the bandits and the journal."""
        with self._lock:
            held, self._held = self._held, {}
        for bandit in held.values():
            bandit.close()
        self._reader.close()
