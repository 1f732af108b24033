"""Any world with the clock stopped: what a policy pays for being ready to forget when there is nothing to forget."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np


class StillWorld(NamedTuple):
    """A world that stays for ever as it is in one round."""

    n_arms: int
    horizon: int
    base: Any
    at: int

    def mean(self, t: int, arm: Any) -> Any:
        """The mean of an arm, the same in every round."""
        return self.base.mean(self.at, arm)

    def best(self, t: int) -> Any:
        """The largest mean."""
        return self.base.best(self.at)

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        """The reward of an arm: the law of round `at`, the luck of round t."""
        return self.base.pull(self.at, arm, rng)

    def best_arm(self, t: int) -> int:
        """The first arm with the largest mean."""
        return int(np.argmax([self.base.mean(self.at, arm) for arm in range(self.n_arms)]))

    def change(self, t: int) -> bool:
        """Nothing ever changes."""
        return False

    @property
    def breakpoints(self) -> np.ndarray:
        """One phase, from 0."""
        return np.zeros(1, np.int64)

    def means(self, start: int, stop: int) -> np.ndarray:
        """Rows start..stop-1 of the mean table, one column per arm, all the same."""
        row = np.array([float(self.base.mean(self.at, arm)) for arm in range(self.n_arms)])
        return np.broadcast_to(row, (stop - start, self.n_arms))

    def realise(self, key: int) -> "StillWorld":
        """Nothing is left to chance."""
        return self


class Still(NamedTuple):
    """The world `base` stopped in round `at`: for every run, the means that run's world has then.

    >>> from driftbandit.environments import PhaseTable
    >>> world = Still(PhaseTable(means=((0.2, 0.8), (0.9, 0.1)), starts=(0, 50), horizon=100)).realise(0)
    >>> float(world.mean(99, 0)), float(world.best(99))
    (0.2, 0.8)
    """

    if not TYPE_CHECKING:  # type: ignore[misc]  # mypy takes plain class attributes of a NamedTuple for fields
        phases = 1  # what `ds-ts.tuned` and the like ask a world

    base: Any
    at: int = 0

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return int(self.base.n_arms)

    @property
    def horizon(self) -> int:
        """The number of rounds."""
        return int(self.base.horizon)

    def realise(self, key: int) -> StillWorld:
        """The world of one run."""
        return StillWorld(self.n_arms, self.horizon, self.base.realise(key), self.at)
