"""Many runs of one policy in one environment, with the same bits however the work is spread.

Run r takes its numbers from streams that depend on (seed, r) only. Policies that allow it are played 32 runs at a time
in lockstep, others one run after the other."""

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from driftbandit.core.checks import check_rewards, whole
from driftbandit.core.draws import ENVIRONMENT, stream_key
from driftbandit.core.protocols import Environment, Policy
from driftbandit.core.state import init_in
from driftbandit.errors import NotCompiled
from driftbandit.lab.engine import arguments, loop
from driftbandit.lab.engine.arguments import Shared, Simulation, Task, checkpoint_rounds, with_environment
from driftbandit.lab.progress import Progress, show_compiling
from driftbandit.spec import policy_check, user_code
from driftbandit.spec.policy_check import find_obstacle, find_own_classes, locate_error

__all__ = ["LANES", "Simulation", "checkpoint_rounds", "plays_compiled", "simulate"]

LANES = 32
_WORTH_LANES = 6  # with fewer runs than this, 32 lanes take longer than the runs one by one
_SEGMENT = 1_000_000  # arms × rounds in one call of the compiled loop: some milliseconds; four times that in lanes
_SEGMENT_INTERPRETED = 20_000
_LONGEST = 0.1  # seconds; a segment that took longer is followed by shorter ones
_refused: dict[frozenset[type], str] = {}  # users' classes that do not compile, with the reason
_compiled_kinds: set[Any] = set()  # compiled or loaded by this process


def tasks(shared: Shared, lockstep: bool) -> list[Task]:
    """Group the runs. The lanes of a last group that is too small repeat its last run, which costs less than compiling
    the loop for single runs too."""
    runs = len(shared.environments)
    lanes = LANES if shared.compiled and lockstep and shared.lockstep and runs >= _WORTH_LANES else 1
    return [Task(list(range(first, min(first + lanes, runs))), lanes) for first in range(0, runs, lanes)]


