"""Regret curves as SVG, PNG or PDF, drawn from results alone.

A figure is read on paper as often as on a screen: each policy has its own colour (from Okabe and Ito's palette, which
colour-blind readers tell apart), its own dashes and its own marker, so that any one of the three is enough. The same
result gives the same bytes: no date, no random identifiers, no setting of the user's matplotlib."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.experiments.result import Result
from driftbandit.lab.support.files import replacing, writable

ENDINGS = (".svg", ".png", ".pdf")
# 7 colours, 5 dashes and 9 markers: no two policies share all three before the 316th. Yellow is left out, being too
# pale on paper.
COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (7, 1.5, 1.2, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_MARKS = 8  # markers on a curve
_LONG = 30  # labels longer than this stand below the figure, not beside it

_STYLE = {
    "svg.hashsalt": "driftbandit",
    "svg.fonttype": "path",  # letters as shapes: the figure looks the same where our font is missing
    "pdf.fonttype": 42,
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "legend.frameon": False,
    "savefig.dpi": 200,
}


def look(number: int) -> dict[str, Any]:
    """Colour, dashes and marker of the policy with this number, the same in every figure."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
    }


def save(results: Result | Sequence[Result], path: str | Path, title: str | None = None) -> Path:
    """Draw the regret curves of one result, or of several in one figure, and write them to `path`: SVG, PNG or PDF by
    its ending."""
    import matplotlib.style

    path = writable(path, ENDINGS)
    form = path.suffix.lower()[1:]
    blank = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[form]
    with matplotlib.style.context(["default", _STYLE]):
        figure = draw(results, title)
        with replacing(path) as draft:
            figure.savefig(draft, format=form, metadata=blank)
    return path


def draw(results: Result | Sequence[Result], title: str | None = None) -> Any:
    """The figure itself, a `matplotlib.figure.Figure`, for those who want to change it before saving.

    >>> import numpy as np
    >>> flat = Result(np.array([1, 2]), np.arange(2), {"a": np.ones((2, 2))}, {})
    >>> draw(flat).axes[0].get_xlabel()
    'round'
    """
    import matplotlib.style

    several = [results] if isinstance(results, Result) else list(results)
    if not several:
        raise ValueError("A figure needs at least one result.")
    with matplotlib.style.context(["default", _STYLE]):
        return _drawn(several, title)


def _drawn(several: list[Result], title: str | None) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    curves = _curves(several)
    names = ["\n".join(textwrap.wrap(label, 66, break_long_words=True)) for label, _, _ in curves]
    below = max(len(name) for name in names) > _LONG
    lines = sum(name.count("\n") + 1 for name in names)
    height = 4.2 + (0.19 * lines if below else max(0.0, 0.19 * (lines - 18)))
    figure = Figure(figsize=(6.6 if below else 7.6, height), layout="constrained")
    axes = figure.add_subplot()
    for number, ((_, result, key), name) in enumerate(zip(curves, names, strict=True)):
        _curve(axes, result, key, number, len(curves), name)
    axes.set_xlim(0, max(int(result.rounds[-1]) for result in several))
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0] if _dips(several) else 0.0))
    axes.set_xlabel("round")
    axes.set_ylabel(_regret_label(several))
    axes.set_title(
        "\n".join(textwrap.wrap(_title(several) if title is None else title, 78 if below else 58)), loc="left"
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(_thousands))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    _legend(figure, axes, [result.mean(key)[-1] for _, result, key in curves], below)
    return figure


def _curves(results: list[Result]) -> list[tuple[str, Result, str]]:
    """(text in the legend, result, label in the result): a label that occurs in several results gets the experiment's
    name added."""
    out = []
    for number, result in enumerate(results, 1):
        for label in result.labels:
            shared = sum(label in other.labels for other in results) > 1
            names = [other.provenance.get("id") for other in results]
            name = result.provenance.get("id")
            where = name if name and names.count(name) == 1 else f"result {number}"
            out.append((f"{label} ({where})" if shared else label, result, label))
    return out


def _curve(axes: Any, result: Result, key: str, number: int, total: int, name: str) -> None:
    """One policy: its mean as a line with a few markers, its interval as a band."""
    style = look(number)
    x = np.append(0, result.rounds)  # regret begins at 0, before the first round
    y = np.append(0.0, result.mean(key))
    step = max(1, len(x) // _MARKS)
    # Shifted from policy to policy, so that markers do not hide each other.
    first = min(len(x) - 1, step // 2 + (number * step) // total)
    axes.plot(
        x,
        y,
        **style,
        markevery=(first, step),
        markerfacecolor="white",
        markeredgewidth=1.2,
        clip_on=False,  # a marker at the edge is shown whole
        label=name,
        zorder=3 + number / total,
    )
    if len(result.runs) > 1:
        low, high = (np.append(0.0, side) for side in result.interval(key))
        axes.fill_between(x, low, high, color=style["color"], alpha=0.16, linewidth=0, zorder=2)


def _legend(figure: Any, axes: Any, finals: list[Any], below: bool) -> None:
    """Outside the axes, hiding nothing, in the order in which the curves end, so that each is found without its
    colour."""
    handles, names = axes.get_legend_handles_labels()
    order = np.argsort([-float(final) for final in finals], kind="stable")
    place = "outside lower left" if below else "outside right upper"
    figure.legend(
        [handles[i] for i in order], [names[i] for i in order], loc=place, handlelength=4.2, labelspacing=0.55
    )


def _dips(results: list[Result]) -> bool:
    """Is any regret below 0? (Not pseudo-regret, but a difference of two results may be.)"""
    return any((curve < 0).any() for result in results for curve in result.regret.values())


def _regret_label(results: list[Result]) -> str:
    runs = sorted({len(result.runs) for result in results})
    if runs[-1] == 1:
        return "regret (one run)"
    count = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return f"regret (mean of {count} runs, 95 % interval)"


def _title(results: list[Result]) -> str:
    titles = dict.fromkeys(str(r.provenance.get("title") or r.provenance.get("environment") or "") for r in results)
    return "; ".join(title for title in titles if title)


def _thousands(value: float, position: int = 0) -> str:
    """100 000 with thin spaces: a comma is a decimal point to half the world."""
    text = f"{value:,.10g}" if abs(value) < 1e15 else f"{value:.3g}"
    return text.replace(",", "\u2009").replace("-", "\u2212")
