"""The suite: worlds of every kind, as data.

Design worlds may be used to choose constants of a policy; check worlds only to report. If you change a policy after
looking at a check world, you have made it a design world."""

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


class SuiteWorld(NamedTuple):
    """A world of the suite."""

    name: str
    kind: str
    role: str  # DESIGN or CHECK
    environment: Any

    @property
    def changing(self) -> bool:
        """Does it belong to the worlds over which ratios are averaged?"""
        return self.kind not in APART


class KnownFacts(NamedTuple):
    """What the `tuned` constructors know about an environment."""

    horizon: int
    phases: int
    n_arms: int
    variation: float  # sum over rounds of the largest change of a mean


def _abrupt(n_arms: int, phases: int = 10, world: str = "fresh", horizon: int = LONG) -> Abrupt:
    return Abrupt(n_arms, horizon, phases, world)


def _gap(gap: float, n_arms: int, phases: int, world: str = "authors") -> AbruptGap:
    return AbruptGap(n_arms, LONG, phases, gap, world)


SUITE: tuple[SuiteWorld, ...] = (
    SuiteWorld("authors-K5", "abrupt", DESIGN, _abrupt(5, world="authors")),
    SuiteWorld("authors-K10", "abrupt", DESIGN, _abrupt(10, world="authors")),
    SuiteWorld("authors-K30", "abrupt", DESIGN, _abrupt(30, world="authors")),
    SuiteWorld("fresh-K5-p5", "abrupt", DESIGN, _abrupt(5, 5)),
    SuiteWorld("fresh-K5-p10", "abrupt", DESIGN, _abrupt(5)),
    SuiteWorld("fresh-K5-p20", "abrupt", DESIGN, _abrupt(5, 20)),
    SuiteWorld("fresh-K10", "abrupt", DESIGN, _abrupt(10)),
    SuiteWorld("fresh-K30", "abrupt", DESIGN, _abrupt(30)),
    SuiteWorld("gap.05-K5", "gap", DESIGN, _gap(0.05, 5, 10)),
    SuiteWorld("gap.1-K2", "gap", DESIGN, _gap(0.1, 2, 5)),
    SuiteWorld("gap.2-K5", "gap", DESIGN, _gap(0.2, 5, 5)),
    SuiteWorld("smooth-K5-short", "smooth", DESIGN, Smooth(5, 10_000, 1e-3)),
    SuiteWorld("smooth-K5-short-slow", "smooth", DESIGN, Smooth(5, 10_000, 1e-4)),
    SuiteWorld("smooth-K5", "smooth", DESIGN, Smooth(5, LONG, 1e-4)),
    SuiteWorld("smooth-K10", "smooth", DESIGN, Smooth(10, LONG, 1e-4)),
    SuiteWorld("smooth-K30-quick", "smooth", DESIGN, Smooth(30, LONG, 1e-3)),
    SuiteWorld("smooth-K30", "smooth", DESIGN, Smooth(30, LONG, 1e-4)),
    SuiteWorld("stat-K5", "stationary", DESIGN, _abrupt(5, 1)),
    SuiteWorld("stat-K10", "stationary", DESIGN, _abrupt(10, 1)),
    SuiteWorld("stat-K30", "stationary", DESIGN, _abrupt(30, 1)),
    SuiteWorld("fast-K5", "fast", DESIGN, _abrupt(5, 200)),
    SuiteWorld("fast-K10", "fast", DESIGN, _abrupt(10, 200)),
    SuiteWorld("trap-K2", "trap", DESIGN, Trap(2)),
    SuiteWorld("trap-K5", "trap", DESIGN, Trap(5)),
    SuiteWorld("local-K5", "local", DESIGN, Local(5)),
    SuiteWorld("common.0", "common", DESIGN, CommonShift(sd=0.0)),
    SuiteWorld("common.1", "common", DESIGN, CommonShift(sd=0.1)),
    SuiteWorld("common.2", "common", DESIGN, CommonShift(sd=0.2)),
    SuiteWorld("authors-K20", "abrupt", CHECK, _abrupt(20, world="authors")),
    SuiteWorld("fresh-K20", "abrupt", CHECK, _abrupt(20)),
    SuiteWorld("fresh-K50", "abrupt", CHECK, _abrupt(50)),
    SuiteWorld("limited.7-K10", "limited", CHECK, AbruptLimited(10)),
    SuiteWorld("limited.5-K5", "limited", CHECK, AbruptLimited(5, best=0.5, others_max=0.4)),
    SuiteWorld("figure-7a", "limited", CHECK, AbruptLimited(10, world="authors")),
    SuiteWorld("figure-7b", "smooth", CHECK, Smooth(5, 10_000, 1e-3, rescaled=True)),
    SuiteWorld("gap.15-K5", "gap", CHECK, _gap(0.15, 5, 5)),
    SuiteWorld("gap.1-K20", "gap", CHECK, _gap(0.1, 20, 5)),
    SuiteWorld("tiny-K2", "gap", CHECK, _gap(0.02, 2, 5, "fresh")),
    SuiteWorld("smooth-K20", "smooth", CHECK, Smooth(20, LONG, 1e-4)),
    SuiteWorld("finite-K5", "finite", CHECK, AbruptFinite(5)),
    SuiteWorld("finite-K20", "finite", CHECK, AbruptFinite(20)),
    SuiteWorld("stat-K20", "stationary", CHECK, _abrupt(20, 1)),
    SuiteWorld("fast-K20", "fast", CHECK, _abrupt(20, 200)),
    SuiteWorld("trap-K10", "trap", CHECK, Trap(10)),
    SuiteWorld("trap-K20", "trap", CHECK, Trap(20)),
    SuiteWorld("local-K10", "local", CHECK, Local(10)),
    SuiteWorld("local-K20", "local", CHECK, Local(20)),
    SuiteWorld("mixed-K6", "mixed", CHECK, Mixed(6)),
    SuiteWorld("mixed-K20", "mixed", CHECK, Mixed(20)),
    SuiteWorld("seasonal-K5", "seasonal", CHECK, Seasonal(5)),
    SuiteWorld("seasonal-K20", "seasonal", CHECK, Seasonal(20)),
    SuiteWorld("rising-K5", "rising", DESIGN, Rising(5)),  # a check world until DriftTS was changed after a look at it
    SuiteWorld("bursts-K5", "bursts", CHECK, Bursts(5)),
    SuiteWorld("rare.05-K5", "rare", CHECK, Rare(5, highest=0.05)),
    SuiteWorld("rare.01-K5", "rare", CHECK, Rare(5, highest=0.01)),
    SuiteWorld("slow-K5", "slow", DESIGN, _abrupt(5, 2, horizon=1_000_000)),
    SuiteWorld("slow-K10", "slow", CHECK, _abrupt(10, 2, horizon=1_000_000)),
)

