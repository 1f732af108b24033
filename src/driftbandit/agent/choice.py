"""A policy's choice kept to the arms that may be played, and how likely each of them is."""

import copy
from collections.abc import Callable
from typing import Any, Protocol

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


class Asked(Protocol):
    """A policy that is asked for one decision."""

    @property
    def state(self) -> Any:
        """What the last answer was read from."""
        ...

    def first(self) -> int:
        """Its choice."""
        ...

    def again(self, attempt: int) -> int:
        """Its choice with other numbers."""
        ...

    def uniform(self, slot: int) -> float:
        """A number of this decision."""
        ...


def chosen_among(allowed: list[int], asked: Asked) -> int:
    """The policy's choice, kept to the allowed slots.

    Where the choice is the arm of largest score, the largest among the allowed is taken: the same sample, fewer
    candidates. Where the policy drew the arm from probabilities, they are renormalised, and if they leave nothing to
    the allowed, an allowed arm is drawn evenly. Otherwise the policy is asked again with other draws, and if it insists
    (a scheduled pull), an allowed arm is drawn evenly."""
    arm = asked.first()
    if arm in allowed:
        return arm
    scores = getattr(asked.state, "scores", None)
    if scores is not None and scores[arm] >= max(scores):
        top = max(scores[slot] for slot in allowed)
        ties = [slot for slot in allowed if scores[slot] == top]
        if ties:
            return ties[int(asked.uniform(TIES) * len(ties))]
    chances = getattr(asked.state, "chances", None)
    if chances is not None:
        left = asked.uniform(TIES) * sum(chances[slot] for slot in allowed)
        for slot in allowed:
            left -= chances[slot]
            if left < 0.0:
                return slot
    else:
        for attempt in range(REDRAWS):
            arm = asked.again(attempt)
            if arm in allowed:
                return arm
    return allowed[int(asked.uniform(TIES) * len(allowed))]


class AskedPlayer:
    """A player asked for one of its decisions."""

    def __init__(self, player: Any, stream: Any, t: int, decision: int) -> None:
        self._player, self._stream, self._t, self._decision = player, stream, t, decision

    @property
    def state(self) -> Any:
        """The player's state."""
        return self._player.state

    def first(self) -> int:
        """Its choice."""
        return int(self._player.choose(self._t, self._decision))

    def again(self, attempt: int) -> int:
        """Its choice with the numbers of a round that no decision gets to."""
        return int(self._player.choose(self._t, FAR + FAR * (attempt + 1) + self._decision))

    def uniform(self, slot: int) -> float:
        """A number of this decision."""
        return float(self._stream.at(self._decision).uniform(slot))


def kept_to(allowed: list[int], player: Any, stream: Any, t: int, decision: int) -> int:
    """A player's choice, kept to the allowed slots."""
    return chosen_among(allowed, AskedPlayer(player, stream, t, decision))


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
    if known is not None:
        return known
    copied = playing(copy.deepcopy(player.state))
    return sampled_chances(lambda n: AskedPlayer(copied, stream, t, FAR + n), allowed, n_arms, draws)


def sampled_chances(
    ask: Callable[[int], Asked], allowed: list[int], n_arms: int, draws: int
) -> tuple[np.ndarray, float]:
    """How often each allowed slot is chosen when asked that many times, and two standard errors of that."""
    counts = np.zeros(n_arms)
    for n in range(draws):
        asked = ask(n)
        counts[chosen_among(allowed, asked)] += 1
        chances = getattr(asked.state, "chances", None)
        if chances is not None:  # drawn from probabilities, which the policy has just written down
            return renormalised(np.array([chances[slot] for slot in allowed], np.float64)), 0.0
    values = counts[allowed] / draws
    # An arm never seen in n draws may still have a chance of about 1/n: the last term keeps the error from being 0.
    return values, float(2.0 * np.sqrt(values * (1.0 - values) / draws).max() + 2.0 / draws)


def renormalised(chances: np.ndarray) -> np.ndarray:
    """Chances that add up to 1 in proportion to these, even ones if these are all 0: what `chosen_among` plays by.

    >>> renormalised(np.array([0.0, 0.0])).tolist(), renormalised(np.array([0.1, 0.3])).round(6).tolist()
    ([0.5, 0.5], [0.25, 0.75])
    """
    whole = chances.sum()
    return chances / whole if whole > 0.0 else np.full(len(chances), 1.0 / len(chances))
