"""Sweeps: the best setting of a grid of parameters, and figures of regret over the parameters.

The smallest of many noisy means is too small. So the best cell is chosen on the first half of the runs, and its regret
is taken from the second half. All cells meet the same random numbers in run r, so differences are paired."""

import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.files import slug
from driftbandit.lab.intervals import Interval, interval, t_interval
from driftbandit.lab.plots import find_styles, regret_label, save_chart, thousands


class Grid(NamedTuple):
    """All variants of a policy in one environment; or, of a policy without lists, all variants of an environment."""

    policy: str
    environment: str
    axes: dict[str, list[Any]]  # swept parameter: its values in order
    numbers: list[int]  # the numbers of its parts in the result
    of_policy: bool  # whether the axes are parameters of the policy


class BestSetting(NamedTuple):
    """The best cell of a grid."""

    environment: str
    policy: str  # with its setting
    number: int  # of its part in the result
    regret: Interval  # from the runs that were not used to choose it
    runs: int  # how many those are
    as_good: int  # cells that are not clearly worse, this one included


def grids(result: Any) -> list[Grid]:
    """Every swept policy in each environment, and every swept environment of the other policies, in order."""
    found: dict[tuple[str, str, bool], list[int]] = {}
    for number, part in enumerate(result.parts):
        cell = part.cell
        if cell.values:
            swept = bool(cell.policy_values)
            place = cell.environment_label if swept else cell.environment_name
            found.setdefault((cell.policy_name, place, swept), []).append(number)
    listed = []
    for (policy, environment, swept), numbers in found.items():
        values = [result.parts[n].cell.policy_values if swept else result.parts[n].cell.values for n in numbers]
        names = dict.fromkeys(name for own in values for name in own)
        axes = {name: list(dict.fromkeys(own[name] for own in values)) for name in names}
        listed.append(Grid(policy, environment, axes, numbers, swept))
    return listed


def find_best(result: Any, grid: Grid) -> BestSetting:
    """The best setting of a swept policy in the grid's environment."""
    half = result.runs // 2
    if half < 2:
        raise ValueError(f"Choosing needs 4 runs or more, half to choose by and half to judge; got {result.runs}.")
    best = min(grid.numbers, key=lambda number: float(result.parts[number].final[:half].mean()))
    mine = result.parts[best].final[half:]
    # Each is tested at 95% separately, so in a long list one may be missing by chance.
    as_good = [number for number in grid.numbers
               if number == best or interval(result.parts[number].final[half:] - mine).low <= 0.0]  # fmt: skip
    part = result.parts[best]
    return BestSetting(part.environment, part.policy, best, interval(mine), len(mine), len(as_good))


def find_best_settings(result: Any) -> list[BestSetting]:
    """The best setting of every swept policy in every environment; none with fewer than 4 runs."""
    swept = [grid for grid in grids(result) if grid.of_policy and len(grid.numbers) > 1]
    return [find_best(result, grid) for grid in swept] if result.runs >= 4 else []


# ---- figures ---------------------------------------------------------------------------------------------------------

_ACROSS = 3  # heat maps side by side
_RING = "#d55e00"


def save_figures(result: Any, folder: str | Path, ending: str = ".svg") -> list[Path]:
    """Draw one figure for each single swept parameter, and heat maps for a policy with two or more."""
    single: dict[tuple[str, str], list[Grid]] = {}
    wide: dict[str, list[Grid]] = {}
    for grid in grids(result):
        if len(grid.axes) == 1:
            single.setdefault((next(iter(grid.axes)), grid.environment), []).append(grid)
        else:
            wide.setdefault(grid.policy, []).append(grid)
    paths = [
        save_curves(result, same, Path(folder) / f"sweep-{slug(environment)[:40]}-{slug(name)[:40]}{ending}")
        for (name, environment), same in single.items()
    ]
    for policy, several in wide.items():
        paths.append(save_maps(result, several, Path(folder) / f"sweep-{slug(policy)[:40]}{ending}"))
    return paths


