"""The map of the field: every policy by its regret where nothing changes and where things change."""

from pathlib import Path
from typing import Any

from driftbandit.field.figures import Spot, draw_map, find_spots
from driftbandit.field.standings import KeptLine, read_kept
from driftbandit.field.suite import find_short_name
from driftbandit.field.suites import BINARY, LEFT_OUT
from tools.site import colours
from tools.site.standing import best, marks

OFF = (*LEFT_OUT, "uniform")  # yardsticks; uniform play is so far off that all others would be one spot


def spots() -> list[Spot]:
    """Every setting that was played nearly everywhere."""
    lines = [line for line in read_kept(BINARY.kept) if find_short_name(line.label) not in OFF]
    for mark in marks("drift-ts"):  # has nothing to tune, so it is in the table of ratios only
        name = mark.environment.name
        lines.append(KeptLine(name, "drift-ts", BINARY.runs, mark.ratio * best()[name], 0.0, 0.0))
    return find_spots(BINARY.environments, best(), lines)


def save(into: Path) -> list[str]:
    """Write the map."""

    def draw(figure: Any) -> None:
        figure.set_layout_engine("constrained")
        draw_map(figure, spots(), colours.look, colours.FAINT)

    return colours.save(colours.drawn((5.2, 4.8), draw), into, "map")
