"""A policy and an environment of your own, named in own_policy.toml as own_policy.py:Cautious and
own_policy.py:Seasons.

Both are NamedTuples of parameters with plain methods. The same lines run interpreted and compiled, so they keep to
numbers, loops, `math`, one-dimensional arrays and functions marked `compilable`; nothing may be allocated outside
`init` and `realise`."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, within
from driftbandit.core.primitives import argmax_fair


class CautiousState(NamedTuple):
    """What is known about each arm."""

    weight: Any  # discounted number of pulls
    mean: Any  # discounted average reward
    scores: Any  # scratch: the indices of the last choice


@checked  # brings parameters to their types and refuses values outside their domains
class Cautious(NamedTuple):
    """Discounted means with a bonus for arms not seen recently."""

    gamma: Annotated[float, within("(0, 1)")] = 0.98
    bonus: Annotated[float, within(">= 0")] = 0.5

    def init(self, n_arms: int) -> CautiousState:
        """Nothing known."""
        return CautiousState(np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state: CautiousState, t: int, rng: Any) -> Any:
        """The largest mean with bonus; ties are broken fairly by the round's own random number."""
        for arm in range(len(state.scores)):
            state.scores[arm] = state.mean[arm] + self.bonus / math.sqrt(state.weight[arm] + 0.01)
        return argmax_fair(state.scores, rng)

    def learn(self, state: CautiousState, t: int, arm: Any, reward: Any) -> None:
        """Forget a little of every arm, then add the reward."""
        for i in range(len(state.weight)):
            state.weight[i] *= self.gamma
        state.weight[arm] += 1.0
        state.mean[arm] += (reward - state.mean[arm]) / state.weight[arm]


@checked
class Seasons(NamedTuple):
    """Each arm has its season: its mean is high for a part of the year, one arm after the other."""

    n_arms: Annotated[int, within(">= 2")] = 4
    horizon: Annotated[int, within(">= 1")] = 10_000
    year: Annotated[float, within("> 0")] = 4000.0  # rounds

    def mean(self, t: int, arm: Any) -> Any:
        """The mean of an arm in round t, between 0.1 and 0.9."""
        return 0.5 + 0.4 * math.cos(2.0 * math.pi * (t / self.year - arm / self.n_arms))

    def best(self, t: int) -> float:
        """The largest mean in round t."""
        largest = 0.0
        for arm in range(self.n_arms):
            largest = max(largest, self.mean(t, arm))
        return largest

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        """1 with the arm's probability, else 0, from one random number whichever arm it is."""
        return 1.0 if rng.uniform(0) < self.mean(t, arm) else 0.0

    def realise(self, key: int) -> "Seasons":
        """Nothing is random about the means: the same environment for every run."""
        return self
