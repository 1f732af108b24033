"""Who does the work: threads, processes, or a cluster that someone else runs. No engine of our own.

All of them are spoken to as a `concurrent.futures.Executor`: Dask has one ready made, Ray needs the few lines below.
Clusters run any code they are sent, so they belong on a network whose every machine is trusted."""

import contextlib
import importlib.util
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, NamedTuple

from driftbandit.checks import nearest

KINDS = ("threads", "processes", "dask", "ray")
_LIBRARIES = {"dask": "distributed", "ray": "ray"}
_SILENCE = 5.0  # seconds without workers after which the user is told
_RETRIES = 3  # how often a cluster tries a chunk again whose worker died


class WorkerError(OSError):
    """Workers elsewhere cannot be used: their library is missing, they have other code, or their cluster failed."""


class Pool(NamedTuple):
    """An executor at work."""

    executor: Executor | None  # None: threads, which `Batch` makes itself because it can stop them
    slots: Callable[[], int]  # how many chunks it computes at a time, now: workers may come and go
    renew: Callable[[], Executor] | None = None  # makes another one if this one breaks; ours only


def parse(text: str) -> tuple[str, str]:
    """Kind and detail of what stands after `--executor`.

    >>> parse("dask:tcp://10.0.0.5:8786"), parse("4"), parse("threads")
    (('dask', 'tcp://10.0.0.5:8786'), ('processes', '4'), ('threads', ''))
    """
    kind, _, detail = text.strip().partition(":")
    if kind.isdigit() and not detail:
        kind, detail = "processes", kind
    if kind not in KINDS:
        raise ValueError(
            f"There is no executor {text!r:.60}{nearest(kind, KINDS) or '.'} Take threads, a number of processes, "
            "processes:N, dask, dask:ADDRESS, ray or ray:ADDRESS."
        )
    if kind in ("threads", "processes") and detail and (not detail.isdigit() or int(detail) < 1):
        raise ValueError(f"{kind} needs a whole number, 1 or more, after the colon; got {detail!r}.")
    return kind, detail


def check(text: str) -> None:
    """Refuse a text that names no executor, or one whose library is not installed."""
    kind = parse(text)[0]
    if kind in _LIBRARIES:
        _need(_LIBRARIES[kind], kind)


@contextlib.contextmanager
def open_pool(executor: Any = None, workers: int | None = None) -> Iterator[Pool]:
    """Start what a text, a number of processes or an executor describes, and end it again if we started it.

    >>> with open_pool(None, workers=3) as pool:
    ...     pool.slots()
    3
    """
    if isinstance(executor, Executor):
        size = workers or getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        yield Pool(executor, lambda: size)
        return
    if hasattr(executor, "get_executor"):  # a Dask client
        yield _dask_pool(executor)
        return
    if isinstance(executor, int) and not isinstance(executor, bool):
        executor = f"processes:{executor}"
    if executor is not None and not isinstance(executor, str):
        raise TypeError(
            f"An executor is a text such as 'threads', a number of processes, a concurrent.futures.Executor or a Dask "
            f"client; got {executor!r:.60}."
        )
    kind, detail = parse(executor or "threads")
    count = int(detail) if detail.isdigit() else (workers or os.cpu_count() or 1)
    if kind == "threads":
        yield Pool(None, lambda: count)
    elif kind == "processes":
        with _processes(count) as pool:
            yield pool
    else:
        with {"dask": _dask, "ray": _ray}[kind](detail if not detail.isdigit() else "", count) as pool:
            yield pool


