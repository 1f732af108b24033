"""The outcome of a study: the regret of every policy in every environment, with everything needed to reproduce it.

A `Result` is one long table (environment, policy, run, round, regret). `driftbandit run`, `lab.run` and the items of
the paper all return or save one."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.checks import nearest
from driftbandit.lab.experiments.long_table import ResultError, columns, read_table, write_table
from driftbandit.lab.jobs.batch import Tally
from driftbandit.lab.jobs.drift import DriftMetrics, drift_table
from driftbandit.lab.jobs.work import Part
from driftbandit.lab.stats.intervals import Difference, Interval, difference, interval, t_interval
from driftbandit.lab.support import html
from driftbandit.lab.support.files import encoded, save_columns, save_rows, slug, to_frame

__all__ = ["Part", "Result", "ResultError", "SummaryLine"]

_ROWS, _CURVES = 60, 16  # most rows of a notebook's table, most curves of a figure
_SAME = ("seed", "source")  # two results that are merged must agree on these


class SummaryLine(NamedTuple):
    """One policy in one environment: mean regret at the end, and how far it is above the reference policy's."""

    environment: str
    policy: str
    regret: Interval  # both ends are NaN for a single run
    difference: Difference | None  # paired by run; None for the reference itself
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Regret for each environment, policy, run and checkpoint, with a record of where it comes from.

    Run r of one policy met the same environment and the same random numbers as run r of another, so differences are
    paired. `provenance` is plain JSON: title, seed, reference policy, versions, digest of the source."""

    parts: Sequence[Part]
    runs: np.ndarray  # the runs' numbers, which fix their random streams
    provenance: dict[str, Any]
    drift: Sequence[DriftMetrics] = ()  # of a study with `drift = true`, in the order of the parts
    phases: dict[str, Any] = field(default_factory=dict)  # one row per part, run and phase, from which `drift` is made
    tally: Tally | None = None  # how many chunks were ready and how many were computed

    def __repr__(self) -> str:
        name = self.provenance.get("id") or "result"
        rounds = max(int(part.rounds[-1]) for part in self.parts)
        return f"<{name}: {', '.join(self.policies)}; {len(self.runs)} runs of {rounds} rounds>"

    @cached_property
    def environments(self) -> list[str]:
        """The environments' labels, in order."""
        return list(dict.fromkeys(part.environment for part in self.parts))

    @cached_property
    def policies(self) -> list[str]:
        """The policies' labels, in order."""
        return list(dict.fromkeys(part.policy for part in self.parts))

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        return {(part.environment, part.policy): number for number, part in enumerate(self.parts)}

    def part(self, policy: str, environment: str | None = None) -> Part:
        """One policy in one environment (default: the first)."""
        place = self.environments[0] if environment is None else environment
        for label, known, kind in ((place, self.environments, "environment"), (policy, self.policies, "policy")):
            if label not in known:
                hint = nearest(label, known) or "."
                raise ValueError(f"There is no {kind} {label!r} in this result{hint} It has: {', '.join(known)}.")
        return self.parts[self._places[place, policy]]

    def curve(self, policy: str, environment: str | None = None) -> np.ndarray:
        """The regret of one policy, runs × checkpoints."""
        return self.part(policy, environment).regret

    def final(self, policy: str, environment: str | None = None) -> np.ndarray:
        """The regret of one policy at the end, one number per run."""
        return self.part(policy, environment).final

    def mean(self, policy: str, environment: str | None = None) -> np.ndarray:
        """The mean over runs at each checkpoint."""
        return np.asarray(self.curve(policy, environment).mean(axis=0))

    def interval(
        self, policy: str, environment: str | None = None, level: float = 0.95
    ) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of Student's t-interval for the mean at each checkpoint; NaN if there is one run only."""
        return t_interval(self.curve(policy, environment), level)

    def only(self, environment: str) -> "Result":
        """The part of the result in one environment."""
        self.part(self.policies[0], environment)
        return replace(
            self, parts=[part for part in self.parts if part.environment == environment], drift=(), phases={}
        )

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
        head = [
            "policy",
            "regret",
            "95% interval",
            f"above {textwrap.shorten(self.reference, 40, placeholder='...')}",
            "95% interval",
        ]
        rows = [
            [line.policy, f"{line.regret.mean:.1f}", _ends(line.regret), *_difference(line.difference)]
            for line in self.summary()
            if line.environment == environment
        ]
        return head, rows if any(row[3] != "-" for row in rows) else [row[:3] for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """The summary, the drift metrics and the provenance as plain values."""
        return {
            **self.provenance,
            "reference": self.reference,
            "runs": len(self.runs),
            "summary": [
                {**line._asdict(), "text": part.texts()[0]}
                for line, part in zip(self.summary(), self.parts, strict=True)
            ],
            "drift": [line._asdict() for line in self.drift],
        }

    def columns(self, final: bool = False) -> dict[str, Any]:
        """The long table as columns; with `final` the last checkpoint only. Swept parameters have columns of their own,
        `policy.gamma` or `environment.gap`."""
        return columns(self.parts, self.runs, final)

    def to_frame(self, backend: str | None = None, final: bool = False) -> Any:
        """The long table as a data frame of the first of pandas, Polars and PyArrow that is installed, or of the one
        named; with `final` one row per environment, policy and run."""
        return to_frame(self.columns(final), backend)

    def plot(self, path: str | Path | None = None, title: str | None = None, width: float | None = None) -> Any:
        """The regret curves as a matplotlib figure; with a path, drawn to that file."""
        from driftbandit.lab.plots import regret

        wide = {} if width is None else {"width": width}
        return regret.draw(self, title, **wide) if path is None else regret.plot(self, path, title, **wide)

    def merged(self, *others: "Result") -> "Result":
        """This result and others that differ from it only in their runs, as one, in the order of runs. Runs that are
        in two of them must be the same to the last bit, and count once."""
        everything = [self, *others]
        for other in others:
            for key in _SAME:
                mine, theirs = self.provenance.get(key), other.provenance.get(key)
                if mine != theirs:
                    raise ValueError(f"These results cannot be merged: {key} is {mine!r:.80} and {theirs!r:.80}.")
            if [part.identity() for part in self.parts] != [part.identity() for part in other.parts]:
                raise ValueError("These results cannot be merged: they have other policies, environments or rounds.")
        runs = np.unique(np.concatenate([result.runs for result in everything]))
        parts = []
        for number, part in enumerate(self.parts):
            regret = np.full((len(runs), len(part.rounds)), np.nan)
            for result in everything:
                rows, new = np.searchsorted(runs, result.runs), result.parts[number].regret
                known = ~np.isnan(regret[rows, 0])
                if not np.array_equal(regret[rows][known], new[known]):
                    raise ValueError(f"A run of {part.policy!r} is in two of these results with different numbers.")
                regret[rows] = new
            seconds = sum(result.parts[number].seconds for result in everything)
            parts.append(part._replace(regret=regret, seconds=seconds))
        return Result(parts, runs, {**self.provenance, "runs": len(runs)})

    def _repr_html_(self) -> str:
        """What a notebook shows: a table for each environment, and the curves in the first if they are few."""
        shown, left = [], _ROWS
        for environment in self.environments:
            head, rows = self.table(environment)
            if left > 0:
                caption = f"{environment}, {len(self.runs)} runs of {self.only(environment).parts[0].rounds[-1]} rounds"
                shown.append(html.table(caption, head[: len(rows[0])], rows[:left]))
            left -= len(rows)
        if left < 0:
            shown.append(f"<p>{-left} more rows: see .summary() and .to_frame()</p>")
        first = self.only(self.environments[0])
        return f"<div>{''.join(shown)}{html.picture(first.plot()) if len(first.parts) <= _CURVES else ''}</div>"

    def save(self, path: str | Path) -> list[Path]:
        """Write one Parquet file with the long table if the name ends in .parquet. Otherwise write a folder: that file
        as result.parquet, summary.csv, drift.csv and phases.parquet if drift was measured, and the figures."""
        path = Path(path)
        if path.suffix == ".parquet":
            return [write_table(self.parts, self.runs, self.provenance, path)]
        paths = [save_rows(*_summary_rows(self.summary()), path / "summary.csv")]
        paths.append(write_table(self.parts, self.runs, self.provenance, path / "result.parquet"))
        if self.drift:
            paths.append(save_rows(*_numbers(*drift_table(self.drift)), path / "drift.csv"))
            columns = {name: encoded(column) for name, column in self.phases.items()}
            paths.append(save_columns(columns, path / "phases.parquet", self.provenance, b"driftbandit-study"))
        for environment in self.environments if len(self.environments) <= 20 else []:
            here = self.only(environment)
            if 1 < len(here.parts) <= _CURVES:
                paths.append(here.plot(path / f"regret-{slug(environment)}.svg", environment))
        return paths

    @classmethod
    def load(cls, path: str | Path) -> "Result":
        """Read a Parquet file that `save` wrote. Its rows may be in another order, but none may be missing or damaged.
        The policies and environments stay texts: nothing in the file is run."""
        return cls(*read_table(Path(path)))


def _ends(interval: Any) -> str:
    return "-" if np.isnan(interval.low) else f"{interval.low:.1f} to {interval.high:.1f}"


def _difference(difference: Difference | None) -> list[str]:
    return ["-", "-"] if difference is None else [f"{difference.mean:+.1f}", _ends(difference)]


def _numbers(head: list[str], rows: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
    return head, [[f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows]


def _summary_rows(lines: list[SummaryLine]) -> tuple[list[str], list[list[Any]]]:
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
            *(line.difference[:3] if line.difference else ("",) * 3),
            line.seconds,
        ]
        for line in lines
    ]
    return _numbers(head, rows)
