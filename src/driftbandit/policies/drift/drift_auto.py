"""DriftAuto: DriftTS while rewards take two values, DriftLinTS from the third value on."""

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import compilable, copy_state
from driftbandit.core.state import copy_arm, equal_states, state_size
from driftbandit.core.validity import ROUNDS, fits, need
from driftbandit.policies.drift.drift_lin_ts import DriftLinTS
from driftbandit.policies.drift.drift_ts import DriftTS
from driftbandit.policies.drift.lin_learning import forget

TRIAL = 1000  # rewards of at most two values after which DriftLinTS no longer learns
UNKNOWN = sys.float_info.max  # in place of a value not seen yet: a finite number, since states hold no others
_TWO, _MANY = DriftTS(), DriftLinTS()

# Places in `counts`.
VALUES, LEARNED_TWO, LEARNED_MANY = range(3)


class DriftAutoState(NamedTuple):
    """Which values were seen, and the state of either policy."""

    values: Any  # the lower and the higher of the two values; UNKNOWN while not seen
    counts: Any  # distinct values seen, at most 3; rewards learned by DriftTS, and by DriftLinTS
    two: Any
    many: Any
    fresh: Any  # DriftTS before its first reward, never written to
    scores: Any  # scratch: those of the policy that chose


@described(
    short="drift-auto",
    family="infers",
    arithmetic=5,
    scratch=(
        "scores",
        "fresh",
        *(f"two.{name}" for name in DriftTS.scratch),  # type: ignore[attr-defined]
        *(f"many.{name}" for name in DriftLinTS.scratch),  # type: ignore[attr-defined]
    ),
    forgets="by inference, as DriftTS for rewards of two values and as DriftLinTS for others",
    knows="nothing",
    rewards="any",
    cost="O(K + log t), memory O(K)",
    formula=r"""
        \text{DriftTS while at most two values of } x \text{ were seen, DriftLinTS from the third on}
    """,
    reference="driftbandit",
)
@checked
class DriftAuto(NamedTuple):
    """For rewards of any kind that change in unknown ways. It has no parameters.

    While rewards take at most two values it plays as `DriftTS`, the larger value being a success. From the third value
    on it plays as `DriftLinTS`. Both learn from the start. After 1,000 rewards of two values `DriftLinTS` stops
    learning; it begins anew if a third value comes later. For rewards of 0 and 1 it makes the choices of `DriftTS`.

    >>> from driftbandit.player import Player
    >>> player = Player(DriftAuto(), 2)
    >>> for reward in (0.0, 1.0, 0.0):
    ...     player.learn(0, reward)
    >>> player.policy.plays(player.state)
    'DriftTS'
    >>> player.learn(1, 19.9)
    >>> player.policy.plays(player.state)
    'DriftLinTS'
    """

    def init(self, n_arms: int) -> DriftAutoState:
        """No reward yet."""
        values, counts = np.array([-UNKNOWN, UNKNOWN]), np.zeros(3, np.int64)
        two, fresh, many = _TWO.init(n_arms), _TWO.init(n_arms), _MANY.init(n_arms)
        return DriftAutoState(values, counts, two, many, fresh, np.zeros(n_arms))

    def choose(self, state: DriftAutoState, t: int, rng: Any) -> Any:
        """What the policy that suits the rewards seen so far chooses."""
        scores = state.scores
        if state.counts[VALUES] < 3:
            arm = _TWO.choose(state.two, state.counts[LEARNED_TWO], rng)
            for i in range(len(scores)):
                scores[i] = state.two.scores[i]
        else:
            arm = _MANY.choose(state.many, state.counts[LEARNED_MANY], rng)
            for i in range(len(scores)):
                scores[i] = state.many.scores[i]
        return arm

    def learn(self, state: DriftAutoState, t: int, arm: Any, reward: Any) -> None:
        """Let both policies learn, or the one that is played if that is settled."""
        counts = state.counts
        if counts[VALUES] < 3:
            note_value(state, t, reward)
        if counts[VALUES] < 3:
            _TWO.learn(state.two, counts[LEARNED_TWO], arm, 1.0 if reward == state.values[1] else 0.0)
            counts[LEARNED_TWO] += 1
        if counts[VALUES] == 3 or t < TRIAL:
            _MANY.learn(state.many, counts[LEARNED_MANY], arm, reward)
            counts[LEARNED_MANY] += 1

    def plays(self, state: DriftAutoState) -> str:
        """The policy that is played now."""
        return type(self.playing(state)[0]).__name__

    def playing(self, state: DriftAutoState) -> tuple[Any, Any, float, float]:
        """The policy that is played now, its state, and the rewards that are 0 and 1 to it. Of a single value so far,
        the other is taken to be 0, or 1 if that one is 0."""
        if state.counts[VALUES] == 3:
            return _MANY, state.many, 0.0, 1.0
        low, high = (float(value) for value in state.values)
        low = 0.0 if low == -UNKNOWN else low
        return _TWO, state.two, low, (0.0 if low < 0.0 else 1.0) if high == UNKNOWN else high

    def cut_rewards(self, state: DriftAutoState) -> int:
        """How many rewards `DriftLinTS` has cut because they were absurdly large."""
        return _MANY.cut_rewards(state.many) if state.counts[VALUES] == 3 else 0

    def belief(self, state: DriftAutoState) -> Any:
        """The mixture that the next choice of `DriftTS` is drawn from; None where `DriftLinTS` plays."""
        return _TWO.belief(state.two) if state.counts[VALUES] < 3 else None

    def explain(self, state: DriftAutoState, names: Iterable[Any]) -> Any:
        """What the policy that is played believes, in rewards."""
        policy, inner, low, high = self.playing(state)
        named = list(names)
        return policy.explain(inner, named).in_rewards(low, high, named)

    def units_known(self, state: DriftAutoState, t: int) -> bool:
        """Whether something can be known of a new arm."""
        return bool(state.counts[VALUES] < 3) or _MANY.units_known(state.many, int(state.counts[LEARNED_MANY]))

    def know_arm(self, state: DriftAutoState, t: int, arm: int, mean: float, worth: float, features: Any) -> None:
        """Add a new arm to both policies."""
        counts = state.counts
        if counts[VALUES] < 3:
            _, _, low, high = self.playing(state)
            _TWO.know_arm(state.two, counts[LEARNED_TWO], arm, (mean - low) / (high - low), worth, features)
        _MANY.know_arm(state.many, counts[LEARNED_MANY], arm, mean, worth, features)

    def copy_arm(self, state: DriftAutoState, arm: int, like: int) -> None:
        """Add a new arm to both policies as a copy of another."""
        _TWO.copy_arm(state.two, arm, like)
        copy_arm(_MANY, state.many, arm, like, _MANY.init(arm))

    def grow(self, state: DriftAutoState, after: DriftAutoState, t: int) -> DriftAutoState:
        """One more arm in `DriftLinTS`; `DriftTS` needs nothing more."""
        return after._replace(many=_MANY.grow(state.many, after.many, int(state.counts[LEARNED_MANY])))

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        values, two, many = (int(count) for count in state.counts)
        fits(state, values=within("[-inf, inf]"), counts=ROUNDS)
        need(values <= 3 and state.values[0] < state.values[1], "at most three values are counted, in order")
        need(two <= t and many <= t, "neither policy learned more than there was")
        _TWO.validate_state(state.two, two, like.two)
        _MANY.validate_state(state.many, many, like.many)
        need(equal_states(state.fresh, like.fresh), "fresh is the state of DriftTS in the beginning")

    def state_size(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return 2 * state_size(_TWO, n_arms) + state_size(_MANY, n_arms) + n_arms + 5


@compilable
def note_value(state: Any, t: int, reward: Any) -> None:
    """Count the values seen. A single value counts as a success if it is above 0; if the second shows that this was
    wrong, DriftTS begins anew."""
    values, counts = state.values, state.counts
    low, high = values[0], values[1]
    if counts[VALUES] == 0:
        values[1 if reward > 0.0 else 0] = reward
        counts[VALUES] = 1
    elif reward != low and reward != high:
        if counts[VALUES] == 2:
            counts[VALUES] = 3
            if t >= TRIAL:
                forget(state.many)
                counts[LEARNED_MANY] = 0
        else:
            seen = low if low > -UNKNOWN else high
            if (seen == low) != (reward > seen):
                copy_state(state.two, state.fresh)
                counts[LEARNED_TWO] = 0
            values[0] = min(seen, reward)
            values[1] = max(seen, reward)
            counts[VALUES] = 2
