"""The ratio to the best tuned policy, a dot per world; geometric mean and worst at the right."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.field.grids import NO_RIVALS, ON_TIME, short_of
from driftbandit.field.standings import Contestant, KeptLine, Results, summaries
from driftbandit.field.suite import SuiteWorld
from driftbandit.lab.plots.style import looks, save_chart

_LEAST, _MOST = 0.5, 20.0  # ratios beyond stand at the edge, with their number beside them
_TICKS = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)


def dots(names: Sequence[str], main: int) -> list[dict[str, Any]]:
    """Colour and marker of each contestant, its policy's own. The first `main` are drawn large, the others small and
    behind them."""
    return [
        {
            "color": style["color"],
            "marker": style["marker"],
            "markersize": 6.5 if number < main else 4.5,
            "markerfacecolor": style["color"] if number < main else "white",
            "alpha": 1.0 if number < main else 0.8,
            "zorder": 5 if number < main else 3,
        }
        for number, style in enumerate(looks(names))
    ]


def save(
    found: Sequence[Contestant], names: Sequence[str], path: str | Path, narrow: bool = False, main: int = 1
) -> Path:
    """Draw the contestants named, the first `main` of them large; `narrow` stands upright, a row per world, for pages
    of 400 pixels."""
    worlds = list(dict.fromkeys(one.world for one in found))
    worlds.sort(key=lambda world: not world.changing)
    size = (4.1, 1.7 + 0.19 * (len(worlds) + 4) + 0.2 * len(names)) if narrow else (4.0 + 0.17 * len(worlds), 4.9)
    return save_chart(lambda figure: _draw(figure, found, worlds, names, narrow, main), path, size, dpi=130)


def _draw(
    figure: Any,
    found: Sequence[Contestant],
    worlds: Sequence[SuiteWorld],
    names: Sequence[str],
    narrow: bool,
    main: int,
) -> None:
    at = {(one.name, one.world.name): one for one in found}
    whole = {one.name: one for one in summaries(found)}
    axes = figure.add_subplot()
    rows = [(world.name, world) for world in worlds]
    places = {world.name: place for place, (_, world) in enumerate(rows)}
    mean_at, worst_at = len(rows) + 0.8, len(rows) + 2.0
    changing = sum(world.changing for world in worlds)
    styles = dots(names, main)
    for number, name in enumerate(names):
        style = styles[number]
        shift = 0.0 if number < main else 0.12 * (number % 3 - 1)
        for world in worlds:
            one = at.get((name, world.name))
            if one is not None:
                _dot(axes, places[world.name] + shift, one.ratio, one.error, style, narrow)
        if name in whole and changing:
            _dot(axes, mean_at + shift, whole[name].mean, 0.0, style, narrow)
            _dot(axes, worst_at + shift, whole[name].worst, 0.0, style, narrow)
    ticks = [*range(len(rows)), mean_at, worst_at]
    labels = [*(name if world.role == "design" else f"{name} *" for name, world in rows), "geometric mean", "worst"]
    _frame(axes, ticks, labels, narrow)
    line = axes.axhline if narrow else axes.axvline
    for edge in {changing - 0.5, len(rows) - 0.1} if changing else {len(rows) - 0.1}:
        line(edge, color="#777777", linewidth=0.9)
    note = "worlds marked * only check; right of the first line: stationary, slow, trap"
    note = (
        note.replace("right of", "below") if narrow else note
    ) + "\ntuned restarts that fall on changes do not count"
    title = (
        "Regret as a multiple of\nthe best tuned policy's"
        if narrow
        else "Regret as a multiple of the best tuned policy's"
    )
    axes.set_title(title, loc="left")
    _legend(figure, names, main, note)


def _dot(axes: Any, place: float, ratio: float, error: float, style: dict[str, Any], narrow: bool) -> None:
    inside = min(max(ratio, _LEAST), _MOST)
    low, high = max(ratio - error, _LEAST), min(ratio + error, _MOST)
    bar = {"color": style["color"], "linewidth": 1.1, "alpha": 0.6, "zorder": style["zorder"] - 1}
    if low < high:
        axes.plot(*(([low, high], [place, place]) if narrow else ([place, place], [low, high])), **bar)
    clip = ratio != inside
    shown = {**style, "marker": (">" if narrow else "^") if clip else style["marker"], "linestyle": "none"}
    axes.plot(*((inside, place) if narrow else (place, inside)), clip_on=False, **shown)


def _frame(axes: Any, ticks: list[float], labels: list[str], narrow: bool) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    values = axes.xaxis if narrow else axes.yaxis
    (axes.set_xscale if narrow else axes.set_yscale)("log")
    values.set_major_locator(FixedLocator(_TICKS))
    values.set_minor_locator(NullLocator())
    values.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if narrow:
        axes.set_xlim(_LEAST, _MOST)
        axes.set_yticks(ticks, labels, fontsize=8)
        axes.set_ylim(ticks[-1] + 0.7, -0.7)
        axes.axvline(1.0, color="#333333", linewidth=1.1)
        axes.tick_params(axis="x", labeltop=True, labelsize=8)
    else:
        axes.set_ylim(_LEAST, _MOST)
        axes.set_xticks(ticks, labels, rotation=90, fontsize=8)
        axes.set_xlim(-0.7, ticks[-1] + 0.7)
        axes.axhline(1.0, color="#333333", linewidth=1.1)


def _legend(figure: Any, names: Sequence[str], main: int, note: str) -> None:
    from matplotlib.lines import Line2D

    keys = [
        Line2D([], [], linestyle="none", label=name, **style)
        for name, style in zip(names, dots(names, main), strict=True)
    ]
    wide = 0.5 + 0.075 * max((len(name) for name in names), default=1)  # inches that a column takes
    columns = max(1, min(3, int(figure.get_figwidth() / wide)))
    figure.legend(handles=keys, loc="outside lower center", ncols=columns, title=note, title_fontsize=7.5, fontsize=8)


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


def save_frontier(points: Sequence[FrontierPoint], names: Sequence[str], path: str | Path) -> Path:
    """Draw each family's own frontier, the settings it does not itself beat in both worlds; the contestants `names` are
    stars with their standard errors."""
    return save_chart(lambda figure: _draw_frontier(figure, points, names), path, (5.6, 5.8), dpi=130)


def _draw_frontier(figure: Any, points: Sequence[FrontierPoint], names: Sequence[str]) -> None:
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
