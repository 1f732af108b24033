"""Three small policies that bandits play in the tests, and ways to look at a bandit."""

from typing import Any, NamedTuple

import numpy as np

from driftbandit import Bandit, DiscountedTS
from driftbandit.core.parameters import checked
from driftbandit.core.primitives import draw_from


class CountState(NamedTuple):
    pulls: Any
    coin: Any
    scores: Any


@checked
class Coins(NamedTuple):
    """Plays the arm of the largest uniform number plus its count; notes a number in `choose` that `learn` adds."""

    def init(self, n_arms):
        return CountState(np.zeros(n_arms), np.zeros(1), np.zeros(n_arms))

    def choose(self, state, t, rng):
        state.coin[0] = rng.uniform(2)
        for arm in range(len(state.scores)):
            state.scores[arm] = rng.uniform(10 + arm) + 0.1 * state.pulls[arm]
        best = 0
        for arm in range(1, len(state.scores)):
            if state.scores[arm] > state.scores[best]:
                best = arm
        return best

    def learn(self, state, t, arm, reward):
        state.pulls[arm] += reward * state.coin[0]


class LotteryState(NamedTuple):
    wins: Any
    probabilities: Any


@checked
class Lottery(NamedTuple):
    """Draws arms with probabilities proportional to 1 + their wins."""

    def init(self, n_arms):
        return LotteryState(np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state, t, rng):
        total = 0.0
        for arm in range(len(state.wins)):
            total += 1.0 + state.wins[arm]
        for arm in range(len(state.wins)):
            state.probabilities[arm] = (1.0 + state.wins[arm]) / total
        return draw_from(state.probabilities, rng.uniform(0))

    def learn(self, state, t, arm, reward):
        state.wins[arm] += reward


class StubbornState(NamedTuple):
    wins: Any


class Stubborn(NamedTuple):
    """Wants arm 0 whatever it is asked, and keeps no scores."""

    def init(self, n_arms):
        return StubbornState(np.zeros(n_arms))

    def choose(self, state, t, rng):
        return 0

    def learn(self, state, t, arm, reward):
        state.wins[arm] += reward


ALONE: dict[str, Any] = {"first": False, "floor": 0.0}  # the policy and nothing else
OWN = {"Coins": Coins, "Lottery": Lottery}
POLICIES = [DiscountedTS(gamma=0.9, tau_max=0.3), Coins(), Lottery()]


def played(bandit: Bandit, rounds: int, seed: int = 0) -> list:
    """Arms chosen in some rounds with made-up rewards."""
    reward_rng, out = np.random.default_rng(seed), []
    for _ in range(rounds):
        decision = bandit.decide()
        bandit.reward(decision, float(reward_rng.random()))
        out.append(decision.arm)
    return out


def chosen(bandit: Bandit, rounds: int) -> list:
    """The arms of some decisions."""
    return [bandit.decide().arm for _ in range(rounds)]


def play_arm(bandit: Bandit, arm: Any, reward: float) -> None:
    """Play this arm, and report its reward."""
    bandit.reward(bandit.decide(available=[arm]), reward)
