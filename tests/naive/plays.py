"""A small world for the twins to play in, and one set of parameters for each of them."""

from typing import Any

import numpy as np

from . import TWINS
from .draws import Draws, Twin

MEANS = (0.2, 0.5, 0.7, 0.45, 0.3)

# One choice of parameters a policy, small enough that alarms, windows and replays happen within a few hundred rounds.
PARAMETERS: dict[str, dict[str, Any]] = {
    "AdSwitch": {"horizon": 400, "c1": 0.5, "every": 10},
    "BetaTS": {},
    "CusumUCB": {"samples": 10, "drift": 0.05, "threshold": 4.0, "explore": 0.1, "xi": 0.5, "warmup": True},
    "DiscountedBetaTS": {"gamma": 0.97, "optimistic": True},
    "DiscountedGaussianTS": {"gamma": 0.97, "noise_sd": 0.5},
    "DiscountedKLUCB": {"gamma": 0.97},
    "DiscountedTS": {"gamma": 0.97, "tau_max": 0.2},
    "DiscountedUCB": {"gamma": 0.97},
    "EXP3S": {"explore": 0.3, "share": 0.001},
    "EpsilonGreedy": {"explore": 0.1, "gamma": 0.97},
    "FixedArm": {"arm": 1},
    "GLRKLUCB": {"horizon": 400, "delta": 0.05},
    "GaussianTS": {},
    "GlobalCTS": {"hazard": 0.01, "max_runs": 50},
    "KLUCB": {},
    "LBSDA": {},
    "LBSDALM": {"forced_power": 0.5, "memory_floor": 10.0},
    "Meta": {"horizon": 400, "c0": 0.5},
    "MonitoredUCB": {"window": 20, "threshold": 5.0, "explore": 0.2},
    "OSUB": {},
    "Oracle": {"best_arm": lambda t: 2},
    "OracleRestart": {"base": TWINS["UCB1"], "breakpoints": [0, 100]},
    "PHTUCB": {"drift": 0.05, "threshold": 4.0, "explore": 0.1, "xi": 0.5},
    "PerArmCTS": {"hazard": 0.01, "max_runs": 50},
    "PeriodicRestart": {"base": TWINS["UCB1"], "period": 90},
    "REXP3": {"batch": 100, "explore": 0.3},
    "SlidingGaussianTS": {"window": 50, "noise_sd": 0.5},
    "SlidingKLUCB": {"window": 50},
    "SlidingLBSDA": {"window": 50},
    "SlidingOSUB": {"window": 60},
    "SlidingPrecisionTS": {"window": 50, "precision": 4.0},
    "SlidingTS": {"window": 50},
    "SlidingUCB": {"window": 50, "xi": 0.6},
    "UCB1": {},
    "Uniform": {},
}


def reward(t: int, arm: int, binary: bool = True, seed: int = 5) -> float:
    """A reward in [0, 1] of mean about MEANS[arm]; the same whoever asks."""
    u = float(np.random.default_rng([seed, t, arm]).random())
    return float(u < MEANS[arm]) if binary else MEANS[arm] * 0.8 + 0.2 * u


def play(twin: Twin, rounds: int, seed: int = 1, binary: bool = True) -> list[int]:
    arms = []
    for t in range(rounds):
        arm = twin.choose(t, Draws(seed, t))
        twin.learn(t, arm, reward(t, arm, binary))
        arms.append(arm)
    return arms
