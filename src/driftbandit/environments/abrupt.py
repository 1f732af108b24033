"""Worlds that change all at once: the paper's abrupt settings (Figures 2, 3, 4 and 7a) as random worlds of one line
each.

`world` says where the means come from: "fresh" draws new ones for every run, "authors" is the single world of the
authors' code (legacy NumPy generator, seed 0), and a number such as "7" fixes one world by that seed for all runs."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.rewards import Bernoulli
from driftbandit.parameters import checked, described, within


def world_seed(world: str, key: int) -> int | None:
    """The seed behind a `world` text: the run's own key, a fixed number, or None for the authors' generator."""
    if world == "authors":
        return None
    if world == "fresh":
        return key
    if world.isdigit():
        return int(world)
    raise ValueError(f'A world is "fresh", "authors" or a number in quotes such as "7"; got {world!r}.')


def _validate(spec: Any) -> None:
    world_seed(spec.world, 0)
    if spec.phases > spec.horizon:
        raise ValueError(
            f"{type(spec).__name__} needs phases <= horizon; got {spec.phases} phases in {spec.horizon} rounds."
        )


def _starts(horizon: int, phases: int) -> list[int]:
    return [p * horizon // phases for p in range(phases)]


@described(
    short="abrupt",
)
@checked
class Abrupt(NamedTuple):
    """All means are redrawn, uniformly on [0, 1], at the start of each of `phases` equal phases (Figures 2 and 3)."""

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    world: str = "fresh"
    law: Any = Bernoulli()

    def validate(self) -> None:
        """Refuse more phases than rounds and an unknown `world`."""
        _validate(self)

    def realise(self, key: int) -> Phased:
        """The world of one run."""
        return _abrupt(self, world_seed(self.world, key))


@lru_cache(maxsize=256)
def _abrupt(spec: Abrupt, seed: int | None) -> Phased:
    if seed is None:
        legacy = np.random.RandomState(0)
        rows = []
        for _ in range(spec.phases):
            legacy.uniform(0, 0.6, spec.n_arms)  # the authors' code draws these two and does not use them
            legacy.randint(0, spec.n_arms)
            rows.append(legacy.uniform(0, 1, spec.n_arms))
        table = np.array(rows)
    else:
        table = np.random.default_rng(seed).uniform(0, 1, (spec.phases, spec.n_arms))
    return phased(table, _starts(spec.horizon, spec.phases), spec.horizon, spec.law)


@described(
    short="limited",
)
@checked
class AbruptLimited(NamedTuple):
    """Means that stay low: in each phase one arm has mean `best`, the others are uniform on [0, others_max] (Figure
    7a).

    The text of the paper says "less than 0.7"; its code sets the best mean to exactly 0.7, and so does this."""

    n_arms: Annotated[int, within(">= 1")] = 10
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    best: Annotated[float, within("[0, 1]")] = 0.7
    others_max: Annotated[float, within("[0, 1]")] = 0.6
    world: str = "fresh"
    law: Any = Bernoulli()

    def validate(self) -> None:
        """Refuse more phases than rounds and an unknown `world`."""
        _validate(self)

    def realise(self, key: int) -> Phased:
        """The world of one run."""
        return _limited(self, world_seed(self.world, key))


@lru_cache(maxsize=256)
def _limited(spec: AbruptLimited, seed: int | None) -> Phased:
    legacy = np.random.RandomState(0)
    modern = np.random.default_rng(0 if seed is None else seed)
    rows = []
    for _ in range(spec.phases):
        if seed is None:
            row, arm = legacy.uniform(0, spec.others_max, spec.n_arms), legacy.randint(0, spec.n_arms)
        else:
            row, arm = modern.uniform(0, spec.others_max, spec.n_arms), int(modern.integers(spec.n_arms))
        row[arm] = spec.best
        rows.append(row)
    return phased(rows, _starts(spec.horizon, spec.phases), spec.horizon, spec.law)


@described(
    short="gap",
)
@checked
class AbruptGap(NamedTuple):
    """Every wrong arm is wrong by the same `gap`: in each phase the best mean is uniform on [0.5, 1] and all others lie
    `gap` below it (Figure 4).

    With a fixed `world` the best arms and levels are the same for every gap, so only the gap differs between
    experiments."""

    n_arms: Annotated[int, within(">= 1")] = 2
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 5
    gap: Annotated[float, within("[0, 0.5]")] = 0.1
    world: str = "fresh"
    law: Any = Bernoulli()

    def validate(self) -> None:
        """Refuse more phases than rounds and an unknown `world`."""
        _validate(self)

    def realise(self, key: int) -> Phased:
        """The world of one run."""
        return _gap(self, world_seed(self.world, key))


@lru_cache(maxsize=256)
def _gap(spec: AbruptGap, seed: int | None) -> Phased:
    legacy = np.random.RandomState(0)
    modern = np.random.default_rng(0 if seed is None else seed)
    rows = []
    for _ in range(spec.phases):
        if seed is None:
            level, arm = legacy.uniform(0.5, 1), legacy.randint(0, spec.n_arms)
        else:
            level, arm = modern.uniform(0.5, 1), int(modern.integers(spec.n_arms))
        row = np.full(spec.n_arms, level - spec.gap)
        row[arm] = level
        rows.append(row)
    return phased(rows, _starts(spec.horizon, spec.phases), spec.horizon, spec.law)


@described(
    short="phases",
)
@checked
class PhaseTable(NamedTuple):
    """An abrupt world written out: a row of means for each phase, and the first round of each phase (that of the first
    is 0).

    >>> world = PhaseTable(means=((0.2, 0.8), (0.9, 0.1)), starts=(0, 500), horizon=1000).realise(0)
    >>> float(world.mean(500, 0))
    0.9
    """

    means: Any
    starts: Any
    horizon: Annotated[int, within(">= 1")]
    law: Any = Bernoulli()

    def validate(self) -> None:
        """Refuse a table that is not one."""
        self.realise(0)

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return len(self.means[0])

    def realise(self, key: int) -> Phased:
        """The same world for every run."""
        return _table(_tuples(self.means), _tuples(self.starts), self.horizon, self.law)


def _tuples(value: Any) -> Any:
    """Lists and arrays as tuples, which a cache can hold."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list | tuple | np.ndarray) else value


@lru_cache(maxsize=256)
def _table(means: Any, starts: Any, horizon: int, law: Any) -> Phased:
    return phased(means, starts, horizon, law)