# ---- processes -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _processes(count: int) -> Iterator[Pool]:
    pools: list[ProcessPoolExecutor] = []

    def renew() -> Executor:
        # Fresh interpreters: a forked copy of a process with threads and compiled code may hang.
        context = multiprocessing.get_context("spawn")
        pools.append(ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker))
        return pools[-1]

    try:
        yield Pool(renew(), lambda: count, renew)
    except BaseException:  # also Ctrl-C: a chunk that is under way may never end
        for pool in pools:
            for process in list((pool._processes or {}).values()):
                process.terminate()
        raise
    finally:
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    """Leave Ctrl-C to the process that asked for the work, and end when it ends, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


# ---- Dask ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _dask(address: str, count: int) -> Iterator[Pool]:
    _need("distributed", "dask")
    from distributed import Client, LocalCluster

    if address:
        try:
            client = Client(address, timeout="20s")
        except (OSError, TimeoutError, ValueError) as error:
            raise OSError(
                f"No Dask scheduler answers at {address!r} ({type(error).__name__}); start one with `dask scheduler`, "
                "workers with `dask worker ADDRESS`."
            ) from None
        with client:
            yield _dask_pool(client)
        return
    # One thread a worker: a chunk keeps a core busy, and a worker that dies takes one chunk with it.
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=count, host="127.0.0.1", **options) as cluster, Client(cluster) as client:
        yield _dask_pool(client)


def _dask_pool(client: Any) -> Pool:
    workers = _Counted(
        lambda: sum(client.nthreads().values()),
        f"The Dask scheduler at {client.scheduler.address} has no workers yet; waiting. Start one with "
        f"`dask worker {client.scheduler.address}`.",
    )
    return Pool(client.get_executor(pure=False, retries=_RETRIES), workers)


class _Counted:
    """The slots of a cluster, counted again every second. If there are none for five seconds, a line says so."""

    def __init__(self, count: Callable[[], int], none: str) -> None:
        self._count, self._none = count, none
        self._empty: float | None = None  # since when there have been none; None if there are some
        self._at, self._last = -math.inf, 0

    def __call__(self) -> int:
        now = time.monotonic()
        if now - self._at > 1.0:
            self._at, self._last = now, self._count()
            self._empty = None if self._last else self._empty or now
        if self._empty is not None and now - self._empty > _SILENCE:
            print(self._none, file=sys.stderr, flush=True)
            self._empty = math.inf
        return max(1, self._last)


# ---- Ray -------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _ray(address: str, count: int) -> Iterator[Pool]:
    _need("ray", "ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports to its makers unless told otherwise
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # silences a warning about GPUs
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's default is 15: workers wait for everything else
    import ray

    started = not ray.is_initialized()
    if started:
        options: dict[str, Any] = {"address": address} if address else {"num_cpus": count, "include_dashboard": False}
        try:
            ray.init(log_to_driver=False, logging_level=40, **options)
        except ConnectionError as error:
            first = str(error).splitlines()[0]
            raise OSError(
                f"No Ray cluster answers at {address!r} ({first}); start one with `ray start --head`."
            ) from None
    try:
        none = "The Ray cluster has no CPUs yet; waiting. Start a node with `ray start --address ADDRESS`."
        yield Pool(RayExecutor(), _Counted(lambda: int(ray.cluster_resources().get("CPU", 0)), none))
    finally:
        if started:
            ray.shutdown()


class RayExecutor(Executor):
    """Ray as a `concurrent.futures.Executor`: every call a task, tried again if its worker dies."""

    def __init__(self, retries: int = _RETRIES) -> None:
        import ray

        self._call = ray.remote(max_retries=retries)(_call)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send a call to the cluster."""
        reference = self._call.remote(fn, args, kwargs)
        future: Future[Any] = reference.future()
        return future


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


def is_cluster_failure(error: BaseException) -> bool:
    """Whether the cluster failed, and not the work: its scheduler has gone, or its workers died again and again."""
    names = {cls.__name__ for cls in type(error).__mro__}  # by name, so that neither library has to be there
    failures = names & {"CancelledError", "CommClosedError", "KilledWorker"}
    return bool(failures) or ("RayError" in names and "RayTaskError" not in names)


def _need(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise WorkerError(f"--executor {extra} needs {module}: pip install 'driftbandit[{extra}]'.")
