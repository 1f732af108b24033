"""Group commit: one thread chooses and writes for all others, as many calls at a time as have come in meanwhile.

A commit costs the disk up to some milliseconds however much it holds. While one is under way, further calls gather;
they all go into the next. The thread that begins a commit chooses for every call that waits for a decision, with one
reading of the clock and of the state. Each caller waits for the commit that holds its own records, so nothing is
acknowledged before it is on the disk. A single caller writes in its own thread: waking another thread and being woken
by it takes longer than many disks."""

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from driftbandit.bandit.asks import Ask
from driftbandit.bandit.chooser import Chooser, StoreCall, resume_all
from driftbandit.bandit.journal import Journal
from driftbandit.bandit.records import Event, log
from driftbandit.errors import DamagedJournal, StoreBusy, StoreError

_GROUP = 4096  # asks in a commit
_PATIENCE = 0.5  # of the time of the last commit: how long to wait for others to join
_LONGEST = 0.01  # seconds, and never longer
_UNCALLED = 0.5  # seconds between two looks of the writing thread when nothing wakes it
_NONE = 1 << 60  # more calls than there can be
_QUEUE = 100_000  # asks that may wait; further ones are refused


class Writer:
    """The thread that writes, and hands the new events to the bandits of its process."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.listeners: dict[int, list[Callable[[list[Event]], None]]] = {}
        self.idle: list[Callable[[], None]] = []  # called now and then while there is nothing to write
        self.commits = 0
        self.failed = 0  # asks that could not be written
        self._failing = ""  # the last error, while commits fail
        self._mutex = threading.Lock()
        self._leads = threading.Lock()  # held by the thread that commits
        self._backlog = 0  # asks of the pending calls; an interrupt may leave it wrong until nothing is pending
        self._requested: deque[tuple[Chooser, StoreCall]] = deque()  # calls that wait for their decisions
        self._pending: deque[StoreCall] = deque()  # calls whose asks wait to be written
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._wanted = _NONE  # the thread sleeps until so many calls are there
        self._crowd = (1, 1)  # calls in the last two commits
        self._took = 0.0  # seconds of the last commit
        self._closed = ""  # why nothing can be written any more
        self._thread = threading.Thread(target=self._run, name="driftbandit-writer", daemon=True)
        self._thread.start()

    # ---- calls -------------------------------------------------------------------------------------------------------

    def submit(self, asks: Sequence[Ask]) -> StoreCall:
        """Have these written, all in one commit. The caller holds its bandit's lock, so that asks are written in the
        order in which they were made."""
        call = StoreCall(list(asks))
        self.submit_call(call)
        return call

    def submit_call(self, call: StoreCall) -> None:
        """The same for a call that has been chosen for."""
        with self._mutex:
            self._check()
            self._backlog += len(call.asks)
            self._pending.append(call)
        self._ring()

    def request(self, chooser: Chooser, call: StoreCall, here: bool = True) -> None:
        """Have decisions made and written by the next commit. The caller holds no lock. If no other thread writes, and
        this one may do so (`here`), all is done when this returns."""
        alone = here and self._crowd == (1, 1) and len(self) == 0 and not self._leads.locked()
        if alone and not chooser.replica.may_settle():
            with self._leads:  # an interrupt cannot come between taking this lock and being sure to release it
                self._write_alone(chooser, call)
        else:
            with self._mutex:
                self._check()
                self._requested.append((chooser, call))
        self._ring()

    def _write_alone(self, chooser: Chooser, call: StoreCall) -> None:
        """Write this call, unless others have come meanwhile: all are then left to the thread, which no signal can
        interrupt in the middle of something that belongs to others."""
        with self._mutex:
            self._check()
        chooser.choose_all([call], settle=False)  # an interrupt must not come between writing events and folding them
        with self._mutex:
            alone = list(self._pending) == [call]
            if alone:
                self._pending.clear()
        if alone:
            self._write([call])

    def enqueue(self, calls: list[StoreCall]) -> None:
        """Calls that have been chosen for. The caller holds its bandit's lock, as for `submit`."""
        with self._mutex:
            self._backlog += sum(len(call.asks) for call in calls)
            self._pending.extend(calls)

    def _check(self) -> None:
        if self._closed:
            raise StoreError(self._closed)
        if self.waiting > _QUEUE:
            raise StoreBusy(f"More than {_QUEUE} calls wait for the store; try again in a moment.")

    def _ring(self) -> None:
        if len(self) >= self._wanted:
            self._wanted = _NONE  # one ring is enough
            self._bell.put(None)

    def __len__(self) -> int:
        return len(self._requested) + len(self._pending)

    @property
    def waiting(self) -> int:
        """Asks and requests that wait to be written."""
        return (self._backlog if self._pending else 0) + len(self._requested)

    def close(self) -> None:
        """Write all requests, then end."""
        with self._leads, self._mutex:  # a thread that writes by itself has ended
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
        """Group after group. Callers whose commit has just ended come back one by one. To begin the next commit with
        the first of them would leave all others to the one after, and halve the rate. So after a commit of several
        calls the writer waits for as many, for a part of the time that a commit takes."""
        while self._sleep_until(1, None):
            if max(self._crowd) > 1:
                self._sleep_until(max(self._crowd), min(_PATIENCE * self._took, _LONGEST))
            with self._leads:
                self._choose_requested()
                calls, size = [], 0
                while self._pending and size < _GROUP:
                    calls.append(self._pending.popleft())
                    size += len(calls[-1].asks)
                if calls:
                    self._write(calls)
                with self._mutex:
                    if not self._pending:
                        self._backlog = 0

    def _sleep_until(self, wanted: int, seconds: float | None) -> bool:
        """Sleep until so many calls are there, or the time is over, or the writer is closed. Returns whether any is.

        Each caller adds its call before it reads `_wanted`, and we set that before we count the calls: so one side sees
        the other, unless the caller was interrupted in between. So we also look now and then."""
        self._wanted = wanted
        until = None if seconds is None else time.monotonic() + seconds
        while len(self) < wanted and not self._closed:
            self._wanted = wanted
            if len(self) >= wanted:
                break
            left = _UNCALLED if until is None else until - time.monotonic()
            if left <= 0.0:
                break
            try:
                self._bell.get(timeout=left)
            except queue.Empty:
                for call in list(self.idle) if until is None else ():
                    with contextlib.suppress(Exception):  # the next call that is waited for reports it
                        call()
        self._wanted = _NONE
        return len(self) > 0

    def commit(self, asks: list[Ask]) -> list[Any]:
        """Write these now, and have the bandits of this process fold the new events, before any caller learns that it
        was written. The log gets one line when commits begin to fail, as on a full disk, and one when they work again.
        No other thread commits meanwhile: called by the one that leads, or by a chooser in `choose_all`."""
        try:
            answers, added = self.journal.commit(asks)
        except (StoreError, DamagedJournal) as error:
            if str(error) != self._failing:
                self._failing = str(error)
                log.error("%s", error)
            raise
        if self._failing:
            self._failing = ""
            log.warning("The journal can be written again.")
        by_bandit: dict[int, list[Event]] = {}
        for bandit, event in added:
            by_bandit.setdefault(bandit, []).append(event)
        for bandit, events in by_bandit.items():
            for listener in self.listeners.get(bandit, ()):
                listener(events)
        return answers

    def _choose_requested(self) -> None:
        of: dict[Chooser, list[StoreCall]] = {}
        for _ in range(min(len(self._requested), _GROUP)):
            chooser, call = self._requested.popleft()
            of.setdefault(chooser, []).append(call)
        for chooser, calls in of.items():
            chooser.choose_all(calls)

    def _write(self, calls: list[StoreCall]) -> None:
        asks = calls[0].asks if len(calls) == 1 else [ask for call in calls for ask in call.asks]
        self._backlog -= len(asks)
        answers: list[Any] = []
        failure: BaseException | None = None
        began = time.monotonic()
        try:
            answers = self.commit(asks)
            self.commits += 1
        except BaseException as error:
            self.failed += len(asks)
            failure = error
        self._took, self._crowd = time.monotonic() - began, (self._crowd[1], len(calls))
        asleep: list[StoreCall] = []
        awake: list[StoreCall] = []
        for call in calls:  # each looked at once: a thread may begin to wait meanwhile
            (asleep if call.waits else awake).append(call)
        for one, other in pairwise(asleep):
            one.follower = other
        first = 0
        loops: dict[Any, list[Any]] = {}
        for call in calls:
            found = call.finish(answers[first : first + len(call.asks)] if failure is None else [], failure, False)
            first += len(call.asks)
            if found is not None:
                loops.setdefault(found[0], []).append(found[1])
        for loop, futures in loops.items():
            resume_all(loop, futures)
        for call in asleep[:1] + awake:
            call.wake()
