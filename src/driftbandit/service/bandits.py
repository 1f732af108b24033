"""The bandits of one journal, as a service has them: opened at the first request, closed at the end."""

import asyncio
import os
import secrets
import threading
from typing import Any

from driftbandit.live import Bandit
from driftbandit.live.errors import Conflict, Unknown
from driftbandit.live.journal import Note
from driftbandit.live.opening import reading, writing
from driftbandit.live.settings import MOST_NUMBERS, checked_policy, differences
from driftbandit.live.view import View
from driftbandit.service.problems import HttpProblem
from driftbandit.state import started

MOST = 10_000  # bandits in one journal
_SECRET, _PROBE = "session secret", "readiness"  # names of texts in the journal
_SPACE = 8_192  # bytes, written as twice as many characters


def library_policy(text: str, n_arms: int) -> Any:
    """The policy that a text names: one of the library's that can decide live and whose state is not too large."""
    from driftbandit.text.parse import parse_policy

    policy = checked_policy(parse_policy(text))
    started(policy, n_arms, MOST_NUMBERS)
    return policy


class WatchedBandits:
    """The bandits of a journal that another program writes, for `driftbandit watch`. Nothing is written."""

    read_only = True
    waiting = commits = 0
    lag = 0.0

    def __init__(self, target: str) -> None:
        self.target = target
        self.journal = reading(target)  # a connection for reading: the page and decisions do not wait for each other
        self._held: dict[str, Any] = {}
        self._lock = threading.Lock()

    def _open(self, name: str) -> Any:
        return View(self.target, name)

    @property
    def held(self) -> dict[str, Any]:
        """The bandits that are open, by name."""
        return dict(self._held)

    def secret(self) -> bytes:
        """What signs the sessions of the page; one for this process only if the journal has none."""
        found = self.journal.note(_SECRET)
        return bytes.fromhex(found) if found else secrets.token_bytes(32)

    def names(self) -> list[str]:
        """All names in the journal."""
        return sorted(self.journal.bandits())

    def ready(self, name: str) -> Any:
        """The bandit if it is open already, or None."""
        return self._held.get(name)

    def get(self, name: str) -> Any:
        """The bandit of this name. Opening it reads its journal, so this may take a while."""
        found = self._held.get(name)
        if found is not None:
            return found
        with self._lock:
            if name not in self._held:
                if self.journal.number(name) is None:
                    raise Unknown(f"There is no bandit {name!r:.60} here; POST /v1/bandits makes one.")
                self._held[name] = self._open(name)
            return self._held[name]

    async def find(self, name: str) -> Any:
        """`get` for asyncio."""
        return self._held.get(name) or await asyncio.to_thread(self.get, name)

    def create(self, *what: Any, **options: Any) -> Any:
        """Refuse: nothing is written."""
        raise HttpProblem(403, "scope", "This page watches a journal that another program writes; it changes nothing.")

    async def check(self, seconds: float) -> None:
        """Raise unless the journal can be read in time."""
        async with asyncio.timeout(seconds):
            await asyncio.to_thread(self.names)

    def stuck(self) -> dict[str, str]:
        """Open bandits that cannot fold their journal any further, and why."""
        return {name: bandit._replica._stuck for name, bandit in self.held.items() if bandit._replica._stuck}

    def close(self) -> None:
        """Close the bandits and the journal."""
        with self._lock:
            held, self._held = self._held, {}
        for bandit in held.values():
            bandit.close()
        self.journal.close()


class Bandits(WatchedBandits):
    """The bandits of a journal that this process writes."""

    read_only = False

    def __init__(self, target: str) -> None:
        self._opened = writing(target)
        try:
            super().__init__(target)
        except BaseException:
            self._opened.release()
            raise

    def _open(self, name: str) -> Any:
        return Bandit.open(self.target, name)

    def create(self, name: str, policy: str, arms: list[Any], who: str, **options: Any) -> tuple[Any, bool]:
        """The bandit of this name, and whether it is new. An existing one that differs is a conflict."""
        made = library_policy(policy, len(arms))
        with self._lock:
            fresh = self.journal.number(name) is None
            if fresh:
                if self.journal.bandit_count() >= MOST:
                    raise ValueError(f"This journal has {MOST} bandits already, which is the limit.")
                self._held[name] = Bandit.open(self.target, name, made, arms, who=who, **options)
        bandit = self.get(name)
        if not fresh:
            options.pop("seed", None)
            differ = differences(bandit.config, options, made, arms)
            if differ:
                raise Conflict(
                    f"Bandit {name} exists and has {'; '.join(differ)}; PATCH /v1/bandits/{name} changes it."
                )
        return bandit, fresh

    def secret(self) -> bytes:
        """What signs the sessions of the page. The first process makes it, and the journal keeps it for all others."""
        self._opened.writer.submit([Note(_SECRET, secrets.token_hex(32), first=True)]).wait()
        return super().secret()

    async def check(self, seconds: float) -> None:
        """Raise unless the store writes a text of some length in time: a new one, as SQLite does not write the same."""
        ticket = self._opened.writer.submit([Note(_PROBE, os.urandom(_SPACE).hex(), first=False)])
        async with asyncio.timeout(seconds):
            await ticket.arrive()

    @property
    def waiting(self) -> int:  # type: ignore[override]
        """Calls that wait to be written."""
        return self._opened.writer.waiting

    @property
    def commits(self) -> int:  # type: ignore[override]
        """Commits so far."""
        return self._opened.writer.commits

    @property
    def lag(self) -> float:  # type: ignore[override]
        """How many seconds the open bandit that is furthest behind the journal is behind it now."""
        return max((bandit._replica.lag for bandit in self.held.values()), default=0.0)

    def close(self) -> None:
        """Write what was requested, and close the journal."""
        super().close()
        self._opened.release()
