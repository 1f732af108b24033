"""The outcome of a study: one long table (environment, policy, run, round, regret) with everything needed to reproduce
it. `driftbandit run`, `lab.run` and the items of the paper all return or save a `Result`."""

import importlib.util
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.checks import nearest
from driftbandit.errors import ResultError
from driftbandit.lab import plots
from driftbandit.lab.drift_metrics import DRIFT_HEAD, DriftMetrics, drift_row, drift_table, summarise
from driftbandit.lab.files import NOTE, save_columns, save_rows, slug
from driftbandit.lab.summaries import Contents, Interval, Report, ShownTable, difference, interval
from driftbandit.lab.sweep import save_sweeps
from driftbandit.lab.work import Cell, Part, Tally

_ROWS, _CURVES = 60, 16  # most rows of the printed tables, most curves of a figure
_FORMAT = 5  # of the file; raised when an old reader could misread a new file
_COLUMNS = ("environment", "policy", "run", "round", "regret")
_LABELS = ("policy_name", "environment_name", "policy_values", "environment_values")  # of a cell
_BACKENDS = ("pandas", "polars", "pyarrow")


class SummaryLine(NamedTuple):
    """One policy in one environment: mean regret at the end, and how far it is above the reference policy's."""

    environment: str
    policy: str
    regret: Interval  # both ends are NaN for a single run
    difference: Interval | None  # paired by run; None for the reference itself
    seconds: float


class Grid(NamedTuple):
    """All variants of a policy in one environment; or, of a policy without lists, all variants of an environment."""

    policy: str
    environment: str
    axes: dict[str, list[Any]]  # swept parameter: its values in order
    parts: list[Part]
    of_policy: bool  # whether the axes are parameters of the policy


class BestSetting(NamedTuple):
    """The best cell of a grid."""

    environment: str
    policy: str  # with its setting
    number: int  # of its part in the result
    regret: Interval  # from the runs that were not used to choose it
    runs: int  # how many those are
    as_good: int  # cells that are not clearly worse, this one included


