"""Yardsticks, greedy play, and the wrappers that start a policy afresh."""

import math
from collections.abc import Callable

from .draws import Factory, Round, Twin, argmax_fair


class NaiveUniform:
    """Every arm with equal probability: arm int(uniform(0) * n_arms).

    Draws: uniform(0)."""

    def __init__(self, n_arms: int) -> None:
        self.n_arms = n_arms

    def choose(self, t: int, rng: Round) -> int:
        return int(rng.uniform(0) * self.n_arms)

    def learn(self, t: int, arm: int, reward: float) -> None:
        pass


class NaiveOracle:
    """The truly best arm: best_arm(t), t = 0, 1, ...

    Draws: none."""

    tried = {"best_arm": lambda t: 2}

    def __init__(self, n_arms: int, best_arm: Callable[[int], int]) -> None:
        self.best_arm = best_arm

    def choose(self, t: int, rng: Round) -> int:
        return self.best_arm(t)

    def learn(self, t: int, arm: int, reward: float) -> None:
        pass


class NaiveFixedArm:
    """Always the same arm.

    Draws: none."""

    tried = {"arm": 1}

    def __init__(self, n_arms: int, arm: int) -> None:
        self.arm = arm

    def choose(self, t: int, rng: Round) -> int:
        return self.arm

    def learn(self, t: int, arm: int, reward: float) -> None:
        pass


class NaiveEpsilonGreedy:
    """With probability `explore` any arm, else the largest discounted mean (mean form of DS-TS; count 0: +inf).

    Explores if uniform(0) < explore, then plays arm int(uniform(1) * n_arms) among all arms. Otherwise `argmax_fair`.

    Draws: uniform(0) the coin, uniform(1) the arm explored, TIES."""

    tried = {"explore": 0.1, "gamma": 0.97}

    def __init__(self, n_arms: int, explore: float, gamma: float) -> None:
        self.explore, self.gamma = explore, gamma
        self.pulls = [0.0] * n_arms
        self.means = [0.0] * n_arms

    def choose(self, t: int, rng: Round) -> int:
        n_arms = len(self.pulls)
        if rng.uniform(0) < self.explore:
            return int(rng.uniform(1) * n_arms)
        return argmax_fair([self.means[i] if self.pulls[i] > 0.0 else math.inf for i in range(n_arms)], rng)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.pulls = [n * self.gamma for n in self.pulls]
        self.pulls[arm] += 1.0
        self.means[arm] += (reward - self.means[arm]) / self.pulls[arm]


class _Restarted:
    """Gives the wrapped twin a separate clock: it sees t - (round of the last restart), but the round's own draws.

    Making it new after learning in round t when t + 1 is a restart comes to the same thing."""

    def __init__(self, n_arms: int, base: Factory) -> None:
        self.n_arms, self.base = n_arms, base
        self.start = 0
        self.twin: Twin = base(n_arms)

    def last_restart(self, t: int) -> int:
        raise NotImplementedError

    def _local(self, t: int) -> int:
        start = self.last_restart(t)
        if start != self.start:
            self.start, self.twin = start, self.base(self.n_arms)
        return t - start

    def choose(self, t: int, rng: Round) -> int:
        local = self._local(t)
        return self.twin.choose(local, rng)

    def learn(self, t: int, arm: int, reward: float) -> None:
        local = self._local(t)
        self.twin.learn(local, arm, reward)


class NaivePeriodicRestart(_Restarted):
    """The wrapped policy, made new before choosing in rounds t = period, 2 period, ... (0-based).

    `base` is a factory: base(n_arms) -> twin. The twin's t restarts from 0.

    Draws: those of the wrapped twin, from the round's own rng."""

    def __init__(self, n_arms: int, base: Factory, period: int) -> None:
        super().__init__(n_arms, base)
        self.period = period

    def last_restart(self, t: int) -> int:
        return t - t % self.period
