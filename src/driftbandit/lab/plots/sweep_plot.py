"""Sweeps drawn: curves against one parameter with intervals, heat maps over two.

What is drawn is handed in (`lab.experiments.sweep.save_figures`): figures know no experiment."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.plots.chart import save_chart
from driftbandit.lab.plots.style import looks, thousands
from driftbandit.lab.stats.intervals import t_interval
from driftbandit.lab.support.files import slug


def save_all(
    comparison: Any, grids: Sequence[Any], best: Callable[[Any], Any], folder: str | Path, ending: str = ".svg"
) -> list[Path]:
    """One figure for each parameter swept alone, one heat map for each world of a policy with two or more."""
    paths: list[Path] = []
    alone: dict[tuple[str, str], list[Any]] = {}
    for grid in grids:
        if len(grid.axes) == 1:
            alone.setdefault((next(iter(grid.axes)), grid.environment), []).append(grid)
    for (name, environment), same in alone.items():
        path = Path(folder) / f"sweep-{_file(environment)}-{_file(name)}{ending}"
        paths.append(save_curves(comparison, same, path))
    wide: dict[str, list[Any]] = {}
    for grid in grids:
        if len(grid.axes) > 1:
            wide.setdefault(grid.policy, []).append(grid)
    for policy, several in wide.items():
        paths.append(save_maps(comparison, several, best, Path(folder) / f"sweep-{_file(policy)}{ending}"))
    return paths


def save_curves(comparison: Any, grids: list[Any], path: str | Path) -> Path:
    """Regret against one swept parameter, a line per policy; policies without it as level lines."""
    (name, values), place = next(iter(grids[0].axes.items())), grids[0].environment
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        swept = {grid.policy for grid in grids}
        flat = [
            n
            for n, cell in enumerate(comparison.cells)
            if cell.environment_name == place and not cell.values and cell.policy_name not in swept
        ]
        drawn = [comparison.cells[n].policy for n in [*(grid.numbers[0] for grid in grids), *flat]]
        styles = looks(drawn)
        for style, grid in zip(styles, grids, strict=False):
            own = next(iter(grid.axes.values()))
            x = np.array(own if numeric else range(len(own)), float)
            order = np.argsort(x)
            final = comparison.final[grid.numbers][order]
            axes.plot(
                _forgetting(x[order], name),
                final.mean(axis=1),
                **style,
                markerfacecolor="white",
                label=_short(grid.policy),
            )
            if comparison.study.runs > 1:
                low, high = t_interval(final.T)
                axes.fill_between(_forgetting(x[order], name), low, high, color=style["color"], alpha=0.16, linewidth=0)
        for style, cell in zip(styles[len(grids) :], flat, strict=True):
            axes.axhline(
                comparison.final[cell].mean(),
                **{k: style[k] for k in ("color", "linestyle")},
                label=_short(comparison.cells[cell].policy_name),
            )
        axes.set_xlabel(name)
        if _is_discount(name, values):
            axes.set_xscale("log")
            axes.invert_xaxis()
            axes.set_xticks(_forgetting(np.array(values, float), name), [f"{value:g}" for value in values])
            axes.minorticks_off()
        elif numeric and min(values) > 0 and max(values) / min(values) > 20:
            axes.set_xscale("log")
        elif not numeric:
            axes.set_xticks(range(len(values)), [str(value) for value in values])
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"regret (mean of {comparison.study.runs} runs, 95 % interval)")
        axes.yaxis.set_major_formatter(thousands)
        axes.set_title("\n".join(textwrap.wrap(comparison.study.title or place, 70)), loc="left")
        axes.legend()

    return save_chart(draw, path, (6.8, 4.2))


def save_maps(comparison: Any, grids: list[Any], best: Callable[[Any], Any], path: str | Path) -> Path:
    """Heat maps of one policy over its first two swept parameters, one beside the other for the worlds.

    Colour is regret, numbers are regret above the best cell in per cent. A ring marks the best cell (chosen by half the
    runs); markers show where policies of the same kind that were not swept lie between the cells. Further parameters
    are held at the best cell's values."""

    def draw(figure: Any) -> None:
        figure.suptitle(comparison.study.title or grids[0].policy, x=0.01, ha="left", fontsize=10.5)
        for place, grid in enumerate(grids, 1):
            axes = figure.add_subplot(1, len(grids), place)
            _map(figure, axes, comparison, grid, best(grid))
            _others(axes, comparison, grid)
        handles, names = figure.axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, names, loc="outside lower left", ncols=len(names))

    _, second = list(grids[0].axes.values())[:2]
    width = max(4.4, 0.62 * max(len(next(iter(g.axes.values()))) for g in grids) + 1.6)
    return save_chart(draw, path, (width * len(grids), max(3.4, 0.36 * len(second) + 2.2)), dpi=130)


