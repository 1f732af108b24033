"""Upper confidence bounds by relative entropy: for rewards in [0, 1] tighter than any square root."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.forgetting import DISCOUNT, Forgetting
from driftbandit.parameters import Domain, checked, described, within
from driftbandit.policies.kl import kl_ucb
from driftbandit.policies.ucb import discount
from driftbandit.policies.window import WINDOW, changes, log_window, ring_fits, slide
from driftbandit.primitives import argmax_fair, compilable
from driftbandit.validity import COUNTS, SHARE, fits, need

C: Domain = within(">= 0", "The theory asks for 3, practice for 0.")


@compilable
def log_budget(n: float, c: float) -> float:
    """ln n + c ln ln n, each taken as 0 where it would be negative."""
    budget = math.log(max(n, 1.0))
    if c > 0.0:
        budget += c * math.log(math.log(max(n, math.e)))
    return budget


class KLUCBState(NamedTuple):
    """What kl-UCB knows of each arm."""

    pulls: Any
    sums: Any
    scores: Any  # scratch: the indices of the last choice


@described(
    short="kl-ucb",
    family="never forgets",
    scratch=("scores",),
    forgets="never",
    knows="the range of rewards",
    rewards="[0, 1]",
    cost="O(K)",
    formula=r"""
        a = \operatorname{argmax}_i\ \max\{q : k_i\, \mathrm{kl}(S_i / k_i,\ q) \le \ln t + c \ln \ln t\}
        \mathrm{kl}(p, q) = p \ln \frac{p}{q} + (1 - p) \ln \frac{1 - p}{1 - q}
    """,
    reference="Garivier, Cappé 2011",
)
@checked
class KLUCB(NamedTuple):
    """kl-UCB: an arm's index is the largest mean q that its record does not refute, kl(average, q) <= (ln t + c ln ln
    t) / pulls.

    Here kl is the relative entropy of 0/1 laws. It never forgets, so it belongs where nothing changes: regret there is
    of order log(T) with the best possible constant for 0/1 rewards. Rewards must lie in [0, 1]. The proof wants c = 3;
    c = 0 is better in practice.

    Reference: Garivier and Cappé 2011."""

    c: Annotated[float, C] = 0.0  # weight of ln ln t

    def init(self, n_arms: int) -> KLUCBState:
        """No arm played yet."""
        return KLUCBState(np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state: KLUCBState, t: int, rng: Any) -> Any:
        """The largest index, a fair choice among equal ones; arms never played come first."""
        scores, pulls, sums = state.scores, state.pulls, state.sums
        budget = log_budget(t, self.c)
        for arm in range(len(scores)):
            scores[arm] = kl_ucb(sums[arm] / pulls[arm], budget / pulls[arm]) if pulls[arm] > 0.0 else math.inf
        return argmax_fair(scores, rng)

    def learn(self, state: KLUCBState, t: int, arm: Any, reward: Any) -> None:
        """Count and add."""
        state.pulls[arm] += 1.0
        state.sums[arm] += reward

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        fits(state, pulls=COUNTS, sums=COUNTS)
        need((state.sums <= state.pulls * (1.0 + 1e-9) + 1e-9).all(), "no sum of rewards exceeds their number")

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "KLUCB":
        """There is nothing to tune."""
        return cls()


class DiscountedKLUCBState(NamedTuple):
    """What D-klUCB knows of each arm."""

    pulls: Any  # discounted number of pulls
    mean: Any  # discounted average reward
    total: Any  # discounted number of rounds
    scores: Any  # scratch: the indices of the last choice


@described(
    short="d-klucb",
    family="discounts",
    scratch=("scores",),
    forgets="discounts every past reward by gamma per round; an idle arm's index rises until it is played",
    knows="how often the world changes, to set gamma; the range of rewards",
    rewards="[0, 1]",
    cost="O(K)",
    formula=r"""
        a = \operatorname{argmax}_i\ \max\{q : N_i\, \mathrm{kl}(\hat\mu_i, q) \le \ln n\}
        n = \sum_j N_j
        N_j \leftarrow \gamma N_j \ \text{ for all } j, \quad N_a \leftarrow N_a + 1
        \hat\mu_a \leftarrow \hat\mu_a + (x - \hat\mu_a) / N_a
        \mathrm{kl}(p, q) = p \ln \frac{p}{q} + (1 - p) \ln \frac{1 - p}{1 - q}
    """,
    reference="after Garivier, Moulines 2011",
)
@checked
class DiscountedKLUCB(NamedTuple):
    """Discounted kl-UCB (D-klUCB): kl-UCB from counts and means that lose a factor `gamma` each round.

    The index is the largest q with kl(mean, q) <= ln n / N, N the arm's discounted pulls and n those of all arms. An
    idle arm's index rises to 1, so it is played again unless another arm's is 1 too. Suited to few arms, rewards in [0,
    1], abrupt changes; being tighter than D-UCB it explores less. No regret bound of its own is known; `tuned` borrows
    D-UCB's gamma.

    Reference: the kl form of Garivier and Moulines 2011, as in the code of Besson, Kaufmann and others."""

    gamma: Annotated[float, DISCOUNT] = 0.9975  # discount per round

    def init(self, n_arms: int) -> DiscountedKLUCBState:
        """No arm played yet."""
        return DiscountedKLUCBState(np.zeros(n_arms), np.zeros(n_arms), np.zeros(1), np.zeros(n_arms))

    def choose(self, state: DiscountedKLUCBState, t: int, rng: Any) -> Any:
        """The largest index, a fair choice among equal ones; a count of 0, also by underflow, means the arm must be
        tried."""
        scores, pulls, mean = state.scores, state.pulls, state.mean
        budget = math.log(max(state.total[0], 1.0))
        for arm in range(len(scores)):
            scores[arm] = kl_ucb(mean[arm], budget / pulls[arm]) if pulls[arm] > 0.0 else math.inf
        return argmax_fair(scores, rng)

    def learn(self, state: DiscountedKLUCBState, t: int, arm: Any, reward: Any) -> None:
        """Discount everything, then add the reward."""
        self.fade(state, self.gamma)
        self.take(state, arm, reward, 1.0)

    def fade(self, state: DiscountedKLUCBState, factor: float) -> None:
        """Multiply the weight of all evidence by `factor`."""
        pulls = state.pulls
        state.total[0] *= factor
        for i in range(len(pulls)):
            pulls[i] *= factor

    def take(self, state: DiscountedKLUCBState, arm: Any, reward: Any, weight: float) -> None:
        """Add one reward of this weight to count and mean; the mean form for the reason given in DS-TS."""
        pulls, mean = state.pulls, state.mean
        state.total[0] += weight
        pulls[arm] += weight
        mean[arm] += weight * (reward - mean[arm]) / pulls[arm]

    @classmethod
    def half_life(cls, rounds: float) -> "DiscountedKLUCB":
        """Evidence loses half its weight every `rounds` rounds: gamma = 2**(-1/rounds)."""
        return cls(Forgetting.half_life(rounds).gamma)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        fits(state, pulls=COUNTS, mean=SHARE, total=COUNTS)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "DiscountedKLUCB":
        """gamma = 1 - sqrt(changes / horizon) / 4, borrowed from D-UCB."""
        return cls(discount(horizon, changes(phases), 4.0))


class SlidingKLUCBState(NamedTuple):
    """What SW-klUCB knows of each arm, and the rounds it knows it from."""

    pulls: Any  # pulls within the window
    sums: Any  # rewards within the window
    mean: Any  # sums / pulls
    scores: Any  # scratch: the indices of the last choice
    arms: Any  # the ring of the last rounds, see `window`
    rewards: Any


@described(
    short="sw-klucb",
    family="window",
    scratch=("scores",),
    forgets="all rounds older than the window; an arm not in it is played at once",
    knows="how often the world changes, to set the window; the range of rewards",
    rewards="[0, 1]",
    cost="O(K), memory O(window)",
    formula=r"""
        N_i = \sum_{s=t-\mathtt{window}}^{t-1} \mathbf{1}\{a_s = i\}
        S_i = \sum_{s=t-\mathtt{window}}^{t-1} x_s \mathbf{1}\{a_s = i\}
        n = \min(t, \mathtt{window})
        a = \operatorname{argmax}_i\ \max\{q : N_i\, \mathrm{kl}(S_i / N_i,\ q) \le \ln n + c \ln \ln n\}
        \mathrm{kl}(p, q) = p \ln \frac{p}{q} + (1 - p) \ln \frac{1 - p}{1 - q}
    """,
    reference="Combes, Proutière 2014",
)
@checked
class SlidingKLUCB(NamedTuple):
    """Sliding-window kl-UCB (SW-klUCB): kl-UCB from the last `window` rounds only.

    The index is the largest q with kl(S/N, q) <= (ln n + c ln ln n) / N, where n = min(t, window) and N, S belong to
    the window. An arm that left the window is played at once. Suited to few arms, rewards in [0, 1], abrupt changes;
    being tighter than SW-UCB it explores less. `tuned` borrows SW-UCB's window. Combes and Proutière bound the regret
    of such a policy under slow drift.

    Reference: Combes and Proutière 2014, who add the term with c; the kl form of Garivier and Moulines 2011."""

    window: Annotated[int, WINDOW] = 500  # rounds remembered, all arms together
    c: Annotated[float, C] = 0.0  # weight of ln ln

    def init(self, n_arms: int) -> SlidingKLUCBState:
        """No arm played yet, the window empty."""
        return SlidingKLUCBState(
            np.zeros(n_arms),
            np.zeros(n_arms),
            np.zeros(n_arms),
            np.zeros(n_arms),
            np.zeros(self.window, np.int64),
            np.zeros(self.window),
        )

    def choose(self, state: SlidingKLUCBState, t: int, rng: Any) -> Any:
        """The largest index, a fair choice among equal ones; arms not in the window come first."""
        scores, pulls, mean = state.scores, state.pulls, state.mean
        budget = log_budget(min(t, self.window), self.c)
        for arm in range(len(scores)):
            scores[arm] = kl_ucb(mean[arm], budget / pulls[arm]) if pulls[arm] > 0.0 else math.inf
        return argmax_fair(scores, rng)

    def learn(self, state: SlidingKLUCBState, t: int, arm: Any, reward: Any) -> None:
        """Slide the window by one round; only two arms change."""
        slide(self, state, t, arm, reward)

    def believe(self, state: SlidingKLUCBState, arm: Any) -> None:
        """The mean of one arm, which rounding errors may not push out of [0, 1]."""
        state.mean[arm] = min(max(state.sums[arm] / max(state.pulls[arm], 1.0), 0.0), 1.0)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        fits(state, mean=SHARE)
        ring_fits(state, t)

    def room(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return 4 * n_arms + 2 * self.window

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "SlidingKLUCB":
        """window = 2 sqrt(horizon ln(horizon) / changes), borrowed from SW-UCB."""
        return cls(log_window(horizon, changes(phases)))
