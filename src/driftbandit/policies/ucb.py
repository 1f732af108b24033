"""Upper confidence bounds: play the arm that could be best, given how little evidence there is about it."""

import math
from collections import namedtuple
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import Domain, within
from driftbandit.core.primitives import argmax_fair, where
from driftbandit.core.state import new_state
from driftbandit.core.validity import COUNTS, REALS, fits
from driftbandit.policies.forgetting import (
    DISCOUNT,
    WINDOW,
    changes,
    discounting,
    log_window,
    sliding,
    window_fields,
)

XI: Domain = within("> 0", "The theory needs more than 1/2.")


class DiscountedUCBState(NamedTuple):
    """The evidence of D-UCB about each arm."""

    pulls: Any  # discounted number of pulls
    mean: Any  # discounted average reward
    root: Any  # 1 / sqrt(pulls)
    total: Any  # discounted number of rounds
    scores: Any  # scratch: the indices of the last choice


@discounting(
    short="d-ucb",
    forgets="discounts every past reward by gamma per round; an idle arm's bonus grows until it is played",
    knows="how often the environment changes, to set gamma; the range of rewards",
    rewards="any",
    formula=r"""
        a = \operatorname{argmax}_i\ \hat\mu_i + 2\, \mathtt{reward\_max} \sqrt{\frac{\xi \ln n}{N_i}}
        n = \sum_j N_j
        N_j \leftarrow \gamma N_j \ \text{ for all } j, \quad N_a \leftarrow N_a + 1
        \hat\mu_a \leftarrow \hat\mu_a + (x - \hat\mu_a) / N_a
    """,
    reference="Garivier, Moulines 2011",
    lockstep=True,
)
class DiscountedUCB(NamedTuple):
    """Discounted UCB (D-UCB): upper confidence bounds from counts and means that lose a factor `gamma` each round.

    The index is mean + 2 reward_max sqrt(xi ln n / N), N the arm's discounted pulls and n those of all arms. The bonus
    of an idle arm grows without limit, so every arm is played again and again: at gamma = 0.9975 each must hold several
    of the 400 rounds in memory, which with 30 arms is a large share of all play. Suited to few arms, rewards in [0,
    reward_max], abrupt changes.

    With Υ changes in T rounds and gamma = 1 - sqrt(Υ/T) / (4 reward_max), which `tuned` computes, the regret is of
    order sqrt(TΥ) log(T). `xi` must exceed 1/2 for the proof; the paper of DS-TS uses 2/3. At gamma = 1, xi = 1/2 this
    is UCB1.

    Reference: Kocsis and Szepesvári 2006; Garivier and Moulines 2011."""

    gamma: Annotated[float, DISCOUNT] = 0.9975  # discount per round
    xi: Annotated[float, XI] = 2.0 / 3.0  # how much weight uncertainty has
    reward_max: Annotated[float, within("> 0")] = 1.0  # rewards lie in [0, reward_max]

    def init(self, n_arms: int) -> DiscountedUCBState:
        return new_state(DiscountedUCBState, n_arms, total=np.zeros(1))

    def choose(self, state: DiscountedUCBState, t: int, rng: Any) -> Any:
        """A count of 0, also by underflow, means that the arm must be tried."""
        scores, pulls, mean, root = state.scores, state.pulls, state.mean, state.root
        width = 2.0 * self.reward_max * math.sqrt(self.xi * math.log(max(state.total[0], 1.0)))
        for arm in range(len(scores)):
            scores[arm] = where(pulls[arm] > 0.0, mean[arm] + width * root[arm], math.inf)
        return argmax_fair(scores, rng)

    def fade(self, state: DiscountedUCBState, factor: float) -> None:
        """Multiply the weight of all evidence by `factor`; roots are kept as in DS-TS."""
        pulls, root = state.pulls, state.root
        growth = 1.0 / math.sqrt(factor)
        state.total[0] *= factor
        for i in range(len(pulls)):
            pulls[i] *= factor
            root[i] *= growth

    def take(self, state: DiscountedUCBState, arm: Any, reward: Any, weight: float) -> None:
        pulls, mean = state.pulls, state.mean
        state.total[0] += weight
        pulls[arm] += weight
        state.root[arm] = 1.0 / math.sqrt(pulls[arm])
        mean[arm] += weight * (reward - mean[arm]) / pulls[arm]

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, pulls=COUNTS, mean=REALS, root=within("[0, inf]"), total=COUNTS)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0, reward_max: float = 1.0) -> "DiscountedUCB":
        """gamma = 1 - sqrt(changes / horizon) / (4 reward_max)."""
        return cls(discount(horizon, changes(phases), 4.0 * reward_max), reward_max=reward_max)

    @classmethod
    def text(cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False) -> "DiscountedUCB":
        """The paper's gamma = 1 - sqrt(phases / horizon) / 4, with one phase in smooth environments."""
        return cls(discount(horizon, 1 if smooth else phases, 4.0))

    @classmethod
    def code(cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False) -> "DiscountedUCB":
        """The authors' code: a 16th instead of a quarter, and a 12th of sqrt(1 / horizon) in smooth environments."""
        return cls(discount(horizon, 1, 12.0) if smooth else discount(horizon, phases, 16.0))


