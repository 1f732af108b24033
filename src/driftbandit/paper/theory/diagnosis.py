"""What an environment is like, in the quantities the theorems ask for.

One pass over the means in blocks of rows, so a world of ten million rounds needs no table of T x K numbers; the last
row of a block is carried into the next, or changes on the border would go unseen. Time O(T K log K)."""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from driftbandit.paper.theory import paper_functions as f

Table = NDArray[np.float64]
BLOCK_NUMBERS = 1 << 18  # means held at a time: 2 MB


class MeanSource(Protocol):
    """Anything that can give the rows `start` to `stop - 1` of its means, one column per arm."""

    @property
    def n_arms(self) -> int: ...

    @property
    def horizon(self) -> int: ...

    def means(self, start: int, stop: int) -> Table: ...


class Diagnosis(NamedTuple):
    """Facts about one world. Counts of changes need two rows; a world of one round has none."""

    horizon: int  # T
    n_arms: int  # K
    phases: int  # B_T: runs of equal rows of means, the first included (a change that keeps the means is not seen)
    switches: int  # rounds after which the best arm (lowest index if tied) is another
    crossings: int  # P: rounds after which some pair of arms has changed order strictly
    gap: float  # Delta_T: smallest distance of a sub-optimal arm to the best; 0 if the best arm is ever tied
    tied_rounds: int  # rounds in which the best arm is tied
    variation: float  # V_T: sum over rounds of the largest change of a mean
    drift: float  # the Lipschitz constant sigma: largest change of a mean in one round
    mu_min: float
    mu_max: float
    uniform_regret: float  # regret of choosing arms uniformly: the scale against which a policy's regret is read

    @property
    def suboptimal_arms(self) -> int:
        """Arms that are sub-optimal at some time, hence the number of per-arm bounds regret adds up.

        K - 1 holds only while one arm stays best; once the best arm changes, all K are sub-optimal at some time."""
        return self.n_arms if self.switches else self.n_arms - 1

    @property
    def bounded(self) -> bool:
        """Are all means in [0, 1], as every theorem here assumes?"""
        return self.mu_min >= 0.0 and self.mu_max <= 1.0


def blocks(world: MeanSource, overlap: bool = False) -> Iterator[tuple[int, Table]]:
    """(first row, rows) over the whole horizon; with `overlap`, blocks begin with the last row of the one before."""
    if world.n_arms < 2 or world.horizon < 1:
        raise ValueError(f"A diagnosis needs at least 2 arms and 1 round; got {world.n_arms} and {world.horizon}.")
    size = max(1, BLOCK_NUMBERS // world.n_arms)
    last: Table | None = None
    for start in range(0, world.horizon, size):
        stop = min(start + size, world.horizon)
        rows = np.asarray(world.means(start, stop), dtype=np.float64)
        if rows.shape != (stop - start, world.n_arms):
            wanted = (stop - start, world.n_arms)
            raise ValueError(f"means({start}, {stop}) must have shape {wanted}; got {rows.shape}.")
        if not np.isfinite(rows).all():
            raise ValueError(f"means({start}, {stop}) holds a number that is not finite.")
        if overlap and last is not None:
            yield start - 1, np.concatenate((last, rows))
        else:
            yield start, rows
        last = rows[-1:].copy()


def _crossed(before: Table, after: Table) -> NDArray[np.bool_]:
    """For each row: is there a pair with before_i < before_j and after_i > after_j?

    Sort each row by (before, after). Equal `before` are then in rising order of `after`, so a fall between neighbours
    belongs to a strict pair; and without any fall no pair is out of order. O(K log K) instead of all pairs."""
    order = np.lexsort((after, before), axis=-1)
    return np.asarray((np.diff(np.take_along_axis(after, order, axis=-1), axis=-1) < 0.0).any(axis=-1))


def diagnose(world: MeanSource) -> Diagnosis:
    """Read a world's means once and report what the theory needs to know of them."""
    phases, switches, crossings, tied = 1, 0, 0, 0
    gap, drift, mu_min, mu_max = math.inf, 0.0, math.inf, -math.inf
    variation, uniform = [], []
    for number, (_, rows) in enumerate(blocks(world, overlap=True)):
        fresh = rows[1:] if number else rows  # the first row of a later block was counted in the one before
        top = np.partition(fresh, -2, axis=1)[:, -2:]
        distances = top[:, 1] - top[:, 0]
        gap = min(gap, float(distances.min()))
        tied += int((distances == 0.0).sum())
        mu_min, mu_max = min(mu_min, float(fresh.min())), max(mu_max, float(fresh.max()))
        uniform.append(float((top[:, 1] - fresh.mean(axis=1)).sum()))
        if len(rows) > 1:
            steps = np.abs(np.diff(rows, axis=0)).max(axis=1)
            moved = np.flatnonzero(steps)
            phases += len(moved)
            variation.append(float(steps.sum()))
            drift = max(drift, float(steps.max()))
            before, after = rows[moved], rows[moved + 1]
            switches += int((before.argmax(axis=1) != after.argmax(axis=1)).sum())
            crossings += int(_crossed(before, after).sum())
    return Diagnosis(
        world.horizon, world.n_arms, phases, switches, crossings, gap, tied,
        math.fsum(variation), drift, mu_min, mu_max, math.fsum(uniform),
    )  # fmt: skip


def breakpoints(world: MeanSource) -> Iterator[int]:
    """First rows (0-based) of the phases; the first is 0."""
    yield 0
    for start, rows in blocks(world, overlap=True):
        for row in np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)):
            yield start + 1 + int(row)


def separations(world: MeanSource) -> Table:
    """For each round the distance of the two closest arms: T numbers, from which |H| and F follow."""
    parts = [np.diff(np.sort(rows, axis=1), axis=1).min(axis=1) for _, rows in blocks(world)]
    return np.concatenate(parts)


def close_rounds(distances: Table, gap: float) -> int:
    """|H(gap, T)|: rounds in which two arms are closer than `gap` (strictly)."""
    return int((distances < gap).sum())


def smallest_constant(distances: Table, beta: float, gap0: float = 1.0) -> float | None:
    """The smallest F with |H(gap, T)| <= F gap T^beta for every gap below gap0 (Assumption 2 at this one T).

    |H| jumps just above each distance that occurs, so those are the places to look. None if no F will do, because two
    arms are exactly equal in some round. The paper calls one F good for every beta and T; it is not, so compute it."""
    below = np.sort(distances[distances < gap0])
    if below.size == 0:
        return 0.0
    if below[0] == 0.0:
        return None
    counts = np.searchsorted(below, below, side="right")
    return float((counts / below).max()) / math.pow(distances.size, beta)


def pseudo_stationary(starts: list[int], horizon: int, eps: float) -> list[tuple[int, int]]:
    """The rounds about which Theorem 1 says something, as half-open ranges of rows.

    A row belongs to them once D(gamma) rounds of its own phase are seen, itself included. `starts` are the first rows
    of the phases, beginning with 0; the first phase waits too, for the paper counts round 1 as a change."""
    if not starts or starts[0] != 0 or any(b <= a for a, b in itertools.pairwise(starts)):
        raise ValueError("starts must rise strictly and begin with 0.")
    wait = max(math.ceil(f.D(eps)) - 1, 0)
    ends = [*starts[1:], horizon]
    return [(start + wait, end) for start, end in zip(starts, ends, strict=True) if start + wait < end]
