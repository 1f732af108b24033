"""What the loop is called with: policy, state, world and streams of one run as lists, as arrays, or of many runs in
lanes.

The loop is written once; which of the three it plays is decided by the types it is handed here. `Shared` is what all
runs of one simulation have in common, `Task` says which of them are played together."""

import copy
from typing import Any, NamedTuple

import numpy as np

from driftbandit.draws import POLICY, REWARD, Stream, stream_key
from driftbandit.lab.engine.loop import Trajectory
from driftbandit.lab.engine.numpy_stream import NumpyStream
from driftbandit.lab.engine.simulation import Simulation
from driftbandit.state import to_lists
from driftbandit.text.policy_check import own_classes


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
