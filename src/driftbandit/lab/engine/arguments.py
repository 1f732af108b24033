"""The arguments of the loop: policy, state, environment and streams of one run as lists or arrays, or of many runs in
lanes. The loop is written once; the types of its arguments decide which of the three it plays."""

import copy
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import CONTEXT, POLICY, REWARD, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import init_in, to_lists
from driftbandit.lab.engine.loop import Trajectory
from driftbandit.spec.policy_check import find_own_classes


class NumpyStream(Stream):
    """A `Stream` for users' interpreted policies that is also a `numpy.random.Generator`, such as `rng.integers(k)`.

    The generator is seeded in every round by the key of the round, so a run can be repeated. A single whole number is a
    slot, as in `rng.uniform(1)`, and so is a third number of `rng.beta`."""

    _generator: Any = None

    def at(self, t: int) -> "NumpyStream":
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
        return super().uniform(*given) if _is_slot(given, named) else self.__getattr__("uniform")(*given, **named)

    def normal(self, *given: Any, **named: Any) -> Any:
        return super().normal(*given) if _is_slot(given, named) else self.__getattr__("normal")(*given, **named)

    def beta(self, a: Any, b: Any, *slot: Any, **named: Any) -> Any:
        return super().beta(a, b, *slot) if _is_slot(slot, named) else self.__getattr__("beta")(a, b, **named)


def _is_slot(given: tuple[Any, ...], named: dict[str, Any]) -> bool:
    return len(given) == 1 and not named and isinstance(given[0], int | np.integer)


class Simulation(NamedTuple):
    """The outcome of playing one policy in one environment: one row per run."""

    rounds: np.ndarray  # the checkpoints: number of rounds played
    regret: np.ndarray  # runs × checkpoints, pseudo-regret so far
    seconds: float  # wall time, without compiling
    pulls: np.ndarray | None = None  # runs × arms; None unless requested
    arms: np.ndarray | None = None  # runs × horizon; None unless requested
    rewards: np.ndarray | None = None  # runs × horizon; None unless requested
    alarms: list[np.ndarray] | None = None  # with trajectories: the rounds of each run's alarms
    drift: dict[str, np.ndarray] | None = None  # those of `lab.drift_metrics.RunMetrics`; None unless requested

    def __repr__(self) -> str:
        final = self.regret[:, -1]
        return f"<{len(final)} runs of {self.rounds[-1]} rounds: regret {final.mean():.1f} on average>"


def empty(shared: "Shared") -> Simulation:
    """A simulation to be filled."""
    runs, horizon = len(shared.environments), shared.horizon
    result = Simulation(shared.marks, np.zeros((runs, len(shared.marks))), 0.0)
    if shared.pulls:
        result = result._replace(pulls=np.zeros((runs, shared.n_arms), np.int64))
    if shared.trajectories:
        arms, rewards = np.zeros((runs, horizon), np.int32), np.zeros((runs, horizon))
        result = result._replace(arms=arms, rewards=rewards, alarms=[np.zeros(0, np.int64)] * runs)
    return result


def checkpoint_rounds(horizon: int, checkpoints: int | np.ndarray) -> np.ndarray:
    """The rounds at which regret is reported: equally spaced and ending at the horizon, or those given."""
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
    """What all runs of a simulation share."""

    policy: Any
    environments: list[Any]  # the environment of each run
    seed: int
    first_run: int
    marks: np.ndarray
    pulls: bool
    trajectories: bool
    compiled: bool

    @property
    def n_arms(self) -> int:
        return int(self.environments[0].n_arms)

    @property
    def horizon(self) -> int:
        return int(self.environments[0].horizon)

    @property
    def lockstep(self) -> bool:
        """Whether policy, environment and reward law all work on rows of lanes."""
        environment = self.environments[0]
        parts = [self.policy, environment, getattr(environment, "law", None)]
        if hasattr(self.policy, "with_environment"):  # an oracle is given one environment, and lanes may have one each
            return False
        contextual = getattr(environment, "n_features", 0) > 0
        return not (self.trajectories or contextual) and all(
            getattr(part, "lockstep", False) for part in parts if part is not None
        )


class Arguments(NamedTuple):
    """The arguments of `loop.advance`, in order."""

    policy: Any
    state: Any
    environment: Any
    draws: Any = None
    reward_rng: Any = None
    start: int = 0
    stop: int = 0
    regret_so_far: Any = None
    marks: Any = None
    cursor: Any = None
    out: Any = None
    counts: Any = None
    trace: Any = None


