"""The whole of `driftbandit field`: tune or read what was tuned, play the contestants, compare, write."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.field import kept as tuned
from driftbandit.field import report, suite, tuning
from driftbandit.field.frontier import STILL, TRAP, points
from driftbandit.field.frontier import save as save_frontier
from driftbandit.field.grids import UNTUNED, registered
from driftbandit.field.kept import KeptLine
from driftbandit.field.standings import (
    BestTuned,
    Contestant,
    RatioSummary,
    Results,
    best_tuned,
    by_policy,
    cells_of,
    settings,
    standings,
    summaries,
)
from driftbandit.field.suite import SuiteWorld
from driftbandit.lab.experiments.run import plan_cells, play
from driftbandit.lab.jobs.batch import check_own

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
        from driftbandit.field import ratio_plot

        out.mkdir(parents=True, exist_ok=True)
        paths = [out / "ratios.csv", out / "table.md"]
        report.save_csv(self.found, self.best, paths[0])
        report.save_markdown(self.worlds, self.best, self.found, self.totals, self.shown(), paths[1], self.how)
        marks = points(self.lines, self.played) if {STILL, TRAP} <= self.best.keys() else []
        if marks:
            paths.append(report.save_frontier(marks, out / "frontier.csv"))
        for ending in ("svg", "png"):
            for name, narrow in (("ratios", False), ("ratios-narrow", True)):
                path = out / f"{name}.{ending}"
                paths.append(ratio_plot.save(self.found, self.shown(), path, narrow, len(self.played)))
            if marks:
                paths.append(save_frontier(marks, tuple(self.played), out / f"frontier.{ending}"))
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
    chosen = suite.chosen(worlds, suite.quick() if quick else suite.SUITE)
    folder = Path(out)
    played_runs = runs or (QUICK_RUNS if quick else tuned.RUNS)
    texts = tuple(dict.fromkeys(policies)) or tuple(short for short in UNTUNED if short in registered()) or ("ts",)
    check_own(cells_of(texts, chosen, played_runs, seed))  # what cannot be played is refused before any work
    if quick or tune:
        plan = tuning.TuningPlan(
            folder / "store", QUICK_RUNS if quick else tuned.RUNS, tuned.SEED, quick, executor, workers
        )
        lines = _tuned(chosen, plan, folder / "kept.csv", progress, say)
    else:
        lines = tuned.read(Path(kept) if kept else tuned.KEPT)
    best = best_tuned(chosen, lines)
    found_in = [world for world in chosen if world.name in best]
    if not found_in:
        raise ValueError("Nothing is kept for these worlds; `driftbandit field --tune` with the same worlds makes it.")
    if len(found_in) < len(chosen):
        gone = ", ".join(world.name for world in chosen if world.name not in best)
        say(f"left out, since nothing is kept for them: {gone}")
    cells = cells_of(texts, found_in, played_runs, seed)
    say(f"{', '.join(texts)}: about {_duration(plan_cells(cells, folder / 'store').seconds)} of one core")
    played = by_policy(play(cells, folder / "store", executor, workers, progress, "field"))
    found = standings(found_in, best, {**settings(found_in, lines, best), **played})
    how = (
        f"Made by `driftbandit field`. {', '.join(f'`{text}`' for text in texts)}: {played_runs} runs, seed {seed}. "
        f"Tuned: {len({one.label for one in lines})} settings, {max(one.line.runs for one in best.values())} runs, "
        f"seed {tuned.SEED}, in {len(found_in)} of the {len(chosen)} worlds asked for."
    )
    return Done(found_in, lines, best, played, found, summaries(found), how)


def _tuned(
    worlds: Sequence[SuiteWorld],
    plan: tuning.TuningPlan,
    path: Path,
    progress: bool | Callable[[float], None],
    say: Callable[[str], None],
) -> list[KeptLine]:
    """Tune in every world; what is found is written to `path` world by world."""
    seconds = tuning.estimate(worlds, plan)
    say(f"tuning in {len(worlds)} worlds: about {_duration(seconds)} of one quiet core, beside compiling")
    so_far = tuned.read(path)

    def finished(world: SuiteWorld, found: list[KeptLine]) -> None:
        so_far[:] = [one for one in so_far if one.world != world.name] + found
        tuned.write(so_far, path)
        best = best_tuned([world], found)[world.name].line
        say(f"{world.name}: {best.label}, regret {report.number(best.mean)} ± {report.number(best.error)}")

    return tuning.tune(worlds, plan, progress, finished)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
