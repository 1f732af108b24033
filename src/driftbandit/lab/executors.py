"""Who does the work: threads, processes, or a Dask or Ray cluster, all as a `concurrent.futures.Executor`.

A task that is sent carries a digest of the code it was planned with; a worker with other code refuses it. Clusters run
any code they are sent, so they belong on a network whose every machine is trusted."""

import contextlib
import importlib
import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, NamedTuple

from driftbandit.core.checks import nearest
from driftbandit.errors import WorkerError
from driftbandit.lab.files import ROOT, find_sent_modules, modules_digest, versions
from driftbandit.spec import user_code

KINDS = ("threads", "processes", "dask", "ray")
_PATIENCE = 60.0  # seconds to wait for the first worker of a Dask cluster
_RETRIES = 3  # how often a cluster tries a chunk again whose worker died


class Pool(NamedTuple):
    """A running executor."""

    executor: Executor
    slots: Callable[[], int]  # how many chunks it computes at a time; workers may come and go
    renew: Callable[[], Executor] | None = None  # replaces a broken one, if it is ours
    stop: threading.Event | None = None  # of threads of this process, which are given it


def parse(text: str) -> tuple[str, str]:
    """Read the text after `--executor`: kind and detail.

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
    """Refuse a text that is not an executor, or whose library is not installed."""
    kind = parse(text)[0]
    module = {"dask": "distributed", "ray": "ray"}.get(kind)
    if module and importlib.util.find_spec(module) is None:
        raise WorkerError(f"--executor {kind} needs {module}: pip install '.[{kind}]'.")


@contextlib.contextmanager
def open_pool(executor: Any = None, workers: int | None = None) -> Iterator[Pool]:
    """Open an executor given as a text, a number of processes or an object, and close it if we started it.

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
    check(kind)
    count = int(detail) if detail.isdigit() else (workers or os.cpu_count() or 1)
    start = {"threads": _threads, "processes": _processes, "dask": _dask, "ray": _ray}[kind]
    with start("" if detail.isdigit() else detail, count) as pool:
        yield pool


# ---- threads and processes -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _threads(address: str, count: int) -> Iterator[Pool]:
    pool, stop = ThreadPoolExecutor(count), threading.Event()
    try:
        yield Pool(pool, lambda: count, stop=stop)
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)  # a thread that compiles ends only when it has finished


@contextlib.contextmanager
def _processes(address: str, count: int) -> Iterator[Pool]:
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
    """Leave Ctrl-C to the parent process, and end when it ends, however it ends."""
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
    # One thread per worker: a chunk keeps a core busy, and a worker that dies loses one chunk.
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=count, host="127.0.0.1", **options) as cluster, Client(cluster) as client:
        yield _dask_pool(client)


def _dask_pool(client: Any) -> Pool:
    address = client.scheduler.address
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise WorkerError(
            f"The Dask scheduler at {address} has had no workers for {_PATIENCE:.0f} s. Start one with "
            f"`dask worker {address}`, and run the same command again."
        ) from None
    return Pool(client.get_executor(pure=False, retries=_RETRIES), lambda: max(1, sum(client.nthreads().values())))


# ---- Ray -------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _ray(address: str, count: int) -> Iterator[Pool]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray's default is to report its use
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
        yield Pool(RayExecutor(), lambda: max(1, int(ray.cluster_resources().get("CPU", 0))))
    finally:
        if started:
            ray.shutdown()


class RayExecutor(Executor):
    """Ray as a `concurrent.futures.Executor`: every call is a task, repeated if its worker dies."""

    def __init__(self, retries: int = _RETRIES) -> None:
        import ray

        self._call = ray.remote(max_retries=retries)(_call)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        reference = self._call.remote(fn, args, kwargs)
        future: Future[Any] = reference.future()
        return future


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


# ---- tasks that are sent ------------------------------------------------------------------------------------------


class SentTask(NamedTuple):
    """A task on its way to another process or machine, with the code that it was planned with."""

    packed: bytes
    code: user_code.WorkerCode
    modules: tuple[str, ...]  # the user's modules that the other process must have in the same version
    digest: str


def pack(task: tuple[Any, ...]) -> SentTask:
    """Prepare a task for sending: a function and its arguments."""
    # A class from the user's script or notebook has no module that a worker could import; cloudpickle, which comes
    # with Dask and Ray, sends the class itself.
    script = "__main__" in {cls.__module__ for cls in user_code.classes_in(task)}
    packer = importlib.import_module("cloudpickle" if script and importlib.util.find_spec("cloudpickle") else "pickle")
    modules = find_sent_modules(task)
    return SentTask(packer.dumps(task), user_code.worker_code(task), modules, modules_digest(modules))


def compute_sent(sent: tuple[Any, ...]) -> tuple[str, str, Any]:
    """Compute a task in another process: the digest of the code there, a description of it, and the result. The result
    is None if the digest is not the one that the task was planned with."""
    packed, code, modules, digest = sent
    user_code.load_worker_code(user_code.WorkerCode(*code))
    here = modules_digest(modules)
    if here != digest:
        return here, _describe_code(here), None
    function, *given = pickle.loads(packed)
    return here, _describe_code(here), function(*given)


def _describe_code(digest: str) -> str:
    return f"{socket.gethostname()}, process {os.getpid()}: digest {digest[:12]}, {ROOT}, {versions()}"


def unpack(sent: SentTask, answer: Any) -> Any:
    """Return the result, if it was made by the code that the task was planned with."""
    known = isinstance(answer, tuple) and len(answer) == 3
    if known and answer[0] == sent.digest and answer[2] is not None:
        return answer[2]
    worker = answer[1] if known else "a worker with an unknown version"
    raise WorkerError(
        f"A worker has different code, and its results were not stored. Worker: {worker}. This process: "
        f"{_describe_code(sent.digest)}. Install the same versions on every worker, restart it, and run the same "
        "command again."
    )


def worker_failure(error: Exception, done: str) -> WorkerError | None:
    """Describe workers that failed; None for an error of the work itself. The errors of Dask and Ray are recognised by
    name, so that neither has to be installed."""
    reason = f"{type(error).__name__}: {error}".split("\n")[0]
    names = {cls.__name__ for cls in type(error).__mro__}
    lost = names & {"CancelledError", "CommClosedError", "KilledWorker"}
    if lost or ("RayError" in names and "RayTaskError" not in names):
        return WorkerError(f"The cluster failed ({reason:.200}); {done}. Run the same command again to continue.")
    if isinstance(error, ImportError) or (isinstance(error, AttributeError) and "driftbandit" in reason):
        return WorkerError(
            f"A worker cannot load the code of this work ({reason:.200}). Install the same versions on every worker, "
            "restart it, and run the same command again."
        )
    return None
