"""Upper confidence bounds, by square roots and by relative entropy: of everything, discounted, or of a window.

The rounds in a logarithm are those played so far."""

import math

import numpy as np

from .common import Counted, Discounted, Windowed, fair_argmax, stands_for, untried

_END = 1e-15  # means are kept this far from 0 and 1, where relative entropy is infinite


def kl(p, q):
    """Relative entropy of 0/1 laws with means p and q, entry by entry."""
    p, q = np.clip(p, _END, 1.0 - _END), np.clip(q, _END, 1.0 - _END)
    return p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q))


def kl_ucb(p, bound):
    """The largest q with kl(p, q) <= bound, entry by entry, to 1e-9 by halving an interval."""
    p = np.clip(p, _END, 1.0 - _END)
    rest = 1.0 - p
    entropy = p * np.log(p) + rest * np.log(rest)
    low, high = p, np.minimum(p + np.sqrt(0.5 * bound), 1.0 - _END)
    for _ in range(30):
        middle = 0.5 * (low + high)
        inside = entropy - p * np.log(middle) - rest * np.log(1.0 - middle) <= bound
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high  # the upper end: where every q is within the bound it is the same for all arms, a tie


@stands_for("sw-ucb")
class SWUCB(Windowed):
    """Mean plus reward_max sqrt(xi ln min(t, window) / pulls), on the last `window` rounds."""

    def choose(self, t):
        if not self.pulls.all():
            return untried(self.pulls, self.rng)
        width = np.sqrt(self.p.xi * math.log(min(t, self.p.window)) / self.pulls)
        return fair_argmax(self.sums / self.pulls + self.p.reward_max * width, self.rng)


@stands_for("d-ucb")
class DUCB:
    """Discounted UCB."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.pulls, self.sums = p, rng, np.zeros(n_arms), np.zeros(n_arms)

    def choose(self, t):
        if t < len(self.pulls):
            return t
        width = self.p.xi * np.log(self.pulls.sum()) / self.pulls
        return int(np.argmax(self.sums / self.pulls + 2.0 * self.p.reward_max * np.sqrt(width)))

    def learn(self, t, arm, reward):
        self.pulls *= self.p.gamma
        self.sums *= self.p.gamma
        self.pulls[arm] += 1.0
        self.sums[arm] += reward


@stands_for("kl-ucb")
class KLUCB(Counted):
    """The largest mean that the record does not refute."""

    def choose(self, t):
        if not self.pulls.all():
            return untried(self.pulls, self.rng)
        return fair_argmax(kl_ucb(self.sums / self.pulls, math.log(t) / self.pulls), self.rng)


@stands_for("sw-klucb")
class SWKLUCB(Windowed):
    """The same on the last `window` rounds."""

    def choose(self, t):
        if not self.pulls.all():
            return untried(self.pulls, self.rng)
        return fair_argmax(kl_ucb(self.sums / self.pulls, math.log(min(t, self.p.window)) / self.pulls), self.rng)


@stands_for("d-klucb")
class DKLUCB(Discounted):
    """The same from discounted pulls."""

    def choose(self, t):
        if not self.pulls.all():
            return untried(self.pulls, self.rng)
        return fair_argmax(kl_ucb(self.mean, math.log(max(self.pulls.sum(), 1.0)) / self.pulls), self.rng)
