"""Figures that are not regret curves, in the same look: the theory's bounds, and how regret grows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from driftbandit.lab.plots.style import ENDINGS, RC
from driftbandit.lab.support.files import replacing, writable


def save_chart(draw: Callable[[Any], None], path: str | Path, size: tuple[float, float], dpi: int = 110) -> Path:
    """Make an empty figure of `size` inches, let `draw` fill it, and write it; the same numbers give the same bytes."""
    import matplotlib.style
    from matplotlib.figure import Figure

    path = writable(path, ENDINGS)
    form = path.suffix.lower()[1:]
    blank = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[form]
    with matplotlib.style.context(["default", RC]):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        with replacing(path) as draft:
            figure.savefig(draft, format=form, metadata=blank, dpi=dpi)
    return path
