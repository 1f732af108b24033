"""Thompson sampling, with Beta and with normal samples."""

from collections import deque

import numpy as np

from .common import Discounted, stands_for


@stands_for("ds-ts")
class DSTS(Discounted):
    """Discounted Thompson sampling with normal samples."""

    def choose(self, t):
        with np.errstate(divide="ignore"):
            spread = np.minimum(self.p.tau_max, 1.0 / np.sqrt(self.pulls))
        return int(np.argmax(self.mean + spread * self.rng.standard_normal(len(self.mean))))


@stands_for("ts")
class TS:
    """Thompson sampling with Beta samples."""

    def __init__(self, p, n_arms, rng):
        self.rng, self.a, self.b = rng, np.full(n_arms, p.prior_wins), np.full(n_arms, p.prior_losses)

    def choose(self, t):
        return int(np.argmax(self.rng.beta(self.a, self.b)))

    def learn(self, t, arm, reward):
        self.a[arm] += reward
        self.b[arm] += 1.0 - reward


@stands_for("sw-ts")
class SWTS(TS):
    """The same on the last `window` rounds."""

    def __init__(self, p, n_arms, rng):
        super().__init__(p, n_arms, rng)
        self.window, self.held = p.window, deque()

    def learn(self, t, arm, reward):
        super().learn(t, arm, reward)
        self.held.append((arm, reward))
        if len(self.held) > self.window:
            old, gone = self.held.popleft()
            self.a[old] -= gone
            self.b[old] -= 1.0 - gone


@stands_for("dts")
class DTS:
    """The same with wins and losses that fade; the prior does not."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.wins, self.losses = p, rng, np.zeros(n_arms), np.zeros(n_arms)

    def choose(self, t):
        return int(np.argmax(self.rng.beta(self.p.prior_wins + self.wins, self.p.prior_losses + self.losses)))

    def learn(self, t, arm, reward):
        self.wins *= self.p.gamma
        self.losses *= self.p.gamma
        self.wins[arm] += reward
        self.losses[arm] += 1.0 - reward
