"""Group commit: one thread chooses and writes for all others, as many calls at a time as have come in meanwhile.

While one commit is under way, further calls gather; they all go into the next. The thread that begins a commit chooses
for every call that waits for a decision, with one reading of the clock and of the state. Each caller waits for the
commit that holds its own records, so nothing is acknowledged before it is on the disk. A single caller writes in its
own thread: waking another thread and being woken by it takes longer than many disks."""

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Any

from driftbandit.bandit.asks import Ask
from driftbandit.bandit.journal import Journal
from driftbandit.bandit.records import Event, log
from driftbandit.errors import DamagedJournal, StoreBusy, StoreError

_GROUP = 4096  # asks in a commit
_PATIENCE, _LONGEST = 0.5, 0.01  # how long to wait for others to join: a share of the last commit's time, at most 10 ms
_UNCALLED = 0.5  # seconds between two looks of the writing thread when nothing wakes it
_NONE = 1 << 60  # more calls than there can be
_QUEUE = 100_000  # asks that may wait; further ones are refused
_CHAIN = 0.05  # seconds after which a thread no longer relies on being woken by another


class StoreCall:
    """A caller's request: decisions to be made (one for each id, where None is an id to be made, among these arms or
    all), or requests to be written. Its answers are set once the commit that holds all of them is on the disk.

    Threads that wait for one commit are woken in a chain, each by the one before it, and coroutines all in one step.
    With a `concurrent.futures.Future` per call, 64 threads make 0.65 times as many decisions per second, and one of 64
    coroutines takes 2.1 times the processor time (`benchmarks/live.py --only threads`)."""

    __slots__ = (
        "_done", "_loop", "answers", "asks", "available", "contexts", "error", "finished", "follower", "given", "ids",
        "probabilities", "waits", "wants_probability",
    )  # fmt: skip

    def __init__(
        self, asks: list[Any], ids: Sequence[str | None] = (), available: list[Hashable] | None = None,
        wants_probability: bool = False,
    ) -> None:  # fmt: skip
        self.asks, self.ids, self.available, self.wants_probability = asks, ids, available, wants_probability
        self.given = self.ids  # by the caller, also where an id was erased and another stands in its place
        self.contexts: Any = None  # of all decisions, or a list with one for each; or their candidates
        self.probabilities: list[float] = []  # of the arm of each decision, where they were requested
        self.answers: list[Any] = []
        self.error: BaseException | None = None
        self.finished = self.waits = False  # `waits`: whether a thread sleeps until this is finished
        self.follower: StoreCall | None = None  # woken when this one goes on
        self._loop: Any = None  # of a coroutine that waits, and its future
        self._done = threading.Lock()
        self._done.acquire()

    def wait(self) -> list[Any]:
        """The answers, once they are on disk, or the error that kept all of them from being written."""
        if not self.finished:
            self.waits = True
            try:
                # The chain is broken where a thread was interrupted before it came here; then the time wakes us.
                while not (self._done.acquire(True, _CHAIN) or self.finished):
                    pass
            finally:
                self.waits = False
                if self.follower is not None:
                    self.follower.wake()
        return self._result()

    async def arrive(self) -> list[Any]:
        """`wait` for a coroutine."""
        import asyncio  # not before it is used: it is a large part of all that is loaded

        loop = asyncio.get_running_loop()
        self._loop = loop, loop.create_future()
        if not self.finished:
            await self._loop[1]
        return self._result()

    def _result(self) -> list[Any]:
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        return self.answers

    def finish(self, answers: list[Any], error: BaseException | None = None, resume: bool = True) -> Any:
        """Record the outcome; a waiting thread still has to be woken. Returns the event loop and the future of a
        waiting coroutine, which goes on if `resume`."""
        self.answers, self.error = answers, error
        self.finished = True
        if resume and self._loop is not None:
            resume_all(self._loop[0], [self._loop[1]])
        return self._loop

    def wake(self) -> None:
        """Let a waiting thread go on."""
        self._done.release()

    def answer(self, error: Exception) -> None:
        """Answer with an error that affects no other call."""
        self.finish([error])
        self.wake()


def resume_all(loop: Any, futures: list[Any]) -> None:
    """Let the coroutines of a loop go on, all in one step: waking a loop costs as much as answering a request."""

    def set_results() -> None:
        for future in futures:
            if not future.done():
                future.set_result(None)

    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(set_results)


