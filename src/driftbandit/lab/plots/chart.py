"""Figures written to files, all in the same style."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from driftbandit.lab.plots.style import ENDINGS, RC
from driftbandit.lab.support.files import replacing, writable


def save_chart(draw: Callable[[Any], None], path: str | Path, size: tuple[float, float], dpi: int = 110) -> Path:
    """Make an empty figure of `size` inches, let `draw` fill it, and write it."""
    import matplotlib.style
    from matplotlib.figure import Figure

    path = writable(path, ENDINGS)
    with matplotlib.style.context(["default", RC]):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        return save_figure(figure, path, dpi)


def save_figure(figure: Any, path: str | Path, dpi: int = 200) -> Path:
    """Write a figure as SVG, PNG or PDF by the ending of its name; the same numbers give the same bytes."""
    import matplotlib.style

    path = writable(path, ENDINGS)
    form = path.suffix.lower()[1:]
    blank = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[form]
    with matplotlib.style.context(["default", RC]), replacing(path) as draft:
        figure.savefig(draft, format=form, metadata=blank, dpi=dpi)
    return path
