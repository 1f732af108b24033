"""Exponential weights."""

import numpy as np

from .common import stands_for


def drawn(chances, rng):
    """An arm by its probability; the last one if rounding leaves none."""
    return min(int(np.searchsorted(np.cumsum(chances), rng.random())), len(chances) - 1)


@stands_for("exp3s")
class EXP3S:
    """Exponential weights that share."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.weights = p, rng, np.full(n_arms, 1.0 / n_arms)

    def choose(self, t):
        self.chances = (1.0 - self.p.explore) * self.weights + self.p.explore / len(self.weights)
        return drawn(self.chances, self.rng)

    def learn(self, t, arm, reward):
        n_arms = len(self.weights)
        gift = np.e * self.p.share / n_arms * self.weights.sum()
        self.weights[arm] *= np.exp(self.p.explore * reward / (n_arms * self.chances[arm]))
        self.weights += gift
        self.weights /= self.weights.sum()


@stands_for("rexp3")
class REXP3:
    """Exponential weights that start anew every `batch` rounds. Logarithms are kept, since nothing holds a weight
    above 0."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.gains = p, rng, np.zeros(n_arms)

    def choose(self, t):
        if t % self.p.batch == 0:
            self.gains[:] = 0.0
        weights = np.exp(self.gains - self.gains.max())
        self.chances = (1.0 - self.p.explore) * weights / weights.sum() + self.p.explore / len(weights)
        return drawn(self.chances, self.rng)

    def learn(self, t, arm, reward):
        self.gains[arm] += self.p.explore * reward / (len(self.gains) * self.chances[arm])
