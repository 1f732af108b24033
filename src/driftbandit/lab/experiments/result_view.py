"""Ways to look at a result and to put results together: data frames, notebooks, merging."""

import base64
import html
import io
from typing import Any

import numpy as np

from driftbandit.lab.support.html import table
from driftbandit.lab.support.tables import to_frame

_ROWS, _CURVES = 60, 16  # what a notebook shows at most: rows of a table, curves of a figure
_SAME = ("environment", "policies", "seed", "source")  # what two results must agree in to be one


def columns(result: Any) -> dict[str, Any]:
    """One row per policy, run and round, as in the Parquet file."""
    runs, marks = len(result.runs), len(result.rounds)
    return {
        "policy": [label for label in result.labels for _ in range(runs * marks)],
        "run": np.tile(np.repeat(np.asarray(result.runs, np.int64), marks), len(result.labels)),
        "round": np.tile(np.asarray(result.rounds, np.int64), len(result.labels) * runs),
        "regret": np.concatenate([result.regret[label].ravel() for label in result.labels]),
    }


def frame(result: Any, backend: str | None = None) -> Any:
    """The columns as a data frame."""
    return to_frame(columns(result), backend)


def merged(first: Any, *others: Any) -> Any:
    """Results that differ only in their runs as one, in the order of runs.

    Runs that are in two of them must be the same to the last bit: then they are the same runs, and count once."""
    for other in others:
        for key in _SAME:
            mine, theirs = first.provenance.get(key), other.provenance.get(key)
            if mine != theirs:
                raise ValueError(
                    f"These results differ in more than their runs: {key} is {mine!r:.80} and {theirs!r:.80}."
                )
        if first.labels != other.labels or not np.array_equal(first.rounds, other.rounds):
            raise ValueError("These results differ in more than their runs: other policies, or other rounds reported.")
    everything = [first, *others]
    runs = np.unique(np.concatenate([result.runs for result in everything]))
    place = {run: row for row, run in enumerate(runs.tolist())}
    regret = {label: np.full((len(runs), len(first.rounds)), np.nan) for label in first.labels}
    for result in everything:
        rows = [place[run] for run in result.runs.tolist()]
        for label, curves in regret.items():
            there = ~np.isnan(curves[rows, 0])
            if not np.array_equal(curves[rows][there], result.regret[label][there]):
                raise ValueError(
                    f"A run of {label!r} is in two of these results, with other numbers: one of them is wrong."
                )
            curves[rows] = result.regret[label]
    seconds = {
        label: sum(float(result.provenance.get("seconds", {}).get(label, 0.0)) for result in everything)
        for label in first.labels
    }
    return type(first)(first.rounds, runs, regret, {**first.provenance, "runs": len(runs), "seconds": seconds})


def to_html(result: Any) -> str:
    """A table and a small figure, whole in themselves: no script, nothing fetched."""
    rows = "".join(
        f"<tr><td title={_quoted(row.policy)}>{html.escape(row.label)}</td><td>{row.mean:.1f}</td>"
        f"<td>{'' if np.isnan(row.low) else f'{row.low:.1f} to {row.high:.1f}'}</td></tr>"
        for row in result.summary()
    )
    head = html.escape(
        f"{result.provenance.get('title') or ''} ({len(result.runs)} runs of {result.rounds[-1]} rounds)"
    )
    names = "<tr><th>policy</th><th>regret</th><th>95 % interval</th></tr>"
    whole = f"<table><thead>{names}</thead><tbody>{rows}</tbody></table>"
    return f"<div><p>{head}</p>{whole}{_picture(result)}</div>"


def comparison_html(comparison: Any) -> str:
    """A table for each world (at most 60 rows in all), with the figure of the first one."""
    reference = comparison.study.reference or comparison.study.policies[0].name
    head = ["policy", "regret", "95 % interval", f"above {reference}", "95 % interval"]
    lines, parts = comparison.summary(), []
    for world in comparison.worlds:
        rows = [
            [line.policy, f"{line.regret.mean:.1f}", _ends(line.regret), *_difference(line.difference)]
            for line in lines[:_ROWS]
            if line.environment == world
        ]
        if rows:
            parts.append(table(f"{world}, {comparison.study.runs} runs, seed {comparison.study.seed}", head, rows))
    if len(lines) > _ROWS:
        parts.append(f"<p>... and {len(lines) - _ROWS} cells more: see .summary() and .frame()</p>")
    few = sum(cell.world == comparison.worlds[0] for cell in comparison.cells) <= _CURVES
    return f"<div>{''.join(parts)}{_picture(comparison.result()) if few else ''}</div>"


def _ends(interval: Any) -> str:
    return "" if np.isnan(interval.low) else f"{interval.low:.1f} to {interval.high:.1f}"


def _difference(difference: Any) -> list[str]:
    return ["", ""] if difference is None else [f"{difference.mean:+.1f}", _ends(difference)]


def _quoted(text: str) -> str:
    return f'"{html.escape(text, quote=True)}"'


def _picture(result: Any) -> str:
    try:
        from driftbandit.lab.plots import regret
    except ImportError:
        return ""
    out = io.BytesIO()
    regret.draw(result).savefig(out, format="png", dpi=80, metadata={"Software": None})
    data = base64.b64encode(out.getvalue()).decode()
    return f'<img alt="regret curves" style="max-width:100%" src="data:image/png;base64,{data}">'
