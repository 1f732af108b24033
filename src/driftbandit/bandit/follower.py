"""How a process hears what others have written to a PostgreSQL journal: by notifications that name bandits."""

import contextlib
import threading
import time
from itertools import zip_longest
from typing import Any

import psycopg

_POLL = 0.25  # seconds between looks without a notification, which a process that was killed has not sent
_SLICE = 500  # bandits in such a look: 10,000 open ones take 5 s
_SOON, _LATE = 0.003, 0.025  # least and most seconds until the next look while events keep coming
_SHARE = 2.0  # of the time a look takes: how long to leave the processor to others after it
_CHUNK = 1000  # events of one bandit in one look


class Follower:
    """A thread that has the bandits of this process take what any process has written, by one query for all of them
    that have changed."""

    def __init__(self, journal: Any) -> None:
        self._journal = journal
        self._replicas: dict[int, list[Any]] = {}  # by the number of their bandit
        self._lock = threading.Lock()
        self._unlooked: list[int] = []  # bandits that the looks without a notification have still to come to
        self.heard = time.monotonic()  # when everything that was announced had been read
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandit-follower", daemon=True)
        self._thread.start()

    def add(self, replica: Any) -> None:
        with self._lock:
            self._replicas.setdefault(replica.number, []).append(replica)

    def remove(self, replica: Any) -> None:
        with self._lock:
            left = [other for other in self._replicas.pop(replica.number, []) if other is not replica]
            if left:
                self._replicas[replica.number] = left

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        """Look at the bandits that notifications name, and at those whose events wait for a transaction. The more a
        look takes, the longer the pause after it, during which further notifications gather. But after one that took
        very long there is much to catch up with, and the next comes at once."""
        listener: Any = None
        polled = 0.0
        changed: set[int] = set()
        while not self._stop.is_set():
            try:
                if listener is None or listener.closed:
                    listener = self._journal._connect(session=True)
                    listener.execute("LISTEN driftbandit")
                    changed = set(self._replicas)  # announcements meanwhile were missed
                began = time.monotonic()
                if began - polled > _POLL:
                    polled = began
                    changed |= self._next_slice()
                changed = self._read(changed)
                self._journal.announce(listener)
                if not changed:
                    self.heard = began
                changed |= set(self._journal.waiting_since)
                took = time.monotonic() - began
                pause = _SOON if took > _LATE else min(max(_SOON, _SHARE * took), _LATE)
                if changed:
                    self._stop.wait(pause)
                patience = 0.0 if changed else self._journal.announced_lately or _POLL
                for notice in listener.notifies(timeout=patience, stop_after=1):
                    changed |= _numbers(notice.payload)
                    self._stop.wait(pause)
                for notice in listener.notifies(timeout=0.0):  # one look serves them all
                    changed |= _numbers(notice.payload)
            except Exception:  # the database is away, which the journal's own calls report
                with contextlib.suppress(psycopg.Error, AttributeError):
                    listener.close()
                listener = None
                self._stop.wait(0.2)
        with contextlib.suppress(psycopg.Error, AttributeError):
            listener.close()

    def _next_slice(self) -> set[int]:
        """Some of all bandits, in turn."""
        self._unlooked = self._unlooked or list(self._replicas)
        some, self._unlooked = self._unlooked[:_SLICE], self._unlooked[_SLICE:]
        return set(some)

    def _read(self, changed: set[int]) -> set[int]:
        """Read new events of these bandits, and return those that have more."""
        more: set[int] = set()
        with self._lock:  # a bandit may be open several times in one process: one turn for each
            replicas = [list(self._replicas[number]) for number in changed if number in self._replicas]
        for turn in zip_longest(*replicas):
            cursors = {
                replica.number: replica.cursor for replica in turn if replica is not None and not replica.stopped
            }
            news = self._journal.news(cursors, _CHUNK) if cursors else {}
            for replica in turn:
                if replica is not None and replica.number in news:
                    found = news[replica.number]
                    replica.take(cursors[replica.number], found)
                    if isinstance(found, list) and len(found) == _CHUNK:
                        more.add(replica.number)
        return more


def _numbers(payload: str) -> set[int]:
    """The bandits that a notification names."""
    return {int(word) for word in payload.split() if word.isdigit()}
