"""Environments whose means jump: one arm at a time, in bursts, rarely rewarded, or where no policy is looking."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import within
from driftbandit.environments.phased import drawn, equal_starts
from driftbandit.environments.rewards import Bernoulli


@drawn("trap")
class Trap(NamedTuple):
    """The first arm pays `level` forever and all others `others`, until the last one jumps to `jump` half-way through.

    Nothing that a good policy sees changes: the arm it plays pays as before. Only playing bad arms again finds the
    jump, and in a stationary environment that is pure loss (Garivier and Moulines 2011 make this a bound). Compare it
    with a stationary environment: the two together show the cost of exploring.

    >>> environment = Trap(n_arms=3, horizon=100).realise(0)
    >>> [float(environment.mean(t, 2)) for t in (49, 50)]
    [0.1, 0.9]
    """

    n_arms: Annotated[int, within(">= 2")] = 5
    horizon: Annotated[int, within(">= 2")] = 100_000
    level: Annotated[float, within("[0, 1]")] = 0.5
    others: Annotated[float, within("[0, 1]")] = 0.1
    jump: Annotated[float, within("[0, 1]")] = 0.9
    law: Any = Bernoulli()

    @property
    def phases(self) -> int:
        return 2

    def draw_phases(self, seed: int) -> Any:
        before = [self.level, *[self.others] * (self.n_arms - 1)]
        return [before, [*before[:-1], self.jump]], [0, self.horizon // 2]


@drawn("local")
class Local(NamedTuple):
    """Means uniform on [0, 1]; at each of `changes` equally spaced times one arm, drawn uniformly, is redrawn.

    Forgetting everything at a change discards valid evidence about all other arms.

    >>> environment = Local(n_arms=4, horizon=1000, changes=9).realise(3)
    >>> before, after = environment.means(99, 101)
    >>> int((before != after).sum())
    1
    """

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    changes: Annotated[int, within(">= 0")] = 40
    instance: str = "fresh"  # or a number in quotes: the same means in all runs
    law: Any = Bernoulli()

    def validate(self) -> None:
        if self.changes >= self.horizon:
            raise ValueError(f"Local needs changes < horizon; got {self.changes} changes in {self.horizon} rounds.")

    @property
    def phases(self) -> int:
        return self.changes + 1

    def draw_phases(self, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        table = np.tile(rng.uniform(0, 1, self.n_arms), (self.phases, 1))
        for phase in range(1, self.phases):
            table[phase:, rng.integers(self.n_arms)] = rng.uniform(0, 1)
        return table, equal_starts(self.horizon, self.phases)


@drawn("bursts")
class Bursts(NamedTuple):
    """Stationary, except for `bursts` bursts: in each, all means are redrawn `changes` times, `every` rounds apart.

    Bursts begin in the middle of `bursts` equal parts of the horizon. No single rate of forgetting suits both
    stationary times and bursts.

    >>> environment = Bursts(n_arms=2, horizon=1000, bursts=2, changes=3, every=10).realise(0)
    >>> environment.breakpoints.tolist()
    [0, 250, 260, 270, 750, 760, 770]
    """

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    bursts: Annotated[int, within(">= 1")] = 5
    changes: Annotated[int, within(">= 1")] = 10  # in each burst
    every: Annotated[int, within(">= 1")] = 200  # rounds between the changes of a burst
    instance: str = "fresh"  # or a number in quotes: the same means in all runs
    law: Any = Bernoulli()

    def validate(self) -> None:
        most = self.horizon // (2 * self.bursts)
        if self.changes * self.every > most or most < 1:
            raise ValueError(
                f"Bursts needs changes * every <= horizon / (2 bursts), here {most}; got {self.changes * self.every}."
            )

    @property
    def phases(self) -> int:
        return self.bursts * self.changes + 1

    def draw_phases(self, seed: int) -> Any:
        begins = [(2 * burst + 1) * self.horizon // (2 * self.bursts) for burst in range(self.bursts)]
        starts = [0, *(begin + self.every * change for begin in begins for change in range(self.changes))]
        return np.random.default_rng(seed).uniform(0, 1, (len(starts), self.n_arms)), starts


@drawn("rare")
class Rare(NamedTuple):
    """All means are redrawn at the start of each of `phases` equal phases, uniformly on [0, `highest`].

    The abrupt environment with its means scaled down: the same question with far less evidence per round.

    >>> float(Rare(highest=0.05).realise(1).best(0)) <= 0.05
    True
    """

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    highest: Annotated[float, within("(0, 1]")] = 0.05
    instance: str = "fresh"  # or a number in quotes: the same means in all runs
    law: Any = Bernoulli()

    def draw_phases(self, seed: int) -> Any:
        table = self.highest * np.random.default_rng(seed).uniform(0, 1, (self.phases, self.n_arms))
        return table, equal_starts(self.horizon, self.phases)
