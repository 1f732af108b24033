"""`driftbandit field`: tune or read the tuned settings, play the policies, compare them, write tables and figures."""

import math
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.field.standings import (
    KeptLine,
    Results,
    find_best_tuned,
    make_kept_line,
    read_kept,
    settings,
    standings,
    summaries,
    write_kept,
)
from driftbandit.field.suite import DESIGN, Suite, SuiteEnvironment, choose_environments, find_short_name, load_suite
from driftbandit.field.tables import Contest, number
from driftbandit.lab.work import Cell, Part, Store, check_own

SEED = 0  # of tuning
FIRST_RUNS = 4  # runs that an expensive setting plays before it is judged
LONG = 1_000_000  # rounds of an environment in which every setting is expensive
PATIENCE = 1.25  # an expensive setting is out if its first runs clearly cost more than this many times the best
AT_ONCE = 2  # expensive settings that continue together
QUICK_RUNS = 8


class TuningPlan(NamedTuple):
    """How to tune: the suite, the folder of finished work, the runs, and whether the grid is coarse."""

    suite: Suite
    folder: Path
    runs: int
    coarse: bool = False
    executor: Any = None
    workers: int | None = None

    def first_runs(self, environment: SuiteEnvironment, label: str) -> int:
        """The runs that a setting plays before it is judged."""
        expensive = find_short_name(label) in self.suite.expensive or environment.environment.horizon >= LONG
        judged = expensive and environment.name not in self.suite.all_runs and not self.coarse
        return min(self.runs, FIRST_RUNS) if judged else self.runs

    def play(self, cells: Sequence[Cell], progress: Any, label: str) -> list[Part]:
        store = Store(self.folder)
        store.play(cells, self.executor, self.workers, progress, label)
        return [store.result(cell) for cell in cells]


def tune(
    environments: Sequence[SuiteEnvironment],
    plan: TuningPlan,
    progress: bool | Callable[[float], None] = False,
    finished: Callable[[SuiteEnvironment, list[KeptLine]], None] = lambda environment, lines: None,
) -> list[KeptLine]:
    """Play the grid in every environment: those for design first, short ones before long ones, so that an early stop
    leaves most of it done. `finished` is called after each."""
    lines: list[KeptLine] = []
    for environment in sorted(
        environments, key=lambda w: (w.role != DESIGN, w.environment.horizon * (10 + w.environment.n_arms))
    ):
        found = _tune_one(environment, plan, progress)
        lines += found
        finished(environment, found)
    return lines


def _tune_one(
    environment: SuiteEnvironment, plan: TuningPlan, progress: bool | Callable[[float], None]
) -> list[KeptLine]:
    suite = plan.suite
    policies = {label: suite.make_policy(label, environment) for label in suite.labels(environment, plan.coarse)}

    def play(runs: dict[str, int]) -> dict[str, np.ndarray]:
        cells = [Cell(policies[label], environment.environment, n, SEED, 1, policy_name=label)
                 for label, n in runs.items()]  # fmt: skip
        return {part.policy: part.final for part in plan.play(cells, progress, environment.name)}

    regret = play({label: plan.first_runs(environment, label) for label in policies})
    rivals = [label for label in policies if find_short_name(label) not in suite.no_rivals + suite.aside]
    while True:
        done = [label for label in rivals if len(regret[label]) == plan.runs]
        best = min((regret[label] for label in done or rivals), key=lambda values: float(values.mean()))
        waiting = [label for label in regret if len(regret[label]) < plan.runs and may_win(regret[label], best)]
        if not waiting:
            return [make_kept_line(environment.name, label, values) for label, values in regret.items()]
        waiting.sort(key=lambda label: float(regret[label].mean()))
        regret |= play(dict.fromkeys(waiting[:AT_ONCE], plan.runs))


def may_win(first: np.ndarray, best: np.ndarray) -> bool:
    """Whether an expensive setting may still come near the best: the difference on its first runs, less one standard
    error, is within `PATIENCE`."""
    reference = best[: len(first)]
    behind = first - reference
    error = float(behind.std(ddof=1)) / math.sqrt(len(behind))
    return float(behind.mean()) - error <= (PATIENCE - 1.0) * float(reference.mean())


