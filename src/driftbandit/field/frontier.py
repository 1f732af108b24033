"""The law of watching: who loses nothing in a world that stands still cannot notice an arm that nobody plays."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.field.grids import NO_RIVALS, ON_TIME, short_of
from driftbandit.field.kept import KeptLine
from driftbandit.field.ratio_plot import dots
from driftbandit.field.standings import Results
from driftbandit.lab.plots.chart import save_chart

STILL, TRAP = "stat-K5", "trap-K5"
_COLOURED = 6  # families told apart, those that come nearest to the corner; the others are grey


class FrontierPoint(NamedTuple):
    """A setting: its regret in the stationary world and in the trap."""

    family: str
    label: str
    still: float
    trap: float
    still_error: float = 0.0  # standard errors
    trap_error: float = 0.0


def _point(family: str, label: str, still: KeptLine, trap: KeptLine) -> FrontierPoint:
    return FrontierPoint(family, label, still.mean, trap.mean, still.error, trap.error)


def points(
    lines: Iterable[KeptLine], played: Mapping[str, Results], still: str = STILL, trap: str = TRAP
) -> list[FrontierPoint]:
    """Every setting that was played in both worlds, and the contestants."""
    at: dict[str, Results] = {}
    for one in lines:
        at.setdefault(one.label, {})[one.world] = one
    found = [
        _point(short_of(label), label, here[still], here[trap])
        for label, here in at.items()
        if still in here and trap in here and short_of(label) not in NO_RIVALS + ON_TIME
    ]
    for name, results in played.items():
        if still in results and trap in results:
            found.append(_point(name, name, results[still], results[trap]))
    return found


def undominated(found: Sequence[FrontierPoint]) -> list[FrontierPoint]:
    """The settings that no other beats in both worlds, by rising regret in the stationary one.

    >>> found = [FrontierPoint("family", *point) for point in (("a", 1, 9), ("b", 2, 9), ("c", 3, 4))]
    >>> [point.label for point in undominated(found)]
    ['a', 'c']
    """
    out: list[FrontierPoint] = []
    for point in sorted(found, key=lambda point: (point.still, point.trap)):
        if not out or point.trap < out[-1].trap:
            out.append(point)
    return out


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
