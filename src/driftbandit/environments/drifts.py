"""Environments whose means drift: one arm rises, seasons pass, all arms move together, or each in its own way."""

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
    `steps` equal steps.

    >>> environment = Rising(n_arms=3, horizon=900, steps=900).realise(0)
    >>> environment.best_arm(0), environment.best_arm(899)
    (1, 2)
    """

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
    by less than 0.007 per step.

    >>> environment = Seasonal(n_arms=4, horizon=1000, period=1000, steps=1000).realise(0)
    >>> [environment.best_arm(t) for t in (0, 250, 500, 750)]
    [1, 0, 3, 2]
    """

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
    own record looks like change.

    >>> environment = CommonShift(n_arms=3, sd=0.05).realise(1)
    >>> monday, tuesday = environment.means(99, 101)
    >>> [round(float(shift), 12) for shift in (tuesday - monday) - (tuesday - monday)[0]]
    [0.0, 0.0, 0.0]
    """

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

    All begin uniform on [0, 1]. Means move at the beginnings of `steps` equal steps.

    >>> first, last = Mixed(n_arms=3, horizon=1000, steps=100).realise(5).means(0, 1000)[[0, -1]]
    >>> [bool(moved) for moved in first != last]
    [False, True, True]
    """

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
