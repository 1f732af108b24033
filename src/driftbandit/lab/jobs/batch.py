"""Many simulations as one job: cut into chunks of a few seconds, spread over workers, kept as they finish, resumed
where they stopped."""

import importlib
import importlib.util
import os
import pickle
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.engine.simulate import Simulation, plays_compiled
from driftbandit.lab.jobs import executors, work
from driftbandit.lab.jobs.store import Store, fingerprint
from driftbandit.lab.jobs.work import Cell, Chunk, weight
from driftbandit.lab.support.digest import ROOT, modules_digest, sent_modules, versions
from driftbandit.lab.support.progress import Progress
from driftbandit.text import policy_check, user_code

_BREAKS = 5  # how often in a row our own processes may die without finishing anything


class Tally(NamedTuple):
    """How a batch went: chunks found ready, chunks computed."""

    reused: int
    computed: int


def compute(chunk: Chunk, stop: threading.Event | None = None) -> Simulation:
    """Simulate one chunk in one thread: what every kind of worker does."""
    if chunk.drift:
        from driftbandit.lab.jobs import drift

        return drift.measure_chunk(chunk, stop)
    return work.play_chunk(chunk, stop)


class SentChunk(NamedTuple):
    """A chunk on its way to another process or machine, with the code that it was planned with."""

    packed: bytes
    code: user_code.WorkerCode
    modules: tuple[str, ...]  # of the user's, which the other process must have in the same version
    digest: str


def pack(chunk: Any) -> SentChunk:
    """The chunk, ready to be sent."""
    # A class from the user's script or notebook has no module a worker could import; cloudpickle, which comes with
    # Dask and Ray, sends the class itself.
    script = "__main__" in {cls.__module__ for cls in user_code.classes_in(chunk)}
    packer = importlib.import_module("cloudpickle" if script and importlib.util.find_spec("cloudpickle") else "pickle")
    modules = sent_modules(chunk)
    return SentChunk(packer.dumps(chunk), user_code.worker_code(chunk), modules, modules_digest(modules))


def compute_sent(work: tuple[Any, ...]) -> tuple[str, str, Any]:
    """`compute` in another process or on another machine: the digest of the code there, a description of that code,
    and the result, which is None if the digest is not the one that the work was planned with."""
    packed, code, modules, digest = work
    user_code.load_worker_code(user_code.WorkerCode(*code))
    here = modules_digest(modules)
    if here != digest:
        return here, describe_code(here), None
    task = pickle.loads(packed)
    return here, describe_code(here), task.compute() if hasattr(task, "compute") else compute(task)


def describe_code(digest: str) -> str:
    """Where this process runs, and with which code."""
    return f"{socket.gethostname()}, process {os.getpid()}: digest {digest[:12]}, {ROOT}, {versions()}"


def _unpack(work: SentChunk, answer: Any) -> Any:
    """The result of work that was sent, if it was made by the code that the work was planned with."""
    if isinstance(answer, tuple) and len(answer) == 3 and answer[0] == work.digest and answer[2] is not None:
        return answer[2]
    worker = answer[1] if isinstance(answer, tuple) and len(answer) == 3 else "a worker with an unknown version"
    raise executors.WorkerError(
        f"A worker has other code than this process, and its results were not stored. Worker: {worker}. This process: "
        f"{describe_code(work.digest)}. Install the same versions on every worker, restart it, and run the same "
        "command again."
    )


def worker_failure(error: Exception, done: str = "nothing is stored") -> executors.WorkerError | None:
    """What to tell the user about workers elsewhere that failed; None for an error of the work itself."""
    reason = f"{type(error).__name__}: {error}".split("\n")[0]
    if executors.is_cluster_failure(error):
        return executors.WorkerError(
            f"The cluster failed ({reason:.200}); {done}. Run the same command again to continue."
        )
    if isinstance(error, ImportError) or (isinstance(error, AttributeError) and "driftbandit" in reason):
        return executors.WorkerError(
            f"A worker cannot load the code of this work ({reason:.200}). Install the same versions on every worker, "
            "restart it, and run the same command again."
        )
    return None


