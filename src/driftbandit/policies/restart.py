"""Restarting a policy at fixed intervals."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.parameters import checked, described, within
from driftbandit.primitives import chance_of, copy_state, teach, teach_late
from driftbandit.state import room_of
from driftbandit.validity import check_state, need


class RestartState(NamedTuple):
    """The wrapped policy's state, and what is needed to begin again."""

    base: Any  # the wrapped policy's state
    fresh: Any  # the same as it was in the beginning, never written to
    start: Any  # the round of the last restart: the wrapped policy's clock begins there


def _equal(state: Any, other: Any) -> bool:
    pairs = zip(state, other, strict=True)
    return all(_equal(a, b) if isinstance(a, tuple) else np.array_equal(a, b) for a, b in pairs)


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
    knows="how often the world changes, to set period; what the wrapped policy needs",
    cost="as the wrapped policy, and its memory once per period",
    formula=r"""
        \text{state} \leftarrow \text{the base's first state, whenever } t \bmod \mathtt{period} = 0
    """,
    reference="folklore; analysed for EXP3 by Besbes, Gur, Zeevi 2014",
)
@checked
class PeriodicRestart(NamedTuple):
    """Any policy, restarted every `period` rounds.

    The plainest way to make a stationary policy follow a changing world: everything is forgotten at once, by the clock.
    Use it as the yardstick that a cleverer way of forgetting has to beat. The wrapped policy sees a clock that begins
    at 0 with every restart, but the random numbers of the round it is really in, so that two periods do not repeat each
    other.

    With U changes and a base whose regret over N rounds is of order sqrt(KN), the loss is about T sqrt(K/N) for
    restarting and UN for changes inside a period, least at N = (T sqrt(K) / (2U))**(2/3), which `tuned` computes; the
    order is U**(1/3) T**(2/3), above the sqrt(UT) of policies that forget at the right times. This balance of the two
    terms is our own and ignores constants.

    >>> from driftbandit.policies import DiscountedTS
    >>> PeriodicRestart(base=DiscountedTS(gamma=0.9), period=100)
    PeriodicRestart(base=DiscountedTS(gamma=0.9, tau_max=0.2, forget_below=0.0, weight=1.0), period=100)
    """

    base: Any  # the policy to start anew
    period: Annotated[int, within(">= 1", "tuned(horizon, phases, n_arms, base) suggests one.")] = 1000

    def validate(self) -> None:
        """Refuse a base that is not a policy."""
        needs_policy(self)

    def init(self, n_arms: int) -> RestartState:
        """The wrapped policy's state, twice: one to play with, one to begin again from."""
        return RestartState(self.base.init(n_arms), self.base.init(n_arms), np.zeros(1, np.int64))

    def choose(self, state: RestartState, t: int, rng: Any) -> Any:
        """What the wrapped policy chooses."""
        return self.base.choose(state.base, t - state.start[0], rng)

    def learn(self, state: RestartState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Let the wrapped policy learn; if the next round begins a period, forget it all now, since `choose` must not
        change anything."""
        if (t + 1) % self.period == 0:
            copy_state(state.base, state.fresh)
            state.start[0] = t + 1
        else:
            teach(self.base, state.base, t - state.start[0], arm, reward, rng)

    def chance_of(self, state: RestartState, t: int, arm: Any, rng: Any) -> Any:
        """As the wrapped policy."""
        return chance_of(self.base, state.base, t - state.start[0], arm, rng)

    def learn_late(self, state: RestartState, t: int, arm: Any, reward: Any, rng: Any, chance: Any) -> None:
        """`learn` with a reward whose arm was played with this probability."""
        if (t + 1) % self.period == 0:
            copy_state(state.base, state.fresh)
            state.start[0] = t + 1
        else:
            teach_late(self.base, state.base, t - state.start[0], arm, reward, rng, chance)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        start = int(state.start[0])
        need(0 <= start <= t, "start is no later than now")
        need(_equal(state.fresh, like.fresh), "fresh is the wrapped policy's state in the beginning")
        check_state(self.base, state.base, t - start, like.base)

    def room(self, n_arms: int) -> int:
        """Twice what the wrapped policy needs."""
        return 2 * room_of(self.base, n_arms) + 1

    def grow(self, state: RestartState, after: RestartState, t: int) -> RestartState:
        """As the wrapped policy grows."""
        grow = getattr(self.base, "grow", None)
        return after if grow is None else after._replace(base=grow(state.base, after.base, t - int(state.start[0])))

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int, base: Any) -> "PeriodicRestart":
        """The period that balances restarts against changes for a base of regret sqrt(KN): (T sqrt(K) /
        (2U))**(2/3)."""
        changes = max(1, phases - 1)
        period = math.ceil((horizon * math.sqrt(n_arms) / (2.0 * changes)) ** (2.0 / 3.0))
        return cls(base, min(horizon, period))
