"""The bandits of one journal, as a service holds them: opened when somebody first asks for one, closed at the end."""

import asyncio
import threading
from typing import Any

from driftbandit.half_life import SECOND
from driftbandit.live import Bandit
from driftbandit.live.errors import Conflict, Unknown
from driftbandit.live.journal import Draw
from driftbandit.live.opening import reading, writing
from driftbandit.service.policytext import library_policy

MOST = 10_000  # bandits in one journal
_RECENT = 10 * SECOND


class Bandits:
    """Every bandit of a journal, for one process that writes."""

    read_only = False

    def __init__(self, target: str) -> None:
        self.target = target
        self._opened = writing(target)
        self._reader = reading(target)  # of its own: what a page asks for waits for no decision, and no decision for it
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

    def number(self, name: str) -> int:
        """A bandit's number in the journal."""
        return int(self.get(name)._number)

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
                if name not in self._opened.journal.bandits():
                    raise Unknown(f"There is no bandit {name!r:.60} here; POST /v1/bandits makes one.")
                self._held[name] = Bandit.open(self.target, name)
            return self._held[name]

    async def find(self, name: str) -> Any:
        """`get` for asyncio."""
        return self._held.get(name) or await asyncio.to_thread(self.get, name)

    def create(self, name: str, policy: str, arms: list[Any], who: str, **options: Any) -> tuple[Any, bool]:
        """The bandit of this name, and whether it was made now. One that differs from what is asked is a conflict."""
        made = library_policy(policy, len(arms))
        with self._lock:
            known = self._opened.journal.bandits()
            if name in known:
                fresh = False
            else:
                if len(known) >= MOST:
                    raise ValueError(f"This journal has {MOST} bandits already, which is the limit.")
                self._held[name] = Bandit.open(self.target, name, made, arms, who=who, **options)
                fresh = True
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

    def open_all(self) -> None:
        """Open every bandit: what has waited too long is settled, and charts go on, before anybody asks."""
        for name in self.names():
            self.get(name)

    async def writable(self, seconds: float) -> None:
        """Write a chart's cell of no bandit, which is there from the second time on, and wait for it: raises when the
        store does not answer in time."""
        ticket = self._opened.writer.submit([Draw(0, 0, 0, "{}")])
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
        """The largest delay, in seconds, between an event of the last moments and its being folded here."""
        lags = (bandit._replica.lag for bandit in self.held.values() if _fresh(bandit))
        return max(lags, default=0.0)

    def close(self) -> None:
        """Write what was asked, and let go of the journal."""
        with self._lock:
            held, self._held = self._held, {}
        for bandit in held.values():
            bandit.close()
        self._reader.close()
        self._opened.release()


def _fresh(bandit: Any) -> bool:
    """Whether its last event says something about now."""
    return bool(bandit._fold.last_at > bandit._replica.now() - _RECENT - bandit._replica.lag * SECOND)
