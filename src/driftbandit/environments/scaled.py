"""A world with all its means multiplied by a factor, to ask what happens when rewards are rarer."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftbandit.environments import Bernoulli, Phased


class Scaled(NamedTuple):
    """`base` with every mean multiplied by `factor` and Bernoulli rewards; it drifts slower by the same factor."""

    if not TYPE_CHECKING:  # type: ignore[misc]  # mypy takes plain class attributes of a NamedTuple for fields
        lockstep = True  # the methods also work on rows of lanes

    n_arms: int
    horizon: int
    base: Any
    factor: float
    law: Any = Bernoulli()

    def mean(self, t: int, arm: Any) -> Any:
        """The mean of an arm in round t."""
        return self.factor * self.base.mean(t, arm)

    def best(self, t: int) -> Any:
        """The largest mean in round t."""
        return self.factor * self.base.best(t)

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        """The reward of an arm in round t."""
        return self.law.draw(self.mean(t, arm), rng)

    def means(self, start: int, stop: int) -> np.ndarray:
        """Rows start..stop-1 of the mean table, one column per arm."""
        return np.asarray(self.factor * self.base.means(start, stop))

    def realise(self, key: int) -> Any:
        """The world of one run; a world in phases has its table scaled and stays a world in phases."""
        world = self.base.realise(key)
        if isinstance(world, Phased):
            return world._replace(table=self.factor * world.table, bests=self.factor * world.bests)
        return self if world is self.base else self._replace(base=world)


def scaled(base: Any, factor: float) -> Any:
    """The world itself if the factor is 1, else the same with all means multiplied.

    >>> from driftbandit.environments import phased
    >>> float(scaled(phased([[0.2, 0.8]], [0], 10), 0.5).realise(0).best(3))
    0.4
    """
    if not 0.0 < factor <= 1.0:
        raise ValueError(f"Means can be scaled by a factor in (0, 1]; got {factor!r}.")
    return base if factor == 1.0 else Scaled(base.n_arms, base.horizon, base, float(factor))
