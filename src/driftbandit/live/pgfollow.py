"""A thread that hears when any process has written, and has the bandits of this process read it."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

_POLL = 0.25  # seconds between looks when nobody calls: the net under notifications, which a cut connection loses
_SOON = 0.003  # seconds until the next look while events wait for a transaction to end


class Follower:
    """Listens on one connection for all bandits of a journal."""

    def __init__(self, journal: Any) -> None:
        self._journal = journal
        self._readers: list[tuple[int, Callable[[], int]]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandit-follower", daemon=True)
        self._thread.start()

    def add(self, bandit: int, read: Callable[[], int]) -> None:
        """One more bandit to read for."""
        self._readers = [*self._readers, (bandit, read)]

    def remove(self, bandit: int, read: Callable[[], int]) -> None:
        """One fewer."""
        self._readers = [pair for pair in self._readers if pair != (bandit, read)]

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        ear: Any = None
        while not self._stop.is_set():
            try:
                if ear is None or ear.closed:
                    ear = self._journal._connect()
                    ear.execute("LISTEN driftbandit")
                for _, read in self._readers:
                    read()
                if self._journal.pending:
                    time.sleep(_SOON)
                else:
                    for _ in ear.notifies(timeout=_POLL, stop_after=1):
                        pass
            except Exception:  # the database is away: the journal's own calls say so; we go on listening
                with contextlib.suppress(psycopg.Error, AttributeError):
                    ear.close()
                ear = None
                self._stop.wait(0.2)
        with contextlib.suppress(psycopg.Error, AttributeError):
            ear.close()