class Writer:
    """The thread that writes, and hands the new events to the bandits of its process."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.listeners: dict[int, list[Callable[[list[Event]], None]]] = {}
        self.idle: list[Callable[[], None]] = []  # called now and then while there is nothing to write
        self.commits = self.failed = 0  # commits so far, and asks that could not be written
        self._failing = self._closed = ""  # the last error, while commits fail; why nothing can be written any more
        self._mutex, self._leads = threading.Lock(), threading.Lock()  # the latter is held by the thread that commits
        self._backlog = 0  # asks of the pending calls; an interrupt may leave it wrong until nothing is pending
        self._requested: deque[tuple[Any, StoreCall]] = deque()  # calls that wait for their decisions
        self._pending: deque[StoreCall] = deque()  # calls whose asks wait to be written
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._wanted = _NONE  # the thread sleeps until so many calls are there
        self._crowd, self._took = (1, 1), 0.0  # calls in the last two commits, and seconds of the last one
        self._thread = threading.Thread(target=self._run, name="driftbandit-writer", daemon=True)
        self._thread.start()

    def submit(self, asks: Sequence[Ask]) -> StoreCall:
        """Have these written, all in one commit, in the order of calls if the caller holds its bandit's lock."""
        return self.submit_call(StoreCall(list(asks)))

    def submit_call(self, call: StoreCall) -> StoreCall:
        """The same for a call that has been chosen for."""
        with self._mutex:
            self._check()
            self._backlog += len(call.asks)
            self._pending.append(call)
        self._ring()
        return call

    def request(self, chooser: Any, call: StoreCall, here: bool = True) -> None:
        """Have decisions made and written by the next commit, or at once if no other thread writes and this one may do
        so (`here`). The caller holds no lock."""
        alone = here and self._crowd == (1, 1) and len(self) == 0 and not self._leads.locked()
        if alone and not chooser.may_settle():
            with self._leads:  # an interrupt cannot come between taking this lock and being sure to release it
                with self._mutex:
                    self._check()
                # Nothing is settled: an interrupt must not come between writing events and folding them.
                chooser.choose_all([call], settle=False)
                with self._mutex:  # where others have come meanwhile, the thread writes all
                    alone = list(self._pending) == [call]
                    if alone:
                        self._pending.clear()
                if alone:
                    self._write([call])
        else:
            with self._mutex:
                self._check()
                self._requested.append((chooser, call))
        self._ring()

    def enqueue(self, calls: list[StoreCall]) -> None:
        """Calls that have been chosen for."""
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

    def _run(self) -> None:
        """Group after group. Callers whose commit has just ended come back one by one, and a commit with the first of
        them only would halve the rate. So after a commit of several calls the writer waits for as many, for a part of
        the time that a commit takes."""
        while self._sleep_until(1, None):
            if max(self._crowd) > 1:
                self._sleep_until(max(self._crowd), min(_PATIENCE * self._took, _LONGEST))
            with self._leads:
                requests: dict[Any, list[StoreCall]] = {}
                for _ in range(min(len(self._requested), _GROUP)):
                    chooser, call = self._requested.popleft()
                    requests.setdefault(chooser, []).append(call)
                for chooser, calls in requests.items():
                    chooser.choose_all(calls)
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
        """Sleep until so many calls are there, or the time is over, or the writer is closed; whether any is there. Each
        caller adds its call before it reads `_wanted`, and we set that before we count the calls. So one side sees the
        other, unless the caller was interrupted in between: we also look now and then."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self._closed:
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
        was written. The log gets one line when commits begin to fail, and one when they work again."""
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

    def _write(self, calls: list[StoreCall]) -> None:
        asks = calls[0].asks if len(calls) == 1 else [ask for call in calls for ask in call.asks]
        self._backlog -= len(asks)
        failure: BaseException | None = None
        began = time.monotonic()
        try:
            answers = self.commit(asks)
            self.commits += 1
        except BaseException as error:
            self.failed += len(asks)
            answers, failure = [], error
        self._took, self._crowd = time.monotonic() - began, (self._crowd[1], len(calls))
        asleep, awake = list[StoreCall](), list[StoreCall]()
        for call in calls:  # each looked at once: a thread may begin to wait meanwhile
            (asleep if call.waits else awake).append(call)
        for one, other in pairwise(asleep):
            one.follower = other
        first, loops = 0, dict[Any, list[Any]]()
        for call in calls:
            found = call.finish(answers[first : first + len(call.asks)], failure, False)
            first += len(call.asks)
            if found is not None:
                loops.setdefault(found[0], []).append(found[1])
        for loop, futures in loops.items():
            resume_all(loop, futures)
        for call in asleep[:1] + awake:
            call.wake()
