"""Thompson sampling that infers when the environment, or each arm, last changed.

A run is a guess at when that was. Runs are rows of arrays, in no order: a row of weight 0 is free, and `used` rows
have been taken so far. There are more rows than runs to keep, for new runs before the least likely ones go."""

import numpy as np

from .common import stands_for

_NEGLIGIBLE = 1e-12


def thinned(weights, most):
    """The weights normalised, negligible ones and the smallest beyond `most` set to 0."""
    weights = weights / weights.sum()
    weights[weights < _NEGLIGIBLE] = 0.0
    while np.count_nonzero(weights) > most:
        weights[np.argmin(np.where(weights > 0.0, weights, np.inf))] = 0.0
    return weights / weights.sum()


@stands_for("global-cts")
class GlobalCTS:
    """One belief about the last change of all arms together."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, rows = p, rng, p.max_runs + 1
        self.weights, self.used = np.zeros(rows), 1
        self.a, self.b = np.full((rows, n_arms), p.prior_wins), np.full((rows, n_arms), p.prior_losses)
        self.weights[0] = 1.0

    def choose(self, t):
        sums = np.cumsum(self.weights[: self.used])
        run = np.searchsorted(sums, self.rng.random() * sums[-1], side="right")
        return int(np.argmax(self.rng.beta(self.a[run], self.b[run])))

    def learn(self, t, arm, reward):
        won, used = self.rng.random() < reward, self.used
        a, b = self.a[:used, arm], self.b[:used, arm]
        joint = self.weights[:used] * (a if won else b) / (a + b)
        self.weights[:used] = (1.0 - self.p.hazard) * joint
        (self.a if won else self.b)[:used, arm] += 1.0
        new = int(np.argmin(self.weights))
        self.used = max(used, new + 1)
        self.weights[new] = self.p.hazard * joint.sum()
        self.a[new], self.b[new] = self.p.prior_wins, self.p.prior_losses
        self.weights[: self.used] = thinned(self.weights[: self.used], self.p.max_runs)


@stands_for("pa-cts")
class PerArmCTS:
    """A belief an arm. Row 0 is "changed since it was last played": all runs without a reward are the same run."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, shape = p, rng, (n_arms, p.max_runs + 2)
        self.weights, self.used = np.zeros(shape), 1
        self.a, self.b = np.full(shape, p.prior_wins), np.full(shape, p.prior_losses)
        self.weights[:, 0] = 1.0

    def choose(self, t):
        sums = np.cumsum(self.weights[:, : self.used], axis=1)
        runs = np.argmax(sums > (self.rng.random(len(sums)) * sums[:, -1])[:, None], axis=1)
        arms = np.arange(len(sums))
        return int(np.argmax(self.rng.beta(self.a[arms, runs], self.b[arms, runs])))

    def learn(self, t, arm, reward):
        p, won = self.p, self.rng.random() < reward
        played, a, b = self.weights[arm].copy(), self.a[arm], self.b[arm]
        self.weights[:, : self.used] *= 1.0 - p.hazard
        self.weights[:, 0] += p.hazard
        joint = played * (a if won else b) / (a + b)
        (a if won else b)[:] += 1.0
        # The run without a reward has one now: it moves to a free row, and a new one takes its place.
        free = 1 + int(np.argmin(joint[1:]))
        self.used = max(self.used, free + 1)
        joint[free], a[free], b[free] = joint[0], a[0], b[0]
        a[0], b[0] = p.prior_wins, p.prior_losses
        joint[0] = 0.0
        whole = joint.sum()
        joint *= 1.0 - p.hazard
        joint[0] = p.hazard * whole
        self.weights[arm] = thinned(joint, p.max_runs)
