"""The results of a study: one regret per cell and run in memory; curves and drift metrics are read from disk when asked
for."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.checks import nearest
from driftbandit.environments.frozen import Still
from driftbandit.lab.engine.simulate import Simulation
from driftbandit.lab.experiments.result import Result
from driftbandit.lab.experiments.study import Study
from driftbandit.lab.jobs.batch import Batch, Tally
from driftbandit.lab.jobs.sizes import refuse_impossible
from driftbandit.lab.jobs.store import prune
from driftbandit.lab.jobs.work import Cell, weight
from driftbandit.lab.stats import drift_metrics
from driftbandit.lab.stats.intervals import Difference, Interval, difference, interval
from driftbandit.lab.support.digest import code_digest
from driftbandit.lab.support.files import cache_root, slug
from driftbandit.lab.support.machine import versions
from driftbandit.lab.support.tables import encoded, save_columns, save_rows, to_frame
from driftbandit.policies.beta_ts import BetaTS
from driftbandit.text import user_code


class ComparisonLine(NamedTuple):
    """One cell of a study in a table."""

    environment: str
    policy: str
    regret: Interval
    difference: Difference | None  # to the reference policy in the same world; None for the reference itself
    seconds: float


class Comparison:
    """A study that has been played. Made by `run`; `summary`, `frame`, `best` and the figures read from it."""

    def __init__(self, study: Study, cells: list[Cell], batch: Batch, tally: Tally) -> None:
        self.study, self.cells, self.batch, self.tally = study, cells, batch, tally
        self.final = np.empty((len(cells), study.runs))
        self.seconds = np.empty(len(cells))
        for number, cell in enumerate(cells):
            done = batch.result(cell)
            self.final[number], self.seconds[number] = done.regret[:, -1], done.seconds

    def __repr__(self) -> str:
        return f"<{self.study.title or 'study'}: {len(self.cells)} cells, {self.study.runs} runs each>"

    def _repr_html_(self) -> str:
        """What a notebook shows: a table of every world, and the curves of the first if there are few policies."""
        from driftbandit.lab.experiments.result_view import comparison_html

        return comparison_html(self)

    @property
    def worlds(self) -> list[str]:
        """The worlds' names with their values, in order."""
        return list(dict.fromkeys(cell.world for cell in self.cells))

    def simulation(self, cell: Cell) -> Simulation:
        """Curves, and drift columns if measured, of one cell."""
        return self.batch.result(cell)

    def reference(self, world: str) -> int:
        """The number of the cell others in this world are compared with."""
        wanted = self.study.reference or self.study.policies[0].name
        return next(n for n, cell in enumerate(self.cells) if cell.world == world and cell.policy_name == wanted)

    def summary(self) -> list[ComparisonLine]:
        """One line per cell: mean regret, its interval, the paired difference from the reference."""
        lines = []
        references = {world: self.reference(world) for world in self.worlds}
        for number, cell in enumerate(self.cells):
            base = references[cell.world]
            above = None if number == base else difference(self.final[number], self.final[base])
            lines.append(
                ComparisonLine(
                    cell.world,
                    cell.label,
                    interval(self.final[number]),
                    above,
                    float(self.seconds[number]),
                )
            )
        return lines

    def frame(self, backend: str | None = None) -> Any:
        """One row per cell and run, as a data frame in pandas, Polars or PyArrow, whichever is installed."""
        return to_frame(self.columns(), backend)

    def columns(self) -> dict[str, Any]:
        """The same as columns: environment, policy, a column for each swept parameter, run, regret."""
        runs = self.study.runs
        repeated = {
            "environment": [c.environment_name for c in self.cells],
            "policy": [c.policy_name for c in self.cells],
        }
        # The same name may be swept in a policy and in a world: `environment.gap` is told from `policy.gap`.
        for part, values in (("environment", "environment_values"), ("policy", "policy_values")):
            for name in dict.fromkeys(name for cell in self.cells for name in getattr(cell, values)):
                repeated[f"{part}.{name}"] = [getattr(cell, values).get(name) for cell in self.cells]
        columns: dict[str, Any] = {
            name: [value for value in column for _ in range(runs)] for name, column in repeated.items()
        }
        columns["run"] = np.tile(np.arange(runs), len(self.cells))
        columns["regret"] = self.final.ravel()
        return columns

    def result(self, world: str | None = None) -> Result:
        """The curves in one world, as `driftbandit run` saves them."""
        world = world or self.worlds[0]
        if world not in self.worlds:
            raise ValueError(f"No world {world!r} in this study{nearest(world, self.worlds) or '.'}")
        cells = [(number, cell) for number, cell in enumerate(self.cells) if cell.world == world]
        played = {cell.label: self.simulation(cell) for _, cell in cells}
        note = provenance(self.study, [cell for _, cell in cells], {c.label: float(self.seconds[n]) for n, c in cells})
        curves = {label: np.array(done.regret) for label, done in played.items()}
        rounds = next(iter(played.values())).rounds
        return Result(
            np.array(rounds), np.arange(self.study.first_run, self.study.first_run + self.study.runs), curves, note
        )

    def drift(self) -> list[drift_metrics.DriftMetrics]:
        """The drift metrics of every cell, for a study with `drift = true`."""
        if not self.study.drift:
            raise ValueError("This study measured regret only; say drift = true in its file.")
        lines, bases = [], {}
        for cell in self.cells:
            if cell.world not in bases:
                bases[cell.world] = self.batch.result(stopped(cell, BetaTS())).regret[:, -1]
            still = self.batch.result(stopped(cell))
            price = Interval(*difference(still.regret[:, -1], bases[cell.world])[:3])
            rung = (still.drift or {})["alarms"].astype(float)
            line = drift_metrics.summarised(cell.world, cell.label, self.simulation(cell).drift or {})
            lines.append(line._replace(price=price, still_alarms=interval(rung) if (rung >= 0).all() else None))
        return lines

    def save(self, folder: str | Path) -> list[Path]:
        """Write tables and curves: summary.csv, runs.parquet, one Parquet file of curves per world (at most 20), and
        with drift metrics drift.csv and phases.parquet."""
        folder = Path(folder)
        paths = [_save_table(folder / "summary.csv", *summary_rows(self.summary()))]
        note = {"study": self.study.title, "runs": self.study.runs, "seed": self.study.seed, "versions": versions()}
        note["source"] = code_digest(*((cell.policy, cell.environment) for cell in self.cells))
        paths.append(_save_columns(self.columns(), folder / "runs.parquet", note))
        if len(self.worlds) <= 20 and len(self.cells) <= 400:
            for world in self.worlds:
                paths.append(self.result(world).save(folder / f"curves-{slug(world)}.parquet"))
        if self.study.drift:
            drift = self.drift()
            paths.append(_save_table(folder / "drift.csv", *drift_metrics.table(drift)))
            paths.append(_save_columns(self._phases(), folder / "phases.parquet", note))
        return paths

    def _phases(self) -> dict[str, Any]:
        parts = [(cell, self.simulation(cell).drift or {}) for cell in self.cells]
        columns: dict[str, Any] = {
            "environment": [cell.world for cell, part in parts for _ in part["run"]],
            "policy": [cell.label for cell, part in parts for _ in part["run"]],
        }
        return columns | {name: np.concatenate([part[name] for _, part in parts]) for name in parts[0][1]}


