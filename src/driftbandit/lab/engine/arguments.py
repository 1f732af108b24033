"""What the loop is called with: policy, state, world and streams of one run as lists, as arrays, or of many runs in
lanes.

The loop is written once; which of the three it plays is decided by the types it is handed here. `Shared` is what all
runs of one simulation have in common, `Task` says which of them are played together."""

import copy
from typing import Any, NamedTuple

import numpy as np

from driftbandit.draws import POLICY, REWARD, Stream, stream_key
from driftbandit.lab.engine.loop import Trajectory
from driftbandit.lab.support import html
from driftbandit.state import to_lists
from driftbandit.text.policy_check import own_classes


class NumpyStream(Stream):
    """A `Stream` that is also a `numpy.random.Generator`: `rng.random()`, `rng.normal(mean, sd)`, `rng.integers(k)`,
    `rng.beta(a, b)`, `rng.choice(...)`. The generator starts anew in every round from the key of the round, so a run
    can be repeated. One whole number is a slot, as in `rng.uniform(1)`, and so is a third number of `rng.beta`."""

    _generator: Any = None

    def at(self, t: int) -> "NumpyStream":
        """Move to round t."""
        super().at(t)
        self._generator = None
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._generator is None:
            key = int(self._block.key[self._column])
            self._generator = np.random.Generator(np.random.Philox(key=key))
        return getattr(self._generator, name)

    def uniform(self, *given: Any, **named: Any) -> Any:
        """The number of a slot, or NumPy's `uniform`."""
        return super().uniform(*given) if _is_slot(given, named) else self.__getattr__("uniform")(*given, **named)

    def normal(self, *given: Any, **named: Any) -> Any:
        """The standard normal of a slot, or NumPy's `normal`."""
        return super().normal(*given) if _is_slot(given, named) else self.__getattr__("normal")(*given, **named)

    def beta(self, a: Any, b: Any, *slot: Any, **named: Any) -> Any:
        """The Beta draw of a slot, or NumPy's `beta`."""
        return super().beta(a, b, *slot) if _is_slot(slot, named) else self.__getattr__("beta")(a, b, **named)


def _is_slot(given: tuple[Any, ...], named: dict[str, Any]) -> bool:
    return len(given) == 1 and not named and isinstance(given[0], int | np.integer)


class Simulation(NamedTuple):
    """What came out of playing one policy in one world: one row per run."""

    rounds: np.ndarray  # the checkpoints: number of rounds played
    regret: np.ndarray  # runs × checkpoints, pseudo-regret so far
    seconds: float  # wall time, without compiling
    pulls: np.ndarray | None = None  # runs × arms, if asked for
    arms: np.ndarray | None = None  # runs × horizon, if asked for
    rewards: np.ndarray | None = None  # runs × horizon, if asked for
    alarms: list[np.ndarray] | None = None  # with trajectories: the rounds in which each run's policy gave an alarm
    drift: dict[str, np.ndarray] | None = None  # the columns of `lab.jobs.drift`, if asked for

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


def empty(runs: int, marks: np.ndarray, n_arms: int, horizon: int, pulls: bool, trajectories: bool) -> Simulation:
    """Room for what will come out."""
    return Simulation(
        marks,
        np.zeros((runs, len(marks))),
        0.0,
        np.zeros((runs, n_arms), np.int64) if pulls else None,
        np.zeros((runs, horizon), np.int32) if trajectories else None,
        np.zeros((runs, horizon)) if trajectories else None,
        [np.zeros(0, np.int64)] * runs if trajectories else None,
    )


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


class Task(NamedTuple):
    """Runs played together: one, or one per lane (the last one repeated if there are fewer runs than lanes)."""

    runs: list[int]
    lanes: int


class Shared(NamedTuple):
    """What all runs of one simulation have in common."""

    policy: Any
    worlds: list[Any]  # one per run
    seed: int
    first_run: int
    marks: np.ndarray
    pulls: bool
    trajectories: bool
    compiled: bool

    @property
    def n_arms(self) -> int:
        return int(self.worlds[0].n_arms)

    @property
    def horizon(self) -> int:
        return int(self.worlds[0].horizon)

    @property
    def lockstep(self) -> bool:
        """Do policy, world and reward law all work on rows of lanes?"""
        world = self.worlds[0]
        parts = [self.policy, world, getattr(world, "law", None)]
        if hasattr(self.policy, "with_world"):  # an oracle looks into one world, and lanes may have one each
            return False
        return not self.trajectories and all(getattr(part, "lockstep", False) for part in parts if part is not None)


class Arguments(NamedTuple):
    """The arguments of `loop.advance`, in order."""

    policy: Any
    state: Any
    environment: Any
    draws: Any
    reward_rng: Any
    start: int
    stop: int
    regret_so_far: Any
    marks: Any
    cursor: Any
    out: Any
    counts: Any
    trace: Any


