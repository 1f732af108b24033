"""Policies around another policy: one restarts it at fixed intervals. The other, in simulations only, lets it learn
outcomes late, only if they are successes, or in another order than they were decided in."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.draws import log_of_unit
from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import (
    TIES,
    arm_probability,
    copy_state,
    index,
    learn_late_reward,
    shuffle,
    uses_probability,
)
from driftbandit.core.state import equal_states, state_size
from driftbandit.core.validity import check_state, need


class RestartState(NamedTuple):
    """The wrapped policy's state now and at its beginning."""

    base: Any  # the wrapped policy's state
    fresh: Any  # the same as it was in the beginning, never written to
    start: Any  # the round of the last restart: the wrapped policy's clock begins there


def needs_policy(wrapper: Any) -> None:
    """Refuse a wrapper whose base is not a policy."""
    base = wrapper.base
    if isinstance(base, type) or not all(hasattr(base, verb) for verb in ("init", "choose", "learn")):
        raise ValueError(
            f"{type(wrapper).__name__} needs base to be a policy such as DiscountedTS(gamma=0.99); got {base!r:.60}."
        )


@described(
    short="periodic-restart",
    family="wrapper",
    forgets="restarts the wrapped policy every period rounds",
    knows="how often the environment changes, to set period; what the wrapped policy needs",
    cost="as the wrapped policy, and its memory once per period",
    formula=r"""
        \text{state} \leftarrow \text{the base's first state, whenever } t \bmod \mathtt{period} = 0
    """,
    reference="folklore; analysed for EXP3 by Besbes, Gur, Zeevi 2014",
)
@checked
class PeriodicRestart(NamedTuple):
    """Any policy, restarted every `period` rounds.

    The simplest way to make a stationary policy follow changes, and the reference that better ways of forgetting have
    to beat. The wrapped policy's clock begins at 0 with every restart, but its random numbers are those of the actual
    round, so that two periods do not repeat each other.

    With U changes and a base whose regret over N rounds is of order sqrt(KN), the loss is about T sqrt(K/N) for
    restarting and UN for changes inside a period, least at N = (T sqrt(K) / (2U))**(2/3), which `tuned` computes. The
    order is U**(1/3) T**(2/3), above the sqrt(UT) of policies that forget at the right times. This balance is our own
    and ignores constants.

    >>> from driftbandit.policies import DiscountedTS
    >>> PeriodicRestart(base=DiscountedTS(gamma=0.9), period=100)
    PeriodicRestart(base=DiscountedTS(gamma=0.9, tau_max=0.2, forget_below=0.0, weight=1.0), period=100)
    """

    base: Any  # the policy to start anew
    period: Annotated[int, within(">= 1", "tuned(horizon, phases, n_arms, base) suggests one.")] = 1000

    def validate(self) -> None:
        needs_policy(self)

    def init(self, n_arms: int) -> RestartState:
        return RestartState(self.base.init(n_arms), self.base.init(n_arms), np.zeros(1, np.int64))

    def choose(self, state: RestartState, t: int, rng: Any) -> Any:
        return self.base.choose(state.base, t - state.start[0], rng)

    def learn(self, state: RestartState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        self.learn_late(state, t, arm, reward, rng, self.arm_probability(state, t, arm, rng))

    def arm_probability(self, state: RestartState, t: int, arm: Any, rng: Any) -> Any:
        return arm_probability(self.base, state.base, t - state.start[0], arm, rng)

    def learn_late(self, state: RestartState, t: int, arm: Any, reward: Any, rng: Any, probability: Any) -> None:
        """At the end of a period everything is forgotten here, since `choose` must not change anything."""
        if (t + 1) % self.period == 0:
            copy_state(state.base, state.fresh)
            state.start[0] = t + 1
        else:
            learn_late_reward(self.base, state.base, t - state.start[0], arm, reward, rng, probability)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        start = int(state.start[0])
        need(0 <= start <= t, "start is no later than now")
        need(equal_states(state.fresh, like.fresh), "fresh is the wrapped policy's state in the beginning")
        check_state(self.base, state.base, t - start, like.base)

    def state_size(self, n_arms: int) -> int:
        return 2 * state_size(self.base, n_arms) + 1

    def grow(self, state: RestartState, after: RestartState, t: int) -> RestartState:
        grow = getattr(self.base, "grow", None)
        return after if grow is None else after._replace(base=grow(state.base, after.base, t - int(state.start[0])))

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int, base: Any) -> "PeriodicRestart":
        """The period that balances restarts against changes for a base of regret sqrt(KN)."""
        changes = max(1, phases - 1)
        period = math.ceil((horizon * math.sqrt(n_arms) / (2.0 * changes)) ** (2.0 / 3.0))
        return cls(base, min(horizon, period))


