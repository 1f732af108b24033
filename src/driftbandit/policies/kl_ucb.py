"""Upper confidence bounds by relative entropy: for rewards in [0, 1] tighter than any square root.

The functions are written by hand: a live bandit needs only NumPy, and interpreted and compiled code must give the
same bits."""

import math
from collections import namedtuple
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import Domain, checked, described, within
from driftbandit.core.primitives import argmax_fair, compilable
from driftbandit.core.state import new_state
from driftbandit.core.validity import COUNTS, SHARE, fits, need
from driftbandit.policies.forgetting import DISCOUNT, WINDOW, changes, discounting, sliding, window_fields
from driftbandit.policies.ucb import discount

C: Domain = within(">= 0", "The theory needs 3; 0 works better in practice.")


@compilable
def kl_bernoulli(p: float, q: float) -> float:
    """Relative entropy of Bernoulli(p) to Bernoulli(q), with 0 ln 0 = 0 and q kept off the ends."""
    q = min(max(q, 1e-15), 1.0 - 1e-15)
    total = 0.0
    if p > 0.0:
        total += p * math.log(p / q)
    if p < 1.0:
        total += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return total


@compilable
def kl_ucb(p: float, bound: float) -> float:
    """The largest q >= p with kl(p, q) <= bound; exactly p for a bound of 0 and exactly 1 where even q = 1 is within
    it.

    Halley's iteration on the log-odds x of q: there kl is ln(1 + e**x) - p x + constant, convex, a parabola near p
    and a straight line far from it. So two steps from a good start replace thirty halvings of an interval.
    Right to about 1e-14; arms with equal records get indices with equal bits."""
    if p >= 1.0:
        return 1.0
    if bound <= 0.0:
        return p
    if p <= 0.0:  # kl(0, q) is -ln(1 - q)
        return 1.0 if kl_bernoulli(0.0, 1.0) <= bound else -math.expm1(-bound)
    log_p = math.log(p)
    log_rest = math.log(1.0 - p)
    entropy = p * log_p + (1.0 - p) * log_rest
    if entropy + 34.5 * (1.0 - p) <= bound and kl_bernoulli(p, 1.0) <= bound:  # 34.5: just below -ln(1e-15)
        return 1.0
    variance = p * (1.0 - p)
    origin = log_p - log_rest
    if bound < 2.0 * variance:  # the parabola at p, with two terms more of the series
        step = math.sqrt(2.0 * bound / variance)
        x = origin + step / (1.0 + ((1.0 - 2.0 * p) * step - bound) / 6.0)
    else:  # kl >= entropy - (1 - p) ln(1 - q), nearly equal when p is small or q close to 1
        x = math.log(math.expm1(min((bound - entropy) / (1.0 - p), 37.0)))
    q = p
    for _ in range(60):
        if x > 0.0:
            small = math.exp(-x)
            q = 1.0 / (1.0 + small)
            value = x + math.log(1.0 + small)
        else:
            small = math.exp(x)
            q = small / (1.0 + small)
            value = math.log(1.0 + small)
        excess = value - p * x + entropy - bound
        slope = q - p
        if slope <= 0.0:
            break
        curve = q * (1.0 - q)
        below = 2.0 * slope * slope - excess * curve
        step = 2.0 * excess * slope / below if below > slope * slope else excess / slope
        if step >= x - origin:
            step = 0.5 * (x - origin)
        x -= step
        if abs(step) <= 3e-5 * min(x - origin, 1.0):  # the rest is of third order, below rounding: no further exp
            q += curve * step * (0.5 * (1.0 - 2.0 * q) * step - 1.0)
            break
    return max(p, min(q, p + math.sqrt(0.5 * bound)))


@compilable
def log_budget(n: float, c: float) -> float:
    """ln n + c ln ln n, each taken as 0 where it would be negative."""
    budget = math.log(max(n, 1.0))
    if c > 0.0:
        budget += c * math.log(math.log(max(n, math.e)))
    return budget


