"""Many runs of one policy in one world: the regret at checkpoints, the same to the last bit however the work is spread.

Run r takes its numbers from streams made of (seed, r) alone. Runs of policies that allow it are played 32 at a time in
lockstep; others one after the other; both in as many threads as wanted, since compiled loops release the interpreter
lock. Work is cut into segments of milliseconds, between which progress is shown and Ctrl-C is heard."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from driftbandit.checks import whole
from driftbandit.draws import POLICY, REWARD, WORLD, Stream, stream_key
from driftbandit.lab.engine import policy_check
from driftbandit.lab.support import html
from driftbandit.lab.support.fingerprints import classes_in
from driftbandit.lab.support.progress import Progress, compiling
from driftbandit.protocols import Environment, Policy
from driftbandit.rewards import check_rewards

LANES = 32
_WORTH_LANES = 6  # with fewer runs than this, 32 lanes take longer than the runs one by one
_SEGMENT = 1_000_000  # arms × rounds in one call of the compiled loop: some milliseconds; four times that in lanes
_ready: set[Any] = set()  # what this process has compiled, or loaded, already
_SEGMENT_INTERPRETED = 20_000
_LONGEST = 0.1  # seconds; a segment that took longer is followed by shorter ones


class Simulation(NamedTuple):
    """What came out of playing one policy in one world: one row per run."""

    rounds: np.ndarray  # the checkpoints: number of rounds played
    regret: np.ndarray  # runs × checkpoints, pseudo-regret so far
    seconds: float  # wall time, without compiling
    pulls: np.ndarray | None = None  # runs × arms, if asked for
    arms: np.ndarray | None = None  # runs × horizon, if asked for
    rewards: np.ndarray | None = None  # runs × horizon, if asked for
    alarms: list[np.ndarray] | None = None  # with trajectories: the rounds in which each run's policy gave an alarm
    drift: dict[str, np.ndarray] | None = None  # the columns of `lab.jobs.phases`, if asked for

    def __repr__(self) -> str:
        final = self.regret[:, -1]
        return f"<{len(final)} runs of {self.rounds[-1]} rounds: regret {final.mean():.1f} on average>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the regret at the end, and how it grew."""
        final, runs = self.regret[:, -1], len(self.regret)
        spread = f"{final.std(ddof=1):.1f}" if runs > 1 else "-"
        cells = [f"{value:.1f}" for value in (final.mean(), final.min(), np.median(final), final.max())]
        head = ["regret at the end", "mean", "smallest", "median", "largest", "spread over runs", "seconds"]
        row = ["", *cells, spread, f"{self.seconds:.2f}"]
        shown = html.table(f"{runs} runs of {self.rounds[-1]} rounds", head, [row])
        low, mean, high = self.regret.min(axis=0), self.regret.mean(axis=0), self.regret.max(axis=0)
        return shown + html.curve(self.rounds, low, mean, high, "regret over the rounds: mean, smallest, largest run")