ORDERS = ("arrival", "decision", "shuffled", "successes-first")
_DECISION, _SHUFFLED, _SUCCESSES_FIRST = 1, 2, 3  # positions in ORDERS, which is what compiled code compares
_DELAY = TIES + 1  # the slot of the number that a delay is drawn with
_PLACES = TIES + 2  # the first slot of those that shuffle a batch
LONGEST = 20  # mean delays: a longer random delay is cut to this (1 in 500 million is longer)
MOST = 10_000_000  # outcomes that may be waiting at a time: 560 MB
_SIZES = f"[0, {MOST}]"


class DelayedState(NamedTuple):
    """The wrapped policy's state, and the outcomes that it has not learned yet: rings by decision and by round."""

    base: Any
    arms: Any
    rewards: Any
    played_with: Any  # the probabilities of these arms at decision time, where the wrapped policy uses them
    after: Any  # the next outcome that is learned in the same round; -1: none
    first: Any  # by round: the first outcome learned in it; -1: none
    last: Any
    together: Any  # scratch: rewards learned in this round, in order
    learned: Any  # how many outcomes were learned


@described(
    short="delayed",
    family="wrapper",
    simulated_only=True,
    forgets_as_base=True,
    forgets="like the wrapped policy, which counts the outcomes it has learned",
    knows="what the wrapped policy needs",
    cost="as the wrapped policy, memory O(rounds + wait + batch)",
    formula=r"""
        a_t = \text{the base's choice from the outcomes learned before } t
    """,
    reference="Joulani, György, Szepesvári 2013",
)
@checked
class Delayed(NamedTuple):
    """Any policy that learns each outcome some rounds after the decision: simulates the cost of delays, waiting and the
    order of learning.

    An outcome arrives `rounds` rounds after its decision, or with `random` after an exponential delay of that mean
    (rounded down, at most 20 means).

    With `wait` only successes (rewards above 0) are reported. A decision without a report is learned as a failure when
    it is `wait` rounds old, and a success that arrives later than that is lost. `order="arrival"` learns each success
    when it arrives, so the policy sees successes before the failures of the same time. `order="decision"` learns every
    outcome when its decision is `wait` rounds old, as a live bandit with `wait` does.

    With `batch` nothing is learned before the end of a batch of that many rounds. What has arrived by then is learned
    together, in the order of the decisions, `"shuffled"`, or `"successes-first"`.

    The policy's clock counts the outcomes that it has learned. All outcomes learned in one round are given that round's
    random numbers. A policy that divides rewards by the probability of their arm (EXP3.S, REXP3) is given the
    probability at decision time.

    >>> from driftbandit.policies import DiscountedTS
    >>> Delayed(base=DiscountedTS(gamma=0.9), rounds=400, random=True, wait=2000, order="decision").wait
    2000
    """

    base: Any  # the policy
    rounds: Annotated[int, within(_SIZES, "0 means no delay.")] = 100
    random: bool = False  # delays are exponential, with mean `rounds`
    wait: Annotated[int, within(_SIZES, "0: failures are reported like successes.")] = 0
    batch: Annotated[int, within(_SIZES, "0: no batches.")] = 0
    order: str = "arrival"

    def validate(self) -> None:
        needs_policy(self)
        if self.order not in ORDERS:
            raise ValueError(f"Delayed needs order to be one of {', '.join(ORDERS)}; got {self.order!r:.60}.")
        allowed = ORDERS[1:] if self.batch else ORDERS[:2] if self.wait else ORDERS[:1]
        if self.order not in allowed:
            given = "with batch" if self.batch else "with wait and no batch" if self.wait else "without wait and batch"
            raise ValueError(f"Delayed {given} needs order={' or '.join(map(repr, allowed))}; got {self.order!r}.")
        if self.waiting() > MOST:
            raise ValueError(
                f"Delayed keeps at most {MOST:,} outcomes waiting; these settings need {self.waiting():,}. Use a "
                "smaller rounds, wait or batch."
            )

    def waiting(self) -> int:
        """How many outcomes may be waiting at a time: one for each round of the longest delay."""
        return (self.wait or self.rounds * (LONGEST if self.random else 1)) + self.batch + 1

    def with_environment(self, environment: Any) -> "BoundDelayed":
        bind = getattr(self.base, "with_environment", None)
        base = self.base if bind is None else bind(environment)
        order = ORDERS.index(self.order)
        return BoundDelayed(base, self.rounds, self.random, self.wait, self.batch, order, self.waiting())

    def init(self, n_arms: int) -> DelayedState:
        raise ValueError("Delayed only plays in simulations; a live bandit has the setting `wait`.")

    def choose(self, state: DelayedState, t: int, rng: Any) -> Any:
        return 0

    def learn(self, state: DelayedState, t: int, arm: Any, reward: Any) -> None:
        pass

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int, base: Any) -> "Delayed":
        return cls(base)


