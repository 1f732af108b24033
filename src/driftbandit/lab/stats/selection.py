"""The best of several policies by simulation, honest about having looked for it.

The smallest of twenty noisy averages is smaller than what that policy really costs. So the choice is made on the first
half of the runs and every number that is reported comes from the second half, which had no part in the choice. All
policies meet the same worlds and the same luck in run r, so differences are paired and sharper than the averages."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.stats.intervals import Interval, interval
from driftbandit.lab.support.progress import Progress
from driftbandit.policies.discounted_ts import DiscountedTS

LARGEST_EPS = 0.5  # a memory of two rounds: shorter ones are no better than guessing anywhere we looked


class Cell(NamedTuple):
    """One policy of a search: final regret of every run, those it was judged by first."""

    policy: Any
    regret: np.ndarray

    @property
    def judged(self) -> np.ndarray:
        """The runs that decide which policy is chosen."""
        return self.regret[: len(self.regret) // 2]

    @property
    def held_out(self) -> np.ndarray:
        """The runs from which numbers are reported."""
        return self.regret[len(self.regret) // 2 :]

    def estimate(self) -> Interval:
        """Mean final regret on the runs that had no part in the choice."""
        return interval(self.held_out)

    def excess(self, other: "Cell") -> Interval:
        """How much more this policy regrets than another, run by run on the same luck."""
        return interval(self.held_out - other.held_out)


def play(
    policies: Sequence[Any],
    environment: Any,
    runs: int,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = False,
    label: str = "search",
) -> list[Cell]:
    """Simulate every policy in the same worlds; at least 4 runs, so that both halves have a spread."""
    if runs < 4:
        raise ValueError(f"A search needs 4 runs or more, half to choose by and half to estimate from; got {runs!r}.")
    cells = []
    with Progress(len(policies), progress, label=label) as bar:
        for policy in policies:
            played = simulate(policy, environment, runs, seed, checkpoints=1, workers=workers)
            cells.append(Cell(policy, played.regret[:, -1]))
            bar.add(1)
    return cells


def best(cells: Sequence[Cell]) -> Cell:
    """The cell with the smallest mean on the runs set apart for choosing."""
    return min(cells, key=lambda cell: float(cell.judged.mean()))


def as_good(cells: Sequence[Cell], chosen: Cell) -> list[Cell]:
    """The cells whose paired difference to the chosen one is not clearly above 0.

    Each is tested at 95 % on its own, so in a long list one may be missing by chance. They need not lie side by side:
    in a slow drift a short memory and a long one can be equally good, and everything between them worse."""
    return [cell for cell in cells if cell is chosen or cell.excess(chosen).low <= 0.0]


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
