"""Ten policies written the way authors of papers write their first one: plain classes, dictionaries, lists, arrays,
SciPy, and random numbers under NumPy's names."""

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv


class GreedyWithDictionaries:
    """Epsilon-greedy; the memory is a dictionary of dictionaries."""

    def __init__(self, epsilon=0.1):
        self.epsilon = epsilon

    def init(self, n_arms):
        return {arm: {"n": 0, "mean": 0.0} for arm in range(n_arms)}

    def choose(self, state, t, rng):
        if rng.random() < self.epsilon:
            return rng.integers(len(state))
        return max(state, key=lambda arm: state[arm]["mean"])

    def learn(self, state, t, arm, reward):
        state[arm]["n"] += 1
        state[arm]["mean"] += (reward - state[arm]["mean"]) / state[arm]["n"]


class ThompsonInItself:
    """Everything it learned is kept in `self`; `init` returns nothing."""

    def init(self, n_arms):
        self.wins = np.zeros(n_arms)
        self.losses = np.zeros(n_arms)

    def choose(self, state, t, rng):
        return np.argmax(rng.beta(1 + self.wins, 1 + self.losses))

    def learn(self, state, t, arm, reward):
        self.wins[arm] += reward
        self.losses[arm] += 1 - reward


class Counts(NamedTuple):
    n: Any
    sums: Any


class UCBInArrays(NamedTuple):
    """NumPy expressions over all arms at once."""

    width: float = 0.5

    def init(self, n_arms):
        return Counts(np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state, t, rng):
        n = np.maximum(state.n, 1e-9)
        return int(np.argmax(state.sums / n + np.sqrt(self.width * np.log(t + 1) / n)))

    def learn(self, state, t, arm, reward):
        state.n[arm] += 1
        state.sums[arm] += reward


class Doubled(NamedTuple):
    """One expression that makes an array."""

    def init(self, n_arms):
        return Counts(np.ones(n_arms), np.ones(n_arms))

    def choose(self, state, t, rng):
        x = state.n * 2
        best = 0
        for arm in range(len(x)):
            if state.sums[arm] / x[arm] > state.sums[best] / x[best]:
                best = arm
        return best if rng.uniform(1) > 0.1 else int(rng.uniform(2) * len(x))

    def learn(self, state, t, arm, reward):
        state.n[arm] += 1.0
        state.sums[arm] += reward


class WindowOfLists:
    """Sliding-window UCB with a deque."""

    def __init__(self, window=200):
        self.window = window

    def init(self, n_arms):
        return {"past": deque(maxlen=self.window), "n_arms": n_arms}

    def choose(self, state, t, rng):
        seen = [[reward for arm, reward in state["past"] if arm == one] for one in range(state["n_arms"])]
        for arm, rewards in enumerate(seen):
            if not rewards:
                return arm
        bonus = math.log(min(t, self.window))
        return int(np.argmax([sum(rewards) / len(rewards) + math.sqrt(0.5 * bonus / len(rewards)) for rewards in seen]))

    def learn(self, state, t, arm, reward):
        state["past"].append((arm, reward))


@dataclass
class Exponential:
    """EXP3, a dataclass, with `rng.choice` by probabilities."""

    gamma: float = 0.1

    def init(self, n_arms):
        return {"log": np.zeros(n_arms)}

    def _probabilities(self, state):
        weights = np.exp(state["log"] - state["log"].max())
        return (1 - self.gamma) * weights / weights.sum() + self.gamma / len(weights)

    def choose(self, state, t, rng):
        return rng.choice(len(state["log"]), p=self._probabilities(state))

    def learn(self, state, t, arm, reward):
        state["log"][arm] += self.gamma / len(state["log"]) * reward / self._probabilities(state)[arm]


class GaussianThompson:
    """`rng.normal(mean, sd)`, arm by arm."""

    def init(self, n_arms):
        return [[0, 0.0] for _ in range(n_arms)]

    def choose(self, state, t, rng):
        samples = [rng.normal(total / max(n, 1), 0.5 / math.sqrt(n + 1)) for n, total in state]
        return samples.index(max(samples))

    def learn(self, state, t, arm, reward):
        state[arm][0] += 1
        state[arm][1] += reward


def divergence(p, q):
    p, q = min(max(p, 1e-9), 1 - 1e-9), min(max(q, 1e-9), 1 - 1e-9)
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


class KLWithBrent:
    """KL-UCB: the index is a root that SciPy finds."""

    def init(self, n_arms):
        self.n, self.sums = [0] * n_arms, [0.0] * n_arms

    def choose(self, state, t, rng):
        index = []
        for n, total in zip(self.n, self.sums, strict=True):
            if n == 0:
                return len(index)
            p, bound = total / n, math.log(t + 1) / n
            over = divergence(p, 1.0) > bound
            index.append(brentq(lambda q, p=p, b=bound: divergence(p, q) - b, p, 1.0) if over and p < 1 else 1.0)
        return index.index(max(index))

    def learn(self, state, t, arm, reward):
        self.n[arm] += 1
        self.sums[arm] += reward


class BayesUCB:
    """Quantiles of Beta posteriors from SciPy."""

    def init(self, n_arms):
        return np.ones((n_arms, 2))

    def choose(self, state, t, rng):
        return int(betaincinv(state[:, 0], state[:, 1], 1 - 1 / (t + 2)).argmax())

    def learn(self, state, t, arm, reward):
        state[arm] += (reward, 1 - reward)


class Linear:
    """LinUCB on one-hot features, with matrices."""

    def __init__(self, alpha=0.5):
        self.alpha = alpha

    def init(self, n_arms):
        return {"A": np.eye(n_arms), "b": np.zeros(n_arms)}

    def choose(self, state, t, rng):
        inverse = np.linalg.inv(state["A"])
        scores = inverse @ state["b"] + self.alpha * np.sqrt(np.diag(inverse))
        return np.flatnonzero(scores == scores.max())[0]

    def learn(self, state, t, arm, reward):
        state["A"][arm, arm] += 1
        state["b"][arm] += reward


ALL = [
    BayesUCB,
    Doubled,
    Exponential,
    GaussianThompson,
    GreedyWithDictionaries,
    KLWithBrent,
    Linear,
    ThompsonInItself,
    UCBInArrays,
    WindowOfLists,
]