def prepare(shared: Shared, task: Task) -> Arguments:
    """The loop's arguments for the task's runs, before their first round."""
    runs = task.runs + [task.runs[-1]] * (task.lanes - len(task.runs))
    keys = {
        which: [stream_key(shared.seed, shared.first_run + run, which) for run in runs]
        for which in (POLICY, REWARD, CONTEXT)
    }
    environments = [shared.environments[run] for run in runs]
    policy = with_environment(shared.policy, environments[0])
    common = Arguments(
        policy,
        init_in(policy, environments[0]),
        environments[0],
        marks=np.append(shared.marks, shared.horizon + 1),  # one beyond the end, since the loop looks at the next
        cursor=np.array([0, shared.n_arms]),
        out=np.zeros((task.lanes, len(shared.marks))),
    )
    if task.lanes > 1:
        return _lanes(shared, common, keys, environments, task.lanes)
    given = _single(shared, common, keys) if shared.compiled else _interpret(shared, common, keys)
    return _in_context(shared, given, keys[CONTEXT]) if getattr(environments[0], "n_features", 0) else given


class Informed(NamedTuple):
    """A contextual policy in the loop, which has no features: they are written and given to it by `choose`."""

    base: Any
    environment: Any
    stream: Any
    features: Any  # of the present round
    chosen: Any  # those of the arm played

    def choose(self, state: Any, t: int, rng: Any) -> Any:
        self.environment.features(t, self.stream.at(t), self.features)
        return self.base.choose_in(state, t, rng, self.features)

    def learn(self, state: Any, t: int, arm: Any, reward: Any) -> None:
        first = arm * len(self.chosen) if self.environment.joint else 0
        for j in range(len(self.chosen)):
            self.chosen[j] = self.features[first + j]
        self.base.learn_in(state, t, arm, reward, self.chosen)


class Uninformed(NamedTuple):
    """A policy without features in a contextual environment."""

    base: Any
    environment: Any
    stream: Any
    features: Any
    chosen: Any

    def choose(self, state: Any, t: int, rng: Any) -> Any:
        self.environment.features(t, self.stream.at(t), self.features)
        return self.base.choose(state, t, rng)

    def learn(self, state: Any, t: int, arm: Any, reward: Any, rng: Any) -> None:
        learn_reward(self.base, state, t, arm, reward, rng)


class InContext(NamedTuple):
    """A contextual environment in the loop: `features` are those that the policy met in this round."""

    base: Any
    features: Any

    def mean(self, t: int, arm: Any) -> Any:
        return self.base.mean_in(t, arm, self.features)

    def best(self, t: int) -> Any:
        return self.base.best_in(t, self.features)

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        return self.base.pull_in(t, arm, self.features, rng)


def _in_context(shared: Shared, given: Arguments, keys: list[int]) -> Arguments:
    """The arguments of one run with features, which policy and environment share."""
    environment, policy = given.environment, given.policy
    sizes = environment.n_features * (environment.n_arms if environment.joint else 1), environment.n_features
    stream: Any = Stream(keys[0])
    features: list[Any] = [np.zeros(size) for size in sizes]
    if shared.compiled:
        from driftbandit.lab.engine import compiled_draws, numba_methods

        stream = compiled_draws.KeyStream(np.array(keys, np.uint64))
        for cls in (Informed, Uninformed, InContext):
            numba_methods.register(cls)
    elif not find_own_classes(policy):
        features = [[0.0] * size for size in sizes]
    kind = Informed if hasattr(policy, "choose_in") else Uninformed
    return given._replace(
        policy=kind(policy, environment, stream, *features), environment=InContext(environment, features[0])
    )


def _interpret(shared: Shared, common: Arguments, keys: dict[int, list[int]]) -> Arguments:
    """One run in plain Python. The package's own states become lists, which are faster than arrays; a user's stay as
    `init` made them, so that NumPy expressions work."""
    own = find_own_classes(common.policy, common.state)
    state = common.state if own else to_lists(common.state)
    return common._replace(
        state=state,
        environment=common.environment if find_own_classes(common.environment) else to_lists(common.environment),
        draws=NumpyStream(keys[POLICY][0]) if own else Stream(keys[POLICY][0]),
        reward_rng=Stream(keys[REWARD][0]),
        regret_so_far=[0.0],
        counts=[0] * shared.n_arms if shared.pulls else None,
        trace=_trajectory(shared, state, list) if shared.trajectories else None,
    )


