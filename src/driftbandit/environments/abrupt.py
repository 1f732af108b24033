"""Environments that change abruptly: the paper's settings of Figures 2, 3, 4 and 7a.

`instance` defines the means: "fresh" draws new ones for every run, "authors" takes those of the authors'
code (legacy NumPy generator, seed 0). A number such as "7" draws them with that seed, the same for all runs."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.environments.phased import Phased, drawn, equal_starts, phased
from driftbandit.environments.rewards import Bernoulli


@drawn("abrupt", authors=True)
class Abrupt(NamedTuple):
    """All means are redrawn, uniformly on [0, 1], at the start of each of `phases` equal phases (Figures 2 and 3)."""

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    instance: str = "fresh"
    law: Any = Bernoulli()

    def draw_phases(self, seed: int | None) -> Any:
        starts = equal_starts(self.horizon, self.phases)
        if seed is not None:
            return np.random.default_rng(seed).uniform(0, 1, (self.phases, self.n_arms)), starts
        legacy, rows = np.random.RandomState(0), []
        for _ in range(self.phases):
            legacy.uniform(0, 0.6, self.n_arms)  # the authors' code draws these two and does not use them
            legacy.randint(0, self.n_arms)
            rows.append(legacy.uniform(0, 1, self.n_arms))
        return rows, starts


@drawn("limited", authors=True)
class AbruptLimited(NamedTuple):
    """Means that stay low: in each phase one arm has mean `best`, the others are uniform on [0, others_max] (Figure
    7a).

    The text of the paper has "less than 0.7"; its code sets the best mean to exactly 0.7, and so does this."""

    n_arms: Annotated[int, within(">= 1")] = 10
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    best: Annotated[float, within("[0, 1]")] = 0.7
    others_max: Annotated[float, within("[0, 1]")] = 0.6
    instance: str = "fresh"
    law: Any = Bernoulli()

    def draw_phases(self, seed: int | None) -> Any:
        uniform, draw_arm = _generator(seed)
        rows = []
        for _ in range(self.phases):
            row, arm = uniform(0, self.others_max, self.n_arms), draw_arm(self.n_arms)
            row[arm] = self.best
            rows.append(row)
        return rows, equal_starts(self.horizon, self.phases)


@drawn("gap", authors=True)
class AbruptGap(NamedTuple):
    """Every wrong arm is wrong by the same `gap`: in each phase the best mean is uniform on [0.5, 1] and all others lie
    `gap` below it (Figure 4).

    With a fixed `instance` the best arms and levels are the same for every gap, so only the gap differs between
    experiments."""

    n_arms: Annotated[int, within(">= 1")] = 2
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 5
    gap: Annotated[float, within("[0, 0.5]")] = 0.1
    instance: str = "fresh"
    law: Any = Bernoulli()

    def draw_phases(self, seed: int | None) -> Any:
        uniform, draw_arm = _generator(seed)
        rows = []
        for _ in range(self.phases):
            level, arm = uniform(0.5, 1), draw_arm(self.n_arms)
            rows.append(np.full(self.n_arms, level - self.gap))
            rows[-1][arm] = level
        return rows, equal_starts(self.horizon, self.phases)


def _generator(seed: int | None) -> tuple[Any, Any]:
    """The functions that draw uniform numbers and arms; without a seed those of the authors' code."""
    if seed is None:
        legacy = np.random.RandomState(0)
        return legacy.uniform, lambda n_arms: legacy.randint(0, n_arms)
    modern = np.random.default_rng(seed)
    return modern.uniform, modern.integers


@described(short="phases")
@checked
class PhaseTable(NamedTuple):
    """An abrupt environment written out: a row of means and the first round of each phase, beginning with 0.

    >>> environment = PhaseTable(means=((0.2, 0.8), (0.9, 0.1)), starts=(0, 500), horizon=1000).realise(0)
    >>> float(environment.mean(500, 0))
    0.9
    """

    means: Any
    starts: Any
    horizon: Annotated[int, within(">= 1")]
    law: Any = Bernoulli()

    def validate(self) -> None:
        self.realise(0)

    @property
    def n_arms(self) -> int:
        return len(self.means[0])

    def realise(self, key: int) -> Phased:
        return phased(self.means, self.starts, self.horizon, self.law)
