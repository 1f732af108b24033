"""Play a policy and its naive twin on the same draws and the same rewards, and compare what they chose."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from naive import TWINS

Reward = Callable[[int, int], float]

# Numbers of arms, environments and kinds of rewards in which a policy is held to its twin: each value once at least.
SITUATIONS = [
    (1, "abrupt", "binary"),
    (2, "smooth", "real"),
    (5, "abrupt", "real"),
    (5, "smooth", "binary"),
    (30, "abrupt", "binary"),
]


def shortened(item: Any, horizon: int) -> Any:
    """An item of the paper with a shorter horizon; parameters follow the horizon."""
    if item.environment is None:
        return item
    return replace(item, environment=type(item.environment)(**{**item.environment._asdict(), "horizon": horizon}))


class TwinRound:
    """One round of a stream in the twins' dialect: lists are returned, not filled."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def uniform(self, slot: int) -> float:
        return self.stream.uniform(slot)

    def normals(self, n: int) -> list[float]:
        out = [0.0] * n
        self.stream.normals(out)
        return out

    def betas(self, a: Sequence[float], b: Sequence[float]) -> list[float]:
        out = [0.0] * len(a)
        self.stream.betas(a, b, out)
        return out


def rewards(means: np.ndarray, kind: str, seed: int) -> Reward:
    """Rewards of a mean table (rounds × arms): "binary" 0/1 or "real" in [0, 1], the same for every caller."""
    reward_rng = np.random.default_rng([seed, 77]).random(means.shape)
    table = (reward_rng < means).astype(float) if kind == "binary" else np.clip(means * 0.6 + 0.4 * reward_rng, 0, 1)
    return lambda t, arm: float(table[t, arm])


def abrupt_means(n_arms: int, rounds: int, seed: int, phases: int = 4) -> np.ndarray:
    rows = np.random.default_rng([seed, 78]).random((phases, n_arms))
    return rows[np.arange(rounds) * phases // rounds]


def smooth_means(n_arms: int, rounds: int, seed: int) -> np.ndarray:
    t, shift = np.arange(rounds)[:, None], np.arange(n_arms) / n_arms
    return 0.5 + 0.45 * np.sin(2 * np.pi * (t / rounds * 2 + shift + seed / 7))


def play(policy: Any, n_arms: int, rounds: int, reward: Reward, seed: int) -> list[int]:
    """The arms a policy chooses, interpreted, from the policy stream of (seed, run 0)."""
    state, stream, arms = to_lists(policy.init(n_arms)), Stream(stream_key(seed, 0, POLICY)), []
    for t in range(rounds):
        arm = policy.choose(state, t, stream.at(t))
        learn_reward(policy, state, t, arm, reward(t, arm), stream.at(t))
        arms.append(arm)
    return arms


def play_twin(twin: Any, rounds: int, reward: Reward, seed: int) -> list[int]:
    """The arms a naive twin chooses from the same stream."""
    stream, arms = Stream(stream_key(seed, 0, POLICY)), []
    for t in range(rounds):
        arm = twin.choose(t, TwinRound(stream.at(t)))
        twin.learn(t, arm, reward(t, arm))
        arms.append(arm)
    return arms


def assert_same_as_twin(
    policy: Any, n_arms: int, rounds: int, seed: int, environment: str = "abrupt", kind: str = "binary"
) -> None:
    """The fast policy and its twin choose the same arm in every round."""
    means = (abrupt_means if environment == "abrupt" else smooth_means)(n_arms, rounds, seed)
    reward = rewards(means, kind, seed)
    twin = TWINS[type(policy).__name__](n_arms, **policy._asdict())
    fast, slow = play(policy, n_arms, rounds, reward, seed), play_twin(twin, rounds, reward, seed)
    differ = [t for t in range(rounds) if fast[t] != slow[t]]
    where = f"{policy!r}, K={n_arms}, seed {seed}, {environment}, {kind}"
    assert not differ, f"{where}: round {differ[0]} of {rounds}: {fast[differ[0]]} against {slow[differ[0]]}"


def assert_odd_parameters_follow_the_twin(policy: Any, rounds: int, kind: str) -> None:
    """Parameters at the edge of their domain: some hundred rounds, and fewer rounds than arms."""
    assert_same_as_twin(policy, 5, rounds, seed=3, kind=kind)
    assert_same_as_twin(policy, 7, 4, seed=4, environment="smooth", kind=kind)


def taught(policy: Any, steps: Any, n_arms: int = 4) -> Any:
    """The state of a policy after these (arm, reward) pairs."""
    state, stream = to_lists(policy.init(n_arms)), Stream(1)
    for t, (arm, reward) in enumerate(steps):
        learn_reward(policy, state, t, arm, reward, stream.at(t))
    return state


def assert_compiled_as_interpreted(policy: Any) -> None:
    """The compiled loop chooses the arms of the interpreter."""
    environment = Abrupt(n_arms=4, horizon=1500, phases=3, instance="1")
    compiled, plain = (
        simulate(policy, environment, runs=1, trajectories=True, compiled=flag) for flag in (True, False)
    )
    assert (compiled.arms == plain.arms).all()


def new_debts(policy: Any, state: Any, rng: Any) -> set[int]:
    """The bad arms that ADSWITCH begins to sample in a round with these draws."""
    rate = policy.sampling_rate(state)
    return {i for i, good in enumerate(state.good) if not good and policy.new_debt(state, i, rate, rng) > 0}
