"""Thompson sampling with a normal belief about each arm: of everything, of a window, or discounted.

These take any real rewards. DS-TS itself, whose spread is capped and whose idle arms keep their mean, is in
`discounted_ts`."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.beliefs import NormalBelief
from driftbandit.forgetting import DISCOUNT, Forgetting
from driftbandit.parameters import Domain, checked, described, within
from driftbandit.policies.window import WINDOW, ring_fits, root_window, slide
from driftbandit.primitives import argmax, argmax_fair, where
from driftbandit.validity import COUNTS, REALS, fits

_SPREAD: Domain = within("[0, 1e150]")


class GaussianTSState(NamedTuple):
    """What Gaussian TS knows of each arm."""

    pulls: Any
    sums: Any
    scores: Any  # scratch: the samples of the last choice


@described(
    short="g-ts",
    family="never forgets",
    scratch=("scores",),
    forgets="never",
    knows="the scale of rewards (about 1)",
    rewards="any",
    cost="O(K)",
    formula=r"""
        \theta_i \sim \mathcal{N}\Bigl(\frac{S_i}{k_i + 1},\ \frac{1}{k_i + 1}\Bigr)
        a = \operatorname{argmax}_i \theta_i
        k_a \leftarrow k_a + 1, \quad S_a \leftarrow S_a + x
    """,
    reference="Agrawal, Goyal 2013",
    lockstep=True,
)
@checked
class GaussianTS(NamedTuple):
    """Thompson sampling for any reward law: a normal draw around Sum / (k + 1) with variance 1 / (k + 1), after k
    pulls.

    That is the posterior of a normal mean with prior N(0, 1) and unit noise. 1 / (k + 1) is a variance; several public
    versions pass it as a standard deviation. It never forgets, so it belongs where nothing changes; regret there of
    order sqrt(KT log K).

    Two forms of the mean are in print: the posterior's, and the plain average Sum / k, which `shrink=False` gives.
    DS-TS at gamma = 1 is neither of the two.

    Reference: Agrawal and Goyal 2013, Algorithm 2."""

    shrink: bool = True  # mean Sum / (k + 1); else the plain average

    def init(self, n_arms: int) -> GaussianTSState:
        """Every arm at the prior N(0, 1)."""
        return GaussianTSState(np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state: GaussianTSState, t: int, rng: Any) -> Any:
        """Sample every arm once and play the largest sample."""
        scores = state.scores
        rng.normals(scores)
        for arm in range(len(scores)):
            pulls = state.pulls[arm]
            share = pulls + 1.0 if self.shrink else max(pulls, 1.0)
            scores[arm] = state.sums[arm] / share + scores[arm] / math.sqrt(pulls + 1.0)
        return argmax(scores)

    def learn(self, state: GaussianTSState, t: int, arm: Any, reward: Any) -> None:
        """Count the pull, add the reward."""
        state.pulls[arm] += 1.0
        state.sums[arm] += reward

    def belief(self, state: GaussianTSState) -> NormalBelief:
        """The distributions the next samples come from."""
        pulls, sums = np.asarray(state.pulls), np.asarray(state.sums)
        share = pulls + 1.0 if self.shrink else np.maximum(pulls, 1.0)
        return NormalBelief(sums / share, 1.0 / np.sqrt(pulls + 1.0))

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        fits(state, pulls=COUNTS, sums=REALS)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "GaussianTS":
        """There is nothing to tune."""
        return cls()


class SlidingGaussianState(NamedTuple):
    """What a Gaussian sliding policy knows of each arm, and the rounds it knows it from."""

    pulls: Any  # pulls within the window
    sums: Any  # rewards within the window
    centre: Any  # mean of the next samples
    spread: Any  # standard deviation of the next samples
    scores: Any  # scratch: the samples of the last choice
    arms: Any  # the ring of the last rounds, see `window`
    rewards: Any


@described(
    short="sw-gts",
    family="window",
    scratch=("scores",),
    forgets="all rounds older than the window; an arm not in it is at the prior",
    knows="how often the world changes, to set the window; the scale of rewards",
    rewards="any",
    cost="O(K), memory O(window)",
    formula=r"""
        N_i = \sum_{s=t-\mathtt{window}}^{t-1} \mathbf{1}\{a_s = i\}
        S_i = \sum_{s=t-\mathtt{window}}^{t-1} x_s \mathbf{1}\{a_s = i\}
        v_i = \Bigl(\frac{1}{\mathtt{prior\_sd}^2} + \frac{N_i}{\mathtt{noise\_sd}^2}\Bigr)^{-1}
        m_i = v_i \Bigl(\frac{\mathtt{prior\_mean}}{\mathtt{prior\_sd}^2} + \frac{S_i}{\mathtt{noise\_sd}^2}\Bigr)
        \theta_i \sim \mathcal{N}(m_i, v_i), \quad a = \operatorname{argmax}_i \theta_i
    """,
    reference="after Trovò et al. 2020",
    lockstep=True,
)
@checked
class SlidingGaussianTS(NamedTuple):
    """Gaussian Thompson sampling that knows only the last `window` rounds.

    The exact posterior of a normal mean with prior N(prior_mean, prior_sd²) under noise N(0, noise_sd²), as if the
    window were all there is; an arm not in the window is drawn from its prior. Suited to real-valued rewards that
    change abruptly, when their scale is known.

    No regret bound is known for it; `tuned` borrows the window of SW-TS. The code of the DS-TS paper contains it but
    never runs it.

    Reference: the Gaussian relative of Trovò and others 2020."""

    window: Annotated[int, WINDOW] = 500  # rounds remembered, all arms together
    prior_mean: Annotated[float, within("any")] = 0.0
    prior_sd: Annotated[float, within("> 0")] = 1.0
    noise_sd: Annotated[float, within("> 0")] = 1.0  # standard deviation of a reward

    def init(self, n_arms: int) -> SlidingGaussianState:
        """Every arm at the prior, the window empty."""
        return _empty_window(n_arms, self.window, self.prior_mean, self.prior_sd)

    def choose(self, state: SlidingGaussianState, t: int, rng: Any) -> Any:
        """Sample every arm once and play the largest sample."""
        scores = state.scores
        rng.normals(scores)
        for arm in range(len(scores)):
            scores[arm] = state.centre[arm] + state.spread[arm] * scores[arm]
        return argmax(scores)

    def learn(self, state: SlidingGaussianState, t: int, arm: Any, reward: Any) -> None:
        """Slide the window by one round; only two arms' posteriors change."""
        slide(self, state, t, arm, reward)

    def believe(self, state: SlidingGaussianState, arm: Any) -> None:
        """The posterior of one arm."""
        prior = 1.0 / (self.prior_sd * self.prior_sd)
        noise = 1.0 / (self.noise_sd * self.noise_sd)
        variance = 1.0 / (prior + state.pulls[arm] * noise)
        state.centre[arm] = variance * (self.prior_mean * prior + state.sums[arm] * noise)
        state.spread[arm] = math.sqrt(variance)

    def belief(self, state: SlidingGaussianState) -> NormalBelief:
        """The distributions the next samples come from."""
        return NormalBelief(np.asarray(state.centre), np.asarray(state.spread))

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        fits(state, centre=REALS, spread=_SPREAD)
        ring_fits(state, t)

    def room(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return 5 * n_arms + 2 * self.window

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "SlidingGaussianTS":
        """window = sqrt(horizon / phases), borrowed from SW-TS."""
        return cls(root_window(horizon, phases))


class DiscountedGaussianState(NamedTuple):
    """What discounted Gaussian TS knows of each arm."""

    pulls: Any  # discounted number of pulls
    mean: Any  # discounted average reward
    scores: Any  # scratch: the samples of the last choice


@described(
    short="d-gts",
    family="discounts",
    scratch=("scores",),
    forgets="discounts every past reward by gamma per round; an idle arm returns to the prior",
    knows="how often the world changes, to set gamma; the scale of rewards",
    rewards="any",
    cost="O(K)",
    formula=r"""
        v_i = \Bigl(\frac{1}{\mathtt{prior\_sd}^2} + \frac{N_i}{\mathtt{noise\_sd}^2}\Bigr)^{-1}
        m_i = v_i \Bigl(\frac{\mathtt{prior\_mean}}{\mathtt{prior\_sd}^2} + \frac{S_i}{\mathtt{noise\_sd}^2}\Bigr)
        \theta_i \sim \mathcal{N}(m_i, v_i), \quad a = \operatorname{argmax}_i \theta_i
        N_j \leftarrow \gamma N_j, \quad S_j \leftarrow \gamma S_j \ \text{ for all } j
        N_a \leftarrow N_a + 1, \quad S_a \leftarrow S_a + x
    """,
    reference="after Raj, Kalyani 2017",
    lockstep=True,
)
@checked
class DiscountedGaussianTS(NamedTuple):
    """Gaussian Thompson sampling that multiplies past evidence by `gamma` each round.

    The posterior of a normal mean with prior N(prior_mean, prior_sd²) under noise N(0, noise_sd²), computed from
    discounted counts. Unlike in DS-TS an idle arm returns to its prior, mean and all, so it is tried again however bad
    it looked; `prior_mean` says how good an arm is assumed to be if it has not been seen recently. Suited to
    real-valued rewards of known scale that drift.

    No regret bound is known for it; `tuned` borrows DS-TS's gamma. The code of the DS-TS paper contains it but never
    runs it.

    Reference: the Gaussian relative of Raj and Kalyani 2017."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    prior_mean: Annotated[float, within("any")] = 0.0
    prior_sd: Annotated[float, within("> 0")] = 1.0
    noise_sd: Annotated[float, within("> 0")] = 1.0  # standard deviation of a reward

    def init(self, n_arms: int) -> DiscountedGaussianState:
        """Every arm at the prior."""
        return DiscountedGaussianState(np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state: DiscountedGaussianState, t: int, rng: Any) -> Any:
        """Sample every arm once and play the largest sample."""
        scores = state.scores
        prior = 1.0 / (self.prior_sd * self.prior_sd)
        noise = 1.0 / (self.noise_sd * self.noise_sd)
        rng.normals(scores)
        for arm in range(len(scores)):
            evidence = state.pulls[arm] * noise
            variance = 1.0 / (prior + evidence)
            centre = variance * (self.prior_mean * prior + evidence * state.mean[arm])
            scores[arm] = centre + math.sqrt(variance) * scores[arm]
        return argmax(scores)

    def learn(self, state: DiscountedGaussianState, t: int, arm: Any, reward: Any) -> None:
        """Discount everything, then add the reward."""
        self.fade(state, self.gamma)
        self.take(state, arm, reward, 1.0)

    def fade(self, state: DiscountedGaussianState, factor: float) -> None:
        """Multiply the weight of all evidence by `factor`."""
        pulls = state.pulls
        for i in range(len(pulls)):
            pulls[i] *= factor

    def take(self, state: DiscountedGaussianState, arm: Any, reward: Any, weight: float) -> None:
        """Add one reward of this weight to count and mean; the mean form for the reason given in DS-TS."""
        pulls, mean = state.pulls, state.mean
        pulls[arm] += weight
        mean[arm] += weight * (reward - mean[arm]) / pulls[arm]

    def belief(self, state: DiscountedGaussianState) -> NormalBelief:
        """The distributions the next samples come from."""
        prior, noise = self.prior_sd**-2, self.noise_sd**-2
        evidence = np.asarray(state.pulls) * noise
        variance = 1.0 / (prior + evidence)
        return NormalBelief(variance * (self.prior_mean * prior + evidence * np.asarray(state.mean)), np.sqrt(variance))

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        fits(state, pulls=COUNTS, mean=REALS)

    @classmethod
    def half_life(cls, rounds: float) -> "DiscountedGaussianTS":
        """Evidence loses half its weight every `rounds` rounds: gamma = 2**(-1/rounds)."""
        return cls(Forgetting.half_life(rounds).gamma)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "DiscountedGaussianTS":
        """gamma = 1 - sqrt(phases / horizon), borrowed from DS-TS."""
        return cls(Forgetting.tuned(horizon, phases).gamma)


@described(
    short="gamma-swgts",
    family="window",
    scratch=("scores",),
    forgets="all rounds older than the window; an arm not in it is played at once",
    knows="how often the world changes, to set the window; the noise of rewards, to set the precision",
    rewards="any",
    cost="O(K), memory O(window)",
    formula=r"""
        N_i = \sum_{s=t-\mathtt{window}}^{t-1} \mathbf{1}\{a_s = i\}
        S_i = \sum_{s=t-\mathtt{window}}^{t-1} x_s \mathbf{1}\{a_s = i\}
        \theta_i \sim \mathcal{N}\Bigl(\frac{S_i}{N_i},\ \frac{1}{\mathtt{precision}\, N_i}\Bigr)
        \theta_i = \infty \text{ if } N_i = 0, \quad a = \operatorname{argmax}_i \theta_i
    """,
    reference="Fiandri et al. 2024",
    lockstep=True,
)
@checked
class SlidingPrecisionTS(NamedTuple):
    """Sliding-window Gaussian sampling without a prior (γ-SWGTS): a normal draw around the window's mean, variance 1 /
    (precision N).

    An arm that is not in the window is played at once, so with more arms than `window` it only cycles. Suited to
    real-valued rewards that change abruptly, where no prior can be stated.

    Its inventors bound the regret for arbitrarily changing worlds by how well the arms stay apart within a window.
    Their condition on the precision, at most min(1, 1/(4 λ²)) for λ-subgaussian rewards, hence 1 for rewards in [0, 1],
    is quoted from memory and unconfirmed; so is any best window, for which `tuned` borrows SW-TS's.

    Reference: Fiandri, Metelli and Trovò 2024 (arXiv 2409.05181)."""

    window: Annotated[int, WINDOW] = 500  # rounds remembered, all arms together
    precision: Annotated[float, within("> 0")] = 1.0  # what one reward adds to the inverse variance

    def init(self, n_arms: int) -> SlidingGaussianState:
        """No arm played yet; a centre of +inf says so."""
        return _empty_window(n_arms, self.window, math.inf, 0.0)

    def choose(self, state: SlidingGaussianState, t: int, rng: Any) -> Any:
        """Play an arm that the window does not hold, a fair choice if there are several; else the largest sample."""
        scores = state.scores
        rng.normals(scores)
        for arm in range(len(scores)):
            scores[arm] = state.centre[arm] + state.spread[arm] * scores[arm]
        return argmax_fair(scores, rng)

    def learn(self, state: SlidingGaussianState, t: int, arm: Any, reward: Any) -> None:
        """Slide the window by one round; only two arms change."""
        slide(self, state, t, arm, reward)

    def believe(self, state: SlidingGaussianState, arm: Any) -> None:
        """Centre and spread of one arm's next samples."""
        pulls = state.pulls[arm]
        held = max(pulls, 1.0)
        state.centre[arm] = where(pulls > 0.0, state.sums[arm] / held, math.inf)
        state.spread[arm] = where(pulls > 0.0, 1.0 / math.sqrt(self.precision * held), 0.0)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        fits(state, centre=within("[-1e150, inf]"), spread=_SPREAD)
        ring_fits(state, t)

    def room(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return 5 * n_arms + 2 * self.window

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "SlidingPrecisionTS":
        """window = sqrt(horizon / phases), borrowed from SW-TS, and precision 1 for rewards in [0, 1]."""
        return cls(root_window(horizon, phases))


def _empty_window(n_arms: int, window: int, centre: float, spread: float) -> SlidingGaussianState:
    return SlidingGaussianState(
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.full(n_arms, centre),
        np.full(n_arms, spread),
        np.zeros(n_arms),
        np.zeros(window, np.int64),
        np.zeros(window),
    )
