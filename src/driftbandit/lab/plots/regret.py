"""Regret curves as SVG, PNG or PDF, drawn from results alone, each policy in its own style (`plots.style`).

The same result gives the same bytes: no date, no random identifiers, no setting of the user's matplotlib."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.plots.style import ENDINGS, NARROW, RC, looks, save_figure, thousands
from driftbandit.lab.stats.intervals import t_interval

__all__ = ["ENDINGS", "draw", "plot"]

_MARKS = 8  # markers on a curve
_LONG = 30  # labels longer than this stand below the figure, not beside it
_WIDTH = 7.6  # inches


def plot(results: Any, path: str | Path, title: str | None = None, width: float = _WIDTH) -> Path:
    """Draw the regret curves of one result, or of several in one figure, and write them to `path`: SVG, PNG or PDF by
    its ending."""
    return save_figure(draw(results, title, width), path)


def draw(results: Any, title: str | None = None, width: float = _WIDTH) -> Any:
    """The figure itself, a `matplotlib.figure.Figure`, for those who want to change it before saving. `width` is in
    inches; a narrow one has its legend below the axes.

    >>> from driftbandit.lab import run
    >>> draw(run(["ts"], "smooth(horizon=50)", runs=2, compiled=False)).axes[0].get_xlabel()
    'round'
    """
    import matplotlib.style

    several = [results] if not isinstance(results, Sequence) else list(results)
    if not several:
        raise ValueError("A figure needs at least one result.")
    with matplotlib.style.context(["default", RC]):
        return _drawn(several, title, width)


def _drawn(several: list[Any], title: str | None, width: float) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    curves = _curves(several)
    if not 2.0 <= width <= 40.0:
        raise ValueError(f"A figure is between 2 and 40 inches wide; got {width:g}.")
    letters = max(16, int(10 * width) - 10)  # in a line of the legend
    names = ["\n".join(textwrap.wrap(label, letters, break_long_words=True)) for label, _ in curves]
    below = width < NARROW or max(len(name) for name in names) > _LONG
    lines = sum(name.count("\n") + 1 for name in names)
    height = 4.2 + (0.19 * lines if below else max(0.0, 0.19 * (lines - 18)))
    figure = Figure(figsize=(min(width, 6.6) if below else width, height), layout="constrained")
    axes = figure.add_subplot()
    styles = looks([part.cell.policy for _, part in curves])
    for number, ((_, part), name) in enumerate(zip(curves, names, strict=True)):
        _curve(axes, part, styles[number], number, len(curves), name)
    axes.set_xlim(0, max(int(part.rounds[-1]) for _, part in curves))
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0] if _dips(several) else 0.0))
    axes.set_xlabel("round")
    axes.set_ylabel(_regret_label(several))
    room = int(11.4 * (min(width, 6.6) - 0.6) if below else 7.6 * width)  # letters in a line of the title
    axes.set_title("\n".join(textwrap.wrap(_title(several) if title is None else title, room)), loc="left")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(thousands))
    axes.xaxis.set_major_locator(MaxNLocator(6 if width >= NARROW else 4))
    _legend(figure, axes, [part.final.mean() for _, part in curves], below)
    return figure


def _curves(results: list[Any]) -> list[tuple[str, Any]]:
    """(text in the legend, part): a label that occurs several times gets its environment or its result's name added."""
    every = [(number, result, part) for number, result in enumerate(results, 1) for part in result.parts]
    out = []
    for number, result, part in every:
        same = [(other, one) for _, other, one in every if one.policy == part.policy]
        name = part.policy
        if len(same) > 1:
            places, ids = [one.environment for _, one in same], [other.provenance.get("id") for other, _ in same]
            own = result.provenance.get("id")
            where = f"result {number}"
            if len(set(places)) == len(same):
                where = part.environment
            elif own and ids.count(own) == 1:
                where = own
            name = f"{name} ({where})"
        out.append((name, part))
    return out


def _curve(axes: Any, part: Any, style: dict[str, Any], number: int, total: int, name: str) -> None:
    """One policy: its mean as a line with a few markers, its interval as a band."""
    x = np.append(0, part.rounds)  # regret begins at 0, before the first round
    y = np.append(0.0, part.regret.mean(axis=0))
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
    if len(part.regret) > 1:
        low, high = (np.append(0.0, side) for side in t_interval(part.regret))
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


def _dips(results: list[Any]) -> bool:
    """Is any regret below 0? (Not pseudo-regret, but a difference of two results may be.)"""
    return any((part.regret < 0).any() for result in results for part in result.parts)


def _regret_label(results: list[Any]) -> str:
    runs = sorted({len(result.runs) for result in results})
    if runs[-1] == 1:
        return "regret (one run)"
    count = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return f"regret (mean of {count} runs, 95% interval)"


def _title(results: list[Any]) -> str:
    titles = dict.fromkeys(str(r.provenance.get("title") or ", ".join(r.environments)) for r in results)
    return "; ".join(title for title in titles if title)
