"""Environments that change abruptly: the paper's settings of Figures 2, 3, 4 and 7a, its rewards from a finite support,
and the lag of the authors' simulator.

`instance` defines the means: "fresh" draws new ones for every run, "authors" takes those of the authors'
code (legacy NumPy generator, seed 0). A number such as "7" draws them with that seed, the same for all runs."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.protocols import Environment
from driftbandit.environments.phased import Phased, Repaid, drawn, equal_starts, instance_seed, phased
from driftbandit.environments.rewards import Bernoulli, Constant


@drawn("abrupt", authors=True)
class Abrupt(NamedTuple):
    """All means are redrawn, uniformly on [0, 1], at the start of each of `phases` equal phases (Figures 2 and 3)."""

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    instance: str = "fresh"
    law: Any = Bernoulli()

    def draw_phases(self, seed: int | None) -> Any:
        starts = equal_starts(self.horizon, self.phases)
        if seed is not None:
            return np.random.default_rng(seed).uniform(0, 1, (self.phases, self.n_arms)), starts
        legacy, rows = np.random.RandomState(0), []
        for _ in range(self.phases):
            legacy.uniform(0, 0.6, self.n_arms)  # the authors' code draws these two and does not use them
            legacy.randint(0, self.n_arms)
            rows.append(legacy.uniform(0, 1, self.n_arms))
        return rows, starts


@drawn("limited", authors=True)
class AbruptLimited(NamedTuple):
    """Means that stay low: in each phase one arm has mean `best`, the others are uniform on [0, others_max] (Figure
    7a).

    The text of the paper has "less than 0.7"; its code sets the best mean to exactly 0.7, and so does this."""

    n_arms: Annotated[int, within(">= 1")] = 10
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    best: Annotated[float, within("[0, 1]")] = 0.7
    others_max: Annotated[float, within("[0, 1]")] = 0.6
    instance: str = "fresh"
    law: Any = Bernoulli()

    def draw_phases(self, seed: int | None) -> Any:
        uniform, draw_arm = _generator(seed)
        rows = []
        for _ in range(self.phases):
            row, arm = uniform(0, self.others_max, self.n_arms), draw_arm(self.n_arms)
            row[arm] = self.best
            rows.append(row)
        return rows, equal_starts(self.horizon, self.phases)


@drawn("gap", authors=True)
class AbruptGap(NamedTuple):
    """Every wrong arm is wrong by the same `gap`: in each phase the best mean is uniform on [0.5, 1] and all others lie
    `gap` below it (Figure 4).

    With a fixed `instance` the best arms and levels are the same for every gap, so only the gap differs between
    experiments."""

    n_arms: Annotated[int, within(">= 1")] = 2
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 5
    gap: Annotated[float, within("[0, 0.5]")] = 0.1
    instance: str = "fresh"
    law: Any = Bernoulli()

    def draw_phases(self, seed: int | None) -> Any:
        uniform, draw_arm = _generator(seed)
        rows = []
        for _ in range(self.phases):
            level, arm = uniform(0.5, 1), draw_arm(self.n_arms)
            rows.append(np.full(self.n_arms, level - self.gap))
            rows[-1][arm] = level
        return rows, equal_starts(self.horizon, self.phases)


def _generator(seed: int | None) -> tuple[Any, Any]:
    """The functions that draw uniform numbers and arms; without a seed those of the authors' code."""
    if seed is None:
        legacy = np.random.RandomState(0)
        return legacy.uniform, lambda n_arms: legacy.randint(0, n_arms)
    modern = np.random.default_rng(seed)
    return modern.uniform, modern.integers


@described(short="phases")
@checked
class PhaseTable(NamedTuple):
    """An abrupt environment written out: a row of means and the first round of each phase, beginning with 0.

    >>> environment = PhaseTable(means=((0.2, 0.8), (0.9, 0.1)), starts=(0, 500), horizon=1000).realise(0)
    >>> float(environment.mean(500, 0))
    0.9
    """

    means: Any
    starts: Any
    horizon: Annotated[int, within(">= 1")]
    law: Any = Bernoulli()

    def validate(self) -> None:
        self.realise(0)

    @property
    def n_arms(self) -> int:
        return len(self.means[0])

    def realise(self, key: int) -> Phased:
        return phased(self.means, self.starts, self.horizon, self.law)


