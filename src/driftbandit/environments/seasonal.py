"""A world of seasons: every arm has its own time of the year."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.environments.abrupt import _starts
from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.rewards import Bernoulli
from driftbandit.parameters import checked, described, within


@described(
    short="seasonal",
)
@checked
class Seasonal(NamedTuple):
    """Means that follow sines of one period, each arm shifted by its share of it: `level` + `swing` sin(2π(t / period +
    i / K)). Each arm in turn is the best for 1 / K of the period.

    Means move in `steps` equal steps, each at the value of its middle: with 2,000 steps of 50 rounds and the defaults,
    by less than 0.007 per step.

    >>> world = Seasonal(n_arms=4, horizon=1000, period=1000, steps=1000).realise(0)
    >>> [world.best_arm(t) for t in (0, 250, 500, 750)]
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
        """Refuse swings that leave [0, 1]."""
        if not self.swing <= self.level <= 1.0 - self.swing:
            raise ValueError(
                f"Seasonal needs level - swing >= 0 and level + swing <= 1; got {self.level} and {self.swing}."
            )

    def realise(self, key: int) -> Phased:
        """The same world for every run."""
        return _seasonal(self)


def stepped(horizon: int, steps: int) -> tuple[list[int], np.ndarray]:
    """First round and middle of each of `steps` equal steps (one per round, if there are fewer rounds)."""
    starts = _starts(horizon, min(steps, horizon))
    return starts, (np.array(starts) + np.append(starts[1:], horizon) - 1) / 2.0


@lru_cache(maxsize=64)
def _seasonal(spec: Seasonal) -> Phased:
    starts, middle = stepped(spec.horizon, spec.steps)
    turn = middle[:, None] / spec.period + np.arange(spec.n_arms) / spec.n_arms
    table = np.clip(spec.level + spec.swing * np.sin(2.0 * np.pi * turn), 0.0, 1.0)
    return phased(table, starts, spec.horizon, spec.law)