def compile_loop(shared: Shared, todo: Iterable[Task], stop: threading.Event | None = None) -> Any:
    """Compile the loop for every kind of task, or load it from disk, unless `stop` is set when it is this thread's turn
    to compile. Raises `NotCompiled` if a user's policy or environment does not compile."""
    environment = shared.environments[0]
    policy = with_environment(shared.policy, environment)
    state = init_in(policy, environment)
    own = frozenset(find_own_classes(policy, state, environment))
    if own and own not in _refused and (reason := find_obstacle(policy, state)):
        _refused[own] = reason
    if own in _refused:
        raise NotCompiled(_refused[own])
    try:
        from numba.core.errors import NumbaError
    except ImportError:
        raise ImportError(
            "Compiled simulation needs Numba: pip install '.[lab]'. "
            "Without it, simulate(..., compiled=False) runs the same, slower."
        ) from None

    from driftbandit.lab.engine import code_cache, numba_methods

    advance = code_cache.compiled(loop.advance, policy, state, environment)
    classes = user_code.classes_in((policy, environment))
    same = all(other is environment for other in shared.environments)
    for task in {task.lanes: task for task in todo}.values():
        kind = (advance, classes, task.lanes, same, shared.pulls, shared.trajectories)
        if kind in _compiled_kinds:
            continue
        try:
            with code_cache.LOCK, numba_methods.refuse_fractions():
                if stop is not None and stop.is_set():
                    raise KeyboardInterrupt
                advance(*arguments.prepare(shared, task)._replace(start=0, stop=0))
        except Exception as error:
            if not own and isinstance(error, NumbaError):
                raise TypeError(numba_methods.explain(error, policy)) from error
            if not own:
                raise
            _refused[own] = numba_methods.explain(error, policy if find_own_classes(policy) else environment)
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
    """Play every task in threads; return early if `stop` is set."""
    threads = min(len(todo), workers or os.cpu_count() or 1) if shared.compiled else 1
    if threads <= 1:
        for task in todo:
            _play(shared, task, advance, result, stop, bar)
        return
    halt = threading.Event()  # set when one thread failed, or to stop
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
    given, start = arguments.prepare(shared, task), 0
    step = _first_step(shared, task)
    while start < shared.horizon:
        if stop.is_set():
            return
        end = min(start + step, shared.horizon)
        began = time.perf_counter()
        try:
            advance(*given._replace(start=start, stop=end))
        except Exception as error:
            if (place := locate_error(error, shared.policy)) is None:
                raise
            raise place from error
        if time.perf_counter() - began > _LONGEST:  # shorter segments, so that Ctrl-C works
            step = max(1, step // 4)
        bar.add(end - start)
        start = end
    arguments.collect(task, given, result)


def _first_step(shared: Shared, task: Task) -> int:
    if not shared.compiled:
        return max(1, _SEGMENT_INTERPRETED // shared.n_arms)
    work = _SEGMENT if task.lanes == 1 else 4 * _SEGMENT
    return max(1, min(work // (shared.n_arms * task.lanes), 50_000))


_COMPILED = 1e-8  # seconds that compiled code takes for a round, for each arm and five more
_noted: set[str] = set()


def simulate(
    policy: Policy | str,
    environment: Any,  # an `Environment` or its text: decorators give the classes `realise`, which types do not show
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
    """Play `policy` in `environment`, objects or texts, for `runs` independent runs.

    `checkpoints` is a number of equally spaced rounds to report, or the rounds themselves. `pulls` adds how often each
    arm was played, `trajectories` every arm and reward (runs × horizon of memory) and the rounds of alarms. `workers`,
    `lockstep` and `compiled` change no number.

    >>> simulate("ds-ts(gamma=0.9)", "smooth(n_arms=3, horizon=500)", runs=2, compiled=False).regret.shape
    (2, 200)
    """
    environment = user_code.load_environment(environment) if isinstance(environment, str) else environment
    policy = user_code.load_policy(policy, environment) if isinstance(policy, str) else policy
    _check(policy, environment, runs, seed, first_run, workers)
    marks = checkpoint_rounds(environment.horizon, checkpoints)
    environments = [
        environment.realise(stream_key(seed, run, ENVIRONMENT)) for run in range(first_run, first_run + runs)
    ]
    shared, todo, advance = _prepare(
        Shared(policy, environments, seed, first_run, marks, pulls, trajectories, compiled), lockstep, progress, stop
    )
    result = arguments.empty(shared)
    stop, started = stop or threading.Event(), time.perf_counter()
    with Progress(len(todo) * shared.horizon, progress, label=f"{policy!r:.40}") as bar:
        play_all(shared, todo, advance, result, workers, stop, bar)
    if stop.is_set():
        raise KeyboardInterrupt
    return result._replace(seconds=time.perf_counter() - started)


def plays_compiled(policy: Policy, environment: Environment, trajectories: bool = False) -> bool:
    """Whether a policy and an environment compile; raises an error if they cannot be played."""
    _check(policy, environment, 1, 0, 0, 1)
    marks = checkpoint_rounds(environment.horizon, 1)
    realised = environment.realise(stream_key(0, 0, ENVIRONMENT))
    return _prepare(Shared(policy, [realised], 0, 0, marks, False, trajectories, True), True, False)[0].compiled


def _prepare(
    shared: Shared, lockstep: bool, progress: bool | Callable[[float], None], stop: threading.Event | None = None
) -> tuple[Shared, list[Task], Any]:
    """Choose groups and loop: the compiled one, or with a warning the interpreter for a class that does not compile."""
    environment = shared.environments[0]
    check_rewards(shared.policy, environment)
    seconds = policy_check.rehearse(with_environment(shared.policy, environment), environment, arguments.NumpyStream(0))
    if shared.compiled:
        try:
            todo = tasks(shared, lockstep)
            with show_compiling(progress):
                return shared, todo, compile_loop(shared, todo, stop)
        except NotCompiled as reason:
            _note(str(reason), seconds / (_COMPILED * (5 + environment.n_arms)))
            shared = shared._replace(compiled=False)
    return shared, tasks(shared, lockstep), loop.advance


def _note(reason: str, slower: float) -> None:
    if reason not in _noted:
        _noted.add(reason)
        times = f"about {float(f'{max(slower, 2.0):.1g}'):,.0f} times " if slower else "much "
        warnings.warn(f"Played interpreted, {times}slower than compiled code. {reason}.", stacklevel=3)


def _check(policy: object, environment: object, runs: int, seed: int, first_run: int, workers: int | None) -> None:
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
