"""The work of a study: cells, cut into chunks, spread over workers, stored as they finish, resumed where they stopped.

A cell is one policy in one environment with all its runs, a chunk some of those runs, a few seconds long. How a cell is
cut depends neither on the workers nor on the number of runs, so finished chunks are found again and more runs reuse
them. A chunk's file is named by a hash of everything that determines its numbers: policy, environment, seed, runs,
checkpoints and the code. It is written under another name and renamed, and begins with a checksum: a damaged file is
removed and computed again. Two processes may share a folder; at worst they compute the same chunk twice."""

import contextlib
import hashlib
import io
import json
import pickle
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab import drift_metrics, executors
from driftbandit.lab.engine.simulate import LANES, Simulation, plays_compiled, simulate
from driftbandit.lab.files import code_digest, read_checked, writable, write_checked
from driftbandit.lab.progress import Progress
from driftbandit.spec import policy_check, user_code

_WORK = 300_000_000  # rounds × arms in a chunk: between a fraction of a second and some seconds for most policies
_BREAKS = 5  # how often in a row our own processes may die without finishing anything
_HEAD = b"driftbandit-chunk-6 "
_PROCESS = uuid.uuid4().hex


class Cell(NamedTuple):
    """One policy in one environment. The names and values are labels for tables and change no number."""

    policy: Any
    environment: Any
    runs: int = 100
    seed: int = 0
    checkpoints: int = 200
    drift: bool = False  # also compute the drift metrics
    first_run: int = 0  # runs first_run .. first_run + runs - 1
    policy_name: str = ""
    environment_name: str = ""
    policy_values: Mapping[str, Any] = {}  # values of the swept parameters
    environment_values: Mapping[str, Any] = {}

    @property
    def values(self) -> dict[str, Any]:
        return {**self.environment_values, **self.policy_values}

    @property
    def label(self) -> str:
        """The policy's name with its swept values."""
        return self.policy_name + _in_brackets(self.policy_values)

    @property
    def environment_label(self) -> str:
        """The environment's name with its swept values."""
        return self.environment_name + _in_brackets(self.environment_values)

    @property
    def weight(self) -> float:
        """A rough measure of the work, for the progress bar."""
        return float(self.runs * self.environment.horizon * (5 + self.environment.n_arms))

    @property
    def kind(self) -> Any:
        """What decides whether it compiles."""
        return type(self.policy), type(self.environment), self.environment.n_arms, self.drift

    def chunks(self) -> list["Cell"]:
        """Cut the runs into pieces that take a few seconds each; a chunk is a cell without labels."""
        size = max(1, _WORK // (self.environment.horizon * self.environment.n_arms))
        size = size // LANES * LANES if size >= LANES else size
        end, bare = self.first_run + self.runs, Cell(*self[:7])
        return [
            bare._replace(runs=min(size, end - first), first_run=first) for first in range(self.first_run, end, size)
        ]


def _in_brackets(values: Mapping[str, Any]) -> str:
    parts = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()]
    return f" [{', '.join(parts)}]" if parts else ""


class Part(NamedTuple):
    """The outcome of a cell. In a result read from disk the cell's policy and environment are texts."""

    cell: Cell
    rounds: np.ndarray  # checkpoints: numbers of rounds played
    regret: np.ndarray  # runs × checkpoints
    seconds: float = 0.0
    drift: dict[str, np.ndarray] | None = None  # the columns of `drift_metrics.RunMetrics`, if measured

    @property
    def policy(self) -> str:
        return self.cell.label

    @property
    def environment(self) -> str:
        return self.cell.environment_label

    @property
    def final(self) -> np.ndarray:
        """The regret at the end, one number per run."""
        return np.asarray(self.regret[:, -1])

    def texts(self) -> tuple[str, str]:
        """The texts of the policy and of the environment."""
        policy, environment = (
            what if isinstance(what, str) else user_code.text_of(what)
            for what in (self.cell.policy, self.cell.environment)
        )
        return policy, environment


class Tally(NamedTuple):
    """How many chunks were found in the store, and how many were computed."""

    reused: int
    computed: int


def compute(chunk: Cell, compiled: bool = True, stop: threading.Event | None = None) -> Simulation:
    """Simulate one chunk in one thread."""
    play = drift_metrics.measure if chunk.drift else simulate
    what = chunk.policy, chunk.environment, chunk.runs, chunk.seed
    how: dict[str, Any] = {"first_run": chunk.first_run, "checkpoints": chunk.checkpoints, "compiled": compiled}
    return play(*what, **how, workers=1, progress=False, stop=stop)


