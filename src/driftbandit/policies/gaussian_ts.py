"""Thompson sampling with a normal belief about each arm, for rewards of any scale whose noise is known."""

import math
from collections import namedtuple
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.beliefs import NormalBelief
from driftbandit.core.parameters import within
from driftbandit.core.primitives import argmax, compilable
from driftbandit.core.state import new_state
from driftbandit.core.validity import COUNTS, REALS, fits
from driftbandit.policies.forgetting import DISCOUNT, WINDOW, discounting, root_window, sliding, window_fields

POSITIVE = within("> 0")


@compilable
def draw_means(policy: Any, state: Any, rng: Any) -> None:
    """Write a draw from the posterior of every arm into `scores`."""
    scores, pulls, sums = state.scores, state.pulls, state.sums
    known = 1.0 / (policy.noise * policy.noise)
    prior = 1.0 / (policy.prior_sd * policy.prior_sd)
    rng.normals(scores)
    for arm in range(len(scores)):
        precision = prior + known * pulls[arm]
        mean = policy.prior_mean + known * (sums[arm] - policy.prior_mean * pulls[arm]) / precision
        scores[arm] = mean + scores[arm] / math.sqrt(precision)


def normal_belief(policy: Any, state: Any) -> NormalBelief:
    """The posteriors that `draw_means` draws from."""
    pulls, sums = np.asarray(state.pulls), np.asarray(state.sums)
    precision = policy.prior_sd**-2 + pulls * policy.noise**-2
    return NormalBelief(
        policy.prior_mean + policy.noise**-2 * (sums - policy.prior_mean * pulls) / precision, precision**-0.5
    )


class DiscountedGaussianTSState(NamedTuple):
    """The evidence of D-GTS about each arm."""

    pulls: Any  # discounted number of pulls
    sums: Any  # discounted sum of rewards
    scores: Any  # scratch: the samples of the last choice


@discounting(
    short="d-gts",
    belief=normal_belief,
    forgets="discounts every past reward by gamma per round; an idle arm returns to the prior",
    knows="how often the environment changes, to set gamma; the noise and the spread of the means",
    rewards="any",
    formula=r"""
        \theta_i \sim \mathcal{N}\bigl(m_i,\ v_i\bigr), \quad a = \operatorname{argmax}_i \theta_i
        1 / v_i = 1 / \mathtt{prior\_sd}^2 + N_i / \mathtt{noise}^2
        m_i = v_i \bigl(\mathtt{prior\_mean} / \mathtt{prior\_sd}^2 + S_i / \mathtt{noise}^2\bigr)
        N_j \leftarrow \gamma N_j, \quad S_j \leftarrow \gamma S_j \ \text{ for all } j
        N_a \leftarrow N_a + 1, \quad S_a \leftarrow S_a + x
    """,
    reference="after Raj, Kalyani 2017",
    lockstep=True,
)
class DiscountedGaussianTS(NamedTuple):
    """Discounted Thompson sampling with normal beliefs (D-GTS): for rewards of any scale, if that scale is known.

    `noise` is the standard deviation of rewards around their mean, `prior_mean` and `prior_sd` describe the means of
    the arms. Evidence loses a factor `gamma` each round and the prior does not, so an idle arm returns to the prior. A
    smaller `noise` than the true one explores less. At gamma = 1 it never forgets. No regret bound is known; `tuned`
    borrows DS-TS's gamma. `DriftLinTS` needs none of these numbers.

    Reference: the normal form of Raj and Kalyani 2017."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    noise: Annotated[float, POSITIVE] = 0.5  # standard deviation of rewards around their mean
    prior_mean: Annotated[float, within("any")] = 0.5
    prior_sd: Annotated[float, POSITIVE] = 0.5

    def init(self, n_arms: int) -> DiscountedGaussianTSState:
        return new_state(DiscountedGaussianTSState, n_arms)

    def choose(self, state: DiscountedGaussianTSState, t: int, rng: Any) -> Any:
        draw_means(self, state, rng)
        return argmax(state.scores)

    def fade(self, state: DiscountedGaussianTSState, factor: float) -> None:
        pulls, sums = state.pulls, state.sums
        for i in range(len(pulls)):
            pulls[i] *= factor
            sums[i] *= factor

    def take(self, state: DiscountedGaussianTSState, arm: Any, reward: Any, weight: float) -> None:
        state.pulls[arm] += weight
        state.sums[arm] += weight * reward

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, pulls=COUNTS, sums=REALS)


SlidingGaussianTSState = namedtuple("SlidingGaussianTSState", window_fields())  # type: ignore[misc]


@sliding(
    SlidingGaussianTSState,
    short="sw-gts",
    belief=normal_belief,
    forgets="all rounds older than the window; an arm not in it is at the prior",
    knows="how often the environment changes, to set the window; the noise and the spread of the means",
    rewards="any",
    formula=r"""
        N_i = \sum_{s=t-\mathtt{window}}^{t-1} \mathbf{1}\{a_s = i\}
        S_i = \sum_{s=t-\mathtt{window}}^{t-1} x_s \mathbf{1}\{a_s = i\}
        \theta_i \sim \mathcal{N}\bigl(m_i,\ v_i\bigr), \quad a = \operatorname{argmax}_i \theta_i
        1 / v_i = 1 / \mathtt{prior\_sd}^2 + N_i / \mathtt{noise}^2
        m_i = v_i \bigl(\mathtt{prior\_mean} / \mathtt{prior\_sd}^2 + S_i / \mathtt{noise}^2\bigr)
    """,
    reference="after Trovò et al. 2020",
    lockstep=True,
)
class SlidingGaussianTS(NamedTuple):
    """Sliding-window Thompson sampling with normal beliefs (SW-GTS): D-GTS from the last `window` rounds only.

    Rewards outside the window are forgotten at once, so a single reward far off does no harm after that.

    Reference: the normal form of Trovò, Paladino, Restelli and Gatti 2020."""

    window: Annotated[int, WINDOW] = 500  # rounds remembered, all arms together
    noise: Annotated[float, POSITIVE] = 0.5  # standard deviation of rewards around their mean
    prior_mean: Annotated[float, within("any")] = 0.5
    prior_sd: Annotated[float, POSITIVE] = 0.5

    def choose(self, state: Any, t: int, rng: Any) -> Any:
        draw_means(self, state, rng)
        return argmax(state.scores)

    def believe(self, state: Any, arm: Any) -> None:
        """Nothing is derived from the sums before a choice."""

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "SlidingGaussianTS":
        """window = sqrt(horizon / phases), as for SW-TS."""
        return cls(root_window(horizon, phases))
