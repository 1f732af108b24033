"""A small environment for the twins to play in, and one set of parameters for each of them."""

from typing import Any

import numpy as np

from . import TWINS
from .draws import Draws, Twin

MEANS = (0.2, 0.5, 0.7, 0.45, 0.3)

# One choice of parameters per policy, small enough that alarms, windows and replays happen within a few hundred rounds:
# what the twin was `tried` with, and for wrappers a policy to wrap.
PARAMETERS: dict[str, dict[str, Any]] = {
    **{name: getattr(twin, "tried", {}) for name, twin in TWINS.items()},
    "PeriodicRestart": {"base": TWINS["KLUCB"], "period": 90},
}


def reward(t: int, arm: int, binary: bool = True, seed: int = 5) -> float:
    """A reward in [0, 1] of mean about MEANS[arm]; the same for every caller."""
    u = float(np.random.default_rng([seed, t, arm]).random())
    return float(u < MEANS[arm]) if binary else MEANS[arm] * 0.8 + 0.2 * u


def play(twin: Twin, rounds: int, seed: int = 1, binary: bool = True) -> list[int]:
    arms = []
    for t in range(rounds):
        arm = twin.choose(t, Draws(seed, t))
        twin.learn(t, arm, reward(t, arm, binary))
        arms.append(arm)
    return arms
