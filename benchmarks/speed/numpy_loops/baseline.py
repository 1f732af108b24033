"""Yardsticks among the policies, and those that start another one anew."""

import numpy as np

from .common import LOOPS, Discounted, fair_argmax, stands_for


@stands_for("uniform")
class Uniform:
    """Any arm."""

    def __init__(self, p, n_arms, rng):
        self.rng, self.n_arms = rng, n_arms

    def choose(self, t):
        return int(self.rng.integers(self.n_arms))

    def learn(self, t, arm, reward):
        pass


@stands_for("fixed")
class Fixed:
    """Always the same arm."""

    def __init__(self, p, n_arms, rng):
        self.arm = p.arm

    def choose(self, t):
        return self.arm

    def learn(self, t, arm, reward):
        pass


@stands_for("oracle")
class Oracle:
    """The best arm, by looking into the environment."""

    def __init__(self, p, n_arms, rng):
        pass

    def look(self, table, starts):
        self.best, self.starts = table.argmax(axis=1), np.array(starts)

    def choose(self, t):
        return int(self.best[np.searchsorted(self.starts, t, side="right") - 1])

    def learn(self, t, arm, reward):
        pass


@stands_for("eps-greedy")
class EpsilonGreedy(Discounted):
    """The largest discounted mean, or now and then any arm."""

    def choose(self, t):
        if self.rng.random() < self.p.explore:
            return int(self.rng.integers(len(self.mean)))
        return fair_argmax(np.where(self.pulls > 0.0, self.mean, np.inf), self.rng)


@stands_for("periodic-restart")
class PeriodicRestart:
    """Another policy, begun anew every `period` rounds; its clock begins anew too."""

    def __init__(self, p, n_arms, rng):
        self.p, self.n_arms, self.rng = p, n_arms, rng
        self.begin(0)

    def begin(self, t):
        self.start, self.base = t, LOOPS[self.p.base.short](self.p.base, self.n_arms, self.rng)

    def is_over(self, t):
        return t % self.p.period == 0

    def choose(self, t):
        if t > self.start and self.is_over(t):
            self.begin(t)
        return self.base.choose(t - self.start)

    def learn(self, t, arm, reward):
        self.base.learn(t - self.start, arm, reward)
