"""Figures that are no regret curves, in the same look: the theory's bounds, and how regret grows."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from driftbandit.lab.plots.regret import _STYLE, ENDINGS
from driftbandit.lab.support.files import replacing, writable


def save_chart(draw: Callable[[Any], None], path: str | Path, size: tuple[float, float], dpi: int = 110) -> Path:
    """Make an empty figure of `size` inches, let `draw` fill it, and write it; the same numbers give the same bytes."""
    import matplotlib.style
    from matplotlib.figure import Figure

    path = writable(path, ENDINGS)
    form = path.suffix.lower()[1:]
    blank = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[form]
    with matplotlib.style.context(["default", _STYLE]):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        with replacing(path) as draft:
            figure.savefig(draft, format=form, metadata=blank, dpi=dpi)
    return path


def save_rows(head: Sequence[str], rows: Sequence[Sequence[Any]], path: str | Path) -> Path:
    """A table as CSV, or as Markdown when the name ends in .md."""
    path = writable(path, (".csv", ".md"))
    with replacing(path) as draft, open(draft, "w", newline="", encoding="utf-8") as out:
        if path.suffix == ".csv":
            csv.writer(out, lineterminator="\n").writerows([head, *rows])
        else:
            for line in [head, ["---"] * len(head), *rows]:
                out.write("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n")
    return path
