"""Rewards that come late: any policy, handed each reward only some rounds after it was earned."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.parameters import checked, described, within
from driftbandit.policies.restart import needs_policy
from driftbandit.primitives import chance_of, compilable, index, teach, teach_late, weighs
from driftbandit.state import room_of
from driftbandit.validity import ARM, REALS, SHARE, check_state, fits

_MODULUS = 1 << 31


class DelayedState(NamedTuple):
    """The wrapped policy's state, and the rewards under way."""

    base: Any
    arms: Any  # ring of the last rounds, twice as many as the mean delay
    rewards: Any
    played_with: Any  # the probabilities of these arms back then, where the wrapped policy weighs by them


@compilable
def coprime(candidate: int, size: int) -> int:
    """The first number from `candidate` on that has no common divisor with `size`."""
    while True:
        a = candidate
        b = size
        while b != 0:
            rest = a % b
            a = b
            b = rest
        if a == 1:
            return candidate
        candidate += 1


@compilable
def scrambled(number: int) -> int:
    """A number below 2**31 from any up to 8e9: one step of a linear congruential generator, which needs no more than 64
    bits on any machine. Delays are part of the policy, not of a run's luck, so they need no better stream."""
    return (number * 1103515245 + 12345) % _MODULUS


@compilable
def earned_in(t: int, rounds: int) -> int:
    """The round whose reward is handed on in round t, for random delays: rewards of one block of `rounds` rounds come
    in the next block, one per round, in an order drawn for each block. Below 0 in the first block."""
    block = t // rounds
    place = t - block * rounds
    drawn = scrambled(scrambled(block))
    step = coprime(1 + drawn * rounds // _MODULUS, rounds)
    first = scrambled(drawn) * rounds // _MODULUS
    return (block - 1) * rounds + (first + step * place) % rounds


def _lies_apart(state: Any) -> bool:
    """Does some part of a state have arrays of its own for each lane?"""
    return isinstance(state, tuple) and (getattr(type(state), "apart", False) or any(map(_lies_apart, state)))


@described(
    short="delayed",
    family="wrapper",
    simulated_only=True,
    forgets_as_base=True,
    forgets="like the wrapped policy, which counts the rewards it has heard of",
    knows="what the wrapped policy needs",
    cost="as the wrapped policy, memory O(rounds)",
    formula=r"""
        a_t = \text{the base's choice from the rewards } x_1, \dots, x_{t - \mathtt{rounds}}
    """,
    reference="Joulani, György, Szepesvári 2013",
)
@checked
class Delayed(NamedTuple):
    """Any policy, told of each reward `rounds` rounds late; with `random`, that late on average, between 1 and 2 rounds
    - 1.

    Rewards in real life come hours after the decision. Meanwhile the policy decides from what it has heard, and its
    clock counts the rewards it has heard. Use it in simulations to see what a delay costs: a policy acts on what was
    best `rounds` rounds ago, and where the ranking changes about as often as that, a short memory is worse than none.

    A policy that divides rewards by the probability of their arm (EXP3.S, REXP3, META) is given the probability with
    which the arm was played, which is kept with the reward on its way.

    Which rewards are late by how much is the same in every run, so that runs can be played side by side in lanes.

    >>> from driftbandit.policies import DiscountedTS
    >>> Delayed(base=DiscountedTS(gamma=0.9), rounds=100).rounds
    100
    """

    base: Any  # the policy
    rounds: Annotated[int, within("[0, 100000000]", "0 is no delay.")] = 100
    random: bool = False  # delays vary: one reward comes in each round, but in a drawn order

    def validate(self) -> None:
        """Refuse a base that is not a policy."""
        needs_policy(self)

    @property
    def lockstep(self) -> bool:
        """Does the wrapped policy work on rows of lanes? Then so does this, unless each lane of it learns for itself,
        from arrays that lie apart: the rewards under way stand side by side."""
        return bool(getattr(self.base, "lockstep", False)) and not _lies_apart(self.base.init(1))

    def init(self, n_arms: int) -> DelayedState:
        """Nothing under way."""
        size = max(self._size(), 1)
        kept = size if weighs(self.base) else 1
        return DelayedState(self.base.init(n_arms), np.zeros(size, np.int64), np.zeros(size), np.zeros(kept))

    def choose(self, state: DelayedState, t: int, rng: Any) -> Any:
        """What the wrapped policy chooses from what it has heard of."""
        return self.base.choose(state.base, max(t - self.rounds, 0), rng)

    def learn(self, state: DelayedState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Put the reward on its way, and hand on the one that arrives."""
        rounds = self.rounds
        if rounds == 0:
            teach(self.base, state.base, t, arm, reward, rng)
            return
        base, heard, size = self.base, t - rounds, len(state.arms)
        chance = chance_of(base, state.base, max(heard, 0), arm, rng)
        here = index(t % size)
        there = index(earned_in(t, rounds) % size) if self.random else here
        if heard >= 0 and not self.random:  # it arrives from where the new one is going to be
            self.hand_on(state, heard, there, rng)
        state.arms[here] = arm
        state.rewards[here] = reward
        if weighs(base):
            state.played_with[here] = chance
        if heard >= 0 and self.random:
            self.hand_on(state, heard, there, rng)

    def hand_on(self, state: DelayedState, heard: int, there: int, rng: Any) -> None:
        """Let the wrapped policy learn the reward that has arrived, the `heard`-th."""
        there = index(there)
        if weighs(self.base):
            teach_late(
                self.base, state.base, heard, state.arms[there], state.rewards[there], rng, state.played_with[there]
            )
        else:
            teach(self.base, state.base, heard, state.arms[there], state.rewards[there], rng)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        fits(state, _arms_of(like.base, self.base), arms=ARM, rewards=REALS, played_with=SHARE)
        check_state(self.base, state.base, max(t - self.rounds, 0), like.base)

    def room(self, n_arms: int) -> int:
        """What the wrapped policy needs, and the rewards under way."""
        return room_of(self.base, n_arms) + 3 * max(self._size(), 1)

    def grow(self, state: DelayedState, after: DelayedState, t: int) -> DelayedState:
        """As the wrapped policy grows."""
        grow = getattr(self.base, "grow", None)
        heard = max(t - self.rounds, 0)
        return after if grow is None else after._replace(base=grow(state.base, after.base, heard))

    def _size(self) -> int:
        return 2 * self.rounds if self.random else self.rounds

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int, base: Any) -> "Delayed":
        """There is nothing to tune: the world decides how late rewards are."""
        return cls(base)


def _arms_of(state: Any, policy: Any) -> int:
    """How many arms the state of a policy is for: the number for which it would be made."""
    n_arms = 1
    while _length(policy.init(n_arms)) < _length(state):
        n_arms += 1
    return n_arms


def _length(state: Any) -> int:
    return sum(_length(field) if isinstance(field, tuple) else len(field) for field in state)