def check_own(cells: Iterable[Cell]) -> set[Any]:
    """Try each of the user's policies and environments before anything long starts; the kinds that do not compile."""
    known: dict[Any, bool] = {}
    for cell in cells:
        if policy_check.find_own_classes(cell.policy, cell.environment) and cell.kind not in known:
            known[cell.kind] = plays_compiled(cell.policy, cell.environment, cell.drift)
    return {kind for kind, compiles in known.items() if not compiles}


def chunks_by_name(cells: Iterable[Cell]) -> dict[str, Cell]:
    """All chunks of some cells; those that cells share occur once."""
    return {fingerprint(chunk): chunk for cell in cells for chunk in cell.chunks()}


class Store:
    """A folder of finished chunks, and the work that fills it.

    >>> from driftbandit import DiscountedTS
    >>> from driftbandit.environments import Smooth
    >>> import tempfile
    >>> cell = Cell(DiscountedTS(gamma=0.9), Smooth(n_arms=3, horizon=200), runs=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Store(folder).play([cell]), Store(folder).play([cell])
    (Tally(reused=0, computed=1), Tally(reused=1, computed=0))
    """

    def __init__(self, folder: str | Path, compiled: bool = True) -> None:
        self.folder, self.compiled = Path(folder), compiled
        writable(self.folder / "probe")
        self._names: set[str] | None = None

    # ---- files -------------------------------------------------------------------------------------------------------

    def names(self) -> set[str]:
        """The chunks in the folder, listed once."""
        if self._names is None:
            self._names = {path.stem for path in self.folder.glob("??/[!.]*.chunk")}
        return self._names

    def path(self, name: str) -> Path:
        return self.folder / name[:2] / f"{name}.chunk"

    def get(self, name: str) -> Simulation | None:
        """Read a result; None if it is absent or damaged. A damaged file is removed."""
        body = read_checked(self.path(name), _HEAD)
        if body is not None:
            return _unpack(body)
        with contextlib.suppress(OSError):
            self.path(name).unlink(missing_ok=True)
        self.names().discard(name)
        return None

    def put(self, name: str, done: Simulation) -> None:
        """Write a result under its name, whole or not at all."""
        try:
            write_checked(self.path(name), _pack(done), _HEAD)
        except OSError as error:
            raise OSError(f"{error} Finished work is kept.") from None
        self.names().add(name)

    def prune(self, most: int = 1 << 30) -> None:
        """Remove the oldest chunks until the others take at most this many bytes."""
        with contextlib.suppress(OSError):
            files = [(entry.stat(), entry) for entry in self.folder.glob("*/*.chunk")]
            left = sum(stat.st_size for stat, _ in files)
            for stat, path in sorted(files, key=lambda file: file[0].st_mtime):
                if left <= most:
                    return
                path.unlink(missing_ok=True)
                left -= stat.st_size

    def result(self, cell: Cell) -> Part:
        """A cell's outcome, its chunks joined in the order of runs; a damaged chunk is computed again."""
        found = []
        for chunk in cell.chunks():
            name = fingerprint(chunk)
            outcome = self.get(name)
            if outcome is None:
                outcome = compute(chunk, self.compiled)
                self.put(name, outcome)
            found.append(outcome)
        columns = [one.drift for one in found if one.drift]
        drift = {key: np.concatenate([each[key] for each in columns]) for key in columns[0]} if columns else None
        regret = np.concatenate([one.regret for one in found])
        return Part(cell, found[0].rounds, regret, sum(one.seconds for one in found), drift)

    # ---- work --------------------------------------------------------------------------------------------------------

    def missing(self, plan: Mapping[str, Cell]) -> dict[str, Cell]:
        """The chunks of a plan that are still to be computed."""
        ready = self.names()
        return {name: chunk for name, chunk in plan.items() if name not in ready}

    def play(
        self,
        cells: Iterable[Cell],
        executor: Executor | str | int | None = None,
        workers: int | None = None,
        progress: Progress | bool | Callable[[float], None] = False,
        label: str = "",
    ) -> Tally:
        """Compute the missing chunks, in threads or by `executor`. A kill loses at most the chunks in flight.

        A `Progress` counts weights of chunks; its total may include other work."""
        plan = chunks_by_name(cells)
        todo = self.missing(plan)
        if todo:
            interpreted = check_own(todo.values())
            compiled = {name: self.compiled and chunk.kind not in interpreted for name, chunk in todo.items()}
            total = sum(chunk.weight for chunk in todo.values())
            counting = (
                contextlib.nullcontext(progress) if isinstance(progress, Progress) else Progress(total, progress, label)
            )
            with executors.open_pool(executor, workers) as pool, counting as bar:
                # Interpreted chunks hold Python's lock: in this thread, Ctrl-C stops them at once.
                here = [] if pool.stop is None else [name for name in todo if not compiled[name]]
                self._spread({name: todo[name] for name in todo if name not in here}, compiled, pool, bar)
                for name in here:
                    self.put(name, compute(todo[name], False))
                    bar.add(todo[name].weight)
        return Tally(len(plan) - len(todo), len(todo))

    def _spread(self, todo: dict[str, Cell], compiled: dict[str, bool], pool: executors.Pool, bar: Progress) -> None:
        """Compute chunks by an executor. If one of our processes is killed, the pool is lost but not its finished
        chunks, and another is started. Dask and Ray do this themselves."""
        breaks, left = 0, todo
        while True:
            try:
                self._keep_busy(left, compiled, pool, bar)
                return
            except BrokenExecutor:
                before, left = left, {name: todo[name] for name in left if name not in self.names()}
                breaks = 1 if len(left) < len(before) else breaks + 1
                if pool.renew is None or breaks > _BREAKS:
                    raise
                pool = pool._replace(executor=pool.renew())
            except Exception as error:
                stored = f"{len(self.names() & set(todo))} of {len(todo)} missing chunks are stored"
                failure = executors.worker_failure(error, stored) if pool.stop is None else None
                if failure is None:
                    raise
                raise failure from None

    def _keep_busy(self, todo: dict[str, Cell], compiled: dict[str, bool], pool: executors.Pool, bar: Progress) -> None:
        """Keep two chunks per worker in flight and store each result as it comes, so that memory does not grow with the
        number of chunks."""
        waiting: dict[Future[Any], str] = {}
        sent: dict[str, executors.SentTask] = {}
        names = iter(todo)
        try:
            while True:
                limit = 2 * pool.slots() + 2
                while len(waiting) < limit and (name := next(names, None)) is not None:
                    if pool.stop is not None:
                        waiting[pool.executor.submit(compute, todo[name], compiled[name], pool.stop)] = name
                    else:
                        sent[name] = executors.pack((compute, todo[name], compiled[name]))
                        waiting[pool.executor.submit(executors.compute_sent, tuple(sent[name]))] = name
                if not waiting:
                    return
                done, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    name, answer = waiting.pop(future), future.result()
                    self.put(name, answer if pool.stop is not None else executors.unpack(sent.pop(name), answer))
                    bar.add(todo[name].weight)
        finally:
            for future in waiting:
                future.cancel()


