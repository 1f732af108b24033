"""What a study gave: one regret a cell and run in memory, curves and drift metrics read from disk when asked for."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments.frozen import Still
from driftbandit.lab.experiments.result import Result, source_digest, versions
from driftbandit.lab.experiments.study import Study, StudyCell
from driftbandit.lab.jobs.batch import Batch, Cell, Tally, weight
from driftbandit.lab.jobs.store import Outcome
from driftbandit.lab.stats import drift_metrics
from driftbandit.lab.stats.intervals import Interval, interval
from driftbandit.lab.support.files import replacing, writable
from driftbandit.lab.support.tables import to_frame
from driftbandit.policies.beta_ts import BetaTS
from driftbandit.text import user_code
from driftbandit.text.registry import nearest


class Line(NamedTuple):
    """One cell of a study in a table."""

    environment: str
    policy: str
    regret: Interval
    difference: (
        drift_metrics.Difference | None
    )  # to the reference policy in the same world; None for the reference itself
    seconds: float


class Comparison:
    """A study that has been played. Made by `run`; `summary`, `frame`, `best` and the figures read from it."""

    def __init__(self, study: Study, cells: list[StudyCell], batch: Batch, tally: Tally) -> None:
        self.study, self.cells, self.batch, self.tally = study, cells, batch, tally
        self.final = np.empty((len(cells), study.runs))
        self.seconds = np.empty(len(cells))
        for number, cell in enumerate(cells):
            outcome = batch.result(cell.cell)
            self.final[number], self.seconds[number] = outcome.regret[:, -1], outcome.seconds

    def __repr__(self) -> str:
        return f"<{self.study.title or 'study'}: {len(self.cells)} cells, {self.study.runs} runs each>"

    @property
    def worlds(self) -> list[str]:
        """The worlds' names with their values, in order."""
        return list(dict.fromkeys(cell.world for cell in self.cells))

    def outcome(self, cell: StudyCell) -> Outcome:
        """Curves, and drift columns if measured, of one cell."""
        return self.batch.result(cell.cell)

    def reference(self, world: str) -> int:
        """The number of the cell others in this world are compared with."""
        wanted = self.study.reference or self.study.policies[0].name
        return next(n for n, cell in enumerate(self.cells) if cell.world == world and cell.policy == wanted)

    def summary(self) -> list[Line]:
        """One line a cell: mean regret, its interval, the paired difference to the reference."""
        lines = []
        references = {world: self.reference(world) for world in self.worlds}
        for number, cell in enumerate(self.cells):
            base = references[cell.world]
            difference = None if number == base else drift_metrics.difference(self.final[number], self.final[base])
            lines.append(
                Line(
                    cell.world,
                    cell.label,
                    interval(self.final[number]),
                    difference,
                    float(self.seconds[number]),
                )
            )
        return lines

    def frame(self, backend: str | None = None) -> Any:
        """One row a cell and run, as a data frame of whichever of pandas, Polars and PyArrow is installed."""
        return to_frame(self.columns(), backend)

    def columns(self) -> dict[str, Any]:
        """The same as columns: environment, policy, a column for each swept parameter, run, regret."""
        runs = self.study.runs
        repeated = {"environment": [c.environment for c in self.cells], "policy": [c.policy for c in self.cells]}
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
        outcomes = {cell.label: self.outcome(cell) for _, cell in cells}
        note = {
            "id": _slug(world),
            "title": self.study.title or world,
            "shows": "",
            "environment": user_code.text_of(cells[0][1].cell.environment),
            "policies": {cell.label: user_code.text_of(cell.cell.policy) for _, cell in cells},
            "seed": self.study.seed,
            "runs": self.study.runs,
            "checkpoints": self.study.checkpoints,
            "seconds": {cell.label: float(self.seconds[number]) for number, cell in cells},
            "versions": versions(),
            "source": source_digest(),
        }
        curves = {label: np.array(outcome.regret) for label, outcome in outcomes.items()}
        rounds = next(iter(outcomes.values())).rounds
        return Result(np.array(rounds), np.arange(self.study.runs), curves, note)

    def drift(self) -> list[drift_metrics.Drift]:
        """The drift metrics of every cell, for a study with `drift = true`."""
        if not self.study.drift:
            raise ValueError("This study measured regret only; say drift = true in its file.")
        lines, bases = [], {}
        for cell in self.cells:
            if cell.world not in bases:
                bases[cell.world] = self.batch.result(stopped(cell.cell, BetaTS())).regret[:, -1]
            still = self.batch.result(stopped(cell.cell))
            price = Interval(*drift_metrics.difference(still.regret[:, -1], bases[cell.world])[:3])
            rung = (still.drift or {})["alarms"].astype(float)
            line = drift_metrics.summarised(cell.world, cell.label, self.outcome(cell).drift or {})
            lines.append(line._replace(price=price, still_alarms=interval(rung) if (rung >= 0).all() else None))
        return lines

    def save(self, folder: str | Path) -> list[Path]:
        """Write tables and curves: summary.csv, runs.parquet, one Parquet file of curves a world (at most 20), and
        with drift metrics drift.csv and phases.parquet."""
        folder = Path(folder)
        paths = [_write_csv(folder / "summary.csv", *summary_rows(self.summary()))]
        note = {"study": self.study.title, "runs": self.study.runs, "seed": self.study.seed, "versions": versions()}
        note["source"] = source_digest()
        paths.append(drift_metrics.save_columns(self.columns(), folder / "runs.parquet", note))
        if len(self.worlds) <= 20 and len(self.cells) <= 400:
            for world in self.worlds:
                paths.append(self.result(world).save(folder / f"curves-{_slug(world)}.parquet"))
        if self.study.drift:
            drift = self.drift()
            paths.append(_write_csv(folder / "drift.csv", *drift_metrics.table(drift)))
            paths.append(drift_metrics.save_columns(self._phases(), folder / "phases.parquet", note))
        return paths

    def _phases(self) -> dict[str, Any]:
        parts = [(cell, self.outcome(cell).drift or {}) for cell in self.cells]
        columns: dict[str, Any] = {
            "environment": [cell.world for cell, part in parts for _ in part["run"]],
            "policy": [cell.label for cell, part in parts for _ in part["run"]],
        }
        return columns | {name: np.concatenate([part[name] for _, part in parts]) for name in parts[0][1]}


