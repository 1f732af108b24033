"""`driftbandit field`: tune or read the tuned settings, play the policies, compare them, write tables and figures."""

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments.named import DESIGN, SuiteEnvironment
from driftbandit.field.figures import Spot, draw_map, draw_ratios, find_frontier, find_spots
from driftbandit.field.standings import (
    BestTuned,
    KeptLine,
    RatioSummary,
    Results,
    Standing,
    find_best_tuned,
    make_kept_line,
    read_kept,
    settings,
    standings,
    summaries,
    write_kept,
)
from driftbandit.field.suite import Suite, choose_environments, find_short_name
from driftbandit.field.suites import load_suite
from driftbandit.lab.files import markdown_table, replace_file, save_rows
from driftbandit.lab.plots import save_chart
from driftbandit.lab.work import Cell, Part, Store, check_own

SEED = 0  # of tuning
FIRST_RUNS = 4  # runs that an expensive setting plays before it is judged
LONG = 1_000_000  # rounds of an environment in which every setting is expensive
PATIENCE = 1.25  # an expensive setting is out if its first runs clearly cost more than this many times the best
AT_ONCE = 2  # expensive settings that continue together
QUICK_RUNS = 8

SHOWN = 5  # policies in the figure and in the table by environment, in addition to those given


# ---- tuning ----------------------------------------------------------------------------------------------------------


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


def tune_grid(
    environments: Sequence[SuiteEnvironment], plan: TuningPlan, progress: bool | Callable[[float], None] = False
) -> Iterator[tuple[SuiteEnvironment, list[KeptLine]]]:
    """Play the grid, environment by environment: those for design first, short ones before long ones, so that an early
    stop leaves most of it done."""

    def order(one: SuiteEnvironment) -> tuple[bool, int]:
        return one.role != DESIGN, one.environment.horizon * (10 + one.environment.n_arms)

    for environment in sorted(environments, key=order):
        yield environment, _tune_one(environment, plan, progress)


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


# ---- tables and figure -----------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """A regret for people.

    >>> number(3912.4), number(98.64), number(4.25)
    ('3,912', '99', '4.2')
    """
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1f}"


def ratio(value: float) -> str:
    """A ratio for people.

    >>> ratio(1.049), ratio(12.34), ratio(math.nan)
    ('1.05', '12.3', '-')
    """
    return "-" if math.isnan(value) else (f"{value:.2f}" if value < 10 else f"{value:.1f}")


def format_cell(value: Any) -> Any:
    """A cell of ratios.csv; NaN is empty."""
    return value if not isinstance(value, float) else "" if math.isnan(value) else f"{value:.5g}"


class Contest(NamedTuple):
    """The policies of a contest, compared with the best tuned policy of each environment."""

    suite: Suite
    environments: Sequence[SuiteEnvironment]
    best: dict[str, BestTuned]
    played: dict[str, Results]
    found: list[Standing]
    totals: list[RatioSummary]
    spots: list[Spot]  # every setting by its regret where nothing changes and where things change
    how: str

    def shown(self) -> list[str]:
        """The policies of the figure: those given, the best with one setting for all environments, and TS."""
        others = [one.name for one in self.totals if one.name not in self.played]
        last = ["ts"] if "ts" in others else []
        return [*self.played, *[name for name in others if "(" in name][: SHOWN - len(last)], *last]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        listed = [
            {**one._asdict(), "environment": repr(one.environment), "best": self._best_tuned(one).to_dict()}
            for one in self.environments
        ]
        standings = [one.to_dict() for one in self.found]
        totals = [one._asdict() for one in self.totals]
        frontier = [one._asdict() for one in find_frontier(self.spots)]
        about = {"suite": self.suite.name, "how": self.how}
        return {**about, "environments": listed, "standings": standings, "summary": totals, "frontier": frontier}

    def _best_tuned(self, environment: SuiteEnvironment) -> Standing:
        """The best tuned policy of an environment, as a policy of the table."""
        line, policy, _, _ = self.best[environment.name]
        return Standing(environment, "best tuned", line._replace(label=policy), 1.0, math.nan, 1.0)

    def save(self, folder: Path) -> list[Path]:
        """Write tables and figures."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [
            self.save_csv(folder / "ratios.csv"),
            self.save_markdown(folder / "table.md"),
            save_chart(lambda figure: draw_ratios(figure, self), folder / "ratios.svg", (8.0, 4.9), dpi=130),
        ]
        if self.spots:
            paths.append(save_chart(lambda figure: draw_map(figure, self.spots), folder / "frontier.svg", (5.6, 5.2)))
        return paths

    def save_csv(self, path: Path) -> Path:
        """Write the best tuned policies with their parameters, and every policy in every environment."""
        played = list({one.environment.name: one.environment for one in self.found}.values())
        rows = [one.to_dict() for one in (*map(self._best_tuned, played), *self.found)]
        text = [[format_cell(value) for value in row.values()] for row in rows]
        return save_rows(list(rows[0]), text, path)

    def save_markdown(self, path: Path) -> Path:
        """Write the page: environment by environment for the policies shown, all policies, and the environments."""
        listed = [[one.name, one.kind, one.role, f"`{one.environment!r}`"] for one in self.environments]
        page = [
            f"# The suite `{self.suite.name}`, measured\n\n{self.how}\n",
            f"## Environment by environment\n\n{self._environments_part()}",
            f"## All policies\n\n{self._summary_part()}",
            *([f"## The frontier\n\n{self._frontier_part()}"] if self.spots else []),
            f"## The environments\n\n{markdown_table(['environment', 'kind', 'role', '`--env`'], listed)}",
        ]
        with replace_file(path) as draft:
            draft.write_text("\n".join(page), encoding="utf-8")
        return path

    def _environments_part(self) -> str:
        at = {(one.environment.name, one.name): one for one in self.found}
        rows = []
        for environment in self.environments:
            line = self.best[environment.name].line
            row = [environment.name, environment.role, f"`{line.label}`", f"{number(line.mean)} ± {number(line.error)}"]
            here = [at.get((environment.name, name)) for name in self.shown()]
            rows.append([*row, *("-" if one is None else f"{ratio(one.ratio)} ± {one.error:.2f}" for one in here)])
        fair = [math.log(one.fair / one.line.mean) for one in self.best.values() if one.line.mean > 0 and one.fair > 0]
        above = 100 * (math.exp(sum(fair) / max(1, len(fair))) - 1)
        note = (
            "Regret and ratios, each ± one standard error. Best tuned is the minimum over the grid, on the runs it is "
            "reported from. Choosing the setting on one half of the runs and measuring it on the other gives "
            f"{above:.1f}% more regret in geometric mean: by so much the ratios are too large.\n\n"
        )
        head = ["environment", "role", "best tuned policy", "its regret"]
        return note + markdown_table([*head, *(f"{name}, ratio" for name in self.shown())], rows)

    def _summary_part(self) -> str:
        head = ["policy", "design", "check", "all that change", "worst", "where", "every environment", "within 10%"]
        rows = [
            [
                f"`{one.name}`" if "," not in one.name or "(" in one.name else one.name,
                ratio(one.design),
                ratio(one.check),
                f"{ratio(one.mean)} ± {one.mean * one.error:.2f}" if one.mean == one.mean else "-",
                ratio(one.worst),
                one.worst_environment,
                ratio(one.every),
                f"{one.near} of {one.environments}",
            ]
            for one in self.totals
        ]
        note = (
            "Geometric means of the ratio to the best tuned policy: over the averaged environments for design, those "
            "for checks, and both; the worst of them; over every environment, including those that are not averaged; "
            "and the environments within 10% of the best tuned."
        )
        if any(one.aside > one.mean for one in self.totals):
            column, why = self.suite.aside_note
            head.append(column)
            rows = [[*row, ratio(one.aside)] for row, one in zip(rows, self.totals, strict=True)]
            note += f" {why}; the last column has the mean if they counted."
        return f"{note}\n\n{markdown_table(head, rows)}"

    def _frontier_part(self) -> str:
        rows = [[f"`{one.label}`", ratio(one.still), ratio(one.changing)] for one in find_frontier(self.spots)]
        note = (
            "The settings, the same in all environments, that no other has less regret than both where nothing changes "
            "and where things change: geometric means of the ratio to the best tuned policy."
        )
        return f"{note}\n\n{markdown_table(['policy', 'where nothing changes', 'where things change'], rows)}"


