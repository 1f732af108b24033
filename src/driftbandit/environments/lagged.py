"""The one-round lag of the authors' simulator, as a world of its own: to measure what it does to regret."""

from typing import Any, NamedTuple

import numpy as np

from driftbandit.parameters import checked
from driftbandit.protocols import Environment


class LaggedWorld(NamedTuple):
    """A world ready to play whose rewards are one round old.

    It has no lockstep: the worlds of different runs are compared field by field there, and `base` is one field."""

    n_arms: int
    horizon: int
    base: Any

    def mean(self, t: int, arm: Any) -> Any:
        """The mean of an arm in round t, which regret is measured by."""
        return self.base.mean(t, arm)

    def best(self, t: int) -> Any:
        """The largest mean in round t."""
        return self.base.best(t)

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        """The reward of an arm in round t, drawn with the means of the round before."""
        return self.base.pull(max(t - 1, 0), arm, rng)

    def best_arm(self, t: int) -> int:
        """The first arm with the largest mean in round t."""
        return self.base.best_arm(t)  # type: ignore[no-any-return]

    def change(self, t: int) -> bool:
        """Does the world change in round t?"""
        return self.base.change(t)  # type: ignore[no-any-return]

    def means(self, start: int, stop: int) -> np.ndarray:
        """Rows start..stop-1 of the mean table, one column per arm."""
        return np.asarray(self.base.means(start, stop))

    def realise(self, key: int) -> "LaggedWorld":
        """Nothing is left to chance: the same world for every run."""
        return self


@checked
class Lagged(NamedTuple):
    """Another world, with rewards that come one round late: round t pays by the means of round t - 1, while regret
    counts the means of round t.

    This is how the authors' simulator works: it moves to the new means only after a round was played under the old
    ones. Use it to compare with numbers from their code; a fair experiment uses `base` itself. Their last round is also
    scored by the means of the one before, which this leaves out: it is a single round. It has no short name, so that
    nobody uses it in a command by accident."""

    base: Any  # the world, e.g. Abrupt()

    def validate(self) -> None:
        """Refuse what is not a world."""
        if isinstance(self.base, type) or not isinstance(self.base, Environment):
            raise ValueError(f"Lagged needs a world such as Abrupt(); got {self.base!r:.60}.")

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return self.base.n_arms  # type: ignore[no-any-return]

    @property
    def horizon(self) -> int:
        """The number of rounds."""
        return self.base.horizon  # type: ignore[no-any-return]

    def realise(self, key: int) -> LaggedWorld:
        """The world of one run."""
        return LaggedWorld(self.n_arms, self.horizon, self.base.realise(key))
