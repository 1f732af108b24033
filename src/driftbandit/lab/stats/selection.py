"""The best of several simulated policies, honest about having looked for it.

The smallest of twenty noisy averages is smaller than what that policy really costs. So the choice is made on the first
half of the runs and every number that is reported comes from the second half, which had no part in the choice. All
policies meet the same worlds and the same luck in run r, so differences are paired and sharper than the averages."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.stats.intervals import Interval, interval


class Rival(NamedTuple):
    """One policy among several: final regret of every run, those it was judged by first."""

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

    def excess(self, other: "Rival") -> Interval:
        """How much more this policy regrets than another, run by run on the same luck."""
        return interval(self.held_out - other.held_out)


def best(candidates: Sequence[Rival]) -> Rival:
    """The candidate with the smallest mean on the runs set apart for choosing."""
    return min(candidates, key=lambda each: float(each.judged.mean()))


def as_good(candidates: Sequence[Rival], chosen: Rival) -> list[Rival]:
    """The candidates whose paired difference to the chosen one is not clearly above 0.

    Each is tested at 95 % on its own, so in a long list one may be missing by chance. They need not lie side by side:
    in a slow drift a short memory and a long one can be equally good, and everything between them worse."""
    return [each for each in candidates if each is chosen or each.excess(chosen).low <= 0.0]
