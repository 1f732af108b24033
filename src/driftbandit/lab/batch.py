"""Many simulations as one job: cut into chunks of a few seconds, spread over workers, kept as they finish, resumed
where they stopped."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.progress import Progress
from driftbandit.lab.simulate import LANES, simulate
from driftbandit.lab.store import Chunk, Outcome, Store, fingerprint

_WORK = 300_000_000  # rounds × arms in a chunk: between a fraction of a second and some seconds for most policies


class Cell(NamedTuple):
    """One policy in one world, all its runs."""

    policy: Any
    environment: Any
    runs: int = 100
    seed: int = 0
    checkpoints: int = 200

    def chunks(self) -> list[Chunk]:
        """The cell's runs in pieces that take a few seconds each. The cut never depends on workers, so that results
        can be found again."""
        size = max(1, _WORK // (self.environment.horizon * self.environment.n_arms))
        size = size // LANES * LANES if size >= LANES else size
        return [
            Chunk(self.policy, self.environment, min(size, self.runs - first), self.seed, first, self.checkpoints)
            for first in range(0, self.runs, size)
        ]


class Tally(NamedTuple):
    """How a batch went: chunks found ready, chunks computed."""

    reused: int
    computed: int


def compute(chunk: Chunk, stop: threading.Event | None = None) -> Outcome:
    """Simulate one chunk in one thread: what every kind of worker does."""
    done = simulate(
        chunk.policy,
        chunk.environment,
        chunk.runs,
        chunk.seed,
        first_run=chunk.first_run,
        checkpoints=chunk.checkpoints,
        workers=1,
        stop=stop,
    )
    return Outcome(done.rounds, done.regret, done.seconds)


class Batch:
    """Cells to be computed, with a store that remembers finished chunks.

    >>> from driftbandit import DiscountedTS
    >>> from driftbandit.environments import Smooth
    >>> import tempfile
    >>> cell = Cell(DiscountedTS(gamma=0.9), Smooth(n_arms=3, horizon=200), runs=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = Batch([cell], folder).run()
    ...     again = Batch([cell], folder).run()
    >>> first, again
    (Tally(reused=0, computed=1), Tally(reused=1, computed=0))
    """

    def __init__(self, cells: Iterable[Cell], folder: Any) -> None:
        self.cells = list(cells)
        self.store = Store(folder)
        self.plan: dict[str, Chunk] = {}  # each different piece of work once, however many cells share it
        for cell in self.cells:
            for chunk in cell.chunks():
                self.plan.setdefault(fingerprint(chunk), chunk)

    def missing(self) -> list[str]:
        """The chunks still to be computed."""
        ready = self.store.names()
        return [name for name in self.plan if name not in ready]

    def run(
        self,
        executor: Executor | None = None,
        workers: int | None = None,
        progress: bool | Callable[[float], None] = False,
        label: str = "",
    ) -> Tally:
        """Compute what is missing. Ctrl-C, or a kill, loses at most the chunks in flight."""
        todo = self.missing()
        stop = threading.Event()
        total = sum(_weight(self.plan[name]) for name in todo)
        own = ThreadPoolExecutor(workers or os.cpu_count() or 1) if executor is None else None
        pool = executor or own
        assert pool is not None
        arguments = (stop,) if own is not None else ()
        limit = 2 * (workers or getattr(pool, "_max_workers", None) or os.cpu_count() or 1) + 2
        waiting: dict[Future[Outcome], str] = {}
        try:
            with Progress(total, progress, label=label) as bar:
                for name in self._and_then_none(todo):
                    if name is not None:
                        waiting[pool.submit(compute, self.plan[name], *arguments)] = name
                    while waiting and (name is None or len(waiting) >= limit):
                        done, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                        for future in done:
                            finished = waiting.pop(future)
                            self.store.put(finished, future.result())
                            bar.add(_weight(self.plan[finished]))
        finally:
            stop.set()
            for future in waiting:
                future.cancel()
            if own is not None:
                own.shutdown(wait=True, cancel_futures=True)
        return Tally(len(self.plan) - len(todo), len(todo))

    def result(self, cell: Cell) -> Outcome:
        """A cell's result, its chunks put together in the order of runs; a damaged chunk is computed again."""
        parts = []
        for chunk in cell.chunks():
            name = fingerprint(chunk)
            outcome = self.store.get(name)
            if outcome is None:
                outcome = compute(chunk)
                self.store.put(name, outcome)
            parts.append(outcome)
        regret = np.concatenate([part.regret for part in parts])
        return Outcome(parts[0].rounds, regret, sum(part.seconds for part in parts))

    @staticmethod
    def _and_then_none(names: list[str]) -> Iterator[str | None]:
        yield from names
        yield None


def _weight(chunk: Chunk) -> float:
    """About how much work a chunk is, for the time left."""
    return float(chunk.runs * chunk.environment.horizon * (5 + chunk.environment.n_arms))
