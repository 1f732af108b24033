"""EXP3.S and REXP3: exponential weights, which assume nothing about how rewards arise."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import compilable, draw_from, where
from driftbandit.core.validity import COUNTS, SHARE, close, fits, need


@compilable
def mix_in(probabilities: Any, weights: Any, whole: float, explore: float) -> None:
    """Probabilities from weights of sum `whole`: proportional to them, with a share `explore` of uniform play."""
    floor = explore / len(weights)
    for i in range(len(weights)):
        probabilities[i] = (1.0 - explore) * weights[i] / whole + floor


class EXP3SState(NamedTuple):
    """The weights of EXP3.S."""

    weights: Any  # normalised: they add up to 1, rounding apart
    probabilities: Any  # the probabilities these weights stand for, always up to date: drawn from, and divided by
    whole: Any  # the sum of the weights as it is after rounding


@described(
    short="exp3s",
    family="shares weight",
    scratch=(),
    forgets="gives every arm the same small share of all weight each round",
    knows="the number of phases and the horizon, to set explore and share",
    rewards="[0, 1]",
    cost="O(K)",
    formula=r"""
        p_i = (1 - \mathtt{explore}) \frac{w_i}{\sum_j w_j} + \frac{\mathtt{explore}}{K}, \quad a \sim p
        w_a \leftarrow w_a \exp\Bigl(\frac{\mathtt{explore}\; x}{K p_a}\Bigr)
        \text{then } w_j \leftarrow w_j + \frac{e\, \mathtt{share}}{K} W \ \text{ for all } j
        W = \text{the sum of the weights before the round}
    """,
    reference="Auer, Cesa-Bianchi, Freund, Schapire 2002",
    lockstep=True,
)
@checked
class EXP3S(NamedTuple):
    """Exponential weights that share: after every round each arm gets a small part of all weight, so none is ever lost.

    An arm is drawn with a probability that grows exponentially with its rewards; a share `explore` of the play is
    uniform. It forgets by sharing: every arm keeps at least about share / K of the weight and returns within ln(K /
    share) strong rewards.

    Assumes nothing but rewards in [0, 1], not even that they are random: the bound holds against an adversary. The
    price is that with random rewards it is far behind Thompson sampling and UCB. For S segments in T rounds and the
    parameters of `tuned`, its regret against the best sequence with S segments is at most 2 sqrt(e - 1) sqrt(KT (S
    ln(KT) + e)).

    Weights are divided by their sum each round, which changes nothing, since the recursion is homogeneous. It keeps
    them from overflowing (as they do at the theory's `explore` before round 100,000).

    >>> EXP3S.tuned(horizon=100_000, phases=10, n_arms=5)
    EXP3S(explore=0.062430..., share=1e-05)

    Reference: Auer, Cesa-Bianchi, Freund and Schapire 2002, section 8. The arm is drawn from the same probabilities
    its reward is divided by; the paper's code draws from those of the round before."""

    explore: Annotated[float, within("(0, 1]", "tuned(horizon, phases, n_arms) gives the theory's value.")] = 0.05
    share: Annotated[float, within("[0, 1]", "The theory takes 1 / horizon.")] = (
        1e-5  # alpha: part of all weight shared out
    )

    def init(self, n_arms: int) -> EXP3SState:
        weights = np.full(n_arms, 1.0 / n_arms)
        state = EXP3SState(weights, np.zeros(n_arms), np.zeros(1))
        for i in range(n_arms):
            state.whole[0] += weights[i]
        mix_in(state.probabilities, weights, state.whole[0], self.explore)
        return state

    def choose(self, state: EXP3SState, t: int, rng: Any) -> Any:
        return draw_from(state.probabilities, rng.uniform(0))

    def learn(self, state: EXP3SState, t: int, arm: Any, reward: Any) -> None:
        self.gain(state, arm, self.explore * reward / (len(state.weights) * state.probabilities[arm]))

    def arm_probability(self, state: EXP3SState, t: int, arm: Any, rng: Any) -> Any:
        return state.probabilities[arm]

    def learn_late(self, state: EXP3SState, t: int, arm: Any, reward: Any, probability: Any) -> None:
        """Learn a reward whose arm was played with this probability. A probability below the share of uniform
        play is another policy's and is raised to that share, so that the gain is at most 1."""
        floor = self.explore / len(state.weights)
        self.gain(
            state, arm, self.explore * reward / (len(state.weights) * where(probability < floor, floor, probability))
        )

    def gain(self, state: EXP3SState, arm: Any, amount: Any) -> None:
        """Raise the logarithm of the arm's weight, share, and normalise.

        The new sum follows from the old one and the two things that change, so that the new probabilities do not
        wait for a sum over all arms. The weights are then added up for the next round, so that no rounding error is
        carried on."""
        weights, probabilities = state.weights, state.probabilities
        n_arms = len(weights)
        before = state.whole[0]
        shared = math.e * self.share / n_arms * before
        raised = weights[arm] * math.exp(amount)
        scale = 1.0 / (before + (raised - weights[arm]) + n_arms * shared)
        floor = self.explore / n_arms
        for i in range(n_arms):
            weight = (weights[i] + shared) * scale
            weights[i] = weight
            probabilities[i] = (1.0 - self.explore) * weight + floor
        # The arm played comes last: a loop that reads a value written just before it waits for the memory.
        weight = (raised + shared) * scale
        weights[arm] = weight
        probabilities[arm] = (1.0 - self.explore) * weight + floor
        whole = weights[0]
        for i in range(1, n_arms):
            whole = whole + weights[i]
        state.whole[0] = whole

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, weights=SHARE, probabilities=SHARE, whole=SHARE)
        _drawable(state, self.explore)
        need(close(state.whole, sum(state.weights)) and close(state.whole, 1.0), "the weights add up to 1")

    def grow(self, state: EXP3SState, after: EXP3SState, t: int) -> EXP3SState:
        """The new arm gets the weight of an average one, and all are normalised again."""
        after.weights[:] = after.weights / after.weights.sum()
        after.whole[0] = 0.0
        for weight in after.weights:
            after.whole[0] += weight
        mix_in(after.probabilities, after.weights, after.whole[0], self.explore)
        return after

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int) -> "EXP3S":
        """Corollary 8.3 of the reference, for the best sequence of `phases` segments."""
        return cls(min(1.0, _explore(horizon, phases, n_arms)), 1.0 / horizon)

    @classmethod
    def text(cls, horizon: int, phases: int, n_arms: int, smooth: bool = False) -> "EXP3S":
        """What the paper of DS-TS means: the theory's value, with its misprint corrected."""
        return cls.tuned(horizon, phases, n_arms)

    @classmethod
    def misprinted(cls, horizon: int, phases: int, n_arms: int) -> "EXP3S":
        """What that paper prints: a misplaced parenthesis makes it always exceed 1, which is uniform play."""
        printed = math.sqrt(n_arms * (math.e + phases * math.log(n_arms * horizon) / ((math.e - 1.0) * horizon)))
        return cls(min(1.0, printed), 1.0 / horizon)

    @classmethod
    def code(cls, horizon: int, phases: int, n_arms: int, smooth: bool = False) -> "EXP3S":
        """What that paper's code runs: a tenth of the theory's value, with changes in place of phases (1 if smooth)."""
        changes = 1 if smooth else max(1, phases - 1)
        return cls(min(1.0, 0.1 * _explore(horizon, changes, n_arms)), 1.0 / horizon)


