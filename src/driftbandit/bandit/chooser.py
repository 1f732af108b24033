"""A caller's request of a store, and the part of a bandit that chooses for all requests that wait."""

import contextlib
import json
import threading
from collections.abc import Hashable, Iterable
from itertools import repeat
from typing import Any

from driftbandit.bandit import settings
from driftbandit.bandit.candidates import CandidateSet
from driftbandit.bandit.erasure import recognise
from driftbandit.bandit.ids import ROUNDS, Supply, decision_stream, make_ids
from driftbandit.bandit.records import DecisionRow, StoredConfig, format_slots
from driftbandit.core.draws import Stream

_new = tuple.__new__  # of a row: faster than its constructor
_CHAIN = 0.05  # seconds after which a thread no longer relies on being woken by another


class StoreCall:
    """A caller's request: decisions to be made (one for each id, where None is an id to be made, among these arms or
    all), or requests to be written. Its answers are set once the commit that holds all of them is on the disk.

    Threads that wait for one commit are woken in a chain, each by the one before it. Woken all at once, as by 64
    `concurrent.futures.Future`s, they compete for the interpreter: measured, that is 0.3 to 0.5 times the rate."""

    __slots__ = (
        "_done", "_loop", "answers", "asks", "available", "contexts", "error", "finished", "follower", "given", "ids",
        "probabilities", "waits", "wants_probability",
    )  # fmt: skip

    def __init__(
        self,
        asks: list[Any],
        ids: list[str | None] | None = None,
        available: list[Hashable] | None = None,
        wants_probability: bool = False,
        contexts: Any = None,
    ) -> None:
        self.asks, self.ids, self.available, self.wants_probability = asks, ids or [], available, wants_probability
        self.given = self.ids  # by the caller, also where an id was erased and another stands in its place
        self.contexts = contexts  # of all decisions, or a list with one for each; or their candidates
        self.probabilities: list[float] = []  # of the arm of each decision, where they were requested
        self.answers: list[Any] = []
        self.error: BaseException | None = None
        self.finished = False
        self.waits = False  # whether a thread sleeps until this is finished
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
        future: asyncio.Future[None] = loop.create_future()
        self._loop = loop, future
        if not self.finished:
            await future
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


def resume_all(loop: Any, futures: list[Any]) -> None:
    """Let the coroutines of a loop go on, all in one step: waking a loop costs as much as answering a request."""
    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(_set_results, futures)


def _set_results(futures: list[Any]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


class Chooser:
    """The part of a bandit that chooses; its lock is the bandit's."""

    def __init__(self, replica: Any) -> None:
        self.replica, self._fold, self._number = replica, replica.fold, replica.number
        self.known: StoredConfig | None = None
        self.waits = False
        self._make_ids = getattr(replica.journal, "make_ids", make_ids)

    def config(self) -> StoredConfig:
        """The configuration now; what follows from it is recomputed when it has changed."""
        config: StoredConfig = self._fold.config
        if config is not self.known:
            self.names = settings.names_of(config)
            self._round = ROUNDS[config.rounds]
            if self.known is None or self.known.key != config.key:
                self._supply, self.stream = Supply(int(config.key)), Stream(int(config.key))
            self.known, self.waits = config, config.wait is not None
        return config

    def choose_all(self, calls: list[StoreCall], settle: bool = True) -> None:
        """Settle decisions that are old enough, choose for every call, and queue the decisions for the next commit. A
        call that cannot be met does not affect the others."""
        replica = self.replica
        if settle:
            replica.settle_first(replica.writer.commit)
        if self._fold.config.erased:
            calls = self._recognise(calls)
        with replica.lock:
            ready, at = [], None
            for call in calls:
                try:
                    if at is None:
                        replica.whole_or_raise()
                        at = replica.now()
                    self.choose(call, at)
                    ready.append(call)
                except Exception as error:
                    call.finish([error])
                    call.wake()
            replica.writer.enqueue(ready)

    def _recognise(self, calls: list[StoreCall]) -> list[StoreCall]:
        """Put what stands for the ids that were erased into their places. The bandit's lock is not held."""
        try:
            ids = {id for call in calls for id in call.ids}
            found = recognise(self.replica.journal, self._number, self._fold.config, ids)
        except Exception as error:
            for call in calls:
                call.finish([error])
                call.wake()
            return []
        for call in calls:
            call.ids = [id if id is None else found.get(id, id) for id in call.given]
        return calls

    def choose(self, call: StoreCall, at: int) -> None:
        """Make the decisions of a call, to be written, and the probabilities of all arms if requested. The caller holds
        the lock."""
        config, fold = self.config(), self._fold
        slots = None if call.available is None else settings.slots_of(config, call.available)
        numbered: Iterable[tuple[str, Stream]]
        if len(call.ids) == 1 and call.ids[0] is None and config.rounds == "hash":
            if call.contexts is None and slots is None and not (call.wants_probability or fold.features):
                id, rng = self._supply.take()
                slot, how = fold.choose(rng, fold.active, at)
                chance = fold.player.probability_of(slot, rng, at) if fold.player.uses_probability else None
                call.asks.append(_new(DecisionRow, (id, at, slot, how, fold.n, None, chance, None, self._number)))
                return
            numbered = [self._supply.take()]
        else:
            fresh = iter(self._make_ids(call.ids.count(None)))
            named = [next(fresh) if id is None else id for id in call.ids]
            stream = decision_stream(int(config.key), [self._round(name) for name in named])
            numbered = ((name, stream.at(column)) for column, name in enumerate(named))
        player, n, number, probability = fold.player, fold.n, self._number, None
        allowed, text = (fold.active, None) if slots is None else (slots, format_slots(slots))
        each = isinstance(call.contexts, list)
        read = [fold.read_context(one, at) for one in (call.contexts if each else [call.contexts])]
        contexts = [(json.dumps(kept) if isinstance(kept, dict) else kept, numbers) for kept, numbers in read]
        asks, chosen = [], []
        for (id, rng), (context, features) in zip(numbered, contexts if each else repeat(contexts[0]), strict=False):
            slot, how = fold.choose(rng, allowed, at, features)
            chosen.append(slot)
            if player.uses_probability:
                probability = player.probability_of(slot, rng, at)
            if isinstance(context, CandidateSet):
                slot, text, context = 0, context.text, context.context(slot)
            asks.append(DecisionRow(id, at, slot, how, n, text, probability, context, number))
        if call.wants_probability:
            found = [fold.probabilities(allowed, at, features=features)[0] for _, features in contexts]
            found = found if each else found * len(asks)
            call.probabilities = [float(values[slot]) for values, slot in zip(found, chosen, strict=True)]
        call.asks += asks
