"""Group commit: one thread writes what all others ask, as many asks at a time as have come in meanwhile.

A commit costs the disk up to some milliseconds however much it holds. While one is under way, further asks gather; they
all go into the next. Each caller waits for the commit that holds its own ask, so nothing is acknowledged before it is
on the disk. A caller who is alone writes in its own thread: to wake another and be woken by it takes longer than many
disks."""

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

from driftbandit.live.errors import StoreError
from driftbandit.live.journal import Ask, Journal
from driftbandit.live.records import Event
from driftbandit.live.ticket import Ticket

_GROUP = 4096  # asks in a commit
_PATIENCE = 0.5  # of the time of the last commit: how long to wait for others to join
_LONGEST = 0.01  # seconds, and never longer
_UNCALLED = 0.5  # seconds between two looks of the thread that writes, when nobody calls it
_NONE = 1 << 60  # more tickets than there can be
_QUEUE = 100_000  # asks that may wait; further ones are refused, not dropped


class Busy(StoreError):
    """More asks wait than the store can take; try again in a moment."""


class Grants(Protocol):
    """What turns wishes into asks: see `deciding`."""

    def may_settle(self) -> bool:
        """Whether `grant` would write something first."""
        ...

    def grant(self, tickets: list[Ticket], settle: bool = True) -> None:
        """Choose for all of these, and have them enqueued; settle decisions first that are old enough."""
        ...