_SHORT = ("fresh-K5-p10", "gap.2-K5", "smooth-K5-short", "stat-K5", "trap-K5", "common.2")
QUICK_HORIZON = 5_000


def quick() -> tuple[SuiteWorld, ...]:
    """Six kinds, cut to 5,000 rounds: to see that everything works, and roughly who stands where."""
    return tuple(_cut(world) for world in SUITE if world.name in _SHORT)


def _cut(world: SuiteWorld) -> SuiteWorld:
    fields = {"horizon": QUICK_HORIZON}
    if isinstance(world.environment, CommonShift):
        fields["days"] = QUICK_HORIZON // 100
    return world._replace(environment=type(world.environment)(**{**world.environment._asdict(), **fields}))


def choose_worlds(words: Sequence[str], worlds: Sequence[SuiteWorld] = SUITE) -> list[SuiteWorld]:
    """The worlds named: by name, by kind ("smooth"), or all of a role ("design", "check"); all, if none is named.

    >>> [world.name for world in choose_worlds(["slow"])]
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


def known_facts(environment: Any) -> KnownFacts:
    """What the `tuned` constructors know: rounds, arms and phases. In an environment that drifts, the phases are the
    changes of the best arm plus one."""
    means = np.asarray(environment.realise(0).means(0, environment.horizon))
    phases = getattr(environment, "phases", None) or _reigns(means)
    variation = float(np.abs(np.diff(means, axis=0)).max(axis=1, initial=0.0).sum())
    return KnownFacts(environment.horizon, phases, environment.n_arms, variation)


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
