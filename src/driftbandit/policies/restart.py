"""Restarting a policy at fixed intervals."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import arm_probability, copy_state, learn_late_reward, learn_reward
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
        """At the end of a period everything is forgotten here, since `choose` must not change anything."""
        if (t + 1) % self.period == 0:
            copy_state(state.base, state.fresh)
            state.start[0] = t + 1
        else:
            learn_reward(self.base, state.base, t - state.start[0], arm, reward, rng)

    def arm_probability(self, state: RestartState, t: int, arm: Any, rng: Any) -> Any:
        return arm_probability(self.base, state.base, t - state.start[0], arm, rng)

    def learn_late(self, state: RestartState, t: int, arm: Any, reward: Any, rng: Any, probability: Any) -> None:
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
