"""What several commands need: a table, a check that the laboratory is installed, whole numbers from the command
line."""

import argparse
import importlib.util
import math
import sys
from collections.abc import Sequence
from typing import Any

LAB = ("numba", "scipy", "matplotlib", "pyarrow", "rich", "narwhals")


class MissingLab(Exception):
    """Something of the `lab` extra is wanted and not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"This needs {name}, which is not installed: pip install 'driftbandit[lab]' brings all of it.")


def need_lab(*names: str) -> None:
    """Refuse before any work if one of these packages (all that simulating and saving needs, by default) is missing."""
    for name in names or ("numba", "scipy", "pyarrow"):
        if importlib.util.find_spec(name) is None:
            raise MissingLab(name)


def add_example(subparsers: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """A subparser whose help says what the command does and shows it at work."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def whole(least: int) -> Any:
    """An argparse type: a whole number, 100000 or 100_000 or 1e5, of at least `least`."""

    def convert(text: str) -> int:
        try:
            number = float(text.replace("_", ""))
            if not math.isfinite(number) or number != int(number) or number < least:
                raise ValueError
        except ValueError:
            raise argparse.ArgumentTypeError(f"needs a whole number, {least} or more; got {text!r}") from None
        return int(number)

    return convert


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Rows under a head: drawn by rich on a terminal, else one plain line a row, complete and easy to search.

    The last columns of plain lines may be long; cutting them would lose what a pipe was meant to keep."""
    if sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD)
        for column, name in enumerate(head):
            table.add_column(name, justify="right" if _numbers(rows, column) else "left", no_wrap=column < 2)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        Console().print(table)
        return
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    right = [_numbers(rows, column) for column in range(len(head))]
    if title:
        print(title)
    for row in [head, *rows]:
        cells = (
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        )
        print("  ".join(cells).rstrip())


def _numbers(rows: Sequence[Sequence[str]], column: int) -> bool:
    return bool(rows) and all(row[column][:1] in "0123456789-" for row in rows)