def _map(figure: Any, axes: Any, comparison: Any, grid: Any, chosen: Any) -> None:
    from matplotlib.colors import LogNorm, Normalize

    (x_name, xs), (y_name, ys) = list(grid.axes.items())[:2]
    centre = chosen.cell.values if chosen else comparison.cells[grid.numbers[0]].values
    rest = {name: centre[name] for name in list(grid.axes)[2:]}
    table = np.full((len(ys), len(xs)), np.nan)
    for number in grid.numbers:
        values = comparison.cells[number].values
        if all(values[name] == value for name, value in rest.items()):
            table[ys.index(values[y_name]), xs.index(values[x_name])] = comparison.final[number].mean()
    least, most = np.nanmin(table), np.nanmax(table)
    norm = LogNorm(least, most) if least > 0 and most / least > 3 else Normalize(least, most)
    image = axes.imshow(table, cmap="viridis_r", norm=norm, aspect="auto", origin="lower")
    base = comparison.final[_number(comparison, chosen.cell)].mean() if chosen else least
    for row, column in np.ndindex(table.shape):
        if np.isfinite(table[row, column]):
            above = 100.0 * (table[row, column] / base - 1.0) if base > 0 else 0.0
            shade = image.norm(table[row, column])
            axes.text(
                column,
                row,
                _percent(above),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if shade > 0.5 else "black",
            )
    if chosen:
        axes.plot(xs.index(centre[x_name]), ys.index(centre[y_name]), "o", ms=23, mfc="none", mec="#d55e00", mew=2)
    axes.set_xticks(range(len(xs)), [_value(x) for x in xs], rotation=45 if len(xs) > 8 else 0)
    axes.set_yticks(range(len(ys)), [_value(y) for y in ys])
    axes.grid(False)
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name)
    held = "".join(f", {name}={_value(value)}" for name, value in rest.items())
    axes.set_title(
        "\n".join(textwrap.wrap(f"{_short(grid.policy)} in {grid.environment}{held}", 60)), loc="left", fontsize=9
    )
    bar = figure.colorbar(image, ax=axes)
    bar.set_label(f"regret, mean of {comparison.study.runs} runs")
    bar.ax.yaxis.set_major_formatter(thousands)
    bar.ax.yaxis.set_minor_formatter(thousands)


def _others(axes: Any, comparison: Any, grid: Any) -> None:
    """Policies of the same kind with parameters of their own, at their place on the map."""
    here = [comparison.cells[number] for number in grid.numbers]
    kind = type(here[0].policy)
    ends = [(name, values) for name, values in list(grid.axes.items())[:2]]
    if not all(name in kind._fields and values == sorted(values) for name, values in ends):
        return
    for number, cell in enumerate(c for c in comparison.cells if c.world == here[0].world and not c.policy_values):
        policy = cell.policy
        if isinstance(policy, kind) and all(values[0] <= getattr(policy, name) <= values[-1] for name, values in ends):
            x, y = (np.interp(getattr(policy, name), values, range(len(values))) for name, values in ends)
            marker = "D^svPX"[number % 6]  # a little above its place, so that the number there can be read
            axes.plot(x, y + 0.33, marker, ms=7, mfc="white", mec="black", mew=1.3, ls="", label=cell.label, alpha=0.9)


def _number(comparison: Any, cell: Any) -> int:
    return next(number for number, other in enumerate(comparison.cells) if other is cell)


def _percent(above: float) -> str:
    return "best" if above == 0 else f"{above:+.0f} %".replace("-", "\u2212")


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _file(text: str) -> str:
    return slug(text)[:40]


def _is_discount(name: str, values: list[Any]) -> bool:
    """A discount is drawn by what it forgets: 0.9 and 0.99 are as far apart as 0.99 and 0.999."""
    numbers = all(isinstance(value, float) for value in values)
    return name.split(".")[-1] == "gamma" and numbers and min(values) >= 0.5 and max(values) < 1.0


def _forgetting(x: np.ndarray, name: str) -> np.ndarray:
    return 1.0 - x if _is_discount(name, x.tolist()) else x
