"""Many runs of one policy in one world: the regret at checkpoints, the same to the last bit however the work is spread.

Run r takes its numbers from streams made of (seed, r) alone. Runs of policies that allow it are played 32 at a time in
lockstep, others one after the other (`runs`); how a run is handed to the loop is up to `arguments`, and what comes out
is a `Simulation`. Here the arguments are checked and the three are put together."""

import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandit.checks import whole
from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.engine import loop, simulation
from driftbandit.lab.engine import runs as spread
from driftbandit.lab.engine.arguments import Shared, Task, with_world
from driftbandit.lab.engine.compile_errors import NotCompiled
from driftbandit.lab.engine.numpy_stream import NumpyStream
from driftbandit.lab.engine.simulation import Simulation, checkpoint_rounds
from driftbandit.lab.support.progress import Progress, compiling
from driftbandit.protocols import Environment, Policy
from driftbandit.rewards import check_rewards
from driftbandit.text import policy_check

_COMPILED = 1e-8  # seconds that compiled code takes for a round, for each arm and five more
_noted: set[str] = set()

__all__ = ["Simulation", "checkpoint_rounds", "plays_compiled", "simulate"]


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
    shared, tasks, advance = _ready(
        Shared(policy, worlds, seed, first_run, marks, pulls, trajectories, compiled), lockstep, progress
    )
    result = simulation.empty(runs, marks, shared.n_arms, shared.horizon, pulls, trajectories)
    stop, started = stop or threading.Event(), time.perf_counter()
    with Progress(len(tasks) * shared.horizon, progress, label=f"{policy!r:.40}") as bar:
        spread.play_all(shared, tasks, advance, result, workers, stop, bar)
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
            tasks = spread.tasks(shared, lockstep)
            with compiling(progress):
                return shared, tasks, spread.compiled_loop(shared, tasks)
        except NotCompiled as reason:
            _note(str(reason), seconds / (_COMPILED * (5 + world.n_arms)))
            shared = shared._replace(compiled=False)
    return shared, spread.tasks(shared, lockstep), loop.advance


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
