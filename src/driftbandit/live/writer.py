"""Group commit: one thread writes what all others ask, as many asks at a time as have come in meanwhile.

A commit costs the disk a few milliseconds however much it holds. While one is under way, further asks gather; they all
go into the next. Each caller waits for the commit that holds its own ask, so nothing is acknowledged before it is on
the disk."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from driftbandit.live.errors import StoreError
from driftbandit.live.journal import Ask, Journal
from driftbandit.live.records import Event

_GROUP = 4096  # asks in a commit
_PATIENCE = 0.5  # of the time of the last commit: how long to wait for others to join
_LONGEST = 0.01  # seconds, and never longer
_QUEUE = 100_000  # asks that may wait; further ones are refused, not dropped


class Busy(StoreError):
    """More asks wait than the store can take; try again in a moment."""


class Ticket:
    """The answers to come of some asks that go into one commit."""

    __slots__ = ("_done", "_hook", "answers", "asks", "error", "settled")

    def __init__(self, asks: list[Ask]) -> None:
        self.asks = asks
        self.answers: list[Any] = []
        self.error: BaseException | None = None
        self.settled = False
        self._hook: Callable[[], Any] | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def wait(self) -> list[Any]:
        """The answers, once they are on disk."""
        self._done.acquire()
        self._done.release()
        return self.result()

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
        """Let the caller go on."""
        self.answers, self.error = answers, error
        self.settled = True
        self._done.release()
        if self._hook is not None:
            self._hook()


class Writer:
    """The thread that writes, and what it tells the bandits of its process."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.listeners: dict[int, list[Callable[[list[Event]], None]]] = {}
        self.commits = 0
        self._asked = self._written = 0
        self.failed = 0  # asks that could not be written
        self._queue: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self._closed = ""  # why nothing can be written any more
        self._thread = threading.Thread(target=self._run, name="driftbandit-writer", daemon=True)
        self._thread.start()

    def submit(self, asks: list[Ask]) -> Ticket:
        """Have these written, all in one commit. The caller holds its bandit's lock, so that asks are written in the
        order in which they were thought of."""
        if self._closed:
            raise StoreError(self._closed)
        if self.waiting > _QUEUE:
            raise Busy(f"More than {_QUEUE} calls wait for the store; try again in a moment.")
        ticket = Ticket(asks)
        self._asked += len(asks)
        self._queue.put(ticket)
        return ticket

    @property
    def waiting(self) -> int:
        """Calls that wait to be written."""
        return self._asked - self._written

    def close(self) -> None:
        """Write what has been asked, then end."""
        if not self._closed:
            self._closed = "This bandit is closed; open it again."
            self._queue.put(None)
            self._thread.join()

    def disown(self, why: str) -> None:
        """Refuse everything from now on, and leave the thread alone: it is another process's."""
        self._closed = why

    def _run(self) -> None:
        """Group after group. Those whose commit has just ended come back one by one; beginning the next commit with the
        first of them would leave all others to the one after, and halve the rate. So a writer that has had company
        waits for as many as came before, for a part of the time that a commit takes."""
        last, took, crowd = False, 0.0, (1, 1)
        while not last:
            tickets: list[Ticket] = []
            size = 0
            ticket = self._queue.get()
            until = time.monotonic() + min(_PATIENCE * took, _LONGEST)
            while True:
                if ticket is None:
                    last = True
                    break
                tickets.append(ticket)
                size += len(ticket.asks)
                if size >= _GROUP:
                    break
                try:
                    ticket = self._queue.get_nowait()
                except queue.Empty:
                    left = until - time.monotonic()
                    if len(tickets) >= max(crowd) or left <= 0.0:
                        break
                    try:
                        ticket = self._queue.get(timeout=left)
                    except queue.Empty:
                        break
            if tickets:
                began = time.monotonic()
                self._write(tickets)
                took, crowd = time.monotonic() - began, (crowd[1], len(tickets))

    def _write(self, tickets: list[Ticket]) -> None:
        asks = tickets[0].asks if len(tickets) == 1 else [ask for ticket in tickets for ask in ticket.asks]
        self._written += len(asks)
        try:
            answers, added = self.journal.commit(asks)
            self.commits += 1
            if added:
                self._tell(added)
        except BaseException as error:
            self.failed += len(asks)
            for ticket in tickets:
                ticket.settle([], error)
            return
        first = 0
        for ticket in tickets:
            ticket.settle(answers[first : first + len(ticket.asks)])
            first += len(ticket.asks)

    def _tell(self, added: list[tuple[int, Event]]) -> None:
        """Hand what was appended to the bandits that fold it, before anybody is told that it was written."""
        by_bandit: dict[int, list[Event]] = {}
        for bandit, event in added:
            by_bandit.setdefault(bandit, []).append(event)
        for bandit, events in by_bandit.items():
            for listener in self.listeners.get(bandit, ()):
                listener(events)
