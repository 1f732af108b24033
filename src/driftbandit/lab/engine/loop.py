"""The one loop of the simulator, interpreted or compiled, for one run or one run per lane; and how a single reward is
learned elsewhere."""

from typing import Any, NamedTuple

from driftbandit.core.draws import Draws, round_key
from driftbandit.core.primitives import compilable, learn_late_reward, learn_reward
from driftbandit.spec.half_life import learn_by_time


class Trajectory(NamedTuple):
    """Arrays for every arm and reward of a run, and for the number of alarms after each round."""

    arms: Any
    rewards: Any
    alarms: Any
    counter: Any  # where the policy counts its alarms: the field `alarms` of its state, or a constant 0


NO_SUCH_ARM = "The policy chose an arm that does not exist: choose(state, t, rng) must return a number from 0 to K - 1."


def existing(arm: Any, n_arms: int) -> Any:
    """Return the arm after checking it: compiled code would write outside its arrays."""
    if arm < 0 or arm >= n_arms:
        raise ValueError(NO_SUCH_ARM)
    return arm


@compilable
def tally(counts: Any, arm: Any) -> None:
    """Count a pull, if counts are kept."""
    if counts is not None:
        counts[arm] += 1


@compilable
def note(trace: Any, t: int, arm: Any, reward: Any) -> None:
    """Record the round, if trajectories are kept."""
    if trace is not None:
        trace.arms[t] = arm
        trace.rewards[t] = reward
        trace.alarms[t] = trace.counter[0]


def store_lanes(out: Any, column: int, value: Any) -> None:
    """Write a number, or one number per lane, into a column of `out` (lanes × columns)."""
    out[0, column] = value


@compilable
def learn_one(
    policy: Any, state: Any, t: int, key: Any, time: int, half_life: Any, coins: Any, arm: Any, reward: Any,
    decided: int, features: Any, probability: Any,
) -> Any:  # fmt: skip
    """Learn the t-th reward outside a simulation, by the clock or by counting; return the state's time afterwards.
    `coins` is not None if the policy learns with random numbers. What a player does without is None."""
    if half_life is not None:
        if coins is not None:
            if features is None:
                reward = policy.seen(reward, Draws(round_key(key, t)))
        return learn_by_time(policy, state, time, half_life, arm, reward, decided, features)
    if features is not None:
        policy.learn_in(state, t, arm, reward, features)
    elif probability is not None:
        learn_late_reward(policy, state, t, arm, reward, Draws(round_key(key, t)), probability)
    else:
        learn_reward(policy, state, t, arm, reward, Draws(round_key(key, t)))
    return time


def advance(
    policy: Any,
    state: Any,
    environment: Any,
    draws: Any,
    reward_rng: Any,
    start: int,
    stop: int,
    regret_so_far: Any,
    marks: Any,
    cursor: Any,
    out: Any,
    counts: Any,
    trace: Any,
) -> None:
    """Play rounds start..stop-1 of one run, or of one run per lane.

    `cursor[0]` is the next of the checkpoints `marks` at which `regret_so_far[0]` is written to `out`, `cursor[1]` the
    number of arms."""
    regret = regret_so_far[0]
    mark = cursor[0]
    n_arms = cursor[1]
    for t in range(start, stop):
        rng = draws.at(t)
        arm = existing(policy.choose(state, t, rng), n_arms)
        reward = environment.pull(t, arm, reward_rng.at(t))
        learn_reward(policy, state, t, arm, reward, rng)
        regret = regret + (environment.best(t) - environment.mean(t, arm))
        tally(counts, arm)
        note(trace, t, arm, reward)
        if t + 1 == marks[mark]:
            store_lanes(out, mark, regret)
            mark += 1
    regret_so_far[0] = regret
    cursor[0] = mark
