"""How commands print: tables that fit the terminal and lose nothing, results as JSON.

A command saves what it was asked to save before it prints a word: the reader of its output may be gone, and a terminal
may be full, but hours of work must not go with them."""

import json
import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from driftbandit.text.layout import layout_table


def add_json(parser: Any) -> None:
    """The option of every command that prints results."""
    parser.add_argument("--json", action="store_true", help="print the results as one JSON document and nothing else")


def print_json(value: Any) -> None:
    """One JSON document, as every reader of JSON understands it: what is not a number there (NaN, infinity) is null."""
    print(json.dumps(_plain(value), indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    """The value made of dicts, lists, texts, numbers, true, false and null."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Rows under a head. In a file or pipe one line per row, complete and easy to search. On a terminal too narrow for
    that, columns of text are wrapped and, if need be, the last columns follow below; no number is ever cut."""
    width = terminal_width()
    lines = layout_table(head, rows, width)
    if title:
        print(title)
    bold = width is not None and "NO_COLOR" not in os.environ and os.environ.get("TERM") not in (None, "dumb")
    for number, line in lines:
        print(f"\033[1m{line}\033[0m" if bold and number == 0 else line)


def terminal_width() -> int | None:
    """How many letters fit beside each other; None if nobody is looking at a terminal."""
    if not sys.stdout.isatty():
        return None
    return max(20, shutil.get_terminal_size().columns)