def _single(shared: Shared, common: Arguments, keys: dict[int, list[int]]) -> Arguments:
    """One run in machine code, with normal draws computed some rounds ahead."""
    from driftbandit.lab.engine import compiled_draws

    return common._replace(
        draws=compiled_draws.ahead_stream(keys[POLICY][0], shared.n_arms),
        reward_rng=compiled_draws.KeyStream(np.array(keys[REWARD], np.uint64)),
        regret_so_far=np.zeros(1),
        counts=np.zeros(shared.n_arms, np.int64) if shared.pulls else None,
        trace=_trajectory(shared, common.state, np.zeros) if shared.trajectories else None,
    )


def _lanes(
    shared: Shared, common: Arguments, keys: dict[int, list[int]], environments: list[Any], lanes: int
) -> Arguments:
    """One run per lane."""
    from driftbandit.lab.engine import compiled_draws
    from driftbandit.lab.engine.lane_arrays import LaneArray

    return common._replace(
        state=in_lanes(common.state, lanes),
        environment=_stack(environments),
        draws=compiled_draws.lane_stream(keys[POLICY], shared.n_arms),
        reward_rng=compiled_draws.KeyStream(LaneArray(np.array([keys[REWARD]], np.uint64))),
        regret_so_far=LaneArray(np.zeros((1, lanes))),
        counts=LaneArray(np.zeros((shared.n_arms, lanes), np.int64)) if shared.pulls else None,
    )


def collect(task: Task, played: Arguments, result: Simulation) -> None:
    """Copy the loop's output into the rows of the task's runs."""
    for lane, run in enumerate(task.runs):
        result.regret[run] = played.out[lane]
        if result.pulls is not None:
            result.pulls[run] = played.counts.array[:, lane] if task.lanes > 1 else played.counts
        if result.arms is not None and result.rewards is not None and result.alarms is not None:
            result.arms[run], result.rewards[run] = played.trace.arms, played.trace.rewards
            # A wrapper that restarts its policy sets the count to 0, which is not an alarm.
            result.alarms[run] = np.flatnonzero(np.diff(played.trace.alarms, prepend=0) > 0)


def with_environment(policy: Any, environment: Any) -> Any:
    """Give the environment to policies that need it (the oracles). A plain object may keep its state in itself, so
    every run has a copy; tuples stay as they are."""
    given = getattr(policy, "with_environment", None)
    if given is not None:
        if getattr(environment, "n_features", 0):
            raise ValueError(
                f"{type(policy).__name__} is given means of arms; it cannot play where these depend on features."
            )
        return given(environment)
    return policy if isinstance(policy, tuple) else copy.deepcopy(policy)


def _trajectory(shared: Shared, state: Any, make: Any) -> Any:
    n, counter = shared.horizon, alarm_counter(state)
    if make is list:
        return Trajectory([0] * n, [0.0] * n, [0] * n, [0] if counter is None else counter)
    counter = np.zeros(1, np.int64) if counter is None else counter
    return Trajectory(np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64), counter)


def alarm_counter(state: Any) -> Any:
    """The field `alarms` of a state, or of the state inside a wrapper's; None for policies without alarms."""
    if not isinstance(state, tuple) or not hasattr(state, "_fields"):
        return None
    if "alarms" in state._fields:
        return state.alarms  # type: ignore[attr-defined]
    return next((found for found in map(alarm_counter, state) if found is not None), None)


def in_lanes(state: Any, lanes: int) -> Any:
    """The state with every number repeated for every lane."""
    from driftbandit.lab.engine.lane_arrays import LaneArray

    def repeat(field: Any) -> Any:
        if isinstance(field, tuple):
            return in_lanes(field, lanes)
        return LaneArray(np.repeat(np.asarray(field)[:, None], lanes, axis=1))

    return type(state)._make(map(repeat, state))


def _stack(environments: list[Any]) -> Any:
    """One environment for all lanes; arrays that differ between runs get one lane per run."""
    from driftbandit.lab.engine.lane_arrays import LaneArray

    first = environments[0]
    if all(environment is first for environment in environments):
        return first

    def stack(*fields: Any) -> Any:
        same = not isinstance(fields[0], np.ndarray) or all(np.array_equal(field, fields[0]) for field in fields)
        return fields[0] if same else LaneArray(np.stack(fields, axis=1))

    return type(first)._make(map(stack, *environments))
