"""A bandit to look at, beside the process that runs it: what a page, a command or a notebook asks."""

import threading
from collections.abc import Mapping
from typing import Any

from driftbandit.live.clock import Clock
from driftbandit.live.errors import Unknown
from driftbandit.live.fold import Fold
from driftbandit.live.opening import policy_maker, reading
from driftbandit.live.replica import latest
from driftbandit.live.reports import Reports


class View(Reports):
    """The reports of a bandit without its verbs; `refresh` reads what has come since."""

    def __init__(self, target: Any, name: str, policies: Mapping[str, type] | None = None) -> None:
        self.name = name
        self._journal = reading(target)
        try:
            number = self._journal.number(name)
            if number is None:
                have = ", ".join(list(self._journal.bandits())[:8]) or "none"
                raise Unknown(f"There is no bandit {name!r:.60} in this journal; it has: {have}.")
            self._number = number
            self._lock = threading.RLock()
            self._replica = _Reading(self._journal, self._number, policy_maker(dict(policies or {})))
            self._fold = self._replica.fold
            self.refresh()
            if self._fold.config is None:
                raise Unknown(f"Bandit {name!r:.60} has no configuration yet.")
        except BaseException:
            self._journal.close()
            raise

    def settle(self) -> int:
        """A view writes nothing."""
        raise ValueError("This is a view of a bandit: it writes nothing.")

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()

    def __enter__(self) -> "View":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


class _Reading:
    """What `Reports` asks of a replica, for a process that only reads."""

    writer = None
    lag = 0.0

    def __init__(self, journal: Any, number: int, make: Any) -> None:
        self._journal, self._number = journal, number
        self.clock = Clock(journal.now)
        self.fold: Fold
        self.fold, self._cursor, _ = latest(journal, number, make)
        self._stuck: Exception | None = None

    def now(self) -> int:
        """The store's time."""
        return self.clock.now()

    def catch_up(self) -> None:
        """Fold what has come since."""
        if self._stuck is not None:
            raise self._stuck
        for cursor, event in self._journal.events(self._number, self._cursor):
            self._cursor = cursor
            try:
                self.fold.apply([event])
            except Exception as error:  # it may be half in the state
                self._stuck = error
                raise
        self.clock.ahead = self.fold.config.ahead if self.fold.config else 0
        self.clock.at_least(self.fold.last_at)