def save_curves(result: Any, grids: list[Grid], path: str | Path) -> Path:
    """Draw regret over the values of one swept parameter, equally spaced, a line per policy; policies without it are
    horizontal lines."""
    name, place = next(iter(grids[0].axes)), grids[0].environment
    values = sorted({value for grid in grids for value in grid.axes[name]}, key=lambda value: (str(type(value)), value))
    swept = {grid.policy for grid in grids}
    flat = [
        part
        for part in result.parts
        if part.environment == place and not part.cell.policy_values and part.cell.policy_name not in swept
    ]

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        styles = find_styles(
            [*(result.parts[grid.numbers[0]].cell.policy for grid in grids), *(p.cell.policy for p in flat)]
        )
        for style, grid in zip(styles, grids, strict=False):
            x = np.array([values.index(value) for value in grid.axes[name]])
            order = np.argsort(x)
            final = np.array([result.parts[number].final for number in grid.numbers])[order]
            axes.plot(x[order], final.mean(axis=1), **style, markerfacecolor="white", label=_wrap(grid.policy))
            if result.runs > 1:
                axes.fill_between(x[order], *t_interval(final.T), color=style["color"], alpha=0.16, linewidth=0)
        for style, part in zip(styles[len(grids) :], flat, strict=True):
            line = {key: style[key] for key in ("color", "linestyle")}
            axes.axhline(part.final.mean(), **line, label=_wrap(part.policy))
        axes.set_xlabel(name)
        axes.set_xticks(range(len(values)), [_value(value) for value in values])
        axes.set_ylim(bottom=0)
        axes.set_ylabel(regret_label(result.runs))
        axes.yaxis.set_major_formatter(thousands)
        axes.set_title(textwrap.fill(place, 78), loc="left", fontsize=9)
        figure.legend(loc="outside lower left", ncols=1 if max(len(p) for p in result.policies) > 30 else 3)

    return save_chart(draw, path, (6.8, 4.8))


def save_maps(result: Any, grids: list[Grid], path: str | Path) -> Path:
    """Draw heat maps of one policy over its first two swept parameters, one for each environment.

    Colour is regret, numbers are regret above the best cell in per cent, a ring marks the best cell. The title has the
    values of further swept parameters."""
    across = min(len(grids), _ACROSS)
    down = -(-len(grids) // across)

    def draw(figure: Any) -> None:
        title = result.provenance.get("title") or grids[0].policy
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5)
        for place, grid in enumerate(grids, 1):
            axes = figure.add_subplot(down, across, place)
            best = find_best(result, grid) if grid.of_policy and result.runs >= 4 else None
            _draw_map(figure, axes, result, grid, best)

    _, second = list(grids[0].axes.values())[:2]
    width = max(4.4, 0.62 * max(len(next(iter(g.axes.values()))) for g in grids) + 1.6)
    return save_chart(draw, path, (width * across, down * max(3.4, 0.36 * len(second) + 2.2)), dpi=130)


def _draw_map(figure: Any, axes: Any, result: Any, grid: Grid, chosen: BestSetting | None) -> None:
    from matplotlib.colors import LogNorm, Normalize

    (x_name, xs), (y_name, ys) = list(grid.axes.items())[:2]
    centre = result.parts[chosen.number if chosen else grid.numbers[0]].cell.values
    rest = {name: centre[name] for name in list(grid.axes)[2:]}
    table = np.full((len(ys), len(xs)), np.nan)
    for number in grid.numbers:
        values = result.parts[number].cell.values
        if all(values[name] == value for name, value in rest.items()):
            table[ys.index(values[y_name]), xs.index(values[x_name])] = result.parts[number].final.mean()
    least, most = np.nanmin(table), np.nanmax(table)
    norm = LogNorm(least, most) if least > 0 and most / least > 3 else Normalize(least, most)
    image = axes.imshow(table, cmap="viridis_r", norm=norm, aspect="auto", origin="lower")
    base = table[ys.index(centre[y_name]), xs.index(centre[x_name])] if chosen else least
    for row, column in np.ndindex(table.shape):
        if np.isfinite(table[row, column]):
            above = 100.0 * (table[row, column] / base - 1.0) if base > 0 else 0.0
            colour = "white" if image.norm(table[row, column]) > 0.5 else "black"
            axes.text(column, row, _percent(above), ha="center", va="center", fontsize=7, color=colour)
    if chosen:
        axes.plot(xs.index(centre[x_name]), ys.index(centre[y_name]), "o", ms=23, mfc="none", mec=_RING, mew=2)
    axes.set_xticks(range(len(xs)), [_value(x) for x in xs], rotation=45 if len(xs) > 8 else 0)
    axes.set_yticks(range(len(ys)), [_value(y) for y in ys])
    axes.grid(False)
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name)
    title = ", ".join([grid.environment, *(f"{name}={_value(value)}" for name, value in rest.items())])
    axes.set_title(textwrap.fill(title, 60), loc="left", fontsize=9)
    bar = figure.colorbar(image, ax=axes)
    bar.set_label(f"regret, mean of {result.runs} runs")
    bar.ax.yaxis.set_major_formatter(thousands)
    bar.ax.yaxis.set_minor_formatter(thousands)


def _percent(above: float) -> str:
    return "best" if above == 0 else f"{above:+.0f}%".replace("-", "\u2212")


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _wrap(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 70, break_long_words=True))