class BoundDelayed(NamedTuple):
    """A `Delayed` in a simulation; `order` is a position in ORDERS."""

    base: Any
    rounds: int
    random: bool
    wait: int
    batch: int
    order: int
    size: int  # of the rings

    def init(self, n_arms: int) -> DelayedState:
        size = self.size
        kept = size if uses_probability(self.base) else 1
        none = np.full(size, -1)
        whole = np.zeros(size, np.int64)
        return DelayedState(
            self.base.init(n_arms), whole, np.zeros(size), np.zeros(kept), none, none.copy(), none.copy(),
            whole.copy(), np.zeros(1, np.int64),
        )  # fmt: skip

    def choose(self, state: DelayedState, t: int, rng: Any) -> Any:
        return self.base.choose(state.base, state.learned[0], rng)

    def learn(self, state: DelayedState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Keep the outcome until the round in which it is learned, and learn those of this round."""
        here = index(t % self.size)
        late = self.delay(rng)
        lost = self.wait > 0 and (reward <= 0.0 or late > self.wait)
        if lost or (self.wait > 0 and self.order == _DECISION):
            late = self.wait
        state.arms[here] = arm
        state.rewards[here] = 0.0 if lost else reward
        if uses_probability(self.base):
            state.played_with[here] = arm_probability(self.base, state.base, state.learned[0], arm, rng)
        due = t + late
        if self.batch > 0:
            due = (due // self.batch + 1) * self.batch - 1
        place = index(due % self.size)
        if state.first[place] < 0:
            state.first[place] = here
        else:
            state.after[index(state.last[place])] = here
        state.last[place] = here
        state.after[here] = -1
        self.learn_due(state, here, rng)

    def delay(self, rng: Any) -> int:
        """After how many rounds an outcome arrives."""
        if not self.random:
            return self.rounds
        late = -self.rounds * log_of_unit(1.0 - rng.uniform(_DELAY))
        return int(min(late, float(LONGEST * self.rounds)))

    def learn_due(self, state: DelayedState, now: int, rng: Any) -> None:
        """Learn everything that is due in this round, whose place in the rings is `now`."""
        count = 0
        if self.order == _SUCCESSES_FIRST:
            count = self.gather(state, now, count, 1)
            count = self.gather(state, now, count, 0)
        else:
            count = self.gather(state, now, count, -1)
        if self.order == _SHUFFLED:
            shuffle(state.together, count, rng, _PLACES)
        state.first[now] = -1
        for i in range(count):
            k = index(state.together[i])
            probability = state.played_with[k if uses_probability(self.base) else 0]
            learn_late_reward(
                self.base, state.base, state.learned[0], state.arms[k], state.rewards[k], rng, probability
            )
            state.learned[0] += 1

    def gather(self, state: DelayedState, now: int, count: int, success: int) -> int:
        """Append due rewards, in the order of the decisions, to the first `count` of `together`: successes (1),
        failures (0) or both (-1). Returns the new count."""
        k = state.first[now]
        while k >= 0:
            if success < 0 or (state.rewards[k] > 0.0) == (success == 1):
                state.together[count] = k
                count += 1
            k = state.after[k]
        return count
