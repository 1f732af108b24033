"""The suite: worlds of every kind, as data.

Design worlds may be used to choose constants of a policy; check worlds only to report. Whoever changes a policy after
looking at a check world has made it a design world."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.checks import nearest
from driftbandit.environments import (
    Abrupt,
    AbruptFinite,
    AbruptGap,
    AbruptLimited,
    Bursts,
    CommonShift,
    Local,
    Mixed,
    Rare,
    Rising,
    Seasonal,
    Smooth,
    Trap,
)

DESIGN, CHECK = "design", "check"
LONG = 100_000  # rounds, unless the world says otherwise
APART = (
    "stationary",
    "slow",
    "trap",
)  # kinds in which watching for change costs more than it gains, or nothing can be seen


class Target(NamedTuple):
    """What the prototype of DriftTS regretted here: mean and standard error of 32 runs, seed 0."""

    mean: float
    error: float


class World(NamedTuple):
    """A world of the suite."""

    name: str
    kind: str
    role: str  # DESIGN or CHECK
    environment: Any
    target: Target | None = None

    @property
    def changing(self) -> bool:
        """Does it belong to the worlds over which ratios are averaged?"""
        return self.kind not in APART


class Told(NamedTuple):
    """What a policy tuned by its theory is told of a world."""

    horizon: int
    phases: int
    n_arms: int
    variation: float  # sum over rounds of the largest change of a mean


def _abrupt(n_arms: int, phases: int = 10, world: str = "fresh", horizon: int = LONG) -> Abrupt:
    return Abrupt(n_arms, horizon, phases, world)


def _gap(gap: float, n_arms: int, phases: int, world: str = "authors") -> AbruptGap:
    return AbruptGap(n_arms, LONG, phases, gap, world)


SUITE: tuple[World, ...] = (
    World("authors-K5", "abrupt", DESIGN, _abrupt(5, world="authors"), Target(319, 5)),
    World("authors-K10", "abrupt", DESIGN, _abrupt(10, world="authors"), Target(682, 21)),
    World("authors-K30", "abrupt", DESIGN, _abrupt(30, world="authors"), Target(858, 10)),
    World("fresh-K5-p5", "abrupt", DESIGN, _abrupt(5, 5), Target(339, 27)),
    World("fresh-K5-p10", "abrupt", DESIGN, _abrupt(5), Target(501, 32)),
    World("fresh-K5-p20", "abrupt", DESIGN, _abrupt(5, 20), Target(828, 32)),
    World("fresh-K10", "abrupt", DESIGN, _abrupt(10), Target(658, 26)),
    World("fresh-K30", "abrupt", DESIGN, _abrupt(30), Target(1031, 30)),
    World("gap.05-K5", "gap", DESIGN, _gap(0.05, 5, 10), Target(1208, 52)),
    World("gap.1-K2", "gap", DESIGN, _gap(0.1, 2, 5), Target(180, 9)),
    World("gap.2-K5", "gap", DESIGN, _gap(0.2, 5, 5), Target(345, 7)),
    World("smooth-K5-short", "smooth", DESIGN, Smooth(5, 10_000, 1e-3), Target(377, 9)),
    World("smooth-K5-short-slow", "smooth", DESIGN, Smooth(5, 10_000, 1e-4), Target(151, 13)),
    World("smooth-K5", "smooth", DESIGN, Smooth(5, LONG, 1e-4), Target(980, 34)),
    World("smooth-K10", "smooth", DESIGN, Smooth(10, LONG, 1e-4), Target(1892, 41)),
    World("smooth-K30-quick", "smooth", DESIGN, Smooth(30, LONG, 1e-3), Target(8171, 32)),
    World("smooth-K30", "smooth", DESIGN, Smooth(30, LONG, 1e-4), Target(3082, 28)),
    World("stat-K5", "stationary", DESIGN, _abrupt(5, 1), Target(99, 8)),
    World("stat-K10", "stationary", DESIGN, _abrupt(10, 1), Target(125, 7)),
    World("stat-K30", "stationary", DESIGN, _abrupt(30, 1), Target(216, 13)),
    World("fast-K5", "fast", DESIGN, _abrupt(5, 200), Target(3912, 42)),
    World("fast-K10", "fast", DESIGN, _abrupt(10, 200), Target(5565, 38)),
    World("trap-K2", "trap", DESIGN, Trap(2), Target(572, 83)),
    World("trap-K5", "trap", DESIGN, Trap(5), Target(1163, 124)),
    World("local-K5", "local", DESIGN, Local(5), Target(1367, 39)),
    World("common.0", "common", DESIGN, CommonShift(sd=0.0), Target(225, 16)),
    World("common.1", "common", DESIGN, CommonShift(sd=0.1), Target(263, 12)),
    World("common.2", "common", DESIGN, CommonShift(sd=0.2), Target(308, 25)),
    World("authors-K20", "abrupt", CHECK, _abrupt(20, world="authors")),
    World("fresh-K20", "abrupt", CHECK, _abrupt(20)),
    World("fresh-K50", "abrupt", CHECK, _abrupt(50)),
    World("limited.7-K10", "limited", CHECK, AbruptLimited(10)),
    World("limited.5-K5", "limited", CHECK, AbruptLimited(5, best=0.5, others_max=0.4)),
    World("figure-7a", "limited", CHECK, AbruptLimited(10, world="authors")),
    World("figure-7b", "smooth", CHECK, Smooth(5, 10_000, 1e-3, rescaled=True)),
    World("gap.15-K5", "gap", CHECK, _gap(0.15, 5, 5)),
    World("gap.1-K20", "gap", CHECK, _gap(0.1, 20, 5)),
    World("tiny-K2", "gap", CHECK, _gap(0.02, 2, 5, "fresh")),
    World("smooth-K20", "smooth", CHECK, Smooth(20, LONG, 1e-4)),
    World("finite-K5", "finite", CHECK, AbruptFinite(5)),
    World("finite-K20", "finite", CHECK, AbruptFinite(20)),
    World("stat-K20", "stationary", CHECK, _abrupt(20, 1)),
    World("fast-K20", "fast", CHECK, _abrupt(20, 200)),
    World("trap-K10", "trap", CHECK, Trap(10)),
    World("trap-K20", "trap", CHECK, Trap(20)),
    World("local-K10", "local", CHECK, Local(10)),
    World("local-K20", "local", CHECK, Local(20)),
    World("mixed-K6", "mixed", CHECK, Mixed(6)),
    World("mixed-K20", "mixed", CHECK, Mixed(20)),
    World("seasonal-K5", "seasonal", CHECK, Seasonal(5)),
    World("seasonal-K20", "seasonal", CHECK, Seasonal(20)),
    World("rising-K5", "rising", CHECK, Rising(5)),
    World("bursts-K5", "bursts", CHECK, Bursts(5)),
    World("rare.05-K5", "rare", CHECK, Rare(5, highest=0.05)),
    World("rare.01-K5", "rare", CHECK, Rare(5, highest=0.01)),
    World("slow-K5", "slow", DESIGN, _abrupt(5, 2, horizon=1_000_000), Target(447, 29)),
    World("slow-K10", "slow", CHECK, _abrupt(10, 2, horizon=1_000_000)),
)

_SHORT = ("fresh-K5-p10", "gap.2-K5", "smooth-K5-short", "stat-K5", "trap-K5", "common.2")
QUICK_HORIZON = 5_000


def quick() -> tuple[World, ...]:
    """Six kinds, cut to 5,000 rounds: to see that everything works, and roughly who stands where."""
    return tuple(_cut(world) for world in SUITE if world.name in _SHORT)


def _cut(world: World) -> World:
    fields = {"horizon": QUICK_HORIZON}
    if isinstance(world.environment, CommonShift):
        fields["days"] = QUICK_HORIZON // 100
    return world._replace(environment=type(world.environment)(**{**world.environment._asdict(), **fields}), target=None)


def chosen(words: Sequence[str], worlds: Sequence[World] = SUITE) -> list[World]:
    """The worlds named: by name, by kind ("smooth"), or all of a role ("design", "check"); all, if none is named.

    >>> [world.name for world in chosen(["slow"])]
    ['slow-K5', 'slow-K10']
    """
    known = {word for world in worlds for word in (world.name, world.kind, world.role)}
    for word in words:
        if word not in known:
            raise ValueError(
                f"The suite has no world, kind or role {word!r}{nearest(word, known) or '.'} "
                f"Kinds: {', '.join(dict.fromkeys(world.kind for world in worlds))}; roles: design, check."
            )
    return [world for world in worlds if not words or {world.name, world.kind, world.role} & set(words)]


def told(environment: Any) -> Told:
    """What `tuned` is told: rounds, arms, and the number of phases; in a world that drifts, how often the best arm
    changes, plus one."""
    means = np.asarray(environment.realise(0).means(0, environment.horizon))
    phases = getattr(environment, "phases", None) or _reigns(means)
    variation = float(np.abs(np.diff(means, axis=0)).max(axis=1, initial=0.0).sum())
    return Told(environment.horizon, phases, environment.n_arms, variation)


def _reigns(means: np.ndarray) -> int:
    """For how many stretches one arm is the best: it reigns until another is better."""
    best, count, arm = means.max(axis=1), 1, int(means[0].argmax())
    at = 0
    while True:
        beaten = np.flatnonzero(means[at:, arm] < best[at:])
        if not len(beaten):
            return count
        at += int(beaten[0])
        arm, count = int(means[at].argmax()), count + 1
