"""Policies that climb along a line of arms."""

import math
from collections import deque

import numpy as np

from .common import Windowed, fair_argmax, stands_for
from .ucb import kl_ucb


def best_neighbour(leader, pulls, sums, budget, rng):
    """The largest kl-UCB index among the leader and its neighbours; one without a record comes first."""
    near = slice(max(leader - 1, 0), leader + 2)
    counts = np.maximum(pulls[near], 1.0)
    index = np.where(pulls[near] > 0.0, kl_ucb(sums[near] / counts, budget / counts), np.inf)
    return near.start + fair_argmax(index, rng)


@stands_for("sw-osub")
class SWOSUB(Windowed):
    """Every third round that an arm leads it is played; otherwise the best index around it, from the last `window`
    rounds. Turns are counted from the start."""

    def __init__(self, p, n_arms, rng):
        super().__init__(p, n_arms, rng)
        self.led, self.lately, self.turns = np.zeros(n_arms, int), np.zeros(n_arms, int), min(2, n_arms - 1) + 1
        self.leaders, self.leader = deque(), None

    def choose(self, t):
        if t < len(self.pulls):
            return t
        mean = np.where(self.pulls > 0.0, self.sums / np.maximum(self.pulls, 1.0), -np.inf)
        self.leader = leader = fair_argmax(mean, self.rng)
        self.led[leader] += 1
        self.lately[leader] += 1
        if (self.led[leader] - 1) % self.turns == 0:
            return leader
        return best_neighbour(leader, self.pulls, self.sums, math.log(self.lately[leader]), self.rng)

    def learn(self, t, arm, reward):
        super().learn(t, arm, reward)
        self.leaders.append(self.leader)
        if len(self.leaders) > self.p.window:
            old = self.leaders.popleft()
            if old is not None:  # no arm leads while arms are played for the first time
                self.lately[old] -= 1
