"""Results as tables and sentences: printed, shown in a notebook, or as plain data."""

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

from driftbandit.core.checks import as_plain, layout_table


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
