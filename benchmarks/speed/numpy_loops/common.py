"""What the loops share: the table of their names, fair choices, and three ways to keep an arm's record."""

from collections import deque

import numpy as np

LOOPS = {}  # short name of a policy: the class that plays it in NumPy


def stands_for(*names):
    """Enter a class in the table under the short names of the policies it plays."""

    def enter(cls):
        LOOPS.update(dict.fromkeys(names, cls))
        return cls

    return enter


def fair_argmax(values, rng):
    """The position of the largest value, drawn fairly if there are several."""
    best = np.flatnonzero(values == values.max())
    return int(best[0] if len(best) == 1 else best[rng.integers(len(best))])


def untried(pulls, rng):
    """Any of the arms without a record."""
    return int(rng.choice(np.flatnonzero(pulls == 0.0)))


class Counted:
    """Pulls and summed rewards of each arm since the start."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.pulls, self.sums = p, rng, np.zeros(n_arms), np.zeros(n_arms)

    def learn(self, t, arm, reward):
        self.pulls[arm] += 1.0
        self.sums[arm] += reward


class Windowed(Counted):
    """The same of the last `window` rounds. With rewards of 0 and 1 what is added and taken away again leaves nothing
    behind."""

    def __init__(self, p, n_arms, rng):
        super().__init__(p, n_arms, rng)
        self.held = deque()

    def learn(self, t, arm, reward):
        super().learn(t, arm, reward)
        self.held.append((arm, reward))
        if len(self.held) > self.p.window:
            old, gone = self.held.popleft()
            self.pulls[old] -= 1.0
            self.sums[old] -= gone


class Discounted:
    """Pulls that lose a factor `gamma` a round, and the mean they weigh. The mean, not the sum: after a long silence
    sum and pulls would both underflow."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.pulls, self.mean = p, rng, np.zeros(n_arms), np.zeros(n_arms)

    def learn(self, t, arm, reward):
        self.pulls *= self.p.gamma
        self.pulls[arm] += 1.0
        self.mean[arm] += (reward - self.mean[arm]) / self.pulls[arm]
