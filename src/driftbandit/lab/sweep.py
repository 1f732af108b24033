"""Figures of a sweep: regret over the values of one parameter, heat maps over two."""

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.files import slug
from driftbandit.lab.plots import draw_mean, find_styles, regret_label, save_chart, thousands

_ACROSS = 3  # heat maps side by side
_RING = "#d55e00"


def save_sweeps(result: Any, folder: str | Path, ending: str = ".svg") -> list[Path]:
    """Draw one figure for each single swept parameter, and heat maps for a policy with two or more."""
    single: dict[tuple[str, str], list[Any]] = {}
    wide: dict[str, list[Any]] = {}
    for grid in result.grids():
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


def save_curves(result: Any, grids: list[Any], path: str | Path) -> Path:
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
        styles = find_styles([part.cell.policy for part in [*(grid.parts[0] for grid in grids), *flat]])
        for style, grid in zip(styles, grids, strict=False):
            x = np.array([values.index(value) for value in grid.axes[name]])
            order = np.argsort(x)
            final = np.array([part.final for part in grid.parts])[order]
            draw_mean(axes, x[order], final.T, style, label=_wrap(grid.policy))
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


def save_maps(result: Any, grids: list[Any], path: str | Path) -> Path:
    """Draw heat maps of one policy over its first two swept parameters, one for each environment.

    Colour is regret, numbers are regret above the best cell in per cent, a ring marks the best cell. The title has the
    values of further swept parameters."""
    across = min(len(grids), _ACROSS)
    down = -(-len(grids) // across)

    def draw(figure: Any) -> None:
        title = result.provenance.get("title") or grids[0].policy
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5)
        for place, grid in enumerate(grids, 1):
            _draw_map(figure, figure.add_subplot(down, across, place), result, grid)

    _, second = list(grids[0].axes.values())[:2]
    width = max(4.4, 0.62 * max(len(next(iter(g.axes.values()))) for g in grids) + 1.6)
    return save_chart(draw, path, (width * across, down * max(3.4, 0.36 * len(second) + 2.2)), dpi=130)


def _draw_map(figure: Any, axes: Any, result: Any, grid: Any) -> None:
    from matplotlib.colors import LogNorm, Normalize

    (x_name, xs), (y_name, ys) = list(grid.axes.items())[:2]
    chosen = result.find_best(grid) if grid.of_policy and result.runs >= 4 else None
    centre = (result.parts[chosen.number] if chosen else grid.parts[0]).cell.values
    rest = {name: centre[name] for name in list(grid.axes)[2:]}
    table = np.full((len(ys), len(xs)), np.nan)
    for part in grid.parts:
        values = part.cell.values
        if all(values[name] == value for name, value in rest.items()):
            table[ys.index(values[y_name]), xs.index(values[x_name])] = part.final.mean()
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
