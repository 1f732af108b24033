"""Many simulations as one job: cut into chunks of a few seconds, spread over workers, kept as they finish, resumed
where they stopped."""

import pickle
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.engine.simulate import Simulation
from driftbandit.lab.jobs import executors, plain
from driftbandit.lab.jobs.store import Store, fingerprint
from driftbandit.lab.jobs.work import Cell, Chunk, weight
from driftbandit.lab.support.progress import Progress
from driftbandit.text import user_code

_BREAKS = 5  # how often in a row our own processes may die without finishing anything


class Tally(NamedTuple):
    """How a batch went: chunks found ready, chunks computed."""

    reused: int
    computed: int


def compute(chunk: Chunk, stop: threading.Event | None = None) -> Simulation:
    """Simulate one chunk in one thread: what every kind of worker does."""
    if chunk.drift:
        from driftbandit.lab.jobs import phases

        return phases.measured(chunk, stop)
    return plain.played(chunk, stop)


def compute_packed(packed: bytes, code: user_code.WorkerCode) -> Simulation:
    """`compute` in another process or on another machine, which is first given the user's own classes."""
    user_code.load_worker_code(code)
    return compute(pickle.loads(packed))


def _packed(chunk: Chunk) -> bytes:
    # A class from the user's script or notebook has no module a worker could import; cloudpickle, which comes with
    # Dask, sends the class itself.
    if "__main__" in {type(chunk.policy).__module__, type(chunk.environment).__module__}:
        try:
            import cloudpickle
        except ImportError:
            cloudpickle = pickle
        return bytes(cloudpickle.dumps(chunk))
    return pickle.dumps(chunk)


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

    def __init__(self, cells: Iterable[Cell], folder: Any, compiled: bool = True) -> None:
        self.cells, self.compiled = list(cells), compiled
        self.store = Store(folder)
        self.plan: dict[str, Chunk] = {}  # each different piece of work once, however many cells share it
        for cell in self.cells:
            for chunk in cell.chunks():
                self.plan.setdefault(fingerprint(chunk), chunk._replace(compiled=compiled))

    def missing(self) -> list[str]:
        """The chunks still to be computed."""
        ready = self.store.names()
        return [name for name in self.plan if name not in ready]

    def run(
        self,
        executor: Executor | str | int | None = None,
        workers: int | None = None,
        progress: bool | Callable[[float], None] = False,
        label: str = "",
    ) -> Tally:
        """Compute what is missing: in threads, or wherever `executor` says (`driftbandit.lab.jobs.executors`).

        Ctrl-C, or a kill, loses at most the chunks in flight."""
        todo = self.missing()
        if todo:
            total = sum(weight(self.plan[name]) for name in todo)
            with executors.opened(executor, workers) as pool, Progress(total, progress, label, pool.slots) as bar:
                if pool.executor is None:
                    self._in_threads(todo, pool.slots, bar)
                else:
                    self._elsewhere(todo, pool, bar)
        return Tally(len(self.plan) - len(todo), len(todo))

    def _in_threads(self, todo: list[str], count: int, bar: Progress) -> None:
        stop = threading.Event()
        with ThreadPoolExecutor(count) as pool:
            try:
                self._spread(todo, lambda chunk: pool.submit(compute, chunk, stop), 2 * count + 2, bar)
            finally:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)

    def _elsewhere(self, todo: list[str], pool: executors.Pool, bar: Progress) -> None:
        """In other processes. Should one of our own be killed, the pool is lost but not what it finished: we make
        another and go on. A Dask or Ray cluster sees to this itself."""
        executor, breaks = pool.executor, 0
        while True:
            assert executor is not None

            def submit(chunk: Chunk, executor: Executor = executor) -> Future[Simulation]:
                return executor.submit(compute_packed, _packed(chunk), user_code.worker_code(chunk))

            try:
                self._spread(todo, submit, 2 * pool.slots + 2, bar)
                return
            except BrokenExecutor:
                left = [name for name in todo if name not in self.store.names()]
                breaks = 1 if len(left) < len(todo) else breaks + 1
                if pool.renew is None or breaks > _BREAKS:
                    raise
                todo, executor = left, pool.renew()

    def _spread(
        self, todo: list[str], submit: Callable[[Chunk], Future[Simulation]], limit: int, bar: Progress
    ) -> None:
        """Keep `limit` chunks under way, and each result as soon as it comes: the memory this takes does not grow with
        the number of chunks."""
        waiting: dict[Future[Simulation], str] = {}
        names = iter(todo)
        try:
            while True:
                while len(waiting) < limit and (name := next(names, None)) is not None:
                    waiting[submit(self.plan[name])] = name
                if not waiting:
                    return
                done, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    name = waiting.pop(future)
                    self.store.put(name, future.result())
                    bar.add(weight(self.plan[name]))
        finally:
            for future in waiting:
                future.cancel()

    def result(self, cell: Cell) -> Simulation:
        """A cell's result, its chunks put together in the order of runs; a damaged chunk is computed again."""
        parts = []
        for chunk in cell.chunks():
            name = fingerprint(chunk)
            outcome = self.store.get(name)
            if outcome is None:
                outcome = compute(chunk._replace(compiled=self.compiled))
                self.store.put(name, outcome)
            parts.append(outcome)
        if len(parts) == 1:
            return parts[0]
        drift = None
        if cell.drift:
            drift = {
                key: np.concatenate([part.drift[key] for part in parts if part.drift]) for key in parts[0].drift or {}
            }
        regret = np.concatenate([part.regret for part in parts])
        return Simulation(parts[0].rounds, regret, sum(part.seconds for part in parts), drift=drift)
