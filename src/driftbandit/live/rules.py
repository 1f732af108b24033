"""The rules a bandit decides by: a fixed arm, a share held back for a baseline, a floor of uniform play, the policy.

A decision's rule and arm are a pure function of configuration, state, time and id; so are the probabilities.

The floor is additive: an arm's probability is floor / K + (1 - floor) * (the policy's). Clipping small probabilities
and dividing by their sum would be biased. Every rule takes its numbers from slots that no policy uses: switching it on
changes no other draw."""

from typing import Any

import numpy as np

from driftbandit.live.records import FIXED, FLOOR, HOLDBACK, POLICY, Config
from driftbandit.player import Player

_HOLD, _FLOOR, _UNIFORM = (1 << 38), (1 << 38) + 1, (1 << 38) + 2  # slots of the rules' own numbers


def choose(config: Config, player: Player, rng: Any, allowed: list[int] | None, at: int) -> tuple[int, int]:
    """The arm's slot and the rule that chose it; `allowed` is None where every slot may be chosen."""
    if config.fixed is not None and (allowed is None or config.fixed in allowed):
        return config.fixed, FIXED
    if config.holdback > 0.0 and rng.uniform(_HOLD) < config.holdback:
        if config.baseline is not None and (allowed is None or config.baseline in allowed):
            return config.baseline, HOLDBACK
        return _uniform(rng, allowed, len(config.arms)), HOLDBACK
    if config.floor > 0.0 and rng.uniform(_FLOOR) < config.floor:
        return _uniform(rng, allowed, len(config.arms)), FLOOR
    return player.choose(rng, allowed, at), POLICY


def _uniform(rng: Any, allowed: list[int] | None, n_arms: int) -> int:
    u = rng.uniform(_UNIFORM)
    return int(u * n_arms) if allowed is None else allowed[int(u * len(allowed))]


def probabilities(
    config: Config, player: Player | None, allowed: list[int] | None, at: int, draws: int = 2000, own: Any = None
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
        if own is None:
            assert player is not None
            own = player.probabilities(slots, at, draws)
        out[slots] += share * own[0]
        error = own[1]
    return out, share * error
