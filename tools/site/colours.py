"""One drawing, two files: for a light page and for a dark one.

Figures are drawn once, on nothing, in the colours of a light page. A dark page gets the same file with some colours
exchanged: ink, grid, and those policies' colours that a dark page would swallow."""

import io
import re
from pathlib import Path
from typing import Any

from driftbandit.lab.files import replace_file
from driftbandit.lab.plots import RC, find_style

INK, FAINT, GRID = "#1f2328", "#6e7781", "#d9dce0"
ARMS = ("#4e8fd0", "#e5743f", "#2fa67f", "#c9a820")  # A, B, C, D: distinguishable for the colour-blind, on both pages
DARK = {
    INK: "#ced6dd", FAINT: "#8f99a3", GRID: "#343a40",
    "#010101": "#f5f5f5", "#0072b2": "#3f9bdc", "#882255": "#d45c9e",
}  # fmt: skip
SIDES = ("light", "dark")

LOOK = {
    **RC,
    "svg.fonttype": "none",  # letters as letters: a quarter of the size
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],  # as wide as what the layout was measured with
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}

_PLACES = re.compile(r' (?:d|x|y|points|transform)="[^"]*"')
_DIGITS = re.compile(r"-?\d+\.\d{2,}")


def look(policy: Any) -> dict[str, Any]:
    """A policy's colour, dashes and marker. Black is a shade off: SVG leaves pure black out, so that no other colour
    could take its place."""
    style = find_style(policy)
    return {**style, "color": "#010101" if style["color"] == "#000000" else style["color"]}


def dark(svg: str) -> str:
    """The drawing for a dark page."""
    for light, other in DARK.items():
        svg = svg.replace(light, other)
    return svg


def save(svg: str, into: Path, name: str) -> list[str]:
    """Write both files; their names."""
    out = []
    for side in SIDES:
        out.append(f"{name}-{side}.svg")
        with replace_file(into / out[-1]) as draft:
            draft.write_text(svg if side == "light" else dark(svg), encoding="utf-8")
    return out


def drawn(size: tuple[float, float], draw: Any) -> str:
    """An SVG of so many inches, filled by `draw(figure)`."""
    import matplotlib.style
    from matplotlib.figure import Figure

    with matplotlib.style.context(["default", LOOK]):
        figure = Figure(figsize=size, dpi=72)  # a point is then a pixel, as in the file
        draw(figure)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return compact(file.getvalue())


def compact(svg: str) -> str:
    """The same drawing in half the bytes: tenths of a point, which are finer than a screen, no point twice, no line
    breaks. There are hundreds of these files."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = _PLACES.sub(lambda place: _DIGITS.sub(lambda number: f"{float(number[0]):.1f}", place[0]), svg)
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"\s*([A-Za-z])\s+", r"\1", " " + path[0].strip()), svg)
    svg = re.sub(r"(L[-\d. ]+?)\1+(?=[A-Za-z\"])", r"\1", svg)
    return re.sub(r">\s+<", "><", svg)


def image(name: str, alt: str) -> str:
    """Both files on a page of the site, each shown on its own kind of page."""
    return "\n\n".join(f"```{{image}} {name}-{side}.svg\n:alt: {alt}\n:class: only-{side}\n```" for side in SIDES)
