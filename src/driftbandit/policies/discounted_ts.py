"""DS-TS: the paper's policy, discounted Thompson sampling with a Gaussian posterior."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.beliefs import NormalBelief
from driftbandit.core.parameters import within
from driftbandit.core.primitives import argmax, where
from driftbandit.core.state import new_state
from driftbandit.core.validity import COUNTS, REALS, fits
from driftbandit.policies.forgetting import (
    DISCOUNT,
    code_discount,
    discounting,
    half_life_discount,
    text_smooth_discount,
    tune_discount,
    tune_smooth_discount,
)


class DiscountedTSState(NamedTuple):
    """The evidence of DS-TS about each arm."""

    pulls: Any  # discounted number of pulls, N in Algorithm 1
    mean: Any  # discounted average reward
    spread: Any  # (weight * N)**(-1/2), infinite before the first pull
    scores: Any  # scratch: the samples of the last choice


@discounting(
    short="ds-ts",
    forgets="discounts every past reward by gamma per round; an idle arm keeps its mean, its spread grows to tau_max",
    knows="how often the environment changes, to set gamma; the largest mean, to set tau_max",
    rewards="any",
    formula=r"""
        \theta_i \sim \mathcal{N}\bigl(\hat\mu_i,\ \tau_i^2\bigr)
        \tau_i = \min\bigl((\mathtt{weight}\, N_i)^{-1/2},\ \tau_{\max}\bigr)
        a = \operatorname{argmax}_i \theta_i
        N_j \leftarrow \gamma N_j \ \text{ for all } j, \quad N_a \leftarrow N_a + 1
        \hat\mu_a \leftarrow \hat\mu_a + (x - \hat\mu_a) / N_a
    """,
    reference="Qi, Wang, Zhu 2023",
    lockstep=True,
)
class DiscountedTS(NamedTuple):
    """Thompson sampling that forgets: each round multiplies past evidence by `gamma`.

    Every arm is judged by a normal sample around its discounted average, with standard deviation N**(-1/2) but at most
    `tau_max`, where N is its discounted number of pulls. An idle arm keeps its average and becomes uncertain again, up
    to `tau_max`.

    Suited to rewards in [0, 1] that change without warning, abruptly or slowly, when something is known about how often
    they change. With B phases in T rounds the analysis uses gamma = 1 - sqrt(B/T), which `tuned` computes. Its
    regret is then of order sqrt(TB) log(T)**2 by the paper's Theorem 1 (with an astronomical constant: `driftbandit
    theory`). `tau_max` between 1/5 and 1/3 of the largest mean reward is the authors' rule of thumb; the analysis needs
    1/(12 sqrt 2) = 0.059 or more. If 1/(1 - gamma) <= 1/tau_max**2 the standard deviation is always `tau_max`: that is
    the case in nearly every experiment of the paper.

    >>> from driftbandit import Bandit
    >>> bandit = Bandit(["small", "large"], DiscountedTS(gamma=0.99), seed=1)
    >>> decision = bandit.decide()
    >>> bandit.reward(decision, 1.0)
    'learned'

    Reference: Qi, Wang and Zhu 2023, Algorithm 1. We differ in one point: an arm never played has mean 0, where line
    11 divides 0 by 0."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    tau_max: Annotated[float, within("> 0")] = 0.2  # largest standard deviation of a sample
    forget_below: Annotated[float, within(">= 0")] = 0.0  # below this N the mean reads as 0; authors' code: 1e-8
    weight: Annotated[float, within("> 0")] = 1.0  # kappa of the authors' code: the spread is (weight * N)**(-1/2)

    def init(self, n_arms: int) -> DiscountedTSState:
        return new_state(DiscountedTSState, n_arms, spread=np.full(n_arms, math.inf))

    def choose(self, state: DiscountedTSState, t: int, rng: Any) -> Any:
        """Below `forget_below` the authors' code reads the discounted sum N * mean, which is close to 0, instead of
        the mean."""
        scores, means, spread = state.scores, state.mean, state.spread
        tau_max, forget_below = self.tau_max, self.forget_below
        rng.normals(scores)
        for arm in range(len(scores)):
            mean = means[arm]
            if forget_below > 0.0:
                mean = where(state.pulls[arm] < forget_below, state.pulls[arm] * mean, mean)
            scores[arm] = mean + min(tau_max, spread[arm]) * scores[arm]
        return argmax(scores)

    def learn(self, state: DiscountedTSState, t: int, arm: Any, reward: Any) -> None:
        self.fade(state, self.gamma)
        self.take(state, arm, reward, 1.0)

    def fade(self, state: DiscountedTSState, factor: float) -> None:
        """Multiply the weight of all evidence by `factor`: the discount of a round, or of the time that has passed.

        The spread is kept next to the count and grows by factor**(-1/2): a square root and a division for every arm
        in every round would cost as much as all the normals."""
        pulls, spread = state.pulls, state.spread
        growth = 1.0 / math.sqrt(factor)
        for i in range(len(pulls)):
            pulls[i] *= factor
            spread[i] *= growth

    def take(self, state: DiscountedTSState, arm: Any, reward: Any, weight: float) -> None:
        """Add one reward of this weight.

        The mean is kept, not the sum of rewards: for an arm that is idle for long the sum and the count both
        underflow and their ratio is 0/0, while its mean keeps its bits."""
        pulls, mean = state.pulls, state.mean
        pulls[arm] += weight
        state.spread[arm] = 1.0 / math.sqrt(self.weight * pulls[arm])
        mean[arm] += weight * (reward - mean[arm]) / pulls[arm]

    def belief(self, state: DiscountedTSState) -> NormalBelief:
        pulls, mean = np.asarray(state.pulls), np.asarray(state.mean)
        spread = np.minimum(self.tau_max, np.asarray(state.spread))
        return NormalBelief(np.where(pulls < self.forget_below, pulls * mean, mean), spread)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, pulls=COUNTS, mean=REALS, spread=within("[1e-60, inf]"))

    @classmethod
    def half_life(cls, rounds: float, tau_max: float = 0.2) -> "DiscountedTS":
        return cls(half_life_discount(rounds), tau_max)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0, tau_max: float = 0.2) -> "DiscountedTS":
        """Corollary 1, for abrupt changes: gamma = 1 - sqrt(phases / horizon)."""
        return cls(tune_discount(horizon, phases), tau_max)

    @classmethod
    def tuned_smooth(cls, horizon: int, beta: float, tau_max: float = 0.2) -> "DiscountedTS":
        """Corollary 2, for drift: gamma = 1 - horizon**(beta - 1)."""
        return cls(tune_smooth_discount(horizon, beta), tau_max)

    @classmethod
    def text(
        cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False, tau_max: float = 0.2
    ) -> "DiscountedTS":
        """The parameters the paper prints: Corollary 1 for abrupt changes, gamma = 1 - 10 / sqrt(horizon) for smooth
        ones."""
        return cls(text_smooth_discount(horizon) if smooth else tune_discount(horizon, phases), tau_max)

    @classmethod
    def code(
        cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False, tau_max: float = 0.2
    ) -> "DiscountedTS":
        """The authors' code: gamma = 1 - 10 sqrt((phases - 1) / horizon), means forgotten below N = 1e-8."""
        gamma = text_smooth_discount(horizon) if smooth else code_discount(horizon, phases)
        return cls(gamma, tau_max, forget_below=1e-8)