# The mean is +inf and the root 0 for an arm not in the window, so that its index is +inf.
SlidingUCBState = namedtuple("SlidingUCBState", window_fields("mean", "root"))  # type: ignore[misc]


@sliding(
    SlidingUCBState,
    short="sw-ucb",
    forgets="all rounds older than the window; an arm not in it is played at once",
    knows="how often the environment changes, to set the window; the range of rewards",
    rewards="any",
    formula=r"""
        N_i = \sum_{s=t-\mathtt{window}}^{t-1} \mathbf{1}\{a_s = i\}
        S_i = \sum_{s=t-\mathtt{window}}^{t-1} x_s \mathbf{1}\{a_s = i\}
        a = \operatorname{argmax}_i\ \frac{S_i}{N_i} + \mathtt{reward\_max} \sqrt{\frac{\xi \ln n}{N_i}}
        n = \min(t, \mathtt{window})
    """,
    reference="Garivier, Moulines 2011",
    lockstep=True,
)
class SlidingUCB(NamedTuple):
    """Sliding-window UCB (SW-UCB): upper confidence bounds from the last `window` rounds only.

    The index is S/N + reward_max sqrt(xi ln min(t, window) / N), with N pulls and sum S within the window. An arm that
    left the window is played at once. Suited to few arms, rewards in [0, reward_max], abrupt changes.

    With Υ changes in T rounds and window = 2 reward_max sqrt(T ln T / Υ), which `tuned` computes, the regret is of
    order sqrt(TΥ) log(T). `xi` must exceed 1/2 for the proof. With a window of T rounds and xi = 2 this is UCB1. The
    minimum belongs inside the logarithm; the code of the DS-TS paper takes min(ln t, window), in which the window has
    no effect.

    Reference: Garivier and Moulines 2011."""

    window: Annotated[int, WINDOW] = 500  # rounds remembered, all arms together
    xi: Annotated[float, XI] = 2.0 / 3.0  # how much weight uncertainty has
    reward_max: Annotated[float, within("> 0")] = 1.0  # rewards lie in [0, reward_max]

    def choose(self, state: Any, t: int, rng: Any) -> Any:
        scores, mean, root = state.scores, state.mean, state.root
        width = self.reward_max * math.sqrt(self.xi * math.log(max(min(t, self.window), 1)))
        for arm in range(len(scores)):
            scores[arm] = mean[arm] + width * root[arm]
        return argmax_fair(scores, rng)

    def believe(self, state: Any, arm: Any) -> None:
        pulls = state.pulls[arm]
        held = max(pulls, 1.0)
        state.mean[arm] = where(pulls > 0.0, state.sums[arm] / held, math.inf)
        state.root[arm] = where(pulls > 0.0, 1.0 / math.sqrt(held), 0.0)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0, reward_max: float = 1.0) -> "SlidingUCB":
        """window = 2 reward_max sqrt(horizon ln(horizon) / changes)."""
        return cls(log_window(horizon, changes(phases), 2.0 * reward_max), reward_max=reward_max)


def discount(horizon: int, count: int, divisor: float) -> float:
    """1 - sqrt(count / horizon) / divisor, the form of every discount proposed for D-UCB."""
    if horizon < 1 or count < 1 or count > horizon:
        raise ValueError(f"Tuning needs 1 <= phases <= horizon; got horizon={horizon!r}, phases={count!r}.")
    return 1.0 - math.sqrt(count / horizon) / divisor