@described(pays="[0, 1]")
class FiniteAmounts(NamedTuple):
    """Pays one of a few amounts."""

    points: int
    support: Any  # amount d of arm i in phase p at (p * n_arms + i) * points + d
    cumulative: Any  # probability of amounts 0..d, in the same layout

    def pay(self, base: Any, t: int, arm: int, rng: Any) -> float:
        first = (base.phase(t) * base.n_arms + arm) * self.points
        u = rng.uniform(0)
        d = 0
        while d < self.points - 1 and u >= self.cumulative[first + d]:
            d += 1
        return self.support[first + d] + 0.0  # type: ignore[no-any-return]


@drawn("finite", authors=True, pays="[0, 1]")
class AbruptFinite(NamedTuple):
    """Each arm pays one of `points` amounts drawn from [0, 1], with probabilities redrawn in each phase.

    The amounts are redrawn in each phase too. The authors' code has one probability vector per phase for all arms
    (`shared_probabilities=True`); it also draws one per arm and throws it away, which `shared_probabilities=False`
    uses. They never report a result with these rewards. `instance="authors"` is their seed-0 environment."""

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    points: Annotated[int, within(">= 1")] = 5
    shared_probabilities: bool = True
    instance: str = "fresh"

    def realise(self, key: int) -> Repaid:
        return _finite(self, instance_seed(self, key))


@lru_cache(maxsize=256)
def _finite(spec: AbruptFinite, seed: int | None) -> Repaid:
    shape = (spec.phases, spec.n_arms, spec.points)
    if seed is None:
        support, own, shared = _authors(*shape)
    else:
        rng = np.random.default_rng(seed)
        support, own, shared = rng.uniform(0, 1, shape), rng.uniform(1, 10, shape), rng.uniform(1, 10, shape)[:, :1]
    weights = np.broadcast_to(shared if spec.shared_probabilities else own, shape)
    probabilities = weights / weights.sum(axis=2, keepdims=True)
    base = phased(
        (support * probabilities).sum(axis=2), equal_starts(spec.horizon, spec.phases), spec.horizon, Constant()
    )
    cumulative = probabilities.cumsum(axis=2)
    amounts = FiniteAmounts(spec.points, support.ravel().copy(), cumulative.ravel().copy())
    return Repaid(spec.n_arms, spec.horizon, base, amounts)


def _authors(phases: int, n_arms: int, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The draws of the authors' generator, phase by phase: amounts and unused weights per arm, then the weights that
    all arms share."""
    legacy = np.random.RandomState(0)
    drawn = [(legacy.uniform(0, 1, (n_arms, 2, points)), legacy.uniform(1, 10, points)) for _ in range(phases)]
    own = np.array([pair[0] for pair in drawn])
    return own[:, :, 0], own[:, :, 1], np.array([pair[1] for pair in drawn])[:, None]


class Lag(NamedTuple):
    """Pays by the means of the round before."""

    def pay(self, base: Any, t: int, arm: Any, rng: Any) -> Any:
        return base.pull(max(t - 1, 0), arm, rng)


@checked
class Lagged(NamedTuple):
    """Another environment with rewards that are one round late: round t pays by the means of round t - 1, and regret
    counts the means of round t.

    The authors' simulator moves to the new means only after a round was played under the old ones. (It also scores its
    last round by the means of the one before, which this leaves out.) Without a short name it is not used in a command
    by accident."""

    base: Any  # the environment, e.g. Abrupt()

    def validate(self) -> None:
        if isinstance(self.base, type) or not isinstance(self.base, Environment):
            raise ValueError(f"Lagged needs an environment such as Abrupt(); got {self.base!r:.60}.")

    @property
    def n_arms(self) -> int:
        return self.base.n_arms  # type: ignore[no-any-return]

    @property
    def horizon(self) -> int:
        return self.base.horizon  # type: ignore[no-any-return]

    def realise(self, key: int) -> Repaid:
        return Repaid(self.n_arms, self.horizon, self.base.realise(key), Lag())
