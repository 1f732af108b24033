"""Which arm a policy chooses among those that are available, and with which probability: as in an agent, but with the
numbers of decisions that are known by their ids."""

from typing import Any

import numpy as np

from driftbandit.agent.choice import chosen_among, computed_chances, sampled_chances
from driftbandit.draws import mix
from driftbandit.live.ids import Decisions
from driftbandit.primitives import stride
from driftbandit.state import to_arrays, to_lists

_SAMPLES = 1 << 45  # where the stream has the numbers of `sampled_chances`, beyond every round in use


class AskedPolicy:
    """A policy asked for one decision, from a state that it may write scratch into."""

    def __init__(self, policy: Any, state: Any, t: int, rng: Decisions) -> None:
        self._policy, self.state, self._t, self._rng = policy, state, t, rng
        self.uniform = rng.uniform

    def first(self) -> int:
        """Its choice."""
        return int(self._policy.choose(self.state, self._t, self._rng))

    def again(self, attempt: int) -> int:
        """Its choice with other numbers of the same decision."""
        return int(self._policy.choose(self.state, self._t, self._rng.again(attempt).at(0)))


def policys_choice(policy: Any, state: Any, t: int, rng: Decisions, allowed: list[int] | None) -> int:
    """The policy's arm, kept to the allowed ones (None: all)."""
    if allowed is None:
        return int(policy.choose(state, t, rng))
    return chosen_among(allowed, AskedPolicy(policy, state, t, rng))


def policys_chances(
    policy: Any, state: Any, t: int, key: int, allowed: list[int], n_arms: int, draws: int = 2000
) -> tuple[np.ndarray, float]:
    """The chance of each allowed arm, and how far it may be off: by quadrature where the policy has a belief to
    integrate, read off where it draws from probabilities, otherwise by asking a copy many times. The draws are fixed by
    the key, so that everyone who asks about the same state gets the same answer."""
    if len(allowed) == 1:
        return np.ones(1), 0.0
    known = computed_chances(policy, state, t, allowed, n_arms)
    if known is not None:
        return known
    scratch = to_lists(to_arrays(state, policy.init(n_arms)))
    keys = np.array([stride(_SAMPLES + n) for n in range(draws)], np.uint64)
    rng = Decisions(np.asarray(mix(np.uint64(key) + keys)))
    return sampled_chances(lambda n: AskedPolicy(policy, scratch, t, rng.at(n)), allowed, n_arms, draws)
