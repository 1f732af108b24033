"""A thread that hears when any process has written, and has the bandits of this process read it."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

_POLL = 0.25  # seconds between looks when nobody calls: the net under notifications, which a cut connection loses
_SOON, _LATE = 0.003, 0.025  # least and most seconds until the next look while events keep coming
_SHARE = 2.0  # of the time a look takes: how long to leave the processor to others before the next one
_AWAKE = 0.3  # seconds without events after which we wait to be called


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
        """Look when called; and while events keep coming, look again and again without being called, so that a call
        that was spared or lost costs some milliseconds. The more a look takes, the longer the pause after it; but after
        one that took very long there is much to catch up with, and the next comes at once."""
        ear: Any = None
        last = 0.0
        while not self._stop.is_set():
            try:
                if ear is None or ear.closed:
                    ear = self._journal._connect()
                    ear.execute("LISTEN driftbandit")
                began = time.monotonic()
                found = sum(read() for _, read in self._readers)
                ended = time.monotonic()
                if found or self._journal.pending:
                    last = ended
                if ended - last < _AWAKE:
                    took = ended - began
                    time.sleep(_SOON if took > _LATE else min(max(_SOON, _SHARE * took), _LATE))
                else:
                    for _ in ear.notifies(timeout=_POLL, stop_after=1):
                        pass
                    for _ in ear.notifies(timeout=0.0):  # what else was called meanwhile is read by the same look
                        pass
            except Exception:  # the database is away: the journal's own calls say so; we go on listening
                with contextlib.suppress(psycopg.Error, AttributeError):
                    ear.close()
                ear = None
                self._stop.wait(0.2)
        with contextlib.suppress(psycopg.Error, AttributeError):
            ear.close()