# ---- the contest -----------------------------------------------------------------------------------------------------


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
    cells = make_cells(suite, texts, chosen, runs, seed)
    check_own(cells)  # refuse before any work what cannot be played
    if quick or tune:
        lines = read_kept(folder / "kept.csv")
        for environment, found in tune_grid(chosen, tuning, progress):
            lines = [one for one in lines if one.environment != environment.name] + found
            write_kept(lines, folder / "kept.csv")
            line = find_best_tuned(suite, [environment], found)[environment.name].line
            say(f"{environment.name}: {line.label}, regret {number(line.mean)} ± {number(line.error)}")
    elif not (file := Path(kept or suite.kept)).is_file():
        raise ValueError(
            f"There is no file {str(file)!r}; results of tuning are part of a checkout, not of an installed package, "
            "so name a checkout's with --kept (binary: benchmarks/field/kept.csv; others: docs/field/SUITE/kept.csv) "
            "or tune with --tune."
        )
    else:
        lines = read_kept(file)
    best = find_best_tuned(suite, chosen, lines)
    present = [environment for environment in chosen if environment.name in best]
    if not present:
        raise ValueError("There are no tuned settings for these environments; make them with --tune.")
    if len(present) < len(chosen):
        say(f"left out for lack of tuned settings: {', '.join(w.name for w in chosen if w.name not in best)}")
    played: dict[str, Results] = {}
    for part in tuning.play([cell for cell in cells if cell.environment_name in best], progress, "field"):
        played.setdefault(part.policy, {})[part.environment] = make_kept_line(part.environment, part.policy, part.final)
    ratios = standings(present, best, {**settings(suite, present, lines, best), **played})
    rivals = [line for line in lines if find_short_name(line.label) not in suite.no_rivals]
    spots = find_spots(present, {name: one.line.mean for name, one in best.items()}, rivals, played)
    given = {"suite": suite.name, "environments": ",".join(environments), "runs": asked, "seed": seed, "kept": kept}
    words = [*policies, *(word for name, value in given.items() if value for word in (f"--{name}", str(value)))]
    words += ["--quick"] * quick + ["--tune"] * tune
    how = (
        f"Made by `{shlex.join(['driftbandit', 'field', *words])}`. {', '.join(f'`{text}`' for text in texts)}: {runs} "
        f"runs, seed {seed}. Tuned: {len({one.label for one in lines})} settings, "
        f"{max(one.line.runs for one in best.values())} runs, seed {SEED}, in {len(present)} of {len(chosen)} "
        "environments."
    )
    return Contest(suite, present, best, played, ratios, summaries(ratios), spots, how)


def make_cells(
    suite: Suite, texts: Sequence[str], environments: Sequence[SuiteEnvironment], runs: int, seed: int
) -> list[Cell]:
    """The simulations of policies in environments."""
    return [
        Cell(suite.make_policy(text, one), one.environment, runs, seed, 1, policy_name=text, environment_name=one.name)
        for text in texts
        for one in environments
    ]