def field(
    policies: Sequence[str] = (),
    environments: Sequence[str] = (),
    *,
    suite: Suite | str = "binary",
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
) -> Contest:
    """Compare policies with the best tuned one in each environment of a suite.

    `policies` are texts, as on the command line (default: those of the suite), `environments` names, kinds or roles
    (default: all). Finished work is kept in `out`, so that a stopped call continues; `Contest.save(out)` writes the
    tables and figures. `quick` takes a few short environments, `tune` plays the whole grid again."""
    suite = load_suite(suite) if isinstance(suite, str) else suite
    chosen = choose_environments(environments, suite.quick if quick else suite.environments)
    folder = Path(out)
    asked, runs = runs, runs or (QUICK_RUNS if quick else suite.runs)
    tuning = TuningPlan(suite, folder / "store", runs if tune else suite.runs, False, executor, workers)
    tuning = tuning._replace(runs=QUICK_RUNS, coarse=True) if quick else tuning
    texts = tuple(dict.fromkeys(policies)) or suite.entrants
    cells = _make_cells(suite, texts, chosen, runs, seed)
    check_own(cells)  # refuse before any work what cannot be played
    if quick or tune:
        lines = _tune_and_keep(chosen, tuning, folder / "kept.csv", progress, say)
    else:
        lines = _find_kept(kept or suite.kept)
    best = find_best_tuned(suite, chosen, lines)
    present = [environment for environment in chosen if environment.name in best]
    if not present:
        raise ValueError("There are no tuned settings for these environments; make them with --tune.")
    if len(present) < len(chosen):
        say(f"left out for lack of tuned settings: {', '.join(w.name for w in chosen if w.name not in best)}")
    played: dict[str, Results] = {}
    for part in tuning.play([cell for cell in cells if cell.environment_name in best], progress, "field"):
        played.setdefault(part.policy, {})[part.environment] = make_kept_line(part.environment, part.policy, part.final)
    found = standings(present, best, {**settings(suite, present, lines, best), **played})
    given = {"suite": suite.name, "environments": ",".join(environments), "runs": asked, "seed": seed, "kept": kept}
    words = [*policies, *(word for name, value in given.items() if value for word in (f"--{name}", str(value)))]
    words += ["--quick"] * quick + ["--tune"] * tune
    how = (
        f"Made by `{shlex.join(['driftbandit', 'field', *words])}`. {', '.join(f'`{text}`' for text in texts)}: {runs} "
        f"runs, seed {seed}. Tuned: {len({one.label for one in lines})} settings, "
        f"{max(one.line.runs for one in best.values())} runs, seed {SEED}, in {len(present)} of {len(chosen)} "
        "environments."
    )
    return Contest(suite, present, best, played, found, summaries(found), how)


def _find_kept(path: str | Path) -> list[KeptLine]:
    if not Path(path).is_file():
        raise ValueError(
            f"There is no file {str(path)!r}; results of tuning are part of a checkout, not of an installed package, "
            "so name a checkout's with --kept (binary: benchmarks/field/kept.csv; others: docs/field/SUITE/kept.csv) "
            "or tune with --tune."
        )
    return read_kept(Path(path))


def _make_cells(
    suite: Suite, texts: Sequence[str], environments: Sequence[SuiteEnvironment], runs: int, seed: int
) -> list[Cell]:
    return [
        Cell(suite.make_policy(text, environment), environment.environment, runs, seed, 1)._replace(
            policy_name=text, environment_name=environment.name
        )
        for text in texts
        for environment in environments
    ]


def _tune_and_keep(
    environments: Sequence[SuiteEnvironment],
    plan: TuningPlan,
    path: Path,
    progress: bool | Callable[[float], None],
    say: Callable[[str], None],
) -> list[KeptLine]:
    """Tune in every environment, and write the lines to `path` after each."""
    so_far = read_kept(path)

    def finished(environment: SuiteEnvironment, found: list[KeptLine]) -> None:
        so_far[:] = [one for one in so_far if one.environment != environment.name] + found
        write_kept(so_far, path)
        best = find_best_tuned(plan.suite, [environment], found)[environment.name].line
        say(f"{environment.name}: {best.label}, regret {number(best.mean)} ± {number(best.error)}")

    return tune(environments, plan, progress, finished)
