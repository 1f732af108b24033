"""The short paper on DriftTS and DriftLinTS (docs/paper/drift.markdown): fill in its numbers and draw its figures.

    python -m tools.paper --out build/drift      (`make paper` also makes build/drift.pdf of it)

No result is typed in the text. A placeholder between double braces names where a number is, and this program reads it
there. Paths start at `docs`, and a part after `;` is a row, a column or how to write the number:

    field/table.md#All policies; drift-ts; worst        a cell; the row by its first column
    field/late.md#New rates@2; ts; at once              the same in the second table below a heading
    live/cost.csv; rule=nothing & runs!=1; regret       all rows for which this holds
    field/table.md ~ Tuned: ([0-9]+) settings           the first match of a regular expression
    const runs.RATE                                     a constant in driftbandit.policies.drift

How to write it: a format such as `,.0f`; `value` leaves out the standard error; for several rows `count`, `above 1`, or
`range`, `max` or `min` before a format."""

import argparse
import csv
import functools
import importlib
import re
import shutil
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = DOCS / "paper" / "drift.markdown"  # the site takes every .md for a page; this one has placeholders
PLACEHOLDER = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)
CONDITION = re.compile(r"(\w[\w ]*?)(!?=)(.*)")

Row = dict[str, str]


class UnresolvedError(Exception):
    """A placeholder that names nothing, or more than one thing."""


@functools.cache
def read(name: str) -> str:
    """A file, by its path from docs."""
    path = DOCS / name
    if not path.is_file():
        raise UnresolvedError(f"There is no file {name}.")
    return path.read_text(encoding="utf-8")


def tables_of(text: str) -> Iterator[list[Row]]:
    """Every Markdown table of a text."""
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        heading, _, *lines = [
            [cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in block.splitlines()
        ]
        yield [dict(zip(heading, line, strict=True)) for line in lines]


@functools.cache
def read_rows(source: str) -> tuple[Row, ...]:
    """The rows of a CSV file, or of a table of a page: `page.md#start of a heading@number of the table`."""
    name, _, place = source.partition("#")
    text = read(name)
    if name.endswith(".csv"):
        return tuple(csv.DictReader(text.splitlines()))
    heading, _, number = place.partition("@")
    if heading:
        found = re.search(rf"^#+ {re.escape(heading)}.*?(?=^#|\Z)", text, re.DOTALL | re.MULTILINE)
        if not found:
            raise UnresolvedError(f"{name} has no heading that starts with {heading!r}.")
        text = found[0]
    tables = list(tables_of(text))
    if len(tables) < int(number or 1):
        raise UnresolvedError(f"{source} is not a table.")
    return tuple(tables[int(number or 1) - 1])


def holds(row: Row, condition: str) -> bool:
    """Whether a row has the value, or does not have it."""
    found = CONDITION.fullmatch(condition)
    if not found or found[1] not in row:
        raise UnresolvedError(f"{condition!r} is not a condition on {', '.join(row)}.")
    return (row[found[1]] == found[3]) == (found[2] == "=")


def cells(source: str, which: str, column: str) -> list[str]:
    """The cells of a column in the rows that are meant; at least one."""
    rows = read_rows(source)
    if column not in rows[0]:
        raise UnresolvedError(f"{source} has no column {column!r}; it has {', '.join(rows[0])}.")
    if source.endswith(".csv"):
        meant = [row for row in rows if all(holds(row, condition) for condition in which.split(" & "))]
    else:
        meant = [row for row in rows if next(iter(row.values())) == which]
    if not meant or not all(row[column] for row in meant):
        raise UnresolvedError(f"{source} has no {column!r} where {which}.")
    return [row[column] for row in meant]


def number_of(text: str) -> float:
    """A number as tables have it, without its standard error."""
    return float(text.partition(" ±")[0].replace(",", ""))


def write(found: Sequence[str], how: str) -> str:
    """Cells as text."""
    what, _, form = how.partition(" ")
    if what == "count":
        return str(len(found))
    if not how and len(found) == 1:
        return found[0]
    numbers = [number_of(cell) for cell in found]
    if what == "above":
        return str(sum(number > float(form) for number in numbers))
    if what == "range":
        return f"{min(numbers):{form}} to {max(numbers):{form}}"
    if what in ("min", "max"):
        return f"{(min if what == 'min' else max)(numbers):{form}}"
    if len(found) != 1:
        raise UnresolvedError(f"{len(found)} rows, but one number is expected.")
    return found[0].partition(" ±")[0] if how == "value" else f"{numbers[0]:{how}}"


def resolve(placeholder: str) -> str:
    """What stands for a placeholder, given without its braces."""
    text = " ".join(placeholder.split())
    try:
        if text.startswith("const "):
            module, _, name = text.removeprefix("const ").rpartition(".")
            value = getattr(importlib.import_module(f"driftbandit.policies.drift.{module}"), name)
            return str(Fraction(value).limit_denominator(1000))
        if " ~ " in text:
            source, _, pattern = text.partition(" ~ ")
            found = re.search(pattern, read(source.partition("#")[0]))
            if not found:
                raise UnresolvedError(f"{source} has nothing that matches {pattern!r}.")
            return f"{int(found[1]):,}" if re.fullmatch(r"[0-9_]{4,}", found[1]) else found[1]
        source, which, column, *how = text.split("; ")
        return write(cells(source, which, column), how[0] if how else "")
    except (UnresolvedError, ValueError, AttributeError, ImportError) as error:
        raise UnresolvedError(f"{{{{{text}}}}}: {error}") from error


def fill(text: str) -> str:
    """The text with all its numbers."""
    return PLACEHOLDER.sub(lambda found: resolve(found[1]), text)


def main() -> None:
    """Write the filled text and its figures into a folder."""
    from tools import paper_figures

    parser = argparse.ArgumentParser(description="Fill in the numbers of the short paper, and draw its figures.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "drift")
    out = parser.parse_args().out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "drift.md").write_text(fill(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
    for name, (draw, size) in paper_figures.FIGURES.items():
        paper_figures.save_chart(draw, out / f"{name}.svg", size)


if __name__ == "__main__":
    main()
