"""The theorem's bound beside measured regret, from short horizons to those at which the bound begins to speak."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.stats.intervals import Interval, interval
from driftbandit.lab.theory import bounds_for, diagnose, lower_bound, theorem1

FACTORS = (0.01, 10**-1.5, 0.1, 10**-0.5, 1.0, 10**0.5, 10.0)  # horizons measured, as multiples of the one given


class HorizonPoint(NamedTuple):
    """One horizon: decimal logarithms of the bounds summed over arms, and the regret."""

    horizon: int
    proved: float | None
    printed: float | None
    floor: float | None
    uniform: float
    regret: Interval


def measure(environment: Any, policy_for: Callable[[Any], Any], runs: int, seed: int = 0) -> list[HorizonPoint]:
    """Play DS-TS in the same kind of world at several horizons; `policy_for(world)` tunes it for each."""
    points = []
    for factor in FACTORS:
        horizon = max(1, round(environment.horizon * factor))
        try:
            world = type(environment)(**{**environment._asdict(), "horizon": horizon})
        except (TypeError, ValueError):
            continue  # too short for the number of phases
        policy = policy_for(world)
        if getattr(policy, "short", "") != "ds-ts":
            raise ValueError(f"The figure shows the theorems of DS-TS; got {policy!r:.60}.")
        one = world.realise(stream_key(seed, 0, WORLD))
        found = diagnose(one)
        named = {(b.name, b.scope): b.log10 for b in bounds_for(one, 1.0 - policy.gamma, policy.tau_max, found)}
        regret = simulate(policy, world, runs, seed, checkpoints=1).regret[:, -1]
        points.append(
            HorizonPoint(
                horizon,
                named["Theorem 1 as proved", "all arms"],
                named["Theorem 1 as printed", "all arms"],
                lower_bound(horizon).log10,
                found.uniform_regret,
                interval(regret),
            )
        )
    return points


def far(phases: int, gap: float, mu_max: float, tau_max: float, arms: int, last: int = 46) -> list[tuple[int, float]]:
    """(k, log10 of Theorem 1 as proved at T = 10^k) with Corollary 1's gamma, over all arms."""
    out = []
    for power in range(2, last + 1):
        eps = math.sqrt(phases) * 10.0 ** (-power / 2)
        bound = theorem1(
            horizon=10**power, phases=phases, gap=gap, eps=eps, mu_max=mu_max, tau_max=tau_max, sum_over=arms
        )
        if bound.log10 is not None and bound.holds:
            out.append((power, bound.log10))
    return out
