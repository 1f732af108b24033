"""A policy's choice kept to the arms that may be played, and how likely each of them is."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandit.beliefs import chance_of_largest
from driftbandit.primitives import TIES
from driftbandit.state import to_arrays

FAR = 1 << 50  # decisions never get here: the rounds from here on serve redraws and `sampled`
REDRAWS = 64


class Chances(dict[Any, float]):
    """Each arm's chance of being chosen now, with `error`: a bound for quadrature, two standard errors for sampling, 0
    if exact."""

    error: float = 0.0


def kept_to(allowed: list[int], player: Any, stream: Any, t: int, decision: int) -> int:
    """The policy's choice, kept to the allowed slots.

    Where the choice is the arm of largest score, the largest among the allowed is taken: the same sample, fewer
    candidates. Where the policy drew the arm from probabilities, they are renormalised, and if they leave nothing to
    the allowed, an allowed arm is drawn evenly. Otherwise the policy is asked again with other draws, and if it insists
    (a scheduled pull), an allowed arm is drawn evenly."""
    arm = int(player.choose(t, decision))
    if arm in allowed:
        return arm
    scores = getattr(player.state, "scores", None)
    if scores is not None and scores[arm] >= max(scores):
        top = max(scores[slot] for slot in allowed)
        ties = [slot for slot in allowed if scores[slot] == top]
        if ties:
            return ties[int(stream.at(decision).uniform(TIES) * len(ties))]
    chances = getattr(player.state, "chances", None)
    if chances is not None:
        left = stream.at(decision).uniform(TIES) * sum(chances[slot] for slot in allowed)
        for slot in allowed:
            left -= chances[slot]
            if left < 0.0:
                return slot
    else:
        for n in range(REDRAWS):
            arm = int(player.choose(t, FAR + FAR * (n + 1) + decision))
            if arm in allowed:
                return arm
    return allowed[int(stream.at(decision).uniform(TIES) * len(allowed))]


def computed_chances(
    policy: Any, state: Any, t: int, allowed: list[int], n_arms: int
) -> tuple[np.ndarray, float] | None:
    """The policy's chance of each allowed slot and its error, where they follow from the state: as the policy computes
    them (`exact_chances`), or by quadrature of its belief. None for a policy that has to be asked."""
    exactly, belief = getattr(policy, "exact_chances", None), getattr(policy, "belief", None)
    if exactly is None and belief is None:
        return None
    arrays = to_arrays(state, policy.init(n_arms))
    if exactly is not None:
        return np.asarray(exactly(arrays, t, allowed)), 0.0
    whole = belief(arrays)  # type: ignore[misc]
    if hasattr(whole, "chance_of_largest"):  # a mixture, which has its own way
        chances, error = whole.chance_of_largest(allowed)
        return np.asarray(chances), float(error)
    return chance_of_largest(type(whole)(*(np.asarray(field)[allowed] for field in whole)))


def policys_chances(
    policy: Any,
    player: Any,
    stream: Any,
    t: int,
    allowed: list[int],
    n_arms: int,
    draws: int,
    playing: Callable[[Any], Any],
) -> tuple[np.ndarray, float]:
    """The policy's chance of each allowed slot, and how far it may be off: computed where the policy knows how
    (`exact_chances`), by quadrature where it has a belief to integrate, else by asking a copy `draws` times.

    `playing(state)` makes a player of a copy of the state: `choose` writes scratch, and asking changes nothing."""
    if len(allowed) == 1:
        return np.ones(1), 0.0
    known = computed_chances(policy, player.state, t, allowed, n_arms)
    return (
        known
        if known is not None
        else _sampled(playing(copy.deepcopy(player.state)), stream, t, allowed, n_arms, draws)
    )


def _sampled(player: Any, stream: Any, t: int, allowed: list[int], n_arms: int, draws: int) -> tuple[np.ndarray, float]:
    """How often each allowed slot is chosen, and two standard errors of that."""
    counts = np.zeros(n_arms)
    for n in range(draws):
        counts[kept_to(allowed, player, stream, t, FAR + n)] += 1
        chances = getattr(player.state, "chances", None)
        if chances is not None:  # drawn from probabilities, which the policy has just written down
            return renormalised(np.array([chances[slot] for slot in allowed], np.float64)), 0.0
    values = counts[allowed] / draws
    # An arm never seen in n draws may still have a chance of about 1/n: the last term keeps the error from being 0.
    return values, float(2.0 * np.sqrt(values * (1.0 - values) / draws).max() + 2.0 / draws)


def renormalised(chances: np.ndarray) -> np.ndarray:
    """Chances that add up to 1 in proportion to these, even ones if these are all 0: what `kept_to` plays by.

    >>> renormalised(np.array([0.0, 0.0])).tolist(), renormalised(np.array([0.1, 0.3])).round(6).tolist()
    ([0.5, 0.5], [0.25, 0.75])
    """
    whole = chances.sum()
    return chances / whole if whole > 0.0 else np.full(len(chances), 1.0 / len(chances))
