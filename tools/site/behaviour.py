"""What a policy does in the small environments, as numbers: whom it plays, what it believes, what it regrets, what
delays cost it.

Interpreted and compiled play give the same numbers, so each policy is played whichever way is sooner done: most take a
few microseconds per round, and a kernel takes seconds to compile."""

import itertools
import time
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.lab.engine.simulate import Simulation, simulate
from driftbandit.policies import Delayed
from tools.site.environments import QUICK_RUNS, RUNS, as_its_theory_says, brief, small_environments

BINS = 50  # of the horizon: shares of the arms are averages over one
MARKS = 120  # rounds at which a belief is looked at
DELAYS, QUICK_DELAYS = (30, 100, 300), (10,)
SEED = 0
_WORTH_COMPILING = 2.5  # seconds of interpreted play


class Seen(NamedTuple):
    """One policy in one environment."""

    policy: str  # as one would type it, with the parameters its theory gave it here
    rounds: np.ndarray  # ends of the bins
    shares: np.ndarray  # bins × arms, over all runs
    regret: np.ndarray  # runs × bins
    alarms: np.ndarray  # (run, round) of every alarm; a policy that gives none has none
    at: np.ndarray  # rounds at which the belief of the first run was looked at
    mean: np.ndarray  # those rounds × arms; empty if the policy holds no belief
    sd: np.ndarray


class Behaviour(NamedTuple):
    """One policy in all small environments."""

    seen: tuple[Seen, ...]
    delays: tuple[int, ...]
    late: np.ndarray  # delays × runs: regret in the first environment; empty if it cannot be played late


def behaviour(cls: Any, quick: bool = False) -> Behaviour:
    """Play a policy in the small environments, and in the first of them with late rewards."""
    runs = QUICK_RUNS if quick else RUNS
    environments = small_environments(quick)
    policies = [as_its_theory_says(cls, environment.environment) for environment in environments]
    seen = tuple(
        _seen(policy, environment.environment, runs) for policy, environment in zip(policies, environments, strict=True)
    )
    delays = QUICK_DELAYS if quick else DELAYS
    if not can_be_late(policies[0]):
        return Behaviour(seen, (), np.zeros((0, runs)))
    late = [_play(Delayed(policies[0], rounds), environments[0].environment, runs).regret[:, -1] for rounds in delays]
    return Behaviour(seen, delays, np.array(late))


def can_be_late(policy: Any) -> bool:
    """Can it be wrapped in `delayed`? Not a policy that looks into the environment, nor `delayed` itself."""
    return not hasattr(policy, "with_environment")


def _seen(policy: Any, environment: Any, runs: int) -> Seen:
    played = _play(policy, environment, runs, trajectories=True)
    assert played.arms is not None
    assert played.rewards is not None
    n_arms = environment.n_arms
    ends = np.round(np.linspace(0, environment.horizon, BINS + 1)).astype(np.int64)
    shares = [
        np.bincount(played.arms[:, first:last].ravel(), minlength=n_arms) / (runs * (last - first))
        for first, last in itertools.pairwise(ends)
    ]
    alarms = [(run, t) for run, rounds in enumerate(played.alarms or ()) for t in rounds]
    at, mean, sd = followed(policy, environment, played.arms[0], played.rewards[0], MARKS)
    return Seen(
        brief(policy),
        ends[1:],
        np.array(shares),
        played.regret,
        np.array(alarms, np.int64).reshape(-1, 2),
        at,
        mean,
        sd,
    )


def _play(policy: Any, environment: Any, runs: int, **asked: Any) -> Simulation:
    compiled = _seconds_per_round(policy) * runs * environment.horizon > _WORTH_COMPILING
    return simulate(
        policy, environment, runs, SEED, checkpoints=BINS, compiled=compiled, lockstep=False, workers=1, progress=False,
        **asked,
    )  # fmt: skip


def _seconds_per_round(policy: Any) -> float:
    """Of interpreted play, in an environment small enough to find out at once."""
    pilot = small_environments(quick=True)[0].environment
    began = time.perf_counter()
    simulate(policy, pilot, 1, SEED, checkpoints=1, compiled=False, progress=False)
    return (time.perf_counter() - began) / pilot.horizon


def followed(
    policy: Any, environment: Any, arms: Any, rewards: Any, marks: int, run: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The belief of a policy along a run that was played: rounds, means and standard deviations of the next samples.

    The state is what `learn` makes of the rewards, so learning once more gives the states of the run."""
    n_arms, horizon = environment.n_arms, len(arms)
    none = np.zeros(0, np.int64), np.zeros((0, n_arms)), np.zeros((0, n_arms))
    if not hasattr(policy, "belief"):
        return none
    state, draws = to_lists(policy.init(n_arms)), Stream(stream_key(SEED, run, POLICY))
    wanted = set(np.unique(np.round(np.linspace(0, horizon, marks + 1)).astype(int)).tolist())
    at, means, sds = [], [], []
    for t in range(horizon + 1):
        if t in wanted:
            known = moments(policy.belief(state))
            if known is None:
                return none
            at.append(t)
            means.append(known[0])
            sds.append(known[1])
        if t < horizon:
            learn_reward(policy, state, t, int(arms[t]), float(rewards[t]), draws.at(t))
    return np.array(at), np.array(means), np.array(sds)


def moments(belief: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Mean and standard deviation of every arm's sample: of a normal law, a Beta law, or a mixture of Beta laws; None
    for a belief of another kind."""
    if hasattr(belief, "mean") and hasattr(belief, "sd"):
        return np.asarray(belief.mean, float), np.asarray(belief.sd, float)
    if not hasattr(belief, "a") or not hasattr(belief, "b"):
        return None
    a, b = np.asarray(belief.a, float), np.asarray(belief.b, float)
    mean = a / (a + b)
    square = mean * (1.0 - mean) / (a + b + 1.0) + mean**2
    if a.ndim == 3:  # hypotheses × laws × arms
        first = np.asarray(belief.first)
        chance = np.stack([first, 1.0 - first], axis=1) * np.asarray(belief.weights)[:, None, None]
        chance = chance / chance.sum(axis=(0, 1))
        mean, square = (chance * mean).sum(axis=(0, 1)), (chance * square).sum(axis=(0, 1))
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))
