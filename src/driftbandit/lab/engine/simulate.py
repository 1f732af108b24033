"""Many runs of one policy in one world: the regret at checkpoints, the same to the last bit however the work is

Run r takes its numbers from streams made of (seed, r) alone. Runs of policies that allow it are played 32 at a time in
lockstep, others one after the other; `arguments` prepares what the loop is given. The result is a `Simulation`."""

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from driftbandit.checks import whole
from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.engine import loop
from driftbandit.lab.engine.arguments import (
    NumpyStream,
    Shared,
    Simulation,
    Task,
    arguments,
    checkpoint_rounds,
    collect,
    empty,
    with_world,
)
from driftbandit.lab.support.progress import Progress, compiling
from driftbandit.protocols import Environment, Policy
from driftbandit.rewards import check_rewards
from driftbandit.text import policy_check
from driftbandit.text.policy_check import located, obstacle, own_classes
from driftbandit.text.user_code import classes_in

__all__ = ["LANES", "Simulation", "checkpoint_rounds", "plays_compiled", "simulate"]

LANES = 32
_WORTH_LANES = 6  # with fewer runs than this, 32 lanes take longer than the runs one by one
_SEGMENT = 1_000_000  # arms × rounds in one call of the compiled loop: some milliseconds; four times that in lanes
_SEGMENT_INTERPRETED = 20_000
_LONGEST = 0.1  # seconds; a segment that took longer is followed by shorter ones
_refused: dict[frozenset[type], str] = {}  # users' classes that do not compile, and why
_compiled_kinds: set[Any] = set()  # what this process has compiled, or loaded, already


def tasks(shared: Shared, lockstep: bool) -> list[Task]:
    """Which runs are played together. The last group may be short of runs; its lanes are filled with repeats of the
    last one, which costs less than compiling the loop a second time for single runs."""
    runs = len(shared.worlds)
    lanes = LANES if shared.compiled and lockstep and shared.lockstep and runs >= _WORTH_LANES else 1
    return [Task(list(range(first, min(first + lanes, runs))), lanes) for first in range(0, runs, lanes)]


class NotCompiled(TypeError):
    """A user's policy or environment that can only be interpreted; the message says which line, and why."""


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
        if kind in _compiled_kinds:
            continue
        try:
            with code_cache.LOCK, numba_methods.whole_stores():
                advance(*arguments(shared, task)._replace(start=0, stop=0))
        except Exception as error:
            if not own and isinstance(error, NumbaError):
                raise TypeError(numba_methods.explain(error, policy)) from error
            if not own:
                raise
            _refused[own] = numba_methods.explain(error, policy if own_classes(policy) else world)
            raise NotCompiled(_refused[own]) from error
        _compiled_kinds.add(kind)
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


_COMPILED = 1e-8  # seconds that compiled code takes for a round, for each arm and five more
_noted: set[str] = set()


def simulate(
    policy: Any,
    environment: Any,
    runs: int = 100,
    seed: int = 0,
    *,
    first_run: int = 0,
    checkpoints: int | np.ndarray = 200,
    workers: int | None = None,
    pulls: bool = False,
    trajectories: bool = False,
    compiled: bool = True,
    lockstep: bool = True,
    progress: bool | Callable[[float], None] = True,
    stop: threading.Event | None = None,
) -> Simulation:
    """Play `policy` in `environment` for `runs` independent runs.

    `checkpoints` is how many evenly spaced rounds to report, or the rounds themselves. `pulls` adds how often each arm
    was played, `trajectories` every arm and reward (runs × horizon of memory) and the rounds of alarms. `workers`,
    `lockstep` and `compiled` do not change any number.

    >>> from driftbandit.policies import DiscountedTS
    >>> from driftbandit.environments import Smooth
    >>> result = simulate(DiscountedTS(gamma=0.9), Smooth(n_arms=3, horizon=500), runs=2, compiled=False)
    >>> result.regret.shape
    (2, 200)
    """
    _check(policy, environment, runs, seed, first_run, workers)
    marks = checkpoint_rounds(environment.horizon, checkpoints)
    worlds = [environment.realise(stream_key(seed, run, WORLD)) for run in range(first_run, first_run + runs)]
    shared, todo, advance = _ready(
        Shared(policy, worlds, seed, first_run, marks, pulls, trajectories, compiled), lockstep, progress
    )
    result = empty(runs, marks, shared.n_arms, shared.horizon, pulls, trajectories)
    stop, started = stop or threading.Event(), time.perf_counter()
    with Progress(len(todo) * shared.horizon, progress, label=f"{policy!r:.40}") as bar:
        play_all(shared, todo, advance, result, workers, stop, bar)
    if stop.is_set():
        raise KeyboardInterrupt
    return result._replace(seconds=time.perf_counter() - started)


def plays_compiled(policy: Any, environment: Any, trajectories: bool = False) -> bool:
    """Check a policy and an environment before anything long starts: False if they are interpreted, an error if they
    cannot be played."""
    _check(policy, environment, 1, 0, 0, 1)
    marks = checkpoint_rounds(environment.horizon, 1)
    world = environment.realise(stream_key(0, 0, WORLD))
    return _ready(Shared(policy, [world], 0, 0, marks, False, trajectories, True), True, False)[0].compiled


def _ready(shared: Shared, lockstep: bool, progress: Any) -> tuple[Shared, list[Task], Any]:
    """What is to be played, in which groups, by which loop: the compiled one, or if a user's policy or environment does
    not compile, the interpreter, with one note."""
    world = shared.worlds[0]
    check_rewards(shared.policy, world)
    seconds = policy_check.rehearse(with_world(shared.policy, world), world.n_arms, NumpyStream(0))
    if shared.compiled:
        try:
            todo = tasks(shared, lockstep)
            with compiling(progress):
                return shared, todo, compiled_loop(shared, todo)
        except NotCompiled as reason:
            _note(str(reason), seconds / (_COMPILED * (5 + world.n_arms)))
            shared = shared._replace(compiled=False)
    return shared, tasks(shared, lockstep), loop.advance


def _note(reason: str, slower: float) -> None:
    if reason not in _noted:
        _noted.add(reason)
        times = f"about {float(f'{max(slower, 2.0):.1g}'):,.0f} times " if slower else "much "
        warnings.warn(f"Played interpreted, {times}slower than compiled code. {reason}.", stacklevel=3)


def _check(policy: Any, environment: Any, runs: int, seed: int, first_run: int, workers: int | None) -> None:
    policy_check.read_methods(policy)
    for value, protocol, name, verbs in (
        (policy, Policy, "a policy", "init, choose, learn"),
        (environment, Environment, "an environment", "n_arms, horizon, realise"),
    ):
        if isinstance(value, type) or not isinstance(value, protocol):
            lacks = [verb for verb in verbs.split(", ") if not hasattr(value, verb)]
            what = f"lacks {', '.join(lacks)}" if lacks else "is a class; call it, e.g. DiscountedTS(gamma=0.99)"
            raise TypeError(f"{value!r:.60} is not {name}: it {what}.")
    least = {"runs": 1, "seed": 0, "first_run": 0, "workers": 1}
    given = {"runs": runs, "seed": seed, "first_run": first_run, "workers": 1 if workers is None else workers}
    for name, value in given.items():
        whole(name, value, least[name])