def compute_elsewhere(tasks: Sequence[Any], executor: Any, workers: int | None = None) -> list[Any]:
    """The results of tasks, which are tuples with a method `compute`, from the workers of an executor. Like a chunk, a
    task carries the digest of this code, and a result of other code is refused."""
    with executors.open_pool(executor, workers) as pool:
        if pool.executor is None:
            return [task.compute() for task in tasks]
        sent = [pack(task) for task in tasks]
        try:
            answers = [pool.executor.submit(compute_sent, tuple(one)) for one in sent]
            return [_unpack(one, answer.result()) for one, answer in zip(sent, answers, strict=True)]
        except Exception as error:
            if (failure := worker_failure(error)) is None:
                raise
            raise failure from None


def check_own(pieces: Iterable[Cell | Chunk]) -> dict[Any, bool]:
    """Try each of the user's policies and environments before anything long starts: whether it compiles, by kind."""
    known: dict[Any, bool] = {}
    for piece in pieces:
        if policy_check.own_classes(piece.policy, piece.environment) and _kind(piece) not in known:
            known[_kind(piece)] = plays_compiled(piece.policy, piece.environment, piece.drift)
    return known


def _kind(piece: Cell | Chunk) -> Any:
    return type(piece.policy), type(piece.environment), piece.environment.n_arms, piece.drift


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
        known = check_own(self.plan[name] for name in todo)
        for name in todo:
            chunk = self.plan[name]
            self.plan[name] = chunk._replace(compiled=chunk.compiled and known.get(_kind(chunk), True))
        if todo:
            total = sum(weight(self.plan[name]) for name in todo)
            with executors.open_pool(executor, workers) as pool, Progress(total, progress, label, pool.slots()) as bar:
                if pool.executor is None:
                    self._in_threads(todo, pool, bar)
                else:
                    self._elsewhere(todo, pool, bar)
        return Tally(len(self.plan) - len(todo), len(todo))

    def _in_threads(self, todo: list[str], pool: executors.Pool, bar: Progress) -> None:
        """Compiled chunks in threads. Interpreted ones, which hold Python's lock, in this thread, where the first
        Ctrl-C stops whatever the policy does."""
        stop = threading.Event()
        with ThreadPoolExecutor(pool.slots()) as threads:
            try:
                there = [name for name in todo if self.plan[name].compiled]
                self._spread(there, lambda name: threads.submit(compute, self.plan[name], stop), pool, bar)
            finally:
                stop.set()
                threads.shutdown(wait=False, cancel_futures=True)
        for name in todo:
            if not self.plan[name].compiled:
                self.store.put(name, compute(self.plan[name]))
                bar.add(weight(self.plan[name]))

    def _elsewhere(self, todo: list[str], pool: executors.Pool, bar: Progress) -> None:
        """In other processes. Should one of our own be killed, the pool is lost but not what it finished: we make
        another and go on. A Dask or Ray cluster sees to this itself."""
        executor, breaks, works = pool.executor, 0, dict[str, SentChunk]()
        while True:
            assert executor is not None

            def submit(name: str, executor: Executor = executor) -> Future[Any]:
                works[name] = pack(self.plan[name])
                return executor.submit(compute_sent, tuple(works[name]))

            try:
                self._spread(todo, submit, pool, bar, lambda name, answer: _unpack(works.pop(name), answer))
                return
            except BrokenExecutor:
                left = [name for name in todo if name not in self.store.names()]
                breaks = 1 if len(left) < len(todo) else breaks + 1
                if pool.renew is None or breaks > _BREAKS:
                    raise
                todo, executor = left, pool.renew()
            except Exception as error:
                stored = len(self.store.names() & set(self.plan))
                if (failure := worker_failure(error, f"{stored} of {len(self.plan)} chunks are stored")) is None:
                    raise
                raise failure from None

    def _spread(
        self,
        todo: list[str],
        submit: Callable[[str], Future[Any]],
        pool: executors.Pool,
        bar: Progress,
        unpack: Callable[[str, Any], Simulation] = lambda name, answer: answer,
    ) -> None:
        """Keep two chunks per worker under way, however many workers there are by now, and each result as soon as it
        comes: the memory this takes does not grow with the number of chunks."""
        waiting: dict[Future[Any], str] = {}
        names = iter(todo)
        try:
            while True:
                limit = 2 * pool.slots() + 2
                while len(waiting) < limit and (name := next(names, None)) is not None:
                    waiting[submit(name)] = name
                if not waiting:
                    return
                done, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    name = waiting.pop(future)
                    self.store.put(name, unpack(name, future.result()))
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
