"""The bandits of one journal, as a service holds them: opened when somebody first asks for one, closed at the end."""

import asyncio
import secrets
import time
from typing import Any

from driftbandit.live import Bandit
from driftbandit.live.errors import Conflict
from driftbandit.live.journal import Draw, Thin
from driftbandit.live.opening import writing
from driftbandit.service.held import SECRET, Held
from driftbandit.service.policytext import library_policy

MOST = 10_000  # bandits in one journal
_ROOM = "x" * 16_384  # what a store that is ready has room for


class Bandits(Held):
    """Every bandit of a journal, for one process that writes."""

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
        """The bandit of this name, and whether it was made now. One that differs from what is asked is a conflict."""
        made = library_policy(policy, len(arms))
        with self._lock:
            fresh = self._reader.number(name) is None
            if fresh:
                if self._reader.bandit_count() >= MOST:
                    raise ValueError(f"This journal has {MOST} bandits already, which is the limit.")
                self._held[name] = Bandit.open(self.target, name, made, arms, who=who, **options)
        bandit = self.get(name)
        if not fresh:
            from driftbandit.live.settings import differences

            options.pop("seed", None)
            differ = differences(bandit.config, options, made, arms)
            if differ:
                raise Conflict(
                    f"Bandit {name} exists and has {'; '.join(differ)}; PATCH /v1/bandits/{name} changes it."
                )
        return bandit, fresh

    def secret(self) -> bytes:
        """What seals sessions of the page. The first process makes it, and the journal keeps it for all others."""
        self._opened.writer.submit([Draw(*SECRET, secrets.token_hex(32))]).wait()
        return super().secret()

    async def writable(self, seconds: float) -> None:
        """Write a chart's cell of no bandit and drop it again, in one commit, and wait for it: raises when the store
        does not answer in time, or has no room for it."""
        now = time.time_ns() // 1000
        ticket = self._opened.writer.submit([Draw(0, 0, now, _ROOM), Thin(0, 0, now + 1)])
        async with asyncio.timeout(seconds):
            await ticket.arrive()

    @property
    def waiting(self) -> int:
        """Calls that wait to be written."""
        return self._opened.writer.waiting

    @property
    def commits(self) -> int:
        """Commits so far."""
        return self._opened.writer.commits

    @property
    def lag(self) -> float:
        """How many seconds the open bandit that is most behind is behind the journal now."""
        return max((bandit._replica.lag for bandit in self.held.values()), default=0.0)

    def close(self) -> None:
        """Write what was asked, and let go of the journal."""
        super().close()
        self._opened.release()
