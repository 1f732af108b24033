"""Further environments: means that drift (one arm, with the season, all together, each in its own way) or jump (one arm
at a time, in bursts, rarely rewarded, or where no policy is looking)."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import within
from driftbandit.environments.phased import drawn, equal_starts, equal_steps, need_rounds
from driftbandit.environments.rewards import Bernoulli


@drawn("rising")
class Rising(NamedTuple):
    """The last arm rises in a straight line from `first` to `last` while the others stay, equally spaced from `lowest`
    to `highest`: a newcomer that learns, or a model being trained.

    It is the worst arm at first, so a policy that no longer explores does not see it pass the others. Means move in
    `steps` equal steps."""

    n_arms: Annotated[int, within(">= 2")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    first: Annotated[float, within("[0, 1]")] = 0.1
    last: Annotated[float, within("[0, 1]")] = 0.9
    lowest: Annotated[float, within("[0, 1]")] = 0.3
    highest: Annotated[float, within("[0, 1]")] = 0.6
    steps: Annotated[int, within(">= 1")] = 2_000
    law: Any = Bernoulli()

    def draw_phases(self, seed: int) -> Any:
        starts, middle = equal_steps(self.horizon, self.steps)
        table = np.empty((len(starts), self.n_arms))
        table[:, :-1] = np.linspace(self.lowest, self.highest, self.n_arms - 1)
        table[:, -1] = self.first + (self.last - self.first) * middle / self.horizon
        return table, starts


@drawn("seasonal")
class Seasonal(NamedTuple):
    """Means that follow sines of one period, each arm shifted by its share of it: `level` + `swing` sin(2π(t / period +
    i / K)). Each arm in turn is the best for 1 / K of the period.

    Means move in `steps` equal steps, each at the value of its middle: with 2,000 steps of 50 rounds and the defaults,
    by less than 0.007 per step."""

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    period: Annotated[float, within("> 0")] = 20_000.0  # rounds
    level: Annotated[float, within("[0, 1]")] = 0.5
    swing: Annotated[float, within("[0, 0.5]")] = 0.4
    steps: Annotated[int, within(">= 1")] = 2_000
    law: Any = Bernoulli()

    def validate(self) -> None:
        if not self.swing <= self.level <= 1.0 - self.swing:
            raise ValueError(
                f"Seasonal needs level - swing >= 0 and level + swing <= 1; got {self.level} and {self.swing}."
            )

    def draw_phases(self, seed: int) -> Any:
        starts, middle = equal_steps(self.horizon, self.steps)
        turn = middle[:, None] / self.period + np.arange(self.n_arms) / self.n_arms
        return np.clip(self.level + self.swing * np.sin(2.0 * np.pi * turn), 0.0, 1.0), starts


@drawn("common")
class CommonShift(NamedTuple):
    """Arms equally spaced from `lowest` to `highest`, all moved by the same normal shift of spread `sd`, a new one each
    day; means are cut to [0, 1].

    Weather, weekends and sales do this. The best arm never changes, so nothing should be forgotten, and yet every arm's
    own record looks like change."""

    n_arms: Annotated[int, within(">= 1")] = 9
    horizon: Annotated[int, within(">= 1")] = 36_500
    days: Annotated[int, within(">= 1")] = 365
    sd: Annotated[float, within(">= 0")] = 0.2
    lowest: Annotated[float, within("[0, 1]")] = 0.55
    highest: Annotated[float, within("[0, 1]")] = 0.74
    instance: str = "fresh"  # or a number in quotes: the same means in all runs
    law: Any = Bernoulli()

    def validate(self) -> None:
        need_rounds(self, "days")

    @property
    def phases(self) -> int:
        return 1

    def draw_phases(self, seed: int) -> Any:
        shifts = self.sd * np.random.default_rng(seed).standard_normal(self.days)
        levels = np.linspace(self.lowest, self.highest, self.n_arms)
        return np.clip(levels + shifts[:, None], 0.0, 1.0), equal_starts(self.horizon, self.days)


@drawn("mixed")
class Mixed(NamedTuple):
    """Arms 0, 3, 6, .. stay where they are; arms 1, 4, .. jump, each on its own, `jumps` times on average; arms 2, 5,
    .. wander, reflected at 0 and 1, by about `wander` over the whole horizon.

    All begin uniform on [0, 1]. Means move at the beginnings of `steps` equal steps."""

    n_arms: Annotated[int, within(">= 1")] = 6
    horizon: Annotated[int, within(">= 1")] = 100_000
    jumps: Annotated[float, within(">= 0")] = 5.0
    wander: Annotated[float, within(">= 0")] = 1.0
    steps: Annotated[int, within(">= 1")] = 1_000
    instance: str = "fresh"  # or a number in quotes: the same means in all runs
    law: Any = Bernoulli()

    def draw_phases(self, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        starts, _ = equal_steps(self.horizon, self.steps)
        count = len(starts)
        table = np.empty((count, self.n_arms))
        for arm in range(self.n_arms):
            anew = rng.uniform(0, 1, count)
            jumps = rng.uniform(0, 1, count) < self.jumps / count
            steps = rng.standard_normal(count) * self.wander / np.sqrt(count)
            jumps[0], steps[0] = True, 0.0
            if arm % 3 == 0:
                table[:, arm] = anew[0]
            elif arm % 3 == 1:
                table[:, arm] = anew[np.maximum.accumulate(np.where(jumps, np.arange(count), 0))]
            else:
                table[:, arm] = np.abs((anew[0] + np.cumsum(steps) + 1.0) % 2.0 - 1.0)  # a walk folded into [0, 1]
        return table, starts


@drawn("trap")
class Trap(NamedTuple):
    """The first arm pays `level` forever and all others `others`, until the last one jumps to `jump` half-way through.

    Nothing that a good policy sees changes: the arm it plays pays as before. Only playing bad arms again finds the
    jump, and in a stationary environment that is pure loss (Garivier and Moulines 2011 make this a bound). Compare it
    with a stationary environment: the two together show the cost of exploring."""

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

    Forgetting everything at a change discards valid evidence about all other arms."""

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
    stationary times and bursts."""

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

    The abrupt environment with its means scaled down: the same question with far less evidence per round."""

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    highest: Annotated[float, within("(0, 1]")] = 0.05
    instance: str = "fresh"  # or a number in quotes: the same means in all runs
    law: Any = Bernoulli()

    def draw_phases(self, seed: int) -> Any:
        table = self.highest * np.random.default_rng(seed).uniform(0, 1, (self.phases, self.n_arms))
        return table, equal_starts(self.horizon, self.phases)
