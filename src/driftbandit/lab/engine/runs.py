"""The runs of one simulation, compiled and spread over threads.

Runs are cut into segments of milliseconds, between which progress is shown and Ctrl-C is heard. Compiled loops release
the interpreter lock, so threads are enough to use every core."""

import os
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from driftbandit.lab.engine.arguments import Shared, Task, arguments, collect, with_world
from driftbandit.lab.engine.compile_errors import NotCompiled, explain
from driftbandit.lab.engine.simulation import Simulation
from driftbandit.lab.support.progress import Progress
from driftbandit.text.policy_check import located, obstacle, own_classes
from driftbandit.text.user_code import classes_in

LANES = 32
_WORTH_LANES = 6  # with fewer runs than this, 32 lanes take longer than the runs one by one
_SEGMENT = 1_000_000  # arms × rounds in one call of the compiled loop: some milliseconds; four times that in lanes
_SEGMENT_INTERPRETED = 20_000
_LONGEST = 0.1  # seconds; a segment that took longer is followed by shorter ones
_refused: dict[frozenset[type], str] = {}  # users' classes that do not compile, and why
_ready: set[Any] = set()  # what this process has compiled, or loaded, already


def tasks(shared: Shared, lockstep: bool) -> list[Task]:
    """Which runs are played together. The last group may be short of runs; its lanes are filled with repeats of the
    last one, which costs less than compiling the loop a second time for single runs."""
    runs = len(shared.worlds)
    lanes = LANES if shared.compiled and lockstep and shared.lockstep and runs >= _WORTH_LANES else 1
    return [Task(list(range(first, min(first + lanes, runs))), lanes) for first in range(0, runs, lanes)]


def compiled_loop(shared: Shared, todo: Iterable[Task]) -> Any:
    """The loop as machine code for every kind of task: compiled or loaded from disk, in the main thread, where Ctrl-C
    is heard at once. A `NotCompiled` if that cannot be done with a user's policy or environment."""
    world = shared.worlds[0]
    policy = with_world(shared.policy, world)
    state = policy.init(shared.n_arms)
    own = frozenset(own_classes(policy, state, world))
    if own and own not in _refused and (reason := obstacle(policy, state)):
        _refused[own] = reason
    if own in _refused:
        raise NotCompiled(_refused[own])
    try:
        from numba.core.errors import NumbaError
    except ImportError:
        raise ImportError(
            "Compiled simulation needs Numba: pip install 'driftbandit[lab]'. "
            "Without it, simulate(..., compiled=False) runs the same, slower."
        ) from None

    from driftbandit.lab.engine import code_cache, numba_methods

    with code_cache.LOCK:
        numba_methods.prepare(policy)
        numba_methods.prepare(state)
        numba_methods.prepare(world)
    advance = code_cache.compiled_advance(policy, state, world)
    classes = classes_in((policy, world))
    same = all(other is world for other in shared.worlds)
    for task in {task.lanes: task for task in todo}.values():
        kind = (advance, classes, task.lanes, same, shared.pulls, shared.trajectories)
        if kind in _ready:
            continue
        try:
            with code_cache.LOCK, numba_methods.whole_stores():
                advance(*arguments(shared, task)._replace(start=0, stop=0))
        except Exception as error:
            if not own and isinstance(error, NumbaError):
                raise TypeError(explain(error, policy)) from error
            if not own:
                raise
            _refused[own] = explain(error, policy if own_classes(policy) else world)
            raise NotCompiled(_refused[own]) from error
        _ready.add(kind)
    return advance


def play_all(
    shared: Shared,
    todo: list[Task],
    advance: Any,
    result: Simulation,
    workers: int | None,
    stop: threading.Event,
    bar: Progress,
) -> None:
    """Play every task, in as many threads as wanted; return early if `stop` is set."""
    threads = min(len(todo), workers or os.cpu_count() or 1) if shared.compiled else 1
    if threads <= 1:
        for task in todo:
            _play(shared, task, advance, result, stop, bar)
        return
    halt = threading.Event()  # set when one thread failed, or we are to stop
    pool = ThreadPoolExecutor(threads)
    futures = [pool.submit(_play, shared, task, advance, result, halt, bar) for task in todo]
    try:
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=0.1)
            for future in done:
                future.result()
            if stop.is_set():
                break
    finally:
        halt.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _play(shared: Shared, task: Task, advance: Any, result: Simulation, stop: threading.Event, bar: Progress) -> None:
    """Play the task's runs from the first round to the last, unless stopped."""
    given, start = arguments(shared, task), 0
    step = _first_step(shared, task)
    while start < shared.horizon:
        if stop.is_set():
            return
        end = min(start + step, shared.horizon)
        began = time.perf_counter()
        try:
            advance(*given._replace(start=start, stop=end))
        except Exception as error:
            if (place := located(error, shared.policy)) is None:
                raise
            raise place from error
        if time.perf_counter() - began > _LONGEST:  # a costly policy: shorter segments, so that Ctrl-C is heard
            step = max(1, step // 4)
        bar.add(end - start)
        start = end
    collect(task, given, result)


def _first_step(shared: Shared, task: Task) -> int:
    if not shared.compiled:
        return max(1, _SEGMENT_INTERPRETED // shared.n_arms)
    work = _SEGMENT if task.lanes == 1 else 4 * _SEGMENT
    return max(1, min(work // (shared.n_arms * task.lanes), 50_000))