def provenance(study: Study, cells: list[Cell], seconds: dict[str, float]) -> dict[str, Any]:
    """What is needed to make the curves of one world again, and what was used to make them: plain JSON."""
    return {
        "id": study.id or slug(cells[0].world),
        "title": study.title or cells[0].world,
        "shows": study.shows,
        "environment": user_code.text_of(cells[0].environment),
        "policies": {cell.label: user_code.text_of(cell.policy) for cell in cells},
        "seed": study.seed,
        "runs": study.runs,
        "checkpoints": study.checkpoints,
        "seconds": seconds,
        "versions": versions(),
        "source": code_digest(*((cell.policy, cell.environment) for cell in cells)),
    }


def compare(
    study: Study,
    folder: str | Path | None = None,
    executor: Executor | str | int | None = None,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = True,
    *,
    compiled: bool = True,
) -> Comparison:
    """Play a study, or what is left of it: finished pieces are kept in `folder`/chunks, or without a folder in the
    user's cache, so the same study continues where it was stopped.

    `executor` says who does the work (`lab.jobs.executors`); `progress` shows a bar on a terminal, or is called with
    the share done. None of these changes a number."""
    cells, batch = _prepared(study, folder, compiled)
    label = study.id or study.title or "study"
    return Comparison(study, cells, batch, batch.run(executor, workers, progress, label))


