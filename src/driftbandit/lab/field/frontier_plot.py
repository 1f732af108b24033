"""What watching costs: regret in a world that stands still against regret in the trap, for every family."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driftbandit.lab.field.frontier import FrontierPoint, undominated
from driftbandit.lab.field.ratio_plot import dots
from driftbandit.lab.plots.chart import save_chart

_COLOURED = 6  # families told apart, those that come nearest to the corner; the others are grey


def save(points: Sequence[FrontierPoint], names: Sequence[str], path: str | Path) -> Path:
    """Draw each family's own frontier, the settings it does not itself beat in both worlds; the contestants `names` are
    stars with their standard errors."""
    return save_chart(lambda figure: _draw(figure, points, names), path, (5.6, 5.8), dpi=130)


def _draw(figure: Any, points: Sequence[FrontierPoint], names: Sequence[str]) -> None:
    from matplotlib.ticker import FuncFormatter

    axes = figure.add_subplot()
    rivals = [point for point in points if point.family not in names]
    families: dict[str, list[FrontierPoint]] = {}
    for point in rivals:
        families.setdefault(point.family, []).append(point)
    ranked = sorted(families, key=lambda family: min(_distance(point) for point in families[family]))
    grey = {"color": "#b0b0b0", "marker": ".", "zorder": 1}
    shown = dots([*names, *ranked[:_COLOURED]], len(names))
    for number, family in enumerate(ranked):
        edge = undominated(families[family])
        style = shown[len(names) + number] if number < _COLOURED else grey
        label = family if number < _COLOURED else ("other families" if number == _COLOURED else None)
        _plot(axes, edge, {**style, "linewidth": 0.9}, label)
    best = undominated(rivals)
    if best:
        still, trap = [point.still for point in best], [point.trap for point in best]
        line = {"where": "post", "color": "#333333", "linewidth": 1.1, "linestyle": (0, (4, 2)), "zorder": 2}
        axes.step(still, trap, label="no tuned setting is below", **line)
    for number, name in enumerate(names):
        here = [point for point in points if point.family == name]
        style = {**shown[number], "marker": "*", "markersize": 15, "zorder": 9, "linestyle": "none"}
        _plot(axes, here, style, name)
        for point in here:
            bar = {"xerr": point.still_error, "yerr": point.trap_error, "ecolor": style["color"]}
            axes.errorbar(point.still, point.trap, **bar, fmt="none", linewidth=1.1, zorder=8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if f"{value:e}"[0] == "3" else ""))
    axes.set_xlabel("regret in the stationary world (stat-K5)")
    axes.set_ylabel("regret in the trap (trap-K5)")
    axes.set_title("What it costs to notice an arm that nobody plays", loc="left")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)


def _plot(axes: Any, points: Sequence[FrontierPoint], style: dict[str, Any], label: str | None) -> None:
    axes.plot([point.still for point in points], [point.trap for point in points], label=label, **style)


def _distance(point: FrontierPoint) -> float:
    return math.log(max(point.still, 1.0)) + math.log(max(point.trap, 1.0))
