"""Three small policies that agents play in the tests, and ways to look at an agent."""

from typing import Any, NamedTuple

import numpy as np

from driftbandit import Agent, DiscountedTS
from driftbandit.parameters import checked
from driftbandit.primitives import draw_from


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
    chances: Any


@checked
class Lottery(NamedTuple):
    """Draws arms with chances proportional to 1 + their wins."""

    def init(self, n_arms):
        return LotteryState(np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state, t, rng):
        total = 0.0
        for arm in range(len(state.wins)):
            total += 1.0 + state.wins[arm]
        for arm in range(len(state.wins)):
            state.chances[arm] = (1.0 + state.wins[arm]) / total
        return draw_from(state.chances, rng.uniform(0))

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


def played(agent: Agent, rounds: int, seed: int = 0) -> list:
    """Arms chosen in some rounds with made-up rewards."""
    reward_rng, out = np.random.default_rng(seed), []
    for _ in range(rounds):
        arm = agent.choose()
        agent.learn(arm, float(reward_rng.random()))
        out.append(arm)
    return out


def memory(agent: Agent) -> tuple:
    """Everything that could change, to show that it did not."""
    return agent.snapshot(), agent.arms, agent.rewards_learnt, agent.decisions, agent.clipped
