"""The figures of a suite: a dot per policy and environment, and a map of every setting by its regret where nothing
changes and where things change."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from driftbandit.environments.named import DESIGN, STILL, SuiteEnvironment
from driftbandit.field.standings import KeptLine, Results, geometric
from driftbandit.field.suite import find_short_name
from driftbandit.lab.plots import find_style, find_styles

_LEAST, _MOST = 0.2, 20.0  # ratios beyond are drawn at the edge
_TICKS = (0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)


# ---- a dot per environment; geometric mean and worst at the right ----------------------------------------------------


def draw_ratios(figure: Any, contest: Any) -> None:
    """Fill an empty figure: the ratios of the policies that a contest shows, those given large."""
    from matplotlib.lines import Line2D

    found = dict.fromkeys(one.environment for one in contest.found)
    environments = sorted(found, key=lambda environment: not environment.changing)
    figure.set_figwidth(4.0 + 0.17 * len(environments))
    names, axes = contest.shown(), figure.add_subplot()
    changing = sum(environment.changing for environment in environments)
    places = {environment.name: float(place) for place, environment in enumerate(environments)}
    mean_at, worst_at = len(environments) + 0.8, len(environments) + 2.0
    keys = []
    for order, (name, look) in enumerate(zip(names, find_styles(names), strict=True)):
        large = name in contest.played
        style = {"color": look["color"], "marker": look["marker"], "markersize": 6.5 if large else 4.5,
                 "markerfacecolor": look["color"] if large else "white", "alpha": 1.0 if large else 0.8,
                 "zorder": 5 if large else 3, "linestyle": "none"}  # fmt: skip
        keys.append(Line2D([], [], label=name, **style))
        dots = [(places[one.environment.name], one.ratio, one.error) for one in contest.found if one.name == name]
        total = next((one for one in contest.totals if one.name == name), None)
        if total is not None and changing:
            dots += [(mean_at, total.mean, 0.0), (worst_at, total.worst, 0.0)]
        for place, ratio, error in dots:
            _draw_dot(axes, place + (0.0 if large else 0.12 * (order % 3 - 1)), ratio, error, style)
    labels = [one.name if one.role == DESIGN else f"{one.name} *" for one in environments]
    _set_axes(axes, [*places.values(), mean_at, worst_at], [*labels, "geometric mean", "worst"])
    for edge in {changing - 0.5, len(environments) - 0.1} if changing else {len(environments) - 0.1}:
        axes.axvline(edge, color="#777777", linewidth=0.9)
    axes.set_title("Regret as a multiple of the best tuned policy's", loc="left")
    apart = ", ".join(dict.fromkeys(one.kind for one in environments if not one.changing))
    note = "* for checks only" + (f"; right of the first line, not averaged: {apart}" if apart else "")
    columns = int(figure.get_figwidth() / (0.5 + 0.075 * max(map(len, names))))  # the letters' width in inches
    text = {"title": note, "title_fontsize": 7.5, "fontsize": 8}
    figure.legend(handles=keys, loc="outside lower center", ncols=max(1, min(3, columns)), **text)


def _draw_dot(axes: Any, place: float, ratio: float, error: float, style: dict[str, Any]) -> None:
    inside = min(max(ratio, _LEAST), _MOST)
    low, high = max(ratio - error, _LEAST), min(ratio + error, _MOST)
    bar = {"color": style["color"], "linewidth": 1.1, "alpha": 0.6, "zorder": style["zorder"] - 1}
    if low < high:
        axes.plot([place, place], [low, high], **bar)
    marker = style["marker"] if ratio == inside else "^"
    axes.plot(place, inside, clip_on=False, **{**style, "marker": marker})


def _set_axes(axes: Any, ticks: list[float], labels: list[str]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(_TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(_LEAST, _MOST)
    axes.set_xticks(ticks, labels, rotation=90, fontsize=8)
    axes.set_xlim(-0.7, ticks[-1] + 0.7)
    axes.axhline(1.0, color="#333333", linewidth=1.1)


# ---- the map: a point per setting, the same in all environments ------------------------------------------------------

_ENOUGH = 0.9  # of the environments must a setting have been played in
_MEMORY = re.compile(r"((?:gamma|window|period)=|(?<=\()(?=[\d.]))([\d.e+-]+)")  # of a label


class Spot(NamedTuple):
    """A setting on the map: geometric means of its ratio to the best tuned policy."""

    label: str
    still: float
    changing: float


def find_spots(
    environments: Sequence[SuiteEnvironment],
    best: Mapping[str, float],
    lines: Iterable[KeptLine],
    played: Mapping[str, Results] | None = None,
) -> list[Spot]:
    """Every setting that was played nearly everywhere. `best` is the regret of the best tuned policy by environment."""
    by_label: dict[str, dict[str, float]] = {}
    for line in (*lines, *(line for found in (played or {}).values() for line in found.values())):
        if line.environment in best:
            by_label.setdefault(line.label, {})[line.environment] = line.mean / best[line.environment]
    out = []
    for label, ratios in by_label.items():
        here = [(one, ratios[one.name]) for one in environments if one.name in ratios]
        still = geometric([ratio for one, ratio in here if one.kind == STILL])
        changing = geometric([ratio for one, ratio in here if one.changing and one.kind != STILL])
        if len(here) >= _ENOUGH * len(best) and not math.isnan(still + changing):
            out.append(Spot(label, still, changing))
    return out


def find_frontier(spots: Iterable[Spot]) -> list[Spot]:
    """The settings that no other beats in both, from the least regret where nothing changes on."""
    out: list[Spot] = []
    for spot in sorted(spots, key=lambda one: (one.still, one.changing)):
        if not out or spot.changing < out[-1].changing:
            out.append(spot)
    return out


def choose_spots(spots: Iterable[Spot]) -> dict[str, Spot]:
    """The setting that stands for each policy: the one with the least regret where things change."""
    out: dict[str, Spot] = {}
    for spot in sorted(spots, key=lambda one: one.changing):
        out.setdefault(find_short_name(spot.label), spot)
    return out


def join_memories(spots: Iterable[Spot]) -> list[list[Spot]]:
    """The settings of a policy that differ in memory only, in the order of their memory."""
    out: dict[str, dict[float, Spot]] = {}
    for spot in spots:
        if memory := _MEMORY.search(spot.label):
            out.setdefault(_MEMORY.sub(r"\1*", spot.label, count=1), {})[float(memory[2])] = spot
    return [[line[memory] for memory in sorted(line)] for line in out.values() if len(line) > 1]


def draw_map(figure: Any, spots: list[Spot], look: Callable[[str], Any] = find_style, faint: str = "#777777") -> None:
    """Fill an empty figure: a point for each policy, a thin line through its other memories, and the frontier.

    A shorter memory moves a policy down and to the right, so that the cost of forgetting shows."""
    points, frontier, axes = choose_spots(spots), find_frontier(spots), figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for line in join_memories(spots):
        short = find_short_name(line[0].label)
        if points[short] in line:
            xs, ys = [spot.still for spot in line], [spot.changing for spot in line]
            axes.plot(xs, ys, color=look(short)["color"], linewidth=0.8, alpha=0.45, zorder=1)
    axes.step([spot.still for spot in frontier], [spot.changing for spot in frontier], where="post", color=faint,
              linewidth=1.2, linestyle=":", zorder=2)  # fmt: skip
    for short, spot in points.items():
        style = {"color": look(short)["color"], "marker": look(short)["marker"], "linestyle": "none"}
        axes.plot(spot.still, spot.changing, markersize=7.5, zorder=3, **style)
    for edge, values, limit in (
        (axes.axvline, [spot.still for spot in (*points.values(), *frontier)], axes.set_xlim),
        (axes.axhline, [spot.changing for spot in (*points.values(), *frontier)], axes.set_ylim),
    ):
        edge(1, color=faint, linewidth=0.8)
        limit(0.9 * min(1.0, *values), 1.5 * max(values))
    axes.set_xlabel("nothing changes: regret / that of the best tuned policy")
    axes.set_ylabel("things change: regret / that of the best tuned policy")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, place: f"{value:g}")
        axis.set_minor_formatter(lambda value, place: f"{value:g}" if f"{value:e}"[0] in "235" else "")
        axis.set_tick_params(which="both", labelsize=8)
    figure.draw_without_rendering()  # so that points have their places on the page
    _label(axes, points, frontier, faint)


def _label(axes: Any, points: dict[str, Spot], frontier: list[Spot], faint: str) -> None:
    """A name next to every point, on the first place around it where it hides no point, no other name and no step of
    the frontier."""
    scale = axes.figure.dpi / 72.0
    at = {short: axes.transData.transform((spot.still, spot.changing)) / scale for short, spot in points.items()}
    corners = [axes.transData.transform((spot.still, spot.changing)) / scale for spot in frontier]
    left, right = (float(axes.transAxes.transform((side, 0))[0]) / scale for side in (0, 1))
    taken = [(x - 5, x + 5, y - 5, y + 5) for x, y in at.values()]
    taken += [(x, end, y - 3, y + 3) for (x, y), (end, _) in pairwise(corners)]
    taken += [(-1e9, left, -1e9, 1e9), (right, 1e9, -1e9, 1e9)]  # no name leaves the map
    for short, (x, y) in sorted(at.items(), key=lambda item: -item[1][1]):
        width = 5.4 * len(short)
        for far in range(0, 60, 6):
            places = [(side, sign * far) for sign in (1, -1) for side in (8, -8 - width)]
            free = [place for place in places if not _hides(x + place[0], y + place[1], width, taken)]
            if free:
                break
        aside, up = (free or [(8, 0)])[0]
        taken.append((x + aside, x + aside + width, y + up - 5, y + up + 5))
        line = {"arrowstyle": "-", "color": faint, "linewidth": 0.6, "shrinkB": 3} if far > 6 else None
        axes.annotate(short, (points[short].still, points[short].changing), (aside, up), textcoords="offset points",
                      fontsize=8, va="center", arrowprops=line)  # fmt: skip


def _hides(x: float, y: float, width: float, taken: list[tuple[float, float, float, float]]) -> bool:
    return any(x < right and x + width > left and y - 5 < top and y + 5 > low for left, right, low, top in taken)
