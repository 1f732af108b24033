"""Group commit: one thread writes what all others ask, as many asks at a time as have come in meanwhile.

A commit costs the disk a few milliseconds however much it holds. While one is under way, further asks gather; they all
go into the next. Each caller waits for the commit that holds its own ask, so nothing is acknowledged before it is on
the disk."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from driftbandit.live.errors import StoreError
from driftbandit.live.journal import Ask, Journal
from driftbandit.live.records import Event

_GROUP = 4096  # asks in a commit
_PATIENCE = 0.5  # of the time of the last commit: how long to wait for others to join
_LONGEST = 0.01  # seconds, and never longer
_CHAIN = 0.05  # seconds after which a thread no longer relies on being woken by another
_NONE = 1 << 60  # more tickets than there can be
_QUEUE = 100_000  # asks that may wait; further ones are refused, not dropped


class Busy(StoreError):
    """More asks wait than the store can take; try again in a moment."""


class Ticket:
    """The answers to come of some asks that go into one commit.

    Threads that wait for one commit are woken in a chain, each by the one before it as it goes on. Woken all at once
    they would fight for the interpreter, which lets one of them run."""

    __slots__ = ("_done", "_hook", "_next", "answers", "asks", "error", "settled", "waits")

    def __init__(self, asks: list[Ask]) -> None:
        self.asks = asks
        self.answers: list[Any] = []
        self.error: BaseException | None = None
        self.settled = False
        self.waits = False  # whether a thread sleeps until this is settled
        self._next: Ticket | None = None
        self._hook: Callable[[], Any] | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def wait(self) -> list[Any]:
        """The answers, once they are on disk."""
        self.waits = True
        try:
            # A chain is broken where a thread was interrupted before it came here; then the time wakes us.
            while not (self._done.acquire(True, _CHAIN) or self.settled):
                pass
        finally:
            self.waits = False
            if self._next is not None:
                self._next.wake()
        return self.result()

    def wake(self) -> None:
        """Let a waiting thread go on."""
        self._done.release()

    async def arrive(self) -> list[Any]:
        """The same for a coroutine: its loop goes on meanwhile."""
        import asyncio  # not before somebody uses it: it is a large part of all that is loaded

        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def arrived() -> None:
            if not future.done():
                future.set_result(None)

        self._hook = lambda: loop.call_soon_threadsafe(arrived)
        if not self.settled:
            await future
        return self.result()

    def result(self) -> list[Any]:
        """The answers, or the error that kept all of them from being written."""
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        return self.answers

    def settle(self, answers: list[Any], error: BaseException | None = None) -> None:
        """Record the outcome; a waiting thread still has to be woken."""
        self.answers, self.error = answers, error
        self.settled = True
        if self._hook is not None:
            self._hook()

    def before(self, other: "Ticket") -> None:
        """Wake the other when this one goes on."""
        self._next = other


class Writer:
    """The thread that writes, and what it tells the bandits of its process."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.listeners: dict[int, list[Callable[[list[Event]], None]]] = {}
        self.commits = 0
        self._mutex = threading.Lock()
        self._asked = self._written = 0
        self.failed = 0  # asks that could not be written
        self._pending: deque[Ticket] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._wanted = _NONE  # the thread sleeps until so many tickets are pending
        self._closed = ""  # why nothing can be written any more
        self._thread = threading.Thread(target=self._run, name="driftbandit-writer", daemon=True)
        self._thread.start()

    def submit(self, asks: list[Ask]) -> Ticket:
        """Have these written, all in one commit. The caller holds its bandit's lock, so that asks are written in the
        order in which they were thought of."""
        ticket = Ticket(asks)
        with self._mutex:
            if self._closed:
                raise StoreError(self._closed)
            if self.waiting > _QUEUE:
                raise Busy(f"More than {_QUEUE} calls wait for the store; try again in a moment.")
            self._asked += len(asks)
            self._pending.append(ticket)
        if len(self._pending) >= self._wanted:
            self._bell.put(None)
        return ticket

    @property
    def waiting(self) -> int:
        """Calls that wait to be written."""
        return self._asked - self._written

    def close(self) -> None:
        """Write what has been asked, then end."""
        with self._mutex:
            if self._closed:
                return
            self._closed = "This bandit is closed; open it again."
        self._bell.put(None)
        self._thread.join()

    def disown(self, why: str) -> None:
        """Refuse everything from now on, and leave the thread and the lock alone: they are another process's."""
        self._mutex = threading.Lock()
        self._closed = why

    def _run(self) -> None:
        """Group after group. Those whose commit has just ended come back one by one; beginning the next commit with the
        first of them would leave all others to the one after, and halve the rate. So a writer that has had company
        waits for as many as came before, for a part of the time that a commit takes."""
        took, crowd = 0.0, (1, 1)
        while self._sleep_until(1, None):
            if max(crowd) > 1:
                self._sleep_until(max(crowd), min(_PATIENCE * took, _LONGEST))
            tickets, size = [], 0
            while self._pending and size < _GROUP:
                tickets.append(self._pending.popleft())
                size += len(tickets[-1].asks)
            began = time.monotonic()
            self._write(tickets)
            took, crowd = time.monotonic() - began, (crowd[1], len(tickets))

    def _sleep_until(self, wanted: int, seconds: float | None) -> bool:
        """Sleep until so many tickets are pending, or the time is over, or the writer is closed. Whether any is.

        Whoever appends a ticket looks at `_wanted` afterwards, and we look at the tickets after having set it: so one
        of us two sees the other."""
        self._wanted = wanted
        until = None if seconds is None else time.monotonic() + seconds
        while len(self._pending) < wanted and not self._closed:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0.0:
                break
            try:
                self._bell.get(timeout=left)
            except queue.Empty:
                break
        self._wanted = _NONE
        return bool(self._pending)

    def _write(self, tickets: list[Ticket]) -> None:
        asks = tickets[0].asks if len(tickets) == 1 else [ask for ticket in tickets for ask in ticket.asks]
        self._written += len(asks)
        answers: list[Any] = []
        failure: BaseException | None = None
        try:
            answers, added = self.journal.commit(asks)
            self.commits += 1
            if added:
                self._tell(added)
        except BaseException as error:
            self.failed += len(asks)
            failure = error
        asleep: list[Ticket] = []
        awake: list[Ticket] = []
        for ticket in tickets:
            (asleep if ticket.waits else awake).append(ticket)
        for one, other in pairwise(asleep):
            one.before(other)
        first = 0
        for ticket in tickets:
            ticket.settle(answers[first : first + len(ticket.asks)] if failure is None else [], failure)
            first += len(ticket.asks)
        for ticket in asleep[:1] + awake:
            ticket.wake()

    def _tell(self, added: list[tuple[int, Event]]) -> None:
        """Hand what was appended to the bandits that fold it, before anyone is told that it was written."""
        by_bandit: dict[int, list[Event]] = {}
        for bandit, event in added:
            by_bandit.setdefault(bandit, []).append(event)
        for bandit, events in by_bandit.items():
            for listener in self.listeners.get(bandit, ()):
                listener(events)
