"""The best tuned policy of every world: the whole grid, played.

Cheap settings play all runs. Dear ones, and in a world of a million rounds all, play a few first, and then, the most
promising before the others, the rest, as long as they come near the best so far: all meet the same worlds and the same
luck, so a few runs tell who is out. In the worlds of the frontier every policy plays all runs."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.field import kept
from driftbandit.field.grids import DEAR, NO_RIVALS, ON_TIME, labels, made, nanoseconds, short_of
from driftbandit.field.kept import KeptLine
from driftbandit.field.suite import DESIGN, SuiteWorld, told
from driftbandit.lab.experiments.run import play
from driftbandit.lab.jobs.work import Cell

FRONTIER = ("stat-K5", "trap-K5")
HEATS = 4  # runs that an expensive setting plays before it is judged
LONG = 1_000_000  # rounds of a world in which every setting is expensive
PATIENCE = 1.25  # an expensive setting is out if its first runs clearly cost more than this many times the best
AT_ONCE = 2  # expensive settings that play on together


class TuningPlan(NamedTuple):
    """How to tune: runs in all, the store, and whether the grid is coarse."""

    folder: Path
    runs: int = kept.RUNS
    seed: int = kept.SEED
    coarse: bool = False
    executor: Any = None
    workers: int | None = None

    def first_runs(self, world: SuiteWorld, label: str) -> int:
        """The runs a setting plays before it is judged."""
        dear = short_of(label) in DEAR or world.environment.horizon >= LONG
        return min(self.runs, HEATS) if dear and world.name not in FRONTIER and not self.coarse else self.runs


def estimate(worlds: Sequence[SuiteWorld], plan: TuningPlan) -> float:
    """Seconds on one quiet core, by what policies cost in docs/speed/table.md; a third of the expensive settings is
    counted as playing all runs."""
    total = 0.0
    for world in worlds:
        env = world.environment
        for label in labels(env.horizon, plan.coarse):
            first = plan.first_runs(world, label)
            total += nanoseconds(label, env.n_arms) * 1e-9 * env.horizon * (first + (plan.runs - first) / 3)
    return total


def ordered(worlds: Sequence[SuiteWorld]) -> list[SuiteWorld]:
    """Design worlds first, and the quicker ones before the longer: after an early stop most of it is done."""
    return sorted(worlds, key=lambda w: (w.role != DESIGN, w.environment.horizon * (10 + w.environment.n_arms)))


def tune(
    worlds: Sequence[SuiteWorld],
    plan: TuningPlan,
    progress: bool | Callable[[float], None] = False,
    finished: Callable[[SuiteWorld, list[KeptLine]], None] | None = None,
) -> list[KeptLine]:
    """Play the grid in every world; what is finished is kept in the store, and handed to `finished` world by world."""
    lines: list[KeptLine] = []
    for world in ordered(worlds):
        found = tune_one(world, plan, progress)
        lines += found
        if finished is not None:
            finished(world, found)
    return lines


def tune_one(world: SuiteWorld, plan: TuningPlan, progress: bool | Callable[[float], None] = False) -> list[KeptLine]:
    """Every setting of the grid in one world."""
    facts = told(world.environment)
    policies = {label: made(label, facts) for label in labels(facts.horizon, plan.coarse)}
    first = {label: (policy, plan.first_runs(world, label)) for label, policy in policies.items()}
    regret = _played(world, plan, first, progress)
    rivals = [label for label in policies if short_of(label) not in NO_RIVALS + ON_TIME]
    while True:
        done = [label for label in rivals if len(regret[label]) == plan.runs]
        best = min((regret[label] for label in done or rivals), key=lambda values: float(values.mean()))
        waiting = [label for label in regret if len(regret[label]) < plan.runs and in_the_race(regret[label], best)]
        if not waiting:
            break
        waiting.sort(key=lambda label: float(regret[label].mean()))
        regret |= _played(world, plan, {label: (policies[label], plan.runs) for label in waiting[:AT_ONCE]}, progress)
    return [kept.line(world.name, label, values) for label, values in regret.items()]


def in_the_race(first: np.ndarray, best: np.ndarray) -> bool:
    """Does an expensive setting, after its first runs, still have a chance to come near the best of those that played
    all of them? Their difference on these runs, less one standard error, is not above what patience allows."""
    reference = best[: len(first)]
    behind = first - reference
    error = float(behind.std(ddof=1)) / math.sqrt(len(behind))
    return float(behind.mean()) - error <= (PATIENCE - 1.0) * float(reference.mean())


def _played(
    world: SuiteWorld, plan: TuningPlan, wanted: dict[str, tuple[Any, int]], progress: bool | Callable[[float], None]
) -> dict[str, np.ndarray]:
    """Final regret of every run."""
    cells = [
        Cell(policy, world.environment, runs, plan.seed, checkpoints=1, policy_name=label)
        for label, (policy, runs) in wanted.items()
    ]
    parts = play(cells, plan.folder, plan.executor, plan.workers, progress, world.name)
    return {part.policy: part.final for part in parts}
