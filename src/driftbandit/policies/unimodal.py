"""Bandits whose means rise to one peak and fall again along a line of arms: only the peak's neighbours are compared."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import within
from driftbandit.core.primitives import argmax_fair, compilable
from driftbandit.core.state import new_state
from driftbandit.core.validity import ARM_OR_NONE, FLAG, ROUNDS, fits
from driftbandit.policies.forgetting import WINDOW, ring_fits, slide, sliding
from driftbandit.policies.kl_ucb import C, kl_ucb, log_budget


@compilable
def compare(state: Any, leader: int, budget: float, rng: Any) -> int:
    """The largest kl-UCB index among the leader and its neighbours, equal ones drawn fairly.

    Other arms get their mean less 2 as a score, below every index: it ranks them where none of the three can be
    played."""
    scores, pulls, mean = state.scores, state.pulls, state.mean
    first = max(leader - 1, 0)
    last = min(leader + 1, len(scores) - 1)
    for arm in range(len(scores)):
        scores[arm] = mean[arm] - 2.0
    ties = 0
    best = first
    for arm in range(first, last + 1):
        scores[arm] = kl_ucb(mean[arm], budget / pulls[arm]) if pulls[arm] > 0.0 else math.inf
        if scores[arm] > scores[best] or ties == 0:
            best = arm
            ties = 1
        elif scores[arm] == scores[best]:
            ties += 1
    if ties == 1:
        return best
    skip = int(rng.uniform(3) * ties)  # not TIES: that number may have chosen the leader already
    for arm in range(best, last + 1):
        if scores[arm] == scores[best]:
            if skip == 0:
                return arm
            skip -= 1
    return best


@compilable
def leader_of(mean: Any, plays: Any, rng: Any) -> int:
    """The arm with the largest mean, -1 while an arm waits for its first play."""
    for arm in range(len(mean)):
        if plays[arm] == 0:
            return -1
    return argmax_fair(mean, rng)


class SlidingOSUBState(NamedTuple):
    """The evidence of SW-OSUB about each arm, and the rounds it comes from."""

    pulls: Any  # pulls within the window
    sums: Any  # rewards within the window
    mean: Any  # sums / pulls; -inf for an arm not in the window, which cannot lead
    seen: Any  # 1 for an arm ever played, else 0
    led: Any  # rounds led since the start
    lately: Any  # rounds led within the window
    scores: Any  # scratch: the indices of the last choice
    leaders: Any  # the leaders of the last rounds, in step with the ring
    arms: Any  # the ring of the last rounds, see `window`
    rewards: Any


@sliding(
    SlidingOSUBState,
    short="sw-osub",
    forgets="all rounds older than the window",
    knows="that means are unimodal along the arms' order; how fast they move, to set the window",
    rewards="[0, 1]",
    cost="O(K), three indices, memory O(window)",
    formula=r"""
        L = \operatorname{argmax}_i \hat\mu_i, \quad \ell_L = \text{rounds led by } L
        \ell'_L = \text{those within the window}
        a = L \ \text{ if } (\ell_L - 1) \bmod 3 = 0, \text{ else}
        a = \operatorname{argmax}_{i \in \{L-1,\, L,\, L+1\}} \max\{q : \mathrm{kl}(\hat\mu_i, q) \le d / N_i\}
        d = \ln \ell'_L + c \ln \ln \ell'_L
        N_i, \hat\mu_i \ \text{ from the last } \mathtt{window} \text{ rounds}
    """,
    reference="Combes, Proutière 2014",
)
class SlidingOSUB(NamedTuple):
    """SW-OSUB: find the peak of a line of arms from the last `window` rounds, and follow it when it moves.

    The leader is the arm with the largest mean. Every third round it leads it is played itself, otherwise the largest
    kl-UCB index among it and its neighbours, with the leader's count of rounds in the logarithm.

    A neighbour of the leader that left the window is played as soon as the neighbourhood is compared; arms further away
    are not revisited. Suited to the smooth environments of the paper, whose means are unimodal in the arm; an abrupt
    jump of the peak has to be climbed arm by arm. Rewards in [0, 1].

    Its inventors bound the regret under drift by σ per round. Their window, σ**(-3/4) ln(1/σ) / 8, is unconfirmed, and
    so is σ**(-4/5), the value met in experiments: `tuned_smooth`. `tuned` borrows SW-UCB's window. Every third round
    led since the start plays the leader; the logarithm counts rounds led within the window.

    Reference: Combes and Proutière 2014. The details are checked against a public implementation, not word by word
    against the article."""

    window: Annotated[int, WINDOW] = 500  # rounds remembered, all arms together
    c: Annotated[float, C] = 0.0  # weight of ln ln

    def init(self, n_arms: int) -> SlidingOSUBState:
        seen, led, lately = np.zeros((3, n_arms), np.int64)
        return new_state(
            SlidingOSUBState,
            n_arms,
            mean=np.full(n_arms, -math.inf),
            seen=seen,
            led=led,
            lately=lately,
            leaders=np.full(self.window, -1, np.int64),
            arms=np.zeros(self.window, np.int64),
            rewards=np.zeros(self.window),
        )

    def choose(self, state: SlidingOSUBState, t: int, rng: Any) -> Any:
        """Arms never played in order of index; then the leader, or the best bound around it."""
        scores, mean = state.scores, state.mean
        for arm in range(len(mean)):
            scores[arm] = mean[arm]
        for arm in range(len(mean)):
            if state.seen[arm] == 0:
                scores[arm] = math.inf
                return arm
        leader = argmax_fair(mean, rng)
        if state.led[leader] % (min(2, len(mean) - 1) + 1) == 0:
            scores[leader] = math.inf
            return leader
        return compare(state, leader, log_budget(state.lately[leader] + 1, self.c), rng)

    def learn(self, state: SlidingOSUBState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        here = t % self.window
        gone = state.leaders[here]
        if gone >= 0:
            state.lately[gone] -= 1
        leader = leader_of(state.mean, state.seen, rng)
        state.leaders[here] = leader
        if leader >= 0:
            state.lately[leader] += 1
            state.led[leader] += 1
        state.seen[arm] = 1
        slide(self, state, t, arm, reward)

    def believe(self, state: SlidingOSUBState, arm: Any) -> None:
        pulls = state.pulls[arm]
        state.mean[arm] = min(max(state.sums[arm] / pulls, 0.0), 1.0) if pulls > 0.0 else -math.inf

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, len(state.pulls), seen=FLAG, led=ROUNDS, lately=ROUNDS, leaders=ARM_OR_NONE)
        fits(state, mean=within("[-inf, 1]"))
        ring_fits(state, t)

    @classmethod
    def tuned_smooth(cls, sigma: float, practice: bool = False) -> "SlidingOSUB":
        """For means that move by at most `sigma` per round: sigma**(-3/4) ln(1/sigma) / 8, or sigma**(-4/5) as in
        practice."""
        if not 0.0 < sigma < 1.0:
            raise ValueError(f"sigma, the largest change of a mean in a round, needs to be in (0, 1); got {sigma!r}.")
        rounds = sigma ** (-4.0 / 5.0) if practice else sigma ** (-3.0 / 4.0) * math.log(1.0 / sigma) / 8.0
        return cls(max(1, int(rounds)))
