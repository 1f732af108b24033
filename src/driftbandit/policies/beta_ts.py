"""Thompson sampling for rewards in [0, 1] with a Beta belief about each arm: from all rewards, discounted, or in a
window."""

from collections import namedtuple
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.beliefs import BetaBelief
from driftbandit.core.parameters import Domain, checked, described, within
from driftbandit.core.primitives import COIN, argmax, argmax_fair, compilable, where
from driftbandit.core.state import new_state
from driftbandit.core.validity import COUNTS, fits
from driftbandit.policies.forgetting import (
    DISCOUNT,
    WINDOW,
    discounting,
    log_window,
    root_window,
    slide,
    sliding,
    window_fields,
)

_BELIEF: Domain = within("[1e-101, 2e15]")  # what priors and rewards add up to
PRIOR: Domain = within("(0, 1e15]", "1 and 1 is the uniform prior; next to 1e15 no reward would count.")


@compilable
def as_win(reward: Any, u: Any) -> Any:
    """A 0/1 reward with the same mean, decided by a number uniform on [0, 1)."""
    return where(u < reward, 1.0, 0.0)


@compilable
def take_reward(policy: Any, state: Any, arm: Any, reward: Any, weight: float) -> None:
    """Add one reward of this weight to the wins and losses of an arm."""
    wins, losses = state.wins, state.losses
    wins[arm] += weight * reward
    losses[arm] += weight * (1.0 - reward)
    state.a[arm] = policy.prior_wins + wins[arm]
    state.b[arm] = policy.prior_losses + losses[arm]


def new_beliefs(policy: Any, n_arms: int) -> Any:
    """A state of TS or dTS without rewards: every arm at the prior."""
    a, b = np.full(n_arms, policy.prior_wins), np.full(n_arms, policy.prior_losses)
    return new_state(BetaTSState, n_arms, a=a, b=b)


def validate_beliefs(policy: Any, state: Any, t: int, like: Any) -> None:
    """Refuse a state of TS or dTS with counts or Beta parameters that no rewards lead to."""
    fits(state, wins=COUNTS, losses=COUNTS, a=_BELIEF, b=_BELIEF)


class BetaTSState(NamedTuple):
    """The evidence of TS and dTS about each arm."""

    wins: Any  # sum of rewards
    losses: Any  # sum of 1 - reward
    a: Any  # Beta parameters: prior + evidence
    b: Any
    scores: Any  # scratch: the samples of the last choice


