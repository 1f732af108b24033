"""Many policies played in one world, to find the best: how `advise` and `theory` look for a discount."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.stats.selection import Rival
from driftbandit.lab.support.progress import Progress
from driftbandit.policies.discounted_ts import DiscountedTS

LARGEST_EPS = 0.5  # a memory of two rounds: shorter ones are no better than guessing anywhere we looked


def play(
    policies: Sequence[Any],
    environment: Any,
    runs: int,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = False,
    label: str = "search",
) -> list[Rival]:
    """Simulate every policy in the same worlds; at least 4 runs, so that both halves have a spread."""
    if runs < 4:
        raise ValueError(f"A search needs 4 runs or more, half to choose by and half to estimate from; got {runs!r}.")
    found = []
    with Progress(len(policies), progress, label=label) as bar:
        for policy in policies:
            played = simulate(policy, environment, runs, seed, checkpoints=1, workers=workers)
            found.append(Rival(policy, played.regret[:, -1]))
            bar.add(1)
    return found


def gammas(horizon: int, a_decade: int = 4) -> list[float]:
    """Discounts with memories 1 / (1 - gamma) from 2 rounds to the horizon, evenly spaced in the logarithm, and 1.

    >>> [round(gamma, 4) for gamma in gammas(200, a_decade=1)]
    [0.5, 0.95, 0.995, 1.0]
    """
    span = math.log10(max(horizon, 3) * LARGEST_EPS)
    steps = max(2, math.ceil(span * a_decade))
    eps = [LARGEST_EPS * 10.0 ** (-span * step / steps) for step in range(steps + 1)]
    return [*(1.0 - value for value in eps), 1.0]


def discount_grid(environment: Any, tau_max: float, a_decade: int = 4, forget_below: float = 0.0) -> list[DiscountedTS]:
    """DS-TS with every discount of `gammas`."""
    return [DiscountedTS(gamma, tau_max, forget_below) for gamma in gammas(environment.horizon, a_decade)]
