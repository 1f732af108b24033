"""Worlds in phases, ready to play: means from a table that changes row at known times."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments.rewards import checked_law
from driftbandit.parameters import described
from driftbandit.primitives import index

_COARSE = 8  # the phase is looked up for every 256 rounds and searched from there


@described(
    lockstep=True,
)
class Phased(NamedTuple):
    """A piecewise-constant world. Made by `phased`, by the random worlds' `realise`, and by `from_means`."""

    n_arms: int
    horizon: int
    law: Any
    table: Any  # mean of arm i in phase p at p * n_arms + i
    bests: Any  # largest mean of each phase
    starts: Any  # first round of each phase, and the horizon at the end
    coarse: Any  # phase of round 256 * j

    def phase(self, t: int) -> int:
        """The phase round t lies in."""
        p: int = index(self.coarse[index(t >> _COARSE)])
        while self.starts[p + 1] <= t:
            p += 1
        return p

    def mean(self, t: int, arm: Any) -> Any:
        """The mean of an arm in round t."""
        return self.table[index(arm + self.phase(t) * self.n_arms)]

    def best(self, t: int) -> Any:
        """The largest mean in round t."""
        return self.bests[index(self.phase(t))]

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        """The reward of an arm in round t."""
        return self.law.draw(self.mean(t, arm), rng)

    def best_arm(self, t: int) -> int:
        """The first arm with the largest mean in round t."""
        p = self.phase(t)
        arm = 0
        for i in range(1, self.n_arms):
            if self.table[p * self.n_arms + i] > self.table[p * self.n_arms + arm]:
                arm = i
        return arm

    def change(self, t: int) -> bool:
        """Does a phase begin in round t (the first one not counted)?"""
        return t > 0 and self.phase(t) != self.phase(t - 1)

    @property
    def breakpoints(self) -> np.ndarray:
        """First rounds of the phases, beginning with 0."""
        return np.asarray(self.starts)[:-1]

    def means(self, start: int, stop: int) -> np.ndarray:
        """Rows start..stop-1 of the mean table, one column per arm."""
        starts = np.asarray(self.starts)
        phases = np.searchsorted(starts, np.arange(start, stop), side="right") - 1
        return np.asarray(self.table).reshape(-1, self.n_arms)[phases]

    def realise(self, key: int) -> "Phased":
        """Nothing is left to chance: the same world for every run."""
        return self

    def __repr__(self) -> str:
        return f"<world of {len(self.starts) - 1} phases, {self.n_arms} arms, {self.horizon} rounds, {self.law!r}>"


def phased(means: Any, starts: Any, horizon: int, law: Any = None) -> Phased:
    """A world from a table of means (phases × arms) and the first round of each phase, the first being 0.

    >>> world = phased([[0.2, 0.8], [0.9, 0.8]], starts=[0, 50], horizon=100)
    >>> [float(mean) for mean in (world.mean(49, 0), world.mean(50, 0), world.best(50))]
    [0.2, 0.9, 0.9]
    """
    try:
        table = np.array(means, np.float64)
        first = np.array(starts, np.int64)
    except (TypeError, ValueError):
        raise ValueError(
            "A table of means needs numbers: one row per phase, one column per arm, all rows of the same length."
        ) from None
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 1:
        raise ValueError(
            f"A table of means needs one row per phase and one column per arm; got the shape {table.shape}."
        )
    if not np.isfinite(table).all():
        raise ValueError("A table of means needs finite numbers; it has a NaN or an infinite entry.")
    if first.shape != (len(table),) or first[0] != 0 or (np.diff(first) <= 0).any() or first[-1] >= horizon:
        raise ValueError(
            f"Breakpoints need one first round per phase ({len(table)} here), beginning with 0, increasing, "
            f"below the horizon {horizon}; got {starts!r:.80}."
        )
    law = checked_law(law, float(table.min()), float(table.max()))
    coarse = _coarse(tuple(first.tolist()), int(horizon))
    ends = np.append(first, horizon)
    return Phased(table.shape[1], int(horizon), law, table.ravel(), table.max(axis=1), ends, coarse)


@lru_cache(maxsize=8)
def _coarse(starts: tuple[int, ...], horizon: int) -> np.ndarray:
    """The phase of every 256th round. Worlds of all runs change at the same times, so they share it: what a run needs
    does not grow with the horizon."""
    return np.searchsorted(starts, np.arange(0, horizon + 1, 1 << _COARSE), side="right") - 1


def from_means(array: Any, law: Any = None) -> Phased:
    """A world from any array of means, one row per round and one column per arm.

    >>> from_means([[0.1, 0.9], [0.9, 0.1]]).best_arm(1)
    0
    """
    try:
        rows = np.array(array, np.float64)
    except (TypeError, ValueError):
        raise ValueError("An array of means needs numbers: one row per round, one column per arm.") from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(
            f"An array of means needs one row per round and one column per arm; got the shape {rows.shape}."
        )
    changed = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))
    starts = np.flatnonzero(changed)
    return phased(rows[starts], starts, len(rows), law)
