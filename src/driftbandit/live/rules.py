"""The rules a bandit decides by: a fixed arm, a share held back for a baseline, a floor of even play, then the policy.

A decision's rule and arm are a pure function of configuration, state, time and id; so are the probabilities."""

from typing import Any

import numpy as np

from driftbandit import primitives
from driftbandit.live.choice import policys_chances, policys_choice
from driftbandit.live.ids import Decisions
from driftbandit.live.records import FIXED, FLOOR, HOLDBACK, POLICY, Config

_HOLD, _FLOOR, _EVEN = (1 << 38), (1 << 38) + 1, (1 << 38) + 2  # slots of the rules' own numbers


def choose(
    config: Config, policy: Any, state: Any, t: int, rng: Decisions, allowed: list[int] | None
) -> tuple[int, int]:
    """The arm's slot and how it was found; `allowed` is None where every slot may be chosen."""
    if config.fixed is not None and (allowed is None or config.fixed in allowed):
        return config.fixed, FIXED
    if config.holdback > 0.0 and rng.uniform(_HOLD) < config.holdback:
        if config.baseline is not None and (allowed is None or config.baseline in allowed):
            return config.baseline, HOLDBACK
        return _even(rng, allowed, len(config.arms)), HOLDBACK
    if config.floor > 0.0 and rng.uniform(_FLOOR) < config.floor:
        return _even(rng, allowed, len(config.arms)), FLOOR
    return policys_choice(policy, state, t, rng, allowed), POLICY


def _even(rng: Decisions, allowed: list[int] | None, n_arms: int) -> int:
    u = rng.uniform(_EVEN)
    return int(u * n_arms) if allowed is None else allowed[int(u * len(allowed))]


def chance_of(policy: Any, state: Any, t: int, slot: int, rng: Decisions) -> float:
    """The probability with which a policy that weighs rewards by it plays this arm: its own, whatever rule has played
    the arm, as it would divide by it were the reward there at once."""
    chance = float(primitives.chance_of(policy, state, t, slot, rng))
    if not 0.0 <= chance <= 1.000001:  # a policy of the user's
        raise ValueError(f"chance_of of {type(policy).__name__} must be a probability; it is {chance!r}.")
    return chance


def chances(
    config: Config, policy: Any, state: Any, t: int, allowed: list[int] | None, draws: int = 2000, own: Any = None
) -> tuple[np.ndarray, float]:
    """The probability of every slot under all rules together, and how far it may be off; `own` is the policy's part,
    where it is known."""
    n_arms = len(config.arms)
    slots = list(range(n_arms)) if allowed is None else allowed
    out = np.zeros(n_arms)
    if config.fixed is not None and config.fixed in slots:
        out[config.fixed] = 1.0
        return out, 0.0
    held = config.holdback
    if held > 0.0:
        if config.baseline is not None and config.baseline in slots:
            out[config.baseline] += held
        else:
            out[slots] += held / len(slots)
    out[slots] += (1.0 - held) * config.floor / len(slots)
    share, error = (1.0 - held) * (1.0 - config.floor), 0.0
    if share > 0.0:
        values, error = own or policys_chances(policy, state, t, int(config.key), slots, n_arms, draws)
        out[slots] += share * values
    return out, share * error
