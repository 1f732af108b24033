"""The ratio to the best tuned policy, a dot per world; geometric mean and worst at the right."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driftbandit.field.standings import Contestant, summaries
from driftbandit.field.suite import SuiteWorld
from driftbandit.lab.plots.chart import save_chart
from driftbandit.lab.plots.style import looks

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
