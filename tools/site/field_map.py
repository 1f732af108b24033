"""A map of the field: every policy by its regret where nothing changes and where things change.

A point is one setting, the same in all environments, so that the price of forgetting shows: a shorter memory moves a
policy down and to the right. The thin line through a policy's point joins its other settings in the order of their
memory."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.field.binary import BINARY, GRID, LEFT_OUT, MEMORIES, fill_form
from driftbandit.field.standings import KeptLine, read_kept
from driftbandit.field.suite import find_short_name
from tools.site import colours
from tools.site.standing import ENVIRONMENTS, STILL, best, geometric, marks

OFF = (*LEFT_OUT, "uniform")  # yardsticks; uniform play is so far off that all others would be one spot
ENOUGH = 0.9  # of the environments tuned so far must a setting have been played in


class Spot(NamedTuple):
    """A setting on the map: ratios to the best tuned policy."""

    short: str
    label: str
    still: float
    changing: float


def spots() -> list[Spot]:
    """Every setting that was played nearly everywhere."""
    by_label: dict[str, list[KeptLine]] = {}
    for line in read_kept(BINARY.kept):
        if line.environment in best():
            by_label.setdefault(line.label, []).append(line)
    out = []
    for label, lines in by_label.items():
        if len(lines) >= ENOUGH * len(best()) and find_short_name(label) not in OFF:
            out.append(
                _spot(
                    find_short_name(label),
                    label,
                    ((one.environment, one.mean / best()[one.environment]) for one in lines),
                )
            )
    known = {spot.short for spot in out}
    for short in ("drift-ts",):  # has nothing to tune, so it is in the table of ratios only
        if short not in known and marks(short):
            out.append(_spot(short, short, ((mark.environment.name, mark.ratio) for mark in marks(short))))
    return [spot for spot in out if not math.isnan(spot.still + spot.changing)]


def _spot(short: str, label: str, ratios: Iterable[tuple[str, float]]) -> Spot:
    found = list(ratios)
    still = geometric(ratio for environment, ratio in found if ENVIRONMENTS[environment].kind == STILL)
    changing = geometric(ratio for environment, ratio in found if ENVIRONMENTS[environment].changing)
    return Spot(short, label, still, changing)


def chosen(found: Iterable[Spot]) -> dict[str, Spot]:
    """The setting each policy stands with: the one with the least regret where things change."""
    out: dict[str, Spot] = {}
    for spot in found:
        if spot.short not in out or spot.changing < out[spot.short].changing:
            out[spot.short] = spot
    return out


def trails(found: Iterable[Spot]) -> list[list[Spot]]:
    """The settings of a policy that differ in memory only, in the order of the grid."""
    by_label = {spot.label: spot for spot in found}
    out = []
    for family in GRID.values():
        for form in family:
            labels = dict.fromkeys(fill_form(form, memory) for memory in MEMORIES)
            line = [by_label[label] for label in labels if label in by_label]
            if len(line) > 1:
                out.append(line)
    return out


def save(into: Path) -> list[str]:
    """Write the map."""
    return colours.save(colours.drawn((5.2, 4.8), _draw), into, "map")


def _draw(figure: Any) -> None:
    found = spots()
    points = chosen(found)
    axes = figure.subplots()
    figure.subplots_adjust(left=0.115, right=0.97, top=0.97, bottom=0.1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for line in trails(found):
        if points[line[0].short] in line:
            xs, ys = [spot.still for spot in line], [spot.changing for spot in line]
            axes.plot(xs, ys, color=colours.look(line[0].short)["color"], linewidth=0.8, alpha=0.45, zorder=1)
    for spot in points.values():
        style = colours.look(spot.short)
        axes.plot(spot.still, spot.changing, color=style["color"], marker=style["marker"], linestyle="none",
                  markersize=7.5, zorder=3)  # fmt: skip
    _limits(axes, list(points.values()))
    _label(axes, list(points.values()))
    axes.axvline(1, color=colours.FAINT, linewidth=0.8)
    axes.axhline(1, color=colours.FAINT, linewidth=0.8)
    axes.set_xlabel("still environments: regret / that of the best tuned policy")
    axes.set_ylabel("changing environments: regret / that of the best tuned policy")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, place: f"{value:g}")
        axis.set_minor_formatter(lambda value, place: f"{value:g}" if f"{value:e}"[0] in "235" else "")
        axis.set_tick_params(which="both", labelsize=8)


def _limits(axes: Any, points: list[Spot]) -> None:
    if points:
        axes.set_xlim(0.9, 1.6 * max(spot.still for spot in points))
        axes.set_ylim(0.9, 1.35 * max(spot.changing for spot in points))


def _label(axes: Any, points: list[Spot]) -> None:
    """A name next to every point, on the first place around it where it hides no point and no other name."""
    at = {spot: axes.transData.transform((spot.still, spot.changing)) for spot in points}
    left, right = (float(axes.transAxes.transform((side, 0))[0]) for side in (0, 1))
    taken = [(x - 5, x + 5, y - 5, y + 5) for x, y in at.values()]
    taken += [(-1e9, left, -1e9, 1e9), (right, 1e9, -1e9, 1e9)]  # no name leaves the map
    for spot, (x, y) in sorted(at.items(), key=lambda item: -item[1][1]):
        width = 5.4 * len(spot.short)
        for far in range(0, 60, 6):
            places = [(side, sign * far) for sign in (1, -1) for side in (8, -8 - width)]
            free = [place for place in places if not _hides(x + place[0], y + place[1], width, taken)]
            if free:
                break
        right, up = (free or [(8, 0)])[0]
        taken.append((x + right, x + right + width, y + up - 5, y + up + 5))
        line = {"arrowstyle": "-", "color": colours.FAINT, "linewidth": 0.6, "shrinkB": 3} if far > 6 else None
        axes.annotate(spot.short, (spot.still, spot.changing), (right, up), textcoords="offset points", fontsize=8,
                      va="center", arrowprops=line)  # fmt: skip


def _hides(x: float, y: float, width: float, taken: list[tuple[float, float, float, float]]) -> bool:
    return any(x < right and x + width > left and y - 5 < top and y + 5 > low for left, right, low, top in taken)
