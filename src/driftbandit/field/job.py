"""The whole of `driftbandit field`: tune or read what was tuned, play the contestants, compare, write."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.field import figures, report, suite
from driftbandit.field.figures import STILL, TRAP, points
from driftbandit.field.grids import (
    DEAR,
    NO_RIVALS,
    ON_TIME,
    UNTUNED,
    labels,
    make_policy,
    nanoseconds,
    registered,
    short_of,
)
from driftbandit.field.standings import (
    KEPT,
    RUNS,
    SEED,
    BestTuned,
    Contestant,
    KeptLine,
    RatioSummary,
    Results,
    best_tuned,
    by_policy,
    cells_of,
    kept_line,
    read_kept,
    settings,
    standings,
    summaries,
    write_kept,
)
from driftbandit.field.suite import DESIGN, SuiteWorld, known_facts
from driftbandit.lab.experiments.run import plan_cells, play
from driftbandit.lab.jobs.batch import check_own
from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.support.progress import duration

FRONTIER = ("stat-K5", "trap-K5")
HEATS = 4  # runs that an expensive setting plays before it is judged
LONG = 1_000_000  # rounds of a world in which every setting is expensive
PATIENCE = 1.25  # an expensive setting is out if its first runs clearly cost more than this many times the best
AT_ONCE = 2  # expensive settings that play on together


class TuningPlan(NamedTuple):
    """How to tune: runs in all, the store, and whether the grid is coarse."""

    folder: Path
    runs: int = RUNS
    seed: int = SEED
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
    facts = known_facts(world.environment)
    policies = {label: make_policy(label, facts) for label in labels(facts.horizon, plan.coarse)}
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
    return [kept_line(world.name, label, values) for label, values in regret.items()]


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


QUICK_RUNS = 8
SHOWN = 5  # contestants in the figure and in the table by world, beside those that were asked for


class Done(NamedTuple):
    """What came out."""

    worlds: Sequence[SuiteWorld]
    lines: Sequence[KeptLine]
    best: dict[str, BestTuned]
    played: dict[str, Results]
    found: list[Contestant]
    totals: list[RatioSummary]
    how: str

    def shown(self) -> list[str]:
        """The contestants of the figure: those asked for, TS, and the best with one setting for all worlds."""
        fixed = [one.name for one in self.totals if one.name not in self.played and "(" in one.name]
        still = [name for name in ("ts",) if name in {one.name for one in self.totals} - self.played.keys()]
        return [*self.played, *fixed[: SHOWN - len(still)], *still]

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {"how": self.how, **report.as_json(self.best, self.found, self.totals, self.worlds)}

    def save(self, out: Path) -> list[Path]:
        """Tables first, then figures."""
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / "ratios.csv", out / "table.md"]
        report.save_csv(self.found, self.best, paths[0])
        report.save_markdown(self.worlds, self.best, self.found, self.totals, self.shown(), paths[1], self.how)
        marks = points(self.lines, self.played) if {STILL, TRAP} <= self.best.keys() else []
        if marks:
            paths.append(report.save_frontier(marks, out / "frontier.csv"))
        for name, narrow in (("ratios", False), ("ratios-narrow", True)):
            paths.append(figures.save(self.found, self.shown(), out / f"{name}.svg", narrow, len(self.played)))
        if marks:
            paths.append(figures.save_frontier(marks, tuple(self.played), out / "frontier.svg"))
        return paths


def field(
    policies: Sequence[str] = (),
    worlds: Sequence[str] = (),
    *,
    out: str | Path = "build/field",
    runs: int | None = None,
    seed: int = 0,
    executor: Any = None,
    workers: int | None = None,
    quick: bool = False,
    tune: bool = False,
    kept: str | Path | None = None,
    progress: bool | Callable[[float], None] = True,
    say: Callable[[str], None] = print,
) -> Done:
    """Compare policies with the best tuned one in each world of the suite.

    `policies` are texts, as on the command line (default: drift-ts), `worlds` names, kinds or roles (default: all).
    Finished pieces are kept in `out`, so that a call that was stopped goes on where it was; `Done.save(out)` writes the
    tables and figures. `quick` takes six short worlds, `tune` plays the whole grid again."""
    chosen = suite.choose_worlds(worlds, suite.quick() if quick else suite.SUITE)
    folder = Path(out)
    played_runs = runs or (QUICK_RUNS if quick else RUNS)
    texts = tuple(dict.fromkeys(policies)) or tuple(short for short in UNTUNED if short in registered()) or ("ts",)
    check_own(cells_of(texts, chosen, played_runs, seed))  # what cannot be played is refused before any work
    if quick or tune:
        plan = TuningPlan(folder / "store", QUICK_RUNS if quick else RUNS, SEED, quick, executor, workers)
        lines = _tuned(chosen, plan, folder / "kept.csv", progress, say)
    else:
        lines = read_kept(Path(kept) if kept else KEPT)
    best = best_tuned(chosen, lines)
    found_in = [world for world in chosen if world.name in best]
    if not found_in:
        raise ValueError("Nothing is kept for these worlds; `driftbandit field --tune` with the same worlds makes it.")
    if len(found_in) < len(chosen):
        gone = ", ".join(world.name for world in chosen if world.name not in best)
        say(f"left out, since nothing is kept for them: {gone}")
    cells = cells_of(texts, found_in, played_runs, seed)
    say(f"{', '.join(texts)}: about {duration(plan_cells(cells, folder / 'store').seconds)} of one core")
    played = by_policy(play(cells, folder / "store", executor, workers, progress, "field"))
    found = standings(found_in, best, {**settings(found_in, lines, best), **played})
    how = (
        f"Made by `driftbandit field`. {', '.join(f'`{text}`' for text in texts)}: {played_runs} runs, seed {seed}. "
        f"Tuned: {len({one.label for one in lines})} settings, {max(one.line.runs for one in best.values())} runs, "
        f"seed {SEED}, in {len(found_in)} of the {len(chosen)} worlds asked for."
    )
    return Done(found_in, lines, best, played, found, summaries(found), how)


def _tuned(
    worlds: Sequence[SuiteWorld],
    plan: TuningPlan,
    path: Path,
    progress: bool | Callable[[float], None],
    say: Callable[[str], None],
) -> list[KeptLine]:
    """Tune in every world; what is found is written to `path` world by world."""
    seconds = estimate(worlds, plan)
    say(f"tuning in {len(worlds)} worlds: about {duration(seconds)} of one quiet core, beside compiling")
    so_far = read_kept(path)

    def finished(world: SuiteWorld, found: list[KeptLine]) -> None:
        so_far[:] = [one for one in so_far if one.world != world.name] + found
        write_kept(so_far, path)
        best = best_tuned([world], found)[world.name].line
        say(f"{world.name}: {best.label}, regret {report.number(best.mean)} ± {report.number(best.error)}")

    return tune(worlds, plan, progress, finished)