def _drawable(state: Any, explore: float) -> None:
    """Refuse probabilities that do not add up to 1, or that leave an arm less than its share of uniform play."""
    need(close(sum(state.probabilities), 1.0), "the probabilities add up to 1")
    need(
        (state.probabilities >= 0.999 * explore / len(state.probabilities)).all(),
        "each arm has its share of uniform play",
    )


def _explore(horizon: int, segments: int, n_arms: int) -> float:
    return math.sqrt(n_arms * (segments * math.log(n_arms * horizon) + math.e) / ((math.e - 1.0) * horizon))


class REXP3State(NamedTuple):
    """The weights of REXP3 since its last restart."""

    gains: Any  # sum of reward over probability, times explore / K: the logarithm of the weight
    weights: Any  # exp(gain - largest gain)
    probabilities: Any  # the probabilities these weights stand for, always up to date
    largest: Any  # the largest gain


@described(
    short="rexp3",
    family="restarts",
    scratch=(),
    forgets="restarts every batch rounds",
    knows="the variation budget and the horizon, to set batch",
    rewards="[0, 1]",
    cost="O(K)",
    formula=r"""
        p_i = (1 - \mathtt{explore}) \frac{w_i}{\sum_j w_j} + \frac{\mathtt{explore}}{K}, \quad a \sim p
        w_a \leftarrow w_a \exp\Bigl(\frac{\mathtt{explore}\; x}{K p_a}\Bigr)
        w_j \leftarrow 1 \ \text{ for all } j \text{ every } \mathtt{batch} \text{ rounds}
    """,
    reference="Besbes, Gur, Zeevi 2014",
)
@checked
class REXP3(NamedTuple):
    """Exponential weights restarted every `batch` rounds.

    Assumes rewards in [0, 1] whose means may move in any way, as long as the sum over rounds of the largest movement of
    a mean stays below a budget V. With the parameters of `tuned` the regret is of order (K ln K V)**(1/3) T**(2/3),
    which no policy can improve by more than a factor (ln K)**(1/3). Use it as the reference for slow drift of known
    size; in practice discounting does better.

    Between restarts this is EXP3, that is EXP3.S without sharing. Weights then have no lower bound, so their logarithms
    are kept, less the largest.

    >>> REXP3.tuned(horizon=100_000, phases=10, n_arms=5)
    REXP3(batch=998, explore=0.0685...)

    Reference: Besbes, Gur and Zeevi 2014."""

    batch: Annotated[int, within(">= 1", "tuned(horizon, phases, n_arms) gives the theory's value.")] = 1000
    explore: Annotated[float, within("(0, 1]", "tuned(horizon, phases, n_arms) gives the theory's value.")] = 0.05

    def init(self, n_arms: int) -> REXP3State:
        state = REXP3State(np.zeros(n_arms), np.ones(n_arms), np.zeros(n_arms), np.zeros(1))
        mix_in(state.probabilities, state.weights, float(n_arms), self.explore)
        return state

    def choose(self, state: REXP3State, t: int, rng: Any) -> Any:
        return draw_from(state.probabilities, rng.uniform(0))

    def learn(self, state: REXP3State, t: int, arm: Any, reward: Any) -> None:
        self.gain(state, t, arm, self.explore * reward / (len(state.gains) * state.probabilities[arm]))

    def arm_probability(self, state: REXP3State, t: int, arm: Any, rng: Any) -> Any:
        return state.probabilities[arm]

    def learn_late(self, state: REXP3State, t: int, arm: Any, reward: Any, probability: Any) -> None:
        """As in EXP3.S."""
        self.gain(
            state,
            t,
            arm,
            self.explore * reward / (len(state.gains) * max(probability, self.explore / len(state.gains))),
        )

    def gain(self, state: REXP3State, t: int, arm: Any, amount: Any) -> None:
        """Raise the arm's gain; at the end of a batch, forget everything. Only a new largest gain needs all K
        exponentials."""
        gains, weights = state.gains, state.weights
        n_arms = len(gains)
        if (t + 1) % self.batch == 0:
            for i in range(n_arms):
                gains[i] = 0.0
                weights[i] = 1.0
            state.largest[0] = 0.0
        else:
            gains[arm] += amount
            top = gains[0]
            for i in range(1, n_arms):
                top = max(top, gains[i])
            if top != state.largest[0]:
                state.largest[0] = top
                for i in range(n_arms):
                    weights[i] = math.exp(gains[i] - top)
            else:
                weights[arm] = math.exp(gains[arm] - top)
        whole = 0.0
        for i in range(n_arms):
            whole += weights[i]
        mix_in(state.probabilities, weights, whole, self.explore)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, gains=COUNTS, weights=SHARE, probabilities=SHARE, largest=COUNTS)
        _drawable(state, self.explore)
        need(close(state.largest, max(state.gains)), "the largest gain is the largest of the gains")

    def grow(self, state: REXP3State, after: REXP3State, t: int) -> REXP3State:
        """The new arm begins level with the best, as all arms do after a restart."""
        after.gains[-1] = after.largest[0]
        after.weights[-1] = 1.0
        mix_in(after.probabilities, after.weights, float(after.weights.sum()), self.explore)
        return after

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int, variation: float = 0.0) -> "REXP3":
        """The theory's batch and explore for a variation budget: `variation` if given, else one for each change."""
        budget = variation if variation > 0.0 else float(max(1, phases - 1))
        entropy = n_arms * math.log(n_arms)
        batch = max(1, math.ceil(entropy ** (1.0 / 3.0) * (horizon / budget) ** (2.0 / 3.0)))
        explore = math.sqrt(entropy / ((math.e - 1.0) * batch))
        return cls(batch, min(1.0, explore) if n_arms > 1 else 1.0)
