"""Tables as text, for terminals, files and results that are printed."""

import textwrap
from collections.abc import Sequence

_GAP = "  "
_NARROWEST = 16  # a column of text is not wrapped to less than this


def layout_table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[tuple[int, str]]:
    """(number of the row, line) for each line, the head being row 0. Columns of text are wrapped to make the table fit
    into `width`, if that is not None; numbers never are."""
    table = [list(head), *map(list, rows)]
    numbers = [
        bool(rows) and all(row[column][:1] in "0123456789-+\u2212" for row in rows) for column in range(len(head))
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    words = [[len(word) for cell in column for word in _split(cell)] for column in zip(*table, strict=True)]
    least = [max([_NARROWEST, *found]) for found in words]
    while width is not None and sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        able = [column for column, number in enumerate(numbers) if not number and widths[column] > least[column]]
        if not able:
            break
        widths[max(able, key=lambda column: widths[column])] -= 1
    out = []
    for number, row in enumerate(table):
        cells = [_wrap(cell, space) for cell, space in zip(row, widths, strict=True)]
        for step in range(max(map(len, cells))):
            line = []
            for cell, space, flush in zip(cells, widths, numbers, strict=True):
                text = cell[step] if step < len(cell) else ""
                line.append(text.rjust(space) if flush else text.ljust(space))
            out.append((number, _GAP.join(line).rstrip()))
    return out


def _split(text: str) -> list[str]:
    """Where a text may be broken: at spaces, and after a comma."""
    return text.replace(",", ", ").split()


def _wrap(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    return textwrap.wrap(" ".join(_split(text)), width, break_on_hyphens=False, break_long_words=False) or [""]
