"""Tables as text, for terminals, files and results that are printed."""

import textwrap
from collections.abc import Sequence
from typing import Any

_GAP = "  "
_NARROWEST = 16  # a column of text is not wrapped to less than this


def layout_table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[tuple[int, str]]:
    """(number of the row, line) for each line, the head being row 0; as wide as it likes if `width` is None."""
    table = [list(head), *map(list, rows)]
    flush = [_numbers(rows, column) for column in range(len(head))]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    if width is None or _total(widths) <= width:
        return _lines(table, range(len(head)), widths, flush)
    # A head may be wrapped over numbers; numbers themselves and single words may not.
    least = [_least(table, column, flush[column], widths[column]) for column in range(len(head))]
    blocks, kept = [], [0]
    for column in range(1, len(head)):
        if len(kept) > 1 and _total([least[i] for i in [*kept, column]]) > width:
            blocks.append(kept)
            kept = [0]
        kept.append(column)
    blocks.append(kept)
    out: list[tuple[int, str]] = []
    for block in blocks:
        if out:
            out.append((-1, ""))
        out += _lines(table, block, _shrunk(widths, least, block, width), flush)
    return out


def _least(table: list[list[str]], column: int, number: bool, natural: int) -> int:
    cells = [row[column] for row in table[1:]]
    if number:
        words = max(len(word) for word in table[0][column].split() or [""])
        return max([words, *map(len, cells)])
    return min(natural, max(_NARROWEST, max((len(word) for cell in cells for word in _words(cell)), default=0)))


def _words(text: str) -> list[str]:
    """Where a text may be broken: at spaces, and after a comma."""
    return text.replace(",", ", ").split()


def _shrunk(widths: list[int], least: list[int], block: list[int], width: int) -> list[int]:
    """Widths that fit: the widest column that may still shrink gives way first."""
    now = list(widths)
    while _total([now[i] for i in block]) > width:
        able = [i for i in block if now[i] > least[i]]
        if not able:
            break
        now[max(able, key=lambda i: now[i])] -= 1
    return now


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _lines(table: list[list[str]], columns: Any, widths: list[int], flush: list[bool]) -> list[tuple[int, str]]:
    out = []
    for number, row in enumerate(table):
        cells = {column: _wrapped(row[column], widths[column]) for column in columns}
        for step in range(max(len(cell) for cell in cells.values())):
            pieces = []
            for column, cell in cells.items():
                text = cell[step] if step < len(cell) else ""
                pieces.append(text.rjust(widths[column]) if flush[column] else text.ljust(widths[column]))
            out.append((number, _GAP.join(pieces).rstrip()))
    return out


def _wrapped(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    if max(len(word) for word in text.split()) > width:
        text = text.replace(",", ", ").replace(",  ", ", ")
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False) or [""]


def _numbers(rows: Sequence[Sequence[str]], column: int) -> bool:
    return bool(rows) and all(row[column][:1] in "0123456789-+\u2212" for row in rows)