class Writer:
    """The thread that writes, and what it tells the bandits of its process."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.listeners: dict[int, list[Callable[[list[Event]], None]]] = {}
        self.idle: list[Callable[[], None]] = []  # called now and then while there is nothing to write
        self.commits = 0
        self.failed = 0  # asks that could not be written
        self._mutex = threading.Lock()
        self._leads = threading.Lock()  # held by the thread that commits
        self._asked = self._written = 0
        self._wished: deque[tuple[Grants, Ticket]] = deque()
        self._pending: deque[Ticket] = deque()
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._wanted = _NONE  # the thread sleeps until so many tickets are there
        self._crowd = (1, 1)  # tickets of the last two commits
        self._took = 0.0  # seconds of the last commit
        self._closed = ""  # why nothing can be written any more
        self._thread = threading.Thread(target=self._run, name="driftbandit-writer", daemon=True)
        self._thread.start()

    # ---- asking ------------------------------------------------------------------------------------------------------

    def submit(self, asks: list[Ask]) -> Ticket:
        """Have these written, all in one commit. The caller holds its bandit's lock, so that asks are written in the
        order in which they were thought of."""
        ticket = Ticket(asks)
        with self._mutex:
            self._check()
            self._asked += len(asks)
            self._pending.append(ticket)
        self._ring()
        return ticket

    def wish(self, chooser: Grants, wish: Any, here: bool = True) -> Ticket:
        """A place in the next commit for what `chooser` makes of this wish when the commit begins. The caller holds no
        lock. If it is alone, and may wait `here`, all is done when this returns."""
        ticket = Ticket([], wish)
        alone = here and self._crowd == (1, 1) and len(self) == 0 and not self._leads.locked()
        if alone and not chooser.may_settle():
            with self._leads:  # an interrupt cannot come between taking this lock and being sure to give it back
                self._write_alone(chooser, ticket)
            self._ring()
            return ticket
        with self._mutex:
            self._check()
            self._wished.append((chooser, ticket))
        self._ring()
        return ticket

    def _write_alone(self, chooser: Grants, ticket: Ticket) -> None:
        """Write this ticket, unless others have come meanwhile: theirs and ours are then left to the thread, which no
        signal can interrupt in the middle of something that belongs to others."""
        with self._mutex:
            self._check()
        chooser.grant([ticket], settle=False)  # an interrupt must not come between writing events and folding them
        with self._mutex:
            alone = list(self._pending) == [ticket]
            if alone:
                self._pending.clear()
        if alone:
            self._write([ticket])

    def enqueue(self, tickets: list[Ticket]) -> None:
        """Wishes that have become asks. The caller holds its bandit's lock, as for `submit`."""
        with self._mutex:
            self._asked += sum(len(ticket.asks) for ticket in tickets)
            self._pending.extend(tickets)

    def _check(self) -> None:
        if self._closed:
            raise StoreError(self._closed)
        if self.waiting > _QUEUE:
            raise Busy(f"More than {_QUEUE} calls wait for the store; try again in a moment.")

    def _ring(self) -> None:
        if len(self) >= self._wanted:
            self._bell.put(None)

    def __len__(self) -> int:
        return len(self._wished) + len(self._pending)

    @property
    def waiting(self) -> int:
        """Asks and wishes that wait to be written. An interrupt may keep the two counts from being made even, so they
        say nothing where nothing is pending."""
        return (self._asked - self._written if self._pending else 0) + len(self._wished)

    # ---- ending ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write what has been asked, then end."""
        with self._leads, self._mutex:  # whoever writes alone has ended
            if self._closed:
                return
            self._closed = "This bandit is closed; open it again."
        self._bell.put(None)
        self._thread.join()

    def disown(self, why: str) -> None:
        """Refuse everything from now on: the thread is another process's, and so may be those that hold the locks."""
        self._mutex, self._leads = threading.Lock(), threading.Lock()
        self._closed = why

    # ---- writing -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Group after group. Those whose commit has just ended come back one by one; beginning the next commit with the
        first of them would leave all others to the one after, and halve the rate. So a writer that has had company
        waits for as many as came before, for a part of the time that a commit takes."""
        while self._sleep_until(1, None):
            if max(self._crowd) > 1:
                self._sleep_until(max(self._crowd), min(_PATIENCE * self._took, _LONGEST))
            with self._leads:
                self._grant()
                tickets, size = [], 0
                while self._pending and size < _GROUP:
                    tickets.append(self._pending.popleft())
                    size += len(tickets[-1].asks)
                if tickets:
                    self._write(tickets)
                with self._mutex:
                    if not self._pending:
                        self._written = self._asked

    def _sleep_until(self, wanted: int, seconds: float | None) -> bool:
        """Sleep until so many tickets are there, or the time is over, or the writer is closed. Whether any is.

        Whoever adds a ticket looks at `_wanted` afterwards, and we look at the tickets after having set it: so one of
        us two sees the other; unless it was interrupted before it looked, so we look again now and then."""
        self._wanted = wanted
        until = None if seconds is None else time.monotonic() + seconds
        while len(self) < wanted and not self._closed:
            left = _UNCALLED if until is None else until - time.monotonic()
            if left <= 0.0:
                break
            try:
                self._bell.get(timeout=left)
            except queue.Empty:
                for call in list(self.idle) if until is None else ():
                    with contextlib.suppress(Exception):  # the next call that somebody waits for tells
                        call()
        self._wanted = _NONE
        return len(self) > 0

    def commit_first(self, asks: list[Ask]) -> list[Any]:
        """Write these before anything that waits. The caller is called by the thread's `_grant`: no other commits."""
        answers, added = self.journal.commit(asks)
        self._tell(added)
        return answers

    def _grant(self) -> None:
        """Have those chosen who have left a wish."""
        of: dict[Grants, list[Ticket]] = {}
        for _ in range(min(len(self._wished), _GROUP)):
            chooser, ticket = self._wished.popleft()
            of.setdefault(chooser, []).append(ticket)
        for chooser, tickets in of.items():
            chooser.grant(tickets)

    def _write(self, tickets: list[Ticket]) -> None:
        asks = tickets[0].asks if len(tickets) == 1 else [ask for ticket in tickets for ask in ticket.asks]
        self._written += len(asks)
        answers: list[Any] = []
        failure: BaseException | None = None
        began = time.monotonic()
        try:
            answers, added = self.journal.commit(asks)
            self.commits += 1
            if added:
                self._tell(added)
        except BaseException as error:
            self.failed += len(asks)
            failure = error
        self._took, self._crowd = time.monotonic() - began, (self._crowd[1], len(tickets))
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