def _pack(done: Simulation) -> bytes:
    arrays = {f"drift.{name}": column for name, column in (done.drift or {}).items()}
    out = io.BytesIO()
    np.savez(out, rounds=done.rounds, regret=done.regret, seconds=np.array(done.seconds), **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def _unpack(body: bytes) -> Simulation:
    with np.load(io.BytesIO(body)) as found:
        drift = {name[6:]: found[name] for name in found.files if name.startswith("drift.")}
        return Simulation(found["rounds"], found["regret"], float(found["seconds"]), drift=drift or None)


def fingerprint(chunk: Cell) -> str:
    """The name of the chunk's result."""
    digest = code_digest(chunk.policy, chunk.environment)
    text = json.dumps([digest, *map(_describe, chunk[:7])], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _describe(value: Any) -> Any:
    """The value as JSON, with arrays and plain objects by their digest."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        # The module of a user's file is named by a digest of its text, which `code_digest` covers.
        name = type(value).__module__ if type(value).__module__.startswith("driftbandit.") else ""
        return [f"{name}.{type(value).__qualname__}", *map(_describe, value)]
    if isinstance(value, tuple | list):
        return [_describe(item) for item in value]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    try:
        return [type(value).__qualname__, hashlib.sha256(pickle.dumps(value)).hexdigest()]
    except Exception:  # found again in this process only
        return [type(value).__qualname__, id(value), _PROCESS]