@described(
    short="ts",
    init=new_beliefs,
    take=take_reward,
    validate_state=validate_beliefs,
    family="never forgets",
    scratch=("scores",),
    forgets="never",
    knows="nothing",
    rewards="[0, 1]",
    cost="O(K)",
    formula=r"""
        \theta_i \sim \mathrm{Beta}\bigl(\mathtt{prior\_wins} + S_i,\ \mathtt{prior\_losses} + F_i\bigr)
        a = \operatorname{argmax}_i \theta_i
        S_a \leftarrow S_a + x, \quad F_a \leftarrow F_a + 1 - x
    """,
    reference="Thompson 1933",
    lockstep=True,
)
@checked
class BetaTS(NamedTuple):
    """Thompson sampling (TS): draw each arm's mean from its Beta posterior and play the largest draw.

    It never forgets, so it suits stationary rewards: there its regret is of order log(T), optimal for 0/1 rewards.
    After a change it stays with the former best arm for about as long as it took to learn that. The policies that
    forget are measured against it.

    Rewards must lie in [0, 1]. A reward x counts as x of a win and 1 - x of a loss. With `binarise` it is first turned
    into 1 with probability x, else 0, which is the version the theory covers. For 0/1 rewards the two are the same.

    Reference: Thompson 1933; Agrawal and Goyal 2012 for rewards between 0 and 1."""

    prior_wins: Annotated[float, PRIOR] = 1.0  # first parameter of the prior
    prior_losses: Annotated[float, PRIOR] = 1.0  # second parameter of the prior
    binarise: bool = False  # turn every reward into 0 or 1 at random

    def choose(self, state: BetaTSState, t: int, rng: Any) -> Any:
        rng.betas(state.a, state.b, state.scores)
        return argmax(state.scores)

    def learn(self, state: BetaTSState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        take_reward(self, state, arm, as_win(reward, rng.uniform(COIN)) if self.binarise else reward, 1.0)

    def belief(self, state: BetaTSState) -> BetaBelief:
        return beta_belief(state)

    @classmethod
    def text(cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False) -> "BetaTS":
        """The paper does not name the prior; the authors' code has the uniform one."""
        return cls()


@discounting(
    short="dts",
    init=new_beliefs,
    take=take_reward,
    validate_state=validate_beliefs,
    aliases={"dots": {"optimistic": True}},
    forgets="discounts wins and losses by gamma per round; an idle arm returns to the prior",
    knows="how often the environment changes, to set gamma",
    rewards="[0, 1]",
    formula=r"""
        \theta_i \sim \mathrm{Beta}\bigl(\mathtt{prior\_wins} + S_i,\ \mathtt{prior\_losses} + F_i\bigr)
        a = \operatorname{argmax}_i \theta_i
        \text{optimistic: } \theta_i \leftarrow \max(\theta_i, \text{its posterior mean})
        S_j \leftarrow \gamma S_j, \quad F_j \leftarrow \gamma F_j \ \text{ for all } j
        S_a \leftarrow S_a + x, \quad F_a \leftarrow F_a + 1 - x
    """,
    reference="Raj, Kalyani 2017",
    lockstep=True,
)
class DiscountedBetaTS(NamedTuple):
    """Discounted Thompson sampling (dTS): each round multiplies all wins and losses by `gamma`, then draws from Beta
    posteriors.

    The prior is not discounted: an idle arm returns to the prior, so its draws spread over all of [0, 1] and it is
    tried again. In DS-TS, by contrast, an idle arm keeps its mean. Exploration therefore never stops, and costs more
    the more arms there are.

    `optimistic` (dOTS) never lets a draw fall below the posterior mean.

    Suited to 0/1 or [0, 1] rewards that change often. No regret bound is known and no formula for `gamma`: its
    inventors tried values by hand and noted 0.75; `tuned` borrows DS-TS's formula. They turn rewards into 0 or 1
    (`binarise`); by default a reward counts in parts, as in TS.

    Reference: Raj and Kalyani 2017."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    optimistic: bool = False  # no draw below the posterior mean: dOTS
    prior_wins: Annotated[float, PRIOR] = 1.0  # first parameter of the prior
    prior_losses: Annotated[float, PRIOR] = 1.0  # second parameter of the prior
    binarise: bool = False  # turn every reward into 0 or 1 at random

    def choose(self, state: BetaTSState, t: int, rng: Any) -> Any:
        """With `optimistic`, equal posterior means may tie."""
        scores = state.scores
        rng.betas(state.a, state.b, scores)
        if not self.optimistic:
            return argmax(scores)
        for arm in range(len(scores)):
            scores[arm] = max(scores[arm], state.a[arm] / (state.a[arm] + state.b[arm]))
        return argmax_fair(scores, rng)

    def learn(self, state: BetaTSState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        self.fade(state, self.gamma)
        take_reward(self, state, arm, self.seen(reward, rng), 1.0)

    def seen(self, reward: Any, rng: Any) -> Any:
        """The reward as `take` expects it: turned into 0 or 1 with `binarise`."""
        return as_win(reward, rng.uniform(COIN)) if self.binarise else reward

    def fade(self, state: BetaTSState, factor: float) -> None:
        """Multiply the weight of all evidence by `factor`, then add the prior, which must not be discounted."""
        wins, losses, a, b = state.wins, state.losses, state.a, state.b
        for i in range(len(wins)):
            wins[i] *= factor
            losses[i] *= factor
            a[i] = self.prior_wins + wins[i]
            b[i] = self.prior_losses + losses[i]

    @property
    def belief(self) -> Callable[[Any], BetaBelief] | None:
        return None if self.optimistic else beta_belief


# Beta parameters: prior + evidence
SlidingTSState = namedtuple("SlidingTSState", window_fields("a", "b"))  # type: ignore[misc]


@sliding(
    SlidingTSState,
    short="sw-ts",
    forgets="all rounds older than the window; an arm not in it is at the prior",
    knows="how often the environment changes, to set the window",
    rewards="[0, 1]",
    formula=r"""
        N_i = \sum_{s=t-\mathtt{window}}^{t-1} \mathbf{1}\{a_s = i\}
        S_i = \sum_{s=t-\mathtt{window}}^{t-1} x_s \mathbf{1}\{a_s = i\}
        \theta_i \sim \mathrm{Beta}\bigl(\mathtt{prior\_wins} + S_i,\ \mathtt{prior\_losses} + N_i - S_i\bigr)
        a = \operatorname{argmax}_i \theta_i
    """,
    reference="Trovò et al. 2020",
    lockstep=True,
)
class SlidingTS(NamedTuple):
    """Sliding-window Thompson sampling (SW-TS): Thompson sampling from the last `window` rounds only.

    When an arm's last reward leaves the window, the arm is back at the prior and will be tried. Suited to [0, 1]
    rewards with abrupt changes, when something is known about how often. Memory grows with the window, time does not.

    For T**α phases its inventors use T**((1-α)/2) rounds, which `tuned` computes as sqrt(horizon / phases); Fiandri
    and others (arXiv 2409.05181) found passages of that analysis wrong and gave other bounds. The policy is the same.
    The paper of DS-TS uses the longer window 2 sqrt(T ln T / B): `text`.

    Reference: Trovò, Paladino, Restelli and Gatti 2020."""

    window: Annotated[int, WINDOW] = 500  # rounds remembered, all arms together
    prior_wins: Annotated[float, PRIOR] = 1.0  # first parameter of the prior
    prior_losses: Annotated[float, PRIOR] = 1.0  # second parameter of the prior
    binarise: bool = False  # turn every reward into 0 or 1 at random

    def choose(self, state: Any, t: int, rng: Any) -> Any:
        rng.betas(state.a, state.b, state.scores)
        return argmax(state.scores)

    def learn(self, state: Any, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Slide the window by one round. The binarised reward is stored, so that the same number leaves the window."""
        y = as_win(reward, rng.uniform(COIN)) if self.binarise else reward
        slide(self, state, t, arm, y)

    def believe(self, state: Any, arm: Any) -> None:
        """Update the Beta parameters from the window's sums, which rounding errors must not push below 0."""
        pulls = state.pulls[arm]
        wins = min(max(state.sums[arm], 0.0), pulls)
        state.a[arm] = self.prior_wins + wins
        state.b[arm] = self.prior_losses + (pulls - wins)

    def belief(self, state: Any) -> BetaBelief:
        return beta_belief(state)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "SlidingTS":
        """window = sqrt(horizon / phases), for abrupt changes."""
        return cls(root_window(horizon, phases))

    @classmethod
    def text(cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False) -> "SlidingTS":
        """The paper's window, 2 sqrt(horizon ln(horizon) / phases) with one phase in smooth environments."""
        return cls(log_window(horizon, 1 if smooth else phases))


def beta_belief(state: Any) -> BetaBelief:
    """The Beta laws of a state, one per arm."""
    return BetaBelief(np.asarray(state.a), np.asarray(state.b))