class KLUCBState(NamedTuple):
    """The evidence of kl-UCB about each arm."""

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

    kl is the relative entropy of 0/1 laws. It never forgets, so it suits stationary rewards: regret there is of order
    log(T) with the best possible constant for 0/1 rewards. Rewards must lie in [0, 1]. The proof needs c = 3; c = 0 is
    better in practice.

    Reference: Garivier and Cappé 2011."""

    c: Annotated[float, C] = 0.0  # weight of ln ln t

    def init(self, n_arms: int) -> KLUCBState:
        return new_state(KLUCBState, n_arms)

    def choose(self, state: KLUCBState, t: int, rng: Any) -> Any:
        scores, pulls, sums = state.scores, state.pulls, state.sums
        budget = log_budget(t, self.c)
        for arm in range(len(scores)):
            scores[arm] = kl_ucb(sums[arm] / pulls[arm], budget / pulls[arm]) if pulls[arm] > 0.0 else math.inf
        return argmax_fair(scores, rng)

    def learn(self, state: KLUCBState, t: int, arm: Any, reward: Any) -> None:
        state.pulls[arm] += 1.0
        state.sums[arm] += reward

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, pulls=COUNTS, sums=COUNTS)
        need((state.sums <= state.pulls * (1.0 + 1e-9) + 1e-9).all(), "no sum of rewards exceeds their number")


class DiscountedKLUCBState(NamedTuple):
    """The evidence of D-klUCB about each arm."""

    pulls: Any  # discounted number of pulls
    mean: Any  # discounted average reward
    total: Any  # discounted number of rounds
    scores: Any  # scratch: the indices of the last choice


@discounting(
    short="d-klucb",
    forgets="discounts every past reward by gamma per round; an idle arm's index rises until it is played",
    knows="how often the environment changes, to set gamma; the range of rewards",
    rewards="[0, 1]",
    formula=r"""
        a = \operatorname{argmax}_i\ \max\{q : N_i\, \mathrm{kl}(\hat\mu_i, q) \le \ln n\}
        n = \sum_j N_j
        N_j \leftarrow \gamma N_j \ \text{ for all } j, \quad N_a \leftarrow N_a + 1
        \hat\mu_a \leftarrow \hat\mu_a + (x - \hat\mu_a) / N_a
        \mathrm{kl}(p, q) = p \ln \frac{p}{q} + (1 - p) \ln \frac{1 - p}{1 - q}
    """,
    reference="after Garivier, Moulines 2011",
)
class DiscountedKLUCB(NamedTuple):
    """Discounted kl-UCB (D-klUCB): kl-UCB from counts and means that lose a factor `gamma` each round.

    The index is the largest q with kl(mean, q) <= ln n / N, N the arm's discounted pulls and n those of all arms. An
    idle arm's index rises to 1, so it is played again unless another arm's is 1 too. Suited to few arms, rewards in [0,
    1], abrupt changes; being tighter than D-UCB it explores less. No regret bound is known; `tuned` borrows D-UCB's
    gamma.

    Reference: the kl form of Garivier and Moulines 2011, as in the code of Besson, Kaufmann and others."""

    gamma: Annotated[float, DISCOUNT] = 0.9975  # discount per round

    def init(self, n_arms: int) -> DiscountedKLUCBState:
        return new_state(DiscountedKLUCBState, n_arms, total=np.zeros(1))

    def choose(self, state: DiscountedKLUCBState, t: int, rng: Any) -> Any:
        """A count of 0, also by underflow, means that the arm must be tried."""
        scores, pulls, mean = state.scores, state.pulls, state.mean
        budget = math.log(max(state.total[0], 1.0))
        for arm in range(len(scores)):
            scores[arm] = kl_ucb(mean[arm], budget / pulls[arm]) if pulls[arm] > 0.0 else math.inf
        return argmax_fair(scores, rng)

    def fade(self, state: DiscountedKLUCBState, factor: float) -> None:
        pulls = state.pulls
        state.total[0] *= factor
        for i in range(len(pulls)):
            pulls[i] *= factor

    def take(self, state: DiscountedKLUCBState, arm: Any, reward: Any, weight: float) -> None:
        pulls, mean = state.pulls, state.mean
        state.total[0] += weight
        pulls[arm] += weight
        mean[arm] += weight * (reward - mean[arm]) / pulls[arm]

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, pulls=COUNTS, mean=SHARE, total=COUNTS)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "DiscountedKLUCB":
        """gamma = 1 - sqrt(changes / horizon) / 4, borrowed from D-UCB."""
        return cls(discount(horizon, changes(phases), 4.0))


SlidingKLUCBState = namedtuple("SlidingKLUCBState", window_fields("mean"))  # type: ignore[misc]


@sliding(
    SlidingKLUCBState,
    short="sw-klucb",
    forgets="all rounds older than the window; an arm not in it is played at once",
    knows="how often the environment changes, to set the window; the range of rewards",
    rewards="[0, 1]",
    formula=r"""
        N_i = \sum_{s=t-\mathtt{window}}^{t-1} \mathbf{1}\{a_s = i\}
        S_i = \sum_{s=t-\mathtt{window}}^{t-1} x_s \mathbf{1}\{a_s = i\}
        n = \min(t, \mathtt{window})
        a = \operatorname{argmax}_i\ \max\{q : N_i\, \mathrm{kl}(S_i / N_i,\ q) \le \ln n + c \ln \ln n\}
        \mathrm{kl}(p, q) = p \ln \frac{p}{q} + (1 - p) \ln \frac{1 - p}{1 - q}
    """,
    reference="Combes, Proutière 2014",
)
class SlidingKLUCB(NamedTuple):
    """Sliding-window kl-UCB (SW-klUCB): kl-UCB from the last `window` rounds only.

    The index is the largest q with kl(S/N, q) <= (ln n + c ln ln n) / N, where n = min(t, window) and N, S belong to
    the window. An arm that left the window is played at once. Suited to few arms, rewards in [0, 1], abrupt changes;
    being tighter than SW-UCB it explores less. `tuned` borrows SW-UCB's window. Combes and Proutière bound the regret
    of such a policy under slow drift.

    Reference: Combes and Proutière 2014, who add the term with c; the kl form of Garivier and Moulines 2011."""

    window: Annotated[int, WINDOW] = 500  # rounds remembered, all arms together
    c: Annotated[float, C] = 0.0  # weight of ln ln

    def choose(self, state: Any, t: int, rng: Any) -> Any:
        scores, pulls, mean = state.scores, state.pulls, state.mean
        budget = log_budget(min(t, self.window), self.c)
        for arm in range(len(scores)):
            scores[arm] = kl_ucb(mean[arm], budget / pulls[arm]) if pulls[arm] > 0.0 else math.inf
        return argmax_fair(scores, rng)

    def believe(self, state: Any, arm: Any) -> None:
        state.mean[arm] = min(max(state.sums[arm] / max(state.pulls[arm], 1.0), 0.0), 1.0)