def _prepared(study: Study, folder: str | Path | None, compiled: bool = True) -> tuple[list[Cell], Batch]:
    """The cells of a study that can be played at all, and the batch that plays them."""
    cells = study.cells()
    for cell in cells:
        refuse_impossible(cell.policy, cell.environment, study.runs, study.checkpoints)
    return cells, Batch(_work(study, cells), kept_in(folder), compiled)


def kept_in(folder: str | Path | None) -> Path:
    """Where finished pieces of a study lie."""
    if folder is not None:
        return Path(folder) / "chunks"
    shared = cache_root() / "chunks"
    prune(shared)
    return shared


def _work(study: Study, cells: list[Cell]) -> Iterator[Cell]:
    """What is to be simulated. For the drift metrics also every cell with the clock stopped, and there beside it
    Thompson sampling, which never forgets."""
    for cell in cells:
        yield cell
        if study.drift:
            yield stopped(cell)
            yield stopped(cell, BetaTS())


def stopped(cell: Cell, policy: Any = None) -> Cell:
    """The cell, or another policy, in the same world with the clock stopped at its first round."""
    return cell._replace(policy=policy or cell.policy, environment=Still(cell.environment), checkpoints=1)


class StudyPlan(NamedTuple):
    """How much work a study is."""

    cells: int
    chunks: int
    ready: int
    rounds: int  # still to be played
    seconds: float | None  # about how long it takes one worker; None if not measured


def plan(study: Study, folder: str | Path | None = None, measure: bool = True) -> StudyPlan:
    """What `compare` would do. The time is measured on a fraction of a second of each kind of policy and world."""
    from driftbandit.lab.jobs.estimate import seconds_a_weight

    cells, batch = _prepared(study, folder)
    todo = [batch.plan[name] for name in batch.missing()]
    rounds = sum(chunk.runs * chunk.environment.horizon for chunk in todo)
    seconds = None
    if measure:
        speeds: dict[Any, float] = {}
        seconds = 0.0
        for chunk in todo:
            kind = (type(chunk.policy), type(chunk.environment), chunk.environment.n_arms, chunk.drift)
            if kind not in speeds:
                speeds[kind] = seconds_a_weight(chunk) if len(speeds) < 40 else next(iter(speeds.values()))
            seconds += weight(chunk) * speeds[kind]
    return StudyPlan(len(cells), len(batch.plan), len(batch.plan) - len(todo), rounds, seconds)


def summary_rows(lines: list[ComparisonLine]) -> tuple[list[str], list[list[Any]]]:
    """Head and rows of the summary, numbers as numbers."""
    head = [
        "environment",
        "policy",
        "regret",
        "low",
        "high",
        "difference",
        "difference_low",
        "difference_high",
        "seconds",
    ]
    rows = [
        [
            line.environment,
            line.policy,
            *line.regret,
            *(line.difference[:3] if line.difference else ("", "", "")),
            line.seconds,
        ]
        for line in lines
    ]
    return head, rows


def _save_table(path: Path, head: list[str], rows: list[list[Any]]) -> Path:
    return save_rows(head, [[f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows], path)


def _save_columns(columns: dict[str, Any], path: Path, note: dict[str, Any]) -> Path:
    return save_columns({name: encoded(column) for name, column in columns.items()}, path, note, b"driftbandit-study")
