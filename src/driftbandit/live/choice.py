"""Which arm a policy chooses among those that are available, and with which probability."""

from typing import Any

import numpy as np

from driftbandit.agent.choice import computed_chances
from driftbandit.draws import mix
from driftbandit.live.ids import Decisions
from driftbandit.primitives import TIES, stride
from driftbandit.state import to_arrays, to_lists

REDRAWS = 64
_SAMPLES = 1 << 45  # where the stream has the numbers of `sampled_chances`, beyond every round in use


def policys_choice(policy: Any, state: Any, t: int, rng: Decisions, allowed: list[int] | None) -> int:
    """The policy's arm, kept to the allowed ones (None: all).

    Where the choice is the arm of largest score, the largest among the allowed is taken: the same sample, fewer
    candidates. Where the policy drew the arm from probabilities, they are renormalised. Otherwise it is asked again
    with other draws, and if it insists (a scheduled pull), an allowed arm is drawn evenly."""
    arm = int(policy.choose(state, t, rng))
    if allowed is None or arm in allowed:
        return arm
    scores = getattr(state, "scores", None)
    if scores is not None and scores[arm] >= max(scores):
        top = max(scores[slot] for slot in allowed)
        ties = [slot for slot in allowed if scores[slot] == top]
        if ties:
            return ties[int(rng.uniform(TIES) * len(ties))]
    chances = getattr(state, "chances", None)
    if chances is not None and sum(chances[slot] for slot in allowed) > 0.0:
        left = rng.uniform(TIES) * sum(chances[slot] for slot in allowed)
        for slot in allowed:
            left -= chances[slot]
            if left < 0.0:
                return slot
    for attempt in range(REDRAWS):
        arm = int(policy.choose(state, t, rng.again(attempt).at(0)))
        if arm in allowed:
            return arm
    return allowed[int(rng.uniform(TIES) * len(allowed))]


def policys_chances(
    policy: Any, state: Any, t: int, key: int, allowed: list[int], n_arms: int, draws: int = 2000
) -> tuple[np.ndarray, float]:
    """The chance of each allowed arm, and how far it may be off: by quadrature where the policy has a belief to
    integrate, read off where it draws from probabilities, otherwise by asking it many times."""
    if len(allowed) == 1:
        return np.ones(1), 0.0
    known = computed_chances(policy, state, t, allowed, n_arms)
    return known if known is not None else sampled_chances(policy, state, t, key, allowed, n_arms, draws)


def sampled_chances(
    policy: Any, state: Any, t: int, key: int, allowed: list[int], n_arms: int, draws: int
) -> tuple[np.ndarray, float]:
    """How often each allowed arm is chosen from a copy of the state, and two standard errors of that. The draws are
    fixed by the key, so that everybody who asks of the same state is told the same."""
    scratch = to_lists(to_arrays(state, policy.init(n_arms)))
    keys = np.array([stride(_SAMPLES + n) for n in range(draws)], np.uint64)
    rng = Decisions(np.asarray(mix(np.uint64(key) + keys)))
    among = None if len(allowed) == n_arms else allowed
    counts = np.zeros(n_arms)
    for n in range(draws):
        counts[policys_choice(policy, scratch, t, rng.at(n), among)] += 1
        chances = getattr(scratch, "chances", None)
        if chances is not None:  # drawn from probabilities, which the policy has just written down
            exact = np.array([chances[slot] for slot in allowed])
            if exact.sum() > 0.0:
                return exact / exact.sum(), 0.0
    values = counts[allowed] / draws
    # An arm never seen in n draws may still have a chance of about 1/n: the last term keeps the error from being 0.
    return values, float(2.0 * np.sqrt(values * (1.0 - values) / draws).max() + 2.0 / draws)