def arguments(shared: Shared, task: Task) -> Arguments:
    """The loop's arguments for the task's runs, before their first round."""
    runs = task.runs + [task.runs[-1]] * (task.lanes - len(task.runs))
    keys = {
        which: [stream_key(shared.seed, shared.first_run + run, which) for run in runs] for which in (POLICY, REWARD)
    }
    worlds = [shared.worlds[run] for run in runs]
    policy = with_world(shared.policy, worlds[0])
    common = Arguments(
        policy,
        policy.init(shared.n_arms),
        worlds[0],
        draws=None,
        reward_rng=None,
        start=0,
        stop=0,
        regret_so_far=None,
        marks=np.append(shared.marks, shared.horizon + 1),  # one beyond the end: the loop may always look at the next
        cursor=np.array([0, shared.n_arms]),
        out=np.zeros((task.lanes, len(shared.marks))),
        counts=None,
        trace=None,
    )
    if not shared.compiled:
        return _interpreted(shared, common, keys)
    return _alone(shared, common, keys) if task.lanes == 1 else _together(shared, common, keys, worlds, task.lanes)


def _interpreted(shared: Shared, common: Arguments, keys: dict[int, list[int]]) -> Arguments:
    """One run in plain Python. The package's own states are lists there, which are faster than arrays; a user's are
    what `init` made, so that NumPy's expressions mean what they say."""
    own = own_classes(common.policy, common.state)
    state = common.state if own else to_lists(common.state)
    return common._replace(
        state=state,
        environment=common.environment if own_classes(common.environment) else to_lists(common.environment),
        draws=NumpyStream(keys[POLICY][0]) if own else Stream(keys[POLICY][0]),
        reward_rng=Stream(keys[REWARD][0]),
        regret_so_far=[0.0],
        counts=[0] * shared.n_arms if shared.pulls else None,
        trace=_trajectory(shared, state, list) if shared.trajectories else None,
    )


def _alone(shared: Shared, common: Arguments, keys: dict[int, list[int]]) -> Arguments:
    """One run in machine code, its normal draws computed some rounds ahead."""
    from driftbandit.lab.engine import compiled_draws

    return common._replace(
        draws=compiled_draws.ahead_stream(keys[POLICY][0], shared.n_arms),
        reward_rng=compiled_draws.KeyStream(np.array(keys[REWARD], np.uint64)),
        regret_so_far=np.zeros(1),
        counts=np.zeros(shared.n_arms, np.int64) if shared.pulls else None,
        trace=_trajectory(shared, common.state, np.zeros) if shared.trajectories else None,
    )


def _together(
    shared: Shared, common: Arguments, keys: dict[int, list[int]], worlds: list[Any], lanes: int
) -> Arguments:
    """One run per lane."""
    from driftbandit.lab.engine import compiled_draws
    from driftbandit.lab.engine.lane_arrays import LaneArray

    return common._replace(
        state=in_lanes(common.state, lanes),
        environment=_stacked(worlds),
        draws=compiled_draws.lane_stream(keys[POLICY], shared.n_arms),
        reward_rng=compiled_draws.KeyStream(LaneArray(np.array([keys[REWARD]], np.uint64))),
        regret_so_far=LaneArray(np.zeros((1, lanes))),
        counts=LaneArray(np.zeros((shared.n_arms, lanes), np.int64)) if shared.pulls else None,
    )


def collect(task: Task, played: Arguments, result: Simulation) -> None:
    """Copy what the loop wrote into the rows of the task's runs."""
    for lane, run in enumerate(task.runs):
        result.regret[run] = played.out[lane]
        if result.pulls is not None:
            result.pulls[run] = played.counts.array[:, lane] if task.lanes > 1 else played.counts
        if result.arms is not None and result.rewards is not None and result.alarms is not None:
            result.arms[run], result.rewards[run] = played.trace.arms, played.trace.rewards
            # A wrapper that restarts its policy sets the count back to 0, which is not an alarm.
            result.alarms[run] = np.flatnonzero(np.diff(played.trace.alarms, prepend=0) > 0)


def with_world(policy: Any, world: Any) -> Any:
    """Policies that may look into the world (the oracles) are given it. A plain object may keep what it learned in
    itself, so that every run has a copy; tuples stay as they are."""
    given = getattr(policy, "with_world", None)
    if given is not None:
        return given(world)
    return policy if isinstance(policy, tuple) else copy.deepcopy(policy)


def _trajectory(shared: Shared, state: Any, make: Any) -> Any:
    n, counter = shared.horizon, alarm_counter(state)
    if make is list:
        return Trajectory([0] * n, [0.0] * n, [0] * n, [0] if counter is None else counter)
    counter = np.zeros(1, np.int64) if counter is None else counter
    return Trajectory(np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64), counter)


def alarm_counter(state: Any) -> Any:
    """The field `alarms` of a state, or of the state of what a wrapper wraps; None for policies that detect nothing."""
    if not isinstance(state, tuple) or not hasattr(state, "_fields"):
        return None
    if "alarms" in state._fields:
        return state.alarms  # type: ignore[attr-defined]
    return next((found for found in map(alarm_counter, state) if found is not None), None)


def in_lanes(state: Any, lanes: int) -> Any:
    """The state with every number repeated for every lane."""
    from driftbandit.lab.engine.lane_arrays import LaneArray

    def repeated(field: Any) -> Any:
        return LaneArray(np.repeat(np.asarray(field)[:, None], lanes, axis=1))

    fields = [in_lanes(field, lanes) if isinstance(field, tuple) else repeated(field) for field in state]
    return type(state)._make(fields)


def _stacked(worlds: list[Any]) -> Any:
    """One world for all lanes: the same one, or one whose differing arrays hold one lane per run."""
    from driftbandit.lab.engine.lane_arrays import LaneArray

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
