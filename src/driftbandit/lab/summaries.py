"""How results are summarised and shown: intervals over runs, tables and sentences.

Intervals are Student's t for a mean and the percentile bootstrap for paired differences."""

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.beliefs import t_quantile
from driftbandit.core.checks import as_plain, layout_table

RESAMPLES = 2000  # of the bootstrap


class Interval(NamedTuple):
    """A mean with both ends of its 95% interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} ({self.low:.4g} to {self.high:.4g})"


def t_interval(values: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Student's t-interval for the mean along the first axis; NaN for a single value.

    >>> low, high = t_interval(np.array([1.0, 2.0, 3.0]))  # 2 ± 4.3027 / sqrt(3)
    >>> round(float(low), 4), round(float(high), 4)
    (-0.4841, 4.4841)
    """
    values = np.asarray(values, float)
    runs, mean = len(values), np.asarray(values.mean(axis=0))
    if runs < 2:
        return np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = t_quantile(0.5 + level / 2, runs - 1) * values.std(axis=0, ddof=1) / np.sqrt(runs)
    return mean - half, mean + half


def interval(values: np.ndarray, level: float = 0.95) -> Interval:
    """Mean and Student's t-interval, of 95% by default."""
    low, high = t_interval(values, level)
    return Interval(float(values.mean()), float(low), float(high))


def difference(values: np.ndarray, reference: np.ndarray, seed: int = 0) -> Interval:
    """Mean of `values - reference`, run by run on the same random numbers, with a percentile bootstrap interval over
    runs.

    >>> difference(np.array([3.0, 4.0, 5.0]), np.array([2.0, 3.0, 4.0]))
    Interval(mean=1.0, low=1.0, high=1.0)
    """
    pairs = np.asarray(values, float) - np.asarray(reference, float)
    if len(pairs) < 2:
        return Interval(float(pairs.mean()), float("nan"), float("nan"))
    rng = np.random.default_rng(seed)
    means = pairs[rng.integers(len(pairs), size=(RESAMPLES, len(pairs)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(pairs.mean()), float(low), float(high))


# ---- tables and sentences --------------------------------------------------------------------------------------------


class ShownTable(NamedTuple):
    """A table with a title."""

    title: str
    head: list[str]
    rows: list[list[str]]


Contents = Sequence["str | ShownTable"]


class Report:
    """A result as text, HTML and plain data. Its class has `_contents`, the printed sentences and tables."""

    def _contents(self) -> Contents:
        raise NotImplementedError

    def contents(self) -> Contents:
        """What is printed, without control characters: an arm's name may hold them, and a terminal would obey."""
        return [
            ShownTable(part.title, [*map(_escape, part.head)], [[*map(_escape, row)] for row in part.rows])
            if isinstance(part, ShownTable)
            else _escape(part)
            for part in self._contents()
        ]

    def __str__(self) -> str:
        lines = []
        for part in self.contents():
            if isinstance(part, ShownTable):
                lines += [part.title, *(line for _, line in layout_table(part.head, part.rows, None))]
            else:
                lines.append(part)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(
            html_table(*part) if isinstance(part, ShownTable) else f"<p>{html.escape(part)}</p>"
            for part in self.contents()
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists and numbers, with None for infinite and unknown values."""
        return dict(as_plain(vars(self)))


def _escape(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a notebook: the first column is text, the others are numbers.

    >>> html_table("a < b", ["x", "y"], [["1 & 2", "3"]])[:32]
    '<div><p>a &lt; b</p><table><thea'
    """

    def line(kind: str, cells: Sequence[str]) -> str:
        sides = ["left", *["right"] * (len(cells) - 1)]
        return "".join(
            f'<{kind} style="padding:0.1em 0.8em;text-align:{side}">{html.escape(cell)}</{kind}>'
            for side, cell in zip(sides, cells, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    inside = f"<thead><tr>{line('th', head)}</tr></thead><tbody>{body}</tbody>"
    return f"<div><p>{html.escape(caption)}</p><table>{inside}</table></div>"
