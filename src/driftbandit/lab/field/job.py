"""The whole of `driftbandit field`: tune or read what was tuned, play the contestants, compare, write."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.lab.field import kept as tuned
from driftbandit.lab.field import report, suite, tuning
from driftbandit.lab.field.frontier import STILL, TRAP, points
from driftbandit.lab.field.grids import UNTUNED, registered
from driftbandit.lab.field.kept import KeptLine
from driftbandit.lab.field.standings import (
    BestTuned,
    Contest,
    Contestant,
    RatioSummary,
    Results,
    best_tuned,
    settings,
    standings,
    summaries,
)
from driftbandit.lab.field.suite import SuiteWorld
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
        from driftbandit.lab.field import frontier_plot, ratio_plot

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
                paths.append(frontier_plot.save(marks, tuple(self.played), out / f"frontier.{ending}"))
        return paths


def field(
    policies: Sequence[str] = (),
    worlds: Sequence[str] = (),
    *,
    out: str | Path = "build/field",
    runs: int | None = None,
    seed: int = 0,
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
    asked = Field(
        chosen, tuple(dict.fromkeys(policies)), folder, folder / "store", runs, seed, workers, quick, tune,
        Path(kept) if kept else None,
    )  # fmt: skip
    return asked.play(progress, say)


class Field(NamedTuple):
    """What was asked for."""

    worlds: Sequence[SuiteWorld]
    texts: tuple[str, ...]
    out: Path
    store: Path
    runs: int | None = None
    seed: int = 0
    workers: int | None = None
    quick: bool = False
    tune: bool = False
    kept: Path | None = None

    def play(self, progress: bool | Callable[[float], None] = False, say: Callable[[str], None] = print) -> Done:
        """Tune or read, play, compare."""
        runs = self.runs or (QUICK_RUNS if self.quick else tuned.RUNS)
        texts = self.texts or tuple(short for short in UNTUNED if short in registered()) or ("ts",)
        contest = Contest(texts, runs, self.seed, self.store, self.workers)
        check_own(contest.cells(self.worlds).values())  # before any work
        lines = self._lines(progress, say)
        best = best_tuned(self.worlds, lines)
        worlds = [world for world in self.worlds if world.name in best]
        if not worlds:
            raise ValueError(
                "Nothing is kept for these worlds; `driftbandit field --tune` with the same worlds makes it."
            )
        if len(worlds) < len(self.worlds):
            gone = ", ".join(world.name for world in self.worlds if world.name not in best)
            say(f"left out, since nothing is kept for them: {gone}")
        played = contest.play(
            worlds, progress, lambda seconds: say(f"{', '.join(texts)}: about {_duration(seconds)} of one core")
        )
        found = standings(worlds, best, {**settings(worlds, lines, best), **played})
        most = max(one.line.runs for one in best.values())
        how = (
            f"Made by `driftbandit field`. {', '.join(f'`{text}`' for text in texts)}: {runs} runs, seed {self.seed}. "
            f"Tuned: {len({one.label for one in lines})} settings, {most} runs, seed {tuned.SEED}, in {len(worlds)} of "
            f"the {len(self.worlds)} worlds asked for."
        )
        return Done(worlds, lines, best, played, found, summaries(found), how)

    def _lines(self, progress: bool | Callable[[float], None], say: Callable[[str], None]) -> list[KeptLine]:
        if not self.quick and not self.tune:
            return tuned.read(self.kept or tuned.KEPT)
        runs = QUICK_RUNS if self.quick else tuned.RUNS
        plan = tuning.TuningPlan(self.store, runs, tuned.SEED, coarse=self.quick, workers=self.workers)
        path = self.out / "kept.csv"
        seconds = tuning.estimate(self.worlds, plan)
        say(f"tuning in {len(self.worlds)} worlds: about {_duration(seconds)} of one quiet core, beside compiling")
        so_far = tuned.read(path)

        def finished(world: SuiteWorld, found: list[KeptLine]) -> None:
            so_far[:] = [one for one in so_far if one.world != world.name] + found
            tuned.write(so_far, path)
            best = best_tuned([world], found)[world.name].line
            say(f"{world.name}: {best.label}, regret {report.number(best.mean)} ± {report.number(best.error)}")

        return tuning.tune(self.worlds, plan, progress, finished)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