class _Task(NamedTuple):
    """Runs played together: one, or one a lane (the last ones repeated if there are fewer runs than lanes)."""

    runs: list[int]
    lanes: int


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
    was played, `trajectories` every arm and reward (runs × horizon of memory) and the rounds of alarms. Neither
    workers, lockstep nor compiled changes any number.

    >>> from driftbandit.policies import DiscountedTS
    >>> from driftbandit.environments import Smooth
    >>> result = simulate(DiscountedTS(gamma=0.9), Smooth(n_arms=3, horizon=500), runs=2, compiled=False)
    >>> result.regret.shape
    (2, 200)
    """
    if isinstance(policy, tuple) and not type(policy).__module__.startswith("driftbandit."):
        policy_check.read(type(policy))
    _check(policy, environment, runs, seed, first_run, workers)
    marks = checkpoint_rounds(environment.horizon, checkpoints)
    worlds = [environment.realise(stream_key(seed, run, WORLD)) for run in range(first_run, first_run + runs)]
    check_rewards(policy, worlds[0])
    n_arms = worlds[0].n_arms
    policy_check.check(_bound(policy, worlds[0]), n_arms, compiled)
    job = _Job(policy, worlds, seed, first_run, marks, pulls, trajectories, compiled)
    together = compiled and lockstep and job.allows_lockstep() and runs >= _WORTH_LANES
    tasks = _tasks(runs, LANES if together else 1)
    result = _room(runs, marks, n_arms, environment.horizon, pulls, trajectories)
    if compiled:
        with compiling(progress):
            job.compile({task.lanes: task for task in tasks}.values())
    started = time.perf_counter()
    stop = stop or threading.Event()  # set by whoever wants us to end early
    halt = threading.Event()  # set here, when one thread failed
    total = len(tasks) * environment.horizon
    with Progress(total, progress, label=f"{policy!r:.40}") as bar:
        threads = min(len(tasks), workers or os.cpu_count() or 1) if compiled else 1
        if threads <= 1:
            for task in tasks:
                job.play(task, result, stop, bar)
        else:
            pool = ThreadPoolExecutor(threads)
            futures = [pool.submit(job.play, task, result, halt, bar) for task in tasks]
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
    if stop.is_set():
        raise KeyboardInterrupt
    return result._replace(rounds=marks, seconds=time.perf_counter() - started)


def checkpoint_rounds(horizon: int, checkpoints: int | np.ndarray) -> np.ndarray:
    """The rounds at which regret is reported: evenly spaced and ending at the horizon, or those given."""
    if isinstance(checkpoints, int | np.integer):
        if checkpoints < 1:
            raise ValueError(f"checkpoints needs to be 1 or more; got {checkpoints}.")
        count = min(int(checkpoints), horizon)
        return np.unique(np.round(np.linspace(horizon / count, horizon, count)).astype(np.int64))
    try:
        marks = np.asarray(checkpoints)
        marks = marks.astype(np.int64, casting="unsafe" if marks.size and (marks == np.round(marks)).all() else "safe")
    except (TypeError, ValueError):
        marks = np.zeros(0, np.int64)
    if marks.ndim != 1 or len(marks) == 0 or (np.diff(marks) <= 0).any() or marks[0] < 1 or marks[-1] > horizon:
        raise ValueError(
            f"checkpoints needs increasing rounds between 1 and the horizon {horizon}; got {checkpoints!r:.80}."
        )
    return marks


def _check(policy: Any, environment: Any, runs: int, seed: int, first_run: int, workers: int | None) -> None:
    for value, protocol, verbs in (
        (policy, Policy, "init, choose, learn"),
        (environment, Environment, "n_arms, horizon, realise"),
    ):
        if isinstance(value, type) or not isinstance(value, protocol):
            lacks = [verb for verb in verbs.split(", ") if not hasattr(value, verb)]
            what = f"lacks {', '.join(lacks)}" if lacks else "is a class; call it, e.g. DiscountedTS(gamma=0.99)"
            raise TypeError(f"{value!r:.60} is no {protocol.__name__.lower()}: it {what}.")
    least = {"runs": 1, "seed": 0, "first_run": 0, "workers": 1}
    given = {"runs": runs, "seed": seed, "first_run": first_run, "workers": 1 if workers is None else workers}
    for name, value in given.items():
        whole(name, value, least[name])


def _room(runs: int, marks: np.ndarray, n_arms: int, horizon: int, pulls: bool, trajectories: bool) -> Simulation:
    return Simulation(
        marks,
        np.zeros((runs, len(marks))),
        0.0,
        np.zeros((runs, n_arms), np.int64) if pulls else None,
        np.zeros((runs, horizon), np.int32) if trajectories else None,
        np.zeros((runs, horizon)) if trajectories else None,
        [np.zeros(0, np.int64)] * runs if trajectories else None,
    )


def _tasks(runs: int, lanes: int) -> list[_Task]:
    """Groups of runs played together. The last group may be short of runs; its lanes are filled with repeats of the
    last one, which costs less than compiling the loop a second time for single runs."""
    groups = [list(range(first, min(first + lanes, runs))) for first in range(0, runs, lanes)]
    return [_Task(group, lanes) for group in groups]


class _Job:
    """Everything the tasks of one `simulate` share."""

    def __init__(
        self,
        policy: Any,
        worlds: list[Any],
        seed: int,
        first_run: int,
        marks: np.ndarray,
        pulls: bool,
        trajectories: bool,
        compiled: bool,
    ) -> None:
        self.policy, self.worlds, self.seed, self.first_run, self.marks = policy, worlds, seed, first_run, marks
        self.pulls, self.trajectories, self.compiled = pulls, trajectories, compiled
        self.n_arms, self.horizon = worlds[0].n_arms, worlds[0].horizon
        self.advance: Any = None

    def allows_lockstep(self) -> bool:
        """Do policy, world and reward law all work on rows of lanes?"""
        world = self.worlds[0]
        parts = [self.policy, world, getattr(world, "law", None)]
        if hasattr(self.policy, "bound"):  # an oracle looks into one world, and lanes may have one each
            return False
        return not self.trajectories and all(getattr(part, "lockstep", False) for part in parts if part is not None)

    def compile(self, kinds: Any) -> None:
        """Compile, or load from disk, in the main thread, where Ctrl-C is heard at once."""
        try:
            from numba.core.errors import NumbaError
        except ImportError:
            raise ImportError(
                "Compiled simulation needs Numba: pip install 'driftbandit[lab]'. "
                "Without it, simulate(..., compiled=False) runs the same, slower."
            ) from None

        from driftbandit.lab.engine import code_cache, numba_methods

        bound = _bound(self.policy, self.worlds[0])
        with code_cache.LOCK:
            numba_methods.prepare(bound)
            numba_methods.prepare(bound.init(self.n_arms))
            numba_methods.prepare(self.worlds[0])
        self.advance = code_cache.compiled_advance(bound, bound.init(self.n_arms), self.worlds[0])
        classes = classes_in((bound, self.worlds[0]))
        shared = all(world is self.worlds[0] for world in self.worlds)
        for task in kinds:
            kind = (self.advance, classes, task.lanes, shared, self.pulls, self.trajectories)
            if kind in _ready:
                continue
            try:
                with code_cache.LOCK, numba_methods.whole_stores():
                    self.advance(*self._arguments(task)._replace(start=0, stop=0))
            except NumbaError as error:
                raise TypeError(numba_methods.explain(error, self.policy, self.worlds[0])) from error
            _ready.add(kind)

    def play(self, task: _Task, result: Simulation, stop: threading.Event, bar: Progress) -> None:
        """Play the task's runs from the first round to the last, unless stopped."""
        arguments = self._arguments(task)
        if self.compiled:
            work = _SEGMENT if task.lanes == 1 else 4 * _SEGMENT
            step, advance = max(1, min(work // (self.n_arms * task.lanes), 50_000)), self.advance
        else:
            from driftbandit.lab.engine.loop import advance as plain

            step, advance = max(1, _SEGMENT_INTERPRETED // self.n_arms), plain
        start = 0
        while start < self.horizon:
            if stop.is_set():
                return
            end = min(start + step, self.horizon)
            began = time.perf_counter()
            advance(*arguments._replace(start=start, stop=end))
            if time.perf_counter() - began > _LONGEST:  # a costly policy: shorter segments, so that Ctrl-C is heard
                step = max(1, step // 4)
            bar.add(end - start)
            start = end
        self._collect(task, arguments, result)

    def _arguments(self, task: _Task) -> "_Arguments":
        runs = task.runs + [task.runs[-1]] * (task.lanes - len(task.runs))
        keys = {
            which: [stream_key(self.seed, self.first_run + run, which) for run in runs] for which in (POLICY, REWARD)
        }
        worlds = [self.worlds[run] for run in runs]
        policy = _bound(self.policy, worlds[0])
        state = policy.init(self.n_arms)
        marks = np.append(self.marks, self.horizon + 1)  # one beyond the end: the loop may always look at the next
        cursor = np.array([0, self.n_arms])
        out = np.zeros((task.lanes, len(self.marks)))
        if not self.compiled:
            from driftbandit.state import to_lists

            counts: Any = [0] * self.n_arms if self.pulls else None
            state = to_lists(state)
            trace: Any = self._trace(state, list) if self.trajectories else None
            draws: Any = Stream(keys[POLICY][0])
            luck: Any = Stream(keys[REWARD][0])
            world = to_lists(worlds[0])
            return _Arguments(policy, state, world, draws, luck, 0, 0, [0.0], marks, cursor, out, counts, trace)
        from driftbandit.lab.engine import compiled_draws
        from driftbandit.lab.engine.simd import LaneArray

        if task.lanes == 1:
            counts = np.zeros(self.n_arms, np.int64) if self.pulls else None
            trace = self._trace(state, np.zeros) if self.trajectories else None
            draws = compiled_draws.ahead_stream(keys[POLICY][0], self.n_arms)
            luck = compiled_draws.KeyStream(np.array(keys[REWARD], np.uint64))
            return _Arguments(
                policy, state, worlds[0], draws, luck, 0, 0, np.zeros(1), marks, cursor, out, counts, trace
            )
        counts = LaneArray(np.zeros((self.n_arms, task.lanes), np.int64)) if self.pulls else None
        draws = compiled_draws.lane_stream(keys[POLICY], self.n_arms)
        luck = compiled_draws.KeyStream(LaneArray(np.array([keys[REWARD]], np.uint64)))
        carry = LaneArray(np.zeros((1, task.lanes)))
        return _Arguments(
            policy,
            _in_lanes(state, task.lanes),
            _stacked(worlds),
            draws,
            luck,
            0,
            0,
            carry,
            marks,
            cursor,
            out,
            counts,
            None,
        )

    def _trace(self, state: Any, make: Any) -> Any:
        from driftbandit.lab.engine.loop import Trace

        n, counter = self.horizon, _alarm_counter(state)
        if make is list:
            return Trace([0] * n, [0.0] * n, [0] * n, [0] if counter is None else counter)
        counter = np.zeros(1, np.int64) if counter is None else counter
        return Trace(np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64), counter)

    def _collect(self, task: _Task, arguments: "_Arguments", result: Simulation) -> None:
        for lane, run in enumerate(task.runs):
            result.regret[run] = arguments.out[lane]
            if result.pulls is not None:
                counts = arguments.counts
                result.pulls[run] = counts.array[:, lane] if task.lanes > 1 else counts
            if result.arms is not None and result.rewards is not None and result.alarms is not None:
                result.arms[run], result.rewards[run] = arguments.trace.arms, arguments.trace.rewards
                # A wrapper that restarts its policy sets the count back to 0, which is no alarm.
                result.alarms[run] = np.flatnonzero(np.diff(arguments.trace.alarms, prepend=0) > 0)


class _Arguments(NamedTuple):
    """The arguments of `loop.advance`, in order."""

    policy: Any
    state: Any
    environment: Any
    draws: Any
    luck: Any
    start: int
    stop: int
    carry: Any
    marks: Any
    cursor: Any
    out: Any
    counts: Any
    trace: Any


def _alarm_counter(state: Any) -> Any:
    """The field `alarms` of a state, or of the state of what a wrapper wraps; None for policies that detect nothing."""
    if not isinstance(state, tuple) or not hasattr(state, "_fields"):
        return None
    if "alarms" in state._fields:
        return state.alarms  # type: ignore[attr-defined]
    return next((found for found in map(_alarm_counter, state) if found is not None), None)


def _bound(policy: Any, world: Any) -> Any:
    """Policies that may look into the world (the oracles) are given it; all others stay as they are."""
    bind = getattr(policy, "bound", None)
    return policy if bind is None else bind(world)


def _in_lanes(state: Any, lanes: int) -> Any:
    """The state with every number repeated for every lane; where its class says so, each lane's array for itself."""
    from driftbandit.lab.engine.apart import OwnArray
    from driftbandit.lab.engine.simd import LaneArray

    def repeated(field: Any) -> Any:
        if getattr(type(state), "apart", False):
            return OwnArray(np.repeat(np.asarray(field)[None, :], lanes, axis=0))
        return LaneArray(np.repeat(np.asarray(field)[:, None], lanes, axis=1))

    fields = [_in_lanes(field, lanes) if isinstance(field, tuple) else repeated(field) for field in state]
    return type(state)._make(fields)


def _stacked(worlds: list[Any]) -> Any:
    """One world for all lanes: the same one, or one whose differing arrays hold a lane a run."""
    from driftbandit.lab.engine.simd import LaneArray

    first = worlds[0]
    if all(world is first for world in worlds):
        return first
    fields = []
    for position, field in enumerate(first):
        if isinstance(field, np.ndarray) and any((world[position] != field).any() for world in worlds):
            fields.append(LaneArray(np.stack([world[position] for world in worlds], axis=1)))
        else:
            fields.append(field)
    return type(first)._make(fields)
