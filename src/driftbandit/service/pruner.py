"""How a running service handles old records: it drops rows older than a bandit's `retention`, and deletes
bandits that were archived a day ago."""

import logging
import threading
from typing import Any

from driftbandit.bandit.asks import PURGE
from driftbandit.bandit.records import as_datetime
from driftbandit.bandit.retention import to_prune
from driftbandit.errors import DamagedJournal, Moved, NotFound, StoreError
from driftbandit.service.problems import log, log_event

_FIRST, _PAUSE = 60.0, 3600.0  # seconds after the start, and between two rounds


class Pruner:
    """A thread that goes through all bandits that have a retention."""

    def __init__(self, bandits: Any, exports: str | None = None) -> None:
        self._bandits, self._exports = bandits, exports
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandit-pruner", daemon=True)

    def start(self) -> None:
        """Begin, where this process writes."""
        if not self._bandits.read_only:
            self._thread.start()

    def close(self) -> None:
        """End. A process may end in the middle of dropping rows: the next one goes on."""
        self._stop.set()

    def _run(self) -> None:
        pause = _FIRST
        while not self._stop.wait(pause):
            pause = _PAUSE
            try:
                for name in self._bandits.journal.notes(PURGE):  # what another process did not finish
                    self._bandits.purge(name)
                names = to_prune(self._bandits.journal)
            except (StoreError, DamagedJournal) as error:
                log.warning("pruning: %s", error)
                continue
            for name in names:
                if self._stop.is_set():
                    return
                self.visit(name)

    def visit(self, name: str) -> None:
        """Drop the old rows of one bandit, and log it."""
        try:
            with self._bandits.borrow(name) as bandit:
                done = bandit.prune(self._exports)
        except Moved:
            self._bandits.forget(name)
        except (StoreError, DamagedJournal, NotFound) as error:
            log.error("pruning %s: %s", name, error)
        except Exception:
            log.exception("pruning %s", name)
        else:
            if done.deleted:
                self._bandits.forget(name)
            if done.decisions or done.events:
                begin = None if done.until is None else f"{as_datetime(done.until):%Y-%m-%d}"
                counts = {"decisions": done.decisions, "events": done.events, "files": len(done.files)}
                what = "deleted" if done.deleted else "dropped"
                log_event(logging.INFO, what, bandit=name, **counts, begin=begin)