@dataclass(frozen=True, eq=False, repr=False)
class Result(Report):
    """Regret for each environment, policy, run and checkpoint, with its origin.

    Run r of every policy met the same environment and the same random numbers, so differences are paired. `provenance`
    is plain JSON: title, seed, reference policy, versions, digest of the source."""

    parts: Sequence[Part]
    provenance: dict[str, Any]
    tally: Tally | None = None

    def __repr__(self) -> str:
        name = self.provenance.get("id") or "result"
        rounds = max(int(part.rounds[-1]) for part in self.parts)
        return f"<{name}: {', '.join(self.policies)}; {self.runs} runs of {rounds} rounds>"

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.parts[0].regret)

    @cached_property
    def drift(self) -> list[DriftMetrics]:
        """The drift metrics of a study with `drift = true`, in the order of the parts."""
        return [summarise(part) for part in self.parts if part.drift is not None]

    @cached_property
    def environments(self) -> list[str]:
        """The environments' labels, in order."""
        return list(dict.fromkeys(part.environment for part in self.parts))

    @cached_property
    def policies(self) -> list[str]:
        """The policies' labels, in order."""
        return list(dict.fromkeys(part.policy for part in self.parts))

    def part(self, policy: str, environment: str | None = None) -> Part:
        """One policy in one environment (default: the first)."""
        place = self.environments[0] if environment is None else environment
        for label, known, kind in ((place, self.environments, "environment"), (policy, self.policies, "policy")):
            if label not in known:
                hint = nearest(label, known) or "."
                raise ValueError(f"There is no {kind} {label!r} in this result{hint} It has: {', '.join(known)}.")
        return next(part for part in self.parts if (part.environment, part.policy) == (place, policy))

    def curve(self, policy: str, environment: str | None = None) -> np.ndarray:
        """The regret of one policy, runs × checkpoints."""
        return self.part(policy, environment).regret

    def final(self, policy: str, environment: str | None = None) -> np.ndarray:
        """The regret of one policy at the end, one number per run."""
        return self.part(policy, environment).final

    def only(self, environment: str) -> "Result":
        """The part of the result in one environment."""
        self.part(self.policies[0], environment)
        return replace(self, parts=[part for part in self.parts if part.environment == environment])

    @property
    def reference(self) -> str:
        """The name of the policy that others are compared with."""
        return str(self.provenance.get("reference") or self.parts[0].cell.policy_name)

    def summary(self) -> list[SummaryLine]:
        """One line per policy and environment: mean regret, its interval, the paired difference from the reference."""
        base: dict[str, Part] = {}
        for part in self.parts:
            if part.cell.policy_name == self.reference:
                base.setdefault(part.environment, part)
        lines = []
        for part in self.parts:
            other = base.get(part.environment)
            above = None if other is None or part is other else difference(part.final, other.final)
            lines.append(SummaryLine(part.environment, part.policy, interval(part.final), above, part.seconds))
        return lines

    def table(self, environment: str) -> tuple[list[str], list[list[str]]]:
        """Head and rows of the summary in one environment, as text."""
        above = f"above {textwrap.shorten(self.reference, 40, placeholder='...')}"
        head = ["policy", "regret", "95% interval", above, "95% interval"]
        rows = []
        for line in self.summary():
            if line.environment == environment:
                row = [line.policy, f"{line.regret.mean:.1f}", _format_ends(line.regret)]
                far = line.difference
                rows.append([*row, *(["-", "-"] if far is None else [f"{far.mean:+.1f}", _format_ends(far)])])
        if all(row[3] == "-" for row in rows):
            return head[:3], [row[:3] for row in rows]
        return head, rows

    def to_dict(self) -> dict[str, Any]:
        """The summary, the drift metrics, the best settings and the provenance as plain values."""
        lines = zip(self.summary(), self.parts, strict=True)
        return {
            **self.provenance,
            "reference": self.reference,
            "runs": self.runs,
            "summary": [{**line._asdict(), "text": part.texts()[0]} for line, part in lines],
            "drift": [line._asdict() for line in self.drift],
            "best_of_swept": [best._asdict() for best in self.best()],
            "chunks": self.tally,
        }

    def grids(self) -> list[Grid]:
        """Every swept policy in each environment, and every swept environment of the other policies, in order."""
        found: dict[tuple[str, str, bool], list[Part]] = {}
        for part in self.parts:
            cell = part.cell
            if cell.values:
                swept = bool(cell.policy_values)
                place = cell.environment_label if swept else cell.environment_name
                found.setdefault((cell.policy_name, place, swept), []).append(part)
        listed = []
        for (policy, environment, swept), parts in found.items():
            values = [part.cell.policy_values if swept else part.cell.values for part in parts]
            names = dict.fromkeys(name for own in values for name in own)
            axes = {name: list(dict.fromkeys(own[name] for own in values)) for name in names}
            listed.append(Grid(policy, environment, axes, parts, swept))
        return listed

    def best(self) -> list[BestSetting]:
        """The best setting of every swept policy in every environment; none with fewer than 4 runs."""
        swept = [grid for grid in self.grids() if grid.of_policy and len(grid.parts) > 1]
        return [self.find_best(grid) for grid in swept] if self.runs >= 4 else []

    def find_best(self, grid: Grid) -> BestSetting:
        """The best setting of a swept policy in the grid's environment.

        The smallest of many noisy means is too small. So the first half of the runs chooses, and the regret is that of
        the second half."""
        half = self.runs // 2
        best = min(grid.parts, key=lambda part: float(part.final[:half].mean()))
        mine = best.final[half:]
        # Each is tested at 95% separately, so in a long list one may be missing by chance.
        as_good = [part for part in grid.parts if part is best or interval(part.final[half:] - mine).low <= 0.0]
        number = next(number for number, part in enumerate(self.parts) if part is best)
        return BestSetting(best.environment, best.policy, number, interval(mine), len(mine), len(as_good))

    def columns(self, final: bool = False) -> dict[str, Any]:
        """The long table; with `final` the last checkpoint only. Swept parameters have their own columns, such as
        `policy.gamma`."""
        parts = self.parts
        if final:
            parts = [part._replace(rounds=part.rounds[-1:], regret=part.regret[:, -1:]) for part in parts]

        def repeat(values: Sequence[Any]) -> list[Any]:
            return [value for value, part in zip(values, parts, strict=True) for _ in range(part.regret.size)]

        table: dict[str, Any] = {}
        for kind in ("environment", "policy"):
            table[kind] = repeat([getattr(part, kind) for part in parts])
            values = [getattr(part.cell, f"{kind}_values") for part in parts]
            for name in dict.fromkeys(name for own in values for name in own):
                table[f"{kind}.{name}"] = repeat([own.get(name) for own in values])
        runs = np.arange(self.runs)
        table["run"] = np.concatenate([np.repeat(runs, len(part.rounds)) for part in parts])
        table["round"] = np.concatenate([np.tile(np.asarray(part.rounds, np.int64), self.runs) for part in parts])
        table["regret"] = np.concatenate([part.regret.ravel() for part in parts])
        return table

    def to_frame(self, backend: str | None = None, final: bool = False) -> Any:
        """The long table as a data frame of pandas, Polars or PyArrow: the one named, or the first that is installed.
        With `final` one row per environment, policy and run."""
        if backend is None:
            backend = next((name for name in _BACKENDS if importlib.util.find_spec(name) is not None), "pyarrow")
        if backend not in _BACKENDS:
            raise ValueError(f"The backend of a frame is one of {', '.join(_BACKENDS)}; got {backend!r}.")
        if importlib.util.find_spec(backend) is None:
            raise ImportError(f"This needs {backend}: pip install {backend}.", name=backend)
        library = importlib.import_module(backend)
        return (library.table if backend == "pyarrow" else library.DataFrame)(self.columns(final))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The long table for any library that reads Arrow: `polars.DataFrame(result)`, or `result` in DuckDB's SQL."""
        return self.to_frame("pyarrow").__arrow_c_stream__(requested_schema)

    def plot(self, path: str | Path | None = None, title: str | None = None, width: float = plots.WIDTH) -> Any:
        """The regret curves as a matplotlib figure; with a path, drawn to that file."""
        return plots.draw(self, title, width) if path is None else plots.plot(self, path, title, width)

    def _contents(self) -> Contents:
        """A table for each environment, the best settings of what was swept, and the drift metrics."""
        out: list[str | ShownTable] = []
        if self.tally and self.tally.reused:
            out.append(f"{self.tally.reused} of {sum(self.tally)} chunks were ready, {self.tally.computed} computed")
        if len(self.parts) > _ROWS:
            out.append(f"{len(self.parts)} policies and environments: see summary.csv, or .summary() and .to_frame()")
        else:
            title = f"{self.runs} runs, seed {self.provenance.get('seed')}"
            out += [ShownTable(f"{place}, {title}", *self.table(place)) for place in self.environments]
        for best in self.best():
            out += [
                "",
                f"best of the swept in {best.environment}: {best.policy}: regret {best.regret} on {best.runs} runs "
                f"that were not used to choose it; cells that are as good within the noise: {best.as_good}",
            ]
        if self.drift:
            title = "drift: rounds to recover from a change, ... (docs/reference/drift-metrics.md)"
            out += ["", ShownTable(title, DRIFT_HEAD, [drift_row(line) for line in self.drift])]
        return out

    def _repr_html_(self) -> str:
        """The printed tables, and the curves in the first environment if they are few."""
        first = self.only(self.environments[0])
        image = plots.html_image(first.plot()) if len(first.parts) <= _CURVES else ""
        return f"<div>{super()._repr_html_()}{image}</div>"

    def save(self, path: str | Path) -> list[Path]:
        """Write the long table as one Parquet file if the name ends in .parquet. Otherwise write a folder with that
        file as result.parquet, summary.csv, the figures, and drift.csv if drift was measured."""
        path = Path(path)
        if path.suffix == ".parquet":
            return [self._save_table(path)]
        head = [*_COLUMNS[:2], "regret", "low", "high", "difference", "difference_low", "difference_high", "seconds"]
        rows = [
            [line.environment, line.policy, *line.regret, *(line.difference or ("",) * 3), line.seconds]
            for line in self.summary()
        ]
        paths = [save_rows(head, _round(rows), path / "summary.csv"), self._save_table(path / "result.parquet")]
        if self.drift:
            head, rows = drift_table(self.drift)
            paths.append(save_rows(head, _round(rows), path / "drift.csv"))
        for environment in self.environments if len(self.environments) <= 20 else []:
            here = self.only(environment)
            if 1 < len(here.parts) <= _CURVES:
                paths.append(here.plot(path / f"regret-{slug(environment)}.svg", environment))
        return paths + save_sweeps(self, path)

    def _save_table(self, path: Path) -> Path:
        parts = []
        for part in self.parts:
            labels = {name: getattr(part.cell, name) for name in _LABELS}
            values = {name: _as_json(labels[name]) for name in _LABELS if name.endswith("_values")}
            texts = dict(zip(("policy", "environment"), part.texts(), strict=True))
            parts.append({**labels, **values, **texts, "rounds": part.rounds.tolist(), "seconds": part.seconds})
        table = {name: column for name, column in self.columns().items() if name in _COLUMNS}
        return save_columns(table, path, {"format": _FORMAT, "parts": parts, "run_count": self.runs, **self.provenance})

    @classmethod
    def load(cls, path: str | Path) -> "Result":
        """Read a Parquet file that `save` wrote, and check that it is whole. The policies and environments stay texts:
        nothing in the file is run."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.ParquetFile(path, page_checksum_verification=True).read()
            note = dict(json.loads(table.schema.metadata[NOTE]))
            form, noted, runs = note.pop("format"), note.pop("parts"), int(note.pop("run_count"))
            sizes = [runs * len(one["rounds"]) for one in noted]
            regret = table["regret"].to_numpy().astype(np.float64)
            pieces = np.split(regret, np.cumsum(sizes)[:-1])
            result = cls([_read_part(*pair, runs) for pair in zip(noted, pieces, strict=True)], note)
            mine = result.columns()
            same = all(np.array_equal(table[name].to_numpy(), mine[name]) for name in _COLUMNS[:4])
            if form != _FORMAT or not same or not np.isfinite(regret).all():
                raise ValueError
        except FileNotFoundError:
            raise ResultError(f"There is no file {str(path)!r}.") from None
        except (pa.ArrowException, OSError, LookupError, AttributeError, TypeError, ValueError):
            raise ResultError(f"{str(path)!r} is damaged, or not a result of this version of driftbandit.") from None
        return result


def _read_part(noted: Mapping[str, Any], regret: np.ndarray, runs: int) -> Part:
    rounds = np.array(noted["rounds"], np.int64)
    cell = Cell(str(noted["policy"]), str(noted["environment"]), **{name: noted[name] for name in _LABELS})
    return Part(cell, rounds, regret.reshape(runs, len(rounds)), float(noted["seconds"]))


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, int | float | str) else str(value) for name, value in values.items()}


def _format_ends(ends: Any) -> str:
    return "-" if np.isnan(ends.low) else f"{ends.low:.1f} to {ends.high:.1f}"


def _round(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [[f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows]