def run(
    study: Study,
    folder: str | Path,
    executor: Executor | str | int | None = None,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = True,
) -> Comparison:
    """Play a study, or what is left of it: finished pieces are kept in `folder`/chunks."""
    cells = study.cells()
    batch = Batch(_work(study, cells), Path(folder) / "chunks")
    return Comparison(study, cells, batch, batch.run(executor, workers, progress, label=study.title or "study"))


def _work(study: Study, cells: list[StudyCell]) -> Iterator[Cell]:
    """What is to be simulated. For the drift metrics also every cell with the clock stopped, and there beside it
    Thompson sampling, which never forgets."""
    for cell in cells:
        yield cell.cell
        if study.drift:
            yield stopped(cell.cell)
            yield stopped(cell.cell, BetaTS())


def stopped(cell: Cell, policy: Any = None) -> Cell:
    """The cell, or another policy, in the same world with the clock stopped at its first round."""
    return cell._replace(policy=policy or cell.policy, environment=Still(cell.environment), checkpoints=1)


class Plan(NamedTuple):
    """How much work a study is."""

    cells: int
    chunks: int
    ready: int
    rounds: int  # still to be played
    seconds: float | None  # about how long it takes one worker; None if not measured


def plan(study: Study, folder: str | Path, measure: bool = True) -> Plan:
    """What `run` would do. The time is measured on a fraction of a second of each kind of policy and world."""
    from driftbandit.lab.jobs.estimate import seconds_a_weight

    cells = study.cells()
    batch = Batch(_work(study, cells), Path(folder) / "chunks")
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
    return Plan(len(cells), len(batch.plan), len(batch.plan) - len(todo), rounds, seconds)


def summary_rows(lines: list[Line]) -> tuple[list[str], list[list[Any]]]:
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


def _write_csv(path: Path, head: list[str], rows: list[list[Any]]) -> Path:
    path = writable(path)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [head, *([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows)]
    )
    with replacing(path) as draft:
        draft.write_text(out.getvalue(), encoding="utf-8")
    return path


def _slug(text: str) -> str:
    """A file name from a world's text."""
    return re.sub(r"[^A-Za-z0-9=.]+", "-", text).strip("-.")[:80] or "world"
