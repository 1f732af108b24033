"""Baselines: uniform choice, one fixed arm, the best arm of every round, and epsilon-greedy."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import argmax_fair
from driftbandit.core.state import new_state
from driftbandit.core.validity import COUNTS, REALS, SCRATCH, fits
from driftbandit.policies.forgetting import DISCOUNT, discounting, half_life_discount


def learn_nothing(self: Any, state: Any, t: int, arm: Any, reward: Any) -> None:
    """`learn` of a policy that is what it is."""


class UniformState(NamedTuple):
    """The same probability for every arm."""

    probabilities: Any  # scratch: written by every choice, since arms may have been added


@described(
    short="uniform",
    learn=learn_nothing,
    family="baseline",
    scratch=(),
    forgets="learns nothing",
    knows="nothing",
    rewards="any",
    cost="O(K)",
    formula=r"""
        P(a = i) = 1 / K
    """,
    reference="-",
)
@checked
class Uniform(NamedTuple):
    """Every arm with the same probability, whatever happens: what a policy must beat to be worth using.

    Its regret is linear: the average gap per round. Useful for collecting data by which all arms can be judged
    afterwards."""

    def init(self, n_arms: int) -> UniformState:
        return UniformState(np.full(n_arms, 1.0 / n_arms))

    def choose(self, state: UniformState, t: int, rng: Any) -> Any:
        n_arms = len(state.probabilities)
        for arm in range(n_arms):
            state.probabilities[arm] = 1.0 / n_arms
        return int(rng.uniform(0) * n_arms)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, probabilities=SCRATCH)


class ScoresState(NamedTuple):
    """1 for the arm that is played, 0 for others."""

    scores: Any


@described(
    short="fixed",
    learn=learn_nothing,
    family="baseline",
    scratch=(),
    forgets="learns nothing",
    knows="the arm",
    rewards="any",
    cost="O(1)",
    formula=r"""
        a = \mathtt{arm}
    """,
    reference="-",
)
@checked
class FixedArm(NamedTuple):
    """Always the same arm: what the business does today, or the best arm in hindsight if it is known.

    Where rewards change its regret is linear, yet many policies that forget too fast do worse."""

    arm: Annotated[int, within(">= 0")] = 0  # the arm to play, counted from 0

    def init(self, n_arms: int) -> ScoresState:
        if self.arm >= n_arms:
            raise ValueError(f"FixedArm needs an arm from 0 to {n_arms - 1} here; got {self.arm}.")
        scores = np.zeros(n_arms)
        scores[self.arm] = 1.0
        return ScoresState(scores)

    def choose(self, state: ScoresState, t: int, rng: Any) -> Any:
        return self.arm

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, scores=SCRATCH)


@described(
    short="oracle",
    learn=learn_nothing,
    family="baseline",
    simulated_only=True,
    forgets="needs no memory",
    knows="the mean of every arm in every round",
    rewards="any",
    cost="O(K)",
    formula=r"""
        a = \operatorname{argmax}_i \mu_t(i)
    """,
    reference="-",
)
@checked
class Oracle(NamedTuple):
    """The best arm in every round, from the true means: regret 0, in simulations only. The simulator calls
    `with_environment`."""

    def with_environment(self, environment: Any) -> "BoundOracle":
        return BoundOracle(environment)

    def init(self, n_arms: int) -> ScoresState:
        raise ValueError(
            "Oracle only plays in simulations, where the true means are known; a live bandit needs another policy."
        )

    def choose(self, state: ScoresState, t: int, rng: Any) -> Any:
        return 0


class BoundOracle(NamedTuple):
    """An `Oracle` with the true means."""

    environment: Any

    def init(self, n_arms: int) -> ScoresState:
        return ScoresState(np.zeros(n_arms))

    def choose(self, state: ScoresState, t: int, rng: Any) -> Any:
        return self.environment.best_arm(t)

    def learn(self, state: ScoresState, t: int, arm: Any, reward: Any) -> None:
        pass


class EpsilonGreedyState(NamedTuple):
    """The evidence about each arm."""

    pulls: Any  # discounted number of pulls
    mean: Any  # discounted average reward
    scores: Any  # scratch: the means, +inf for the arm explored or never played


@discounting(
    short="eps-greedy",
    forgets="discounts every past reward by gamma per round; an idle arm keeps its mean",
    knows="how often the environment changes, to set gamma and explore",
    rewards="any",
    formula=r"""
        a \ \text{uniform with probability } \mathtt{explore}, \text{ else } \operatorname{argmax}_i \hat\mu_i
        N_j \leftarrow \gamma N_j \ \text{ for all } j, \quad N_a \leftarrow N_a + 1
        \hat\mu_a \leftarrow \hat\mu_a + (x - \hat\mu_a) / N_a
    """,
    reference="Sutton, Barto 2018",
)
class EpsilonGreedy(NamedTuple):
    """With probability `explore` any arm, else the one with the largest discounted mean.

    Evidence loses a factor `gamma` each round; an idle arm keeps its mean. Exploration goes on at the same rate, so
    regret is linear, with a small factor where gaps are large and changes rare: simple, predictable, for any reward
    scale.

    There is no theory for both parameters together; `tuned` uses DS-TS's gamma and leaves `explore` at a twentieth.

    Reference: Sutton and Barto 2018, section 2.5, whose constant step size is close to a discounted mean."""

    explore: Annotated[float, within("[0, 1]")] = 0.05  # probability of playing any arm
    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round

    def init(self, n_arms: int) -> EpsilonGreedyState:
        return new_state(EpsilonGreedyState, n_arms)

    def choose(self, state: EpsilonGreedyState, t: int, rng: Any) -> Any:
        scores = state.scores
        for arm in range(len(scores)):
            scores[arm] = state.mean[arm] if state.pulls[arm] > 0.0 else math.inf
        if rng.uniform(0) < self.explore:
            explored = int(rng.uniform(1) * len(scores))
            scores[explored] = math.inf
            return explored
        return argmax_fair(scores, rng)

    def fade(self, state: EpsilonGreedyState, factor: float) -> None:
        pulls = state.pulls
        for i in range(len(pulls)):
            pulls[i] *= factor

    def take(self, state: EpsilonGreedyState, arm: Any, reward: Any, weight: float) -> None:
        """Add one reward of this weight; the mean is kept instead of the sum, as in DS-TS."""
        pulls, mean = state.pulls, state.mean
        pulls[arm] += weight
        mean[arm] += weight * (reward - mean[arm]) / pulls[arm]

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, pulls=COUNTS, mean=REALS)

    @classmethod
    def half_life(cls, rounds: float, explore: float = 0.05) -> "EpsilonGreedy":
        return cls(explore, half_life_discount(rounds))
