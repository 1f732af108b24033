"""The facts about an environment's means that the theorems need, read in blocks of rows.

A realised environment of ten million rounds then needs no table of T x K numbers."""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.core.protocols import Realisation
from driftbandit.paper.theory.theorem import D

Table = NDArray[np.float64]
BLOCK_NUMBERS = 1 << 18  # means held at a time: 2 MB


class Diagnosis(NamedTuple):
    """Facts about one realised environment."""

    horizon: int  # T
    n_arms: int  # K
    phases: int  # B_T: runs of equal rows of means, the first included
    switches: int  # rounds after which the best arm (lowest index if tied) is another
    crossings: int  # P: rounds after which some pair of arms has changed order strictly
    gap: float  # Delta_T: smallest distance of a sub-optimal arm to the best; 0 if the best arm is ever tied
    drift: float  # sigma: largest change of a mean in one round
    mu_max: float
    uniform_regret: float  # regret of choosing arms uniformly

    @property
    def suboptimal_arms(self) -> int:
        """Arms that are sub-optimal at some time: K once the best arm changes, else K - 1."""
        return self.n_arms if self.switches else self.n_arms - 1


def blocks(environment: Realisation, overlap: bool = False) -> Iterator[tuple[int, Table]]:
    """(first row, rows) over the whole horizon; with `overlap`, blocks begin with the last row of the one before."""
    size = max(1, BLOCK_NUMBERS // environment.n_arms)
    for start in range(0, environment.horizon, size):
        first = start - 1 if overlap and start else start
        yield first, np.asarray(environment.means(first, min(start + size, environment.horizon)), dtype=np.float64)


def _find_crossings(before: Table, after: Table) -> NDArray[np.bool_]:
    """For each row: is there a pair with before_i < before_j and after_i > after_j?

    With each row sorted by (before, after), such a pair exists exactly if `after` falls between two neighbours."""
    order = np.lexsort((after, before), axis=-1)
    return np.asarray((np.diff(np.take_along_axis(after, order, axis=-1), axis=-1) < 0.0).any(axis=-1))


def diagnose(environment: Realisation) -> Diagnosis:
    """Read the means of a realised environment once."""
    if environment.n_arms < 2:
        raise ValueError(f"The theorems need 2 arms or more; got {environment.n_arms}.")
    phases, switches, crossings = 1, 0, 0
    gap, drift, mu_max = math.inf, 0.0, -math.inf
    uniform = []
    for number, (_, rows) in enumerate(blocks(environment, overlap=True)):
        new = rows[1:] if number else rows  # the first row of a later block was counted in the one before
        top = np.partition(new, -2, axis=1)[:, -2:]
        gap = min(gap, float((top[:, 1] - top[:, 0]).min()))
        mu_max = max(mu_max, float(new.max()))
        uniform.append(float((top[:, 1] - new.mean(axis=1)).sum()))
        if len(rows) > 1:
            steps = np.abs(np.diff(rows, axis=0)).max(axis=1)
            moved = np.flatnonzero(steps)
            phases += len(moved)
            drift = max(drift, float(steps.max()))
            before, after = rows[moved], rows[moved + 1]
            switches += int((before.argmax(axis=1) != after.argmax(axis=1)).sum())
            crossings += int(_find_crossings(before, after).sum())
    sizes = environment.horizon, environment.n_arms
    return Diagnosis(*sizes, phases, switches, crossings, gap, drift, mu_max, math.fsum(uniform))


def separations(environment: Realisation) -> Table:
    """For each round the distance of the two closest arms."""
    return np.concatenate([np.diff(np.sort(rows, axis=1), axis=1).min(axis=1) for _, rows in blocks(environment)])


def close_rounds(distances: Table, gap: float) -> int:
    """|H(gap, T)|: rounds in which two arms are closer than `gap` (strictly)."""
    return int((distances < gap).sum())


def pseudo_stationary(starts: list[int], horizon: int, eps: float) -> list[tuple[int, int]]:
    """The rounds that Theorem 1 does not give up, as half-open ranges of rows.

    A row belongs to them once D(gamma) rounds of its phase have passed, itself included. `starts` are the first rows
    of the phases. The first phase waits too, because the paper counts round 1 as a change."""
    wait = max(math.ceil(D(eps)) - 1, 0)
    return [(start + wait, end) for start, end in itertools.pairwise([*starts, horizon]) if start + wait < end]
