"""Thompson sampling, with Beta and with normal samples: of everything, discounted, or of a window."""

from collections import deque

import numpy as np

from .common import Counted, Discounted, Windowed, stands_for, untried


@stands_for("ds-ts", "ds-ts-many")
class DSTS(Discounted):
    """Discounted Thompson sampling with normal samples; the same law of choices stands under two names."""

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


@stands_for("g-ts")
class GTS(Counted):
    """Normal samples from the posterior of a normal mean with prior N(0, 1) and unit noise."""

    def choose(self, t):
        noise = self.rng.standard_normal(len(self.sums))
        return int(np.argmax(self.sums / (self.pulls + 1.0) + noise / np.sqrt(self.pulls + 1.0)))


def normal_sample(p, pulls, sums, rng):
    """A draw an arm from the posterior of a normal mean with prior N(prior_mean, prior_sd²), noise N(0, noise_sd²)."""
    prior, noise = p.prior_sd**-2, p.noise_sd**-2
    variance = 1.0 / (prior + pulls * noise)
    return variance * (p.prior_mean * prior + sums * noise) + np.sqrt(variance) * rng.standard_normal(len(pulls))


@stands_for("sw-gts")
class SWGTS(Windowed):
    """The posterior of what the window holds."""

    def choose(self, t):
        return int(np.argmax(normal_sample(self.p, self.pulls, self.sums, self.rng)))


@stands_for("d-gts")
class DGTS(Discounted):
    """The posterior of discounted evidence."""

    def choose(self, t):
        return int(np.argmax(normal_sample(self.p, self.pulls, self.pulls * self.mean, self.rng)))


@stands_for("gamma-swgts")
class PrecisionTS(Windowed):
    """Normal samples around the window's means, without a prior; an arm that left the window is played."""

    def choose(self, t):
        if not self.pulls.all():
            return untried(self.pulls, self.rng)
        noise = self.rng.standard_normal(len(self.pulls))
        return int(np.argmax(self.sums / self.pulls + noise / np.sqrt(self.p.precision * self.pulls)))
