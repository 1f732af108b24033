"""What a grid of parameters says: regret against each of them, the best cell, and how far another one is from it.

The smallest of a hundred noisy averages is smaller than what that cell really costs, by an amount that grows with the
number of cells. So the best cell is chosen on the first half of the runs, and what is said about it comes from the
second half, which had no part in the choice; all cells meet the same luck in run r, so differences are taken run by
run."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.experiments.result import Result
from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.plots.style import looks, save_chart, thousands
from driftbandit.lab.stats import intervals
from driftbandit.lab.stats.intervals import Interval, interval, t_interval
from driftbandit.lab.support.files import slug

_RESAMPLES = 2000


class Grid(NamedTuple):
    """All variants of a policy in one environment; or, of a policy without lists, all variants of an environment."""

    policy: str
    environment: str
    axes: dict[str, list[Any]]  # swept parameter: its values in order
    numbers: list[int]  # the numbers of its parts in the result
    of_policy: bool  # are the axes parameters of the policy?


class BestCell(NamedTuple):
    """The best cell of a grid."""

    cell: Cell
    regret: Interval  # from runs that had no part in choosing it
    runs: int  # how many those are
    as_good: int  # cells that are not clearly worse, this one included
    naive: float  # the mean the cell was chosen for: too small, on average


class Excess(NamedTuple):
    """How much more another cell regrets than the best one, on runs that had no part in the choice."""

    cell: Cell
    regret: Interval
    percent: Interval  # of the best cell's regret, by bootstrap over runs


def grids(result: Result) -> list[Grid]:
    """Every swept policy in each environment, and every swept environment of the other policies, in order."""
    found: dict[tuple[str, str, bool], list[int]] = {}
    for number, part in enumerate(result.parts):
        cell = part.cell
        if cell.values:
            swept = bool(cell.policy_values)
            place = cell.world if swept else cell.environment_name
            found.setdefault((cell.policy_name, place, swept), []).append(number)
    out = []
    for (policy, environment, swept), numbers in found.items():
        values = [result.parts[n].cell.policy_values if swept else result.parts[n].cell.values for n in numbers]
        names = dict.fromkeys(name for own in values for name in own)
        axes = {name: list(dict.fromkeys(own[name] for own in values)) for name in names}
        out.append(Grid(policy, environment, axes, numbers, swept))
    return out


def best(result: Result, grid: Grid) -> BestCell:
    """The best setting of a swept policy in the grid's environment."""
    if len(result.runs) < 4:
        raise ValueError(f"Choosing needs 4 runs or more, half to choose by and half to judge; got {len(result.runs)}.")
    cells = [intervals.Rival(number, result.parts[number].final) for number in grid.numbers]
    chosen = intervals.best(cells)
    good = intervals.as_good(cells, chosen)
    cell = result.parts[chosen.policy].cell
    return BestCell(cell, chosen.estimate(), len(chosen.held_out), len(good), float(chosen.judged.mean()))


def best_cells(result: Result) -> list[BestCell]:
    """The best setting of every swept policy in every environment; none with fewer than 4 runs."""
    swept = [grid for grid in grids(result) if grid.of_policy and len(grid.numbers) > 1]
    return [best(result, grid) for grid in swept] if len(result.runs) >= 4 else []


def excess(result: Result, chosen: BestCell, number: int) -> Excess:
    """How far the cell with this number is from the best, in regret and in per cent of it."""
    here = next(n for n, part in enumerate(result.parts) if part.cell is chosen.cell)
    mine, other = (intervals.Rival(n, result.parts[n].final).held_out for n in (here, number))
    rng = np.random.default_rng(0)
    draws = rng.integers(len(mine), size=(_RESAMPLES, len(mine)))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = 100.0 * (other[draws].mean(axis=1) / mine[draws].mean(axis=1) - 1.0)
        percent = 100.0 * (other.mean() / mine.mean() - 1.0)
    low, high = np.quantile(ratios, [0.025, 0.975]) if len(mine) > 1 else (np.nan, np.nan)
    return Excess(result.parts[number].cell, interval(other - mine), Interval(float(percent), float(low), float(high)))


def distances(result: Result, best: BestCell) -> list[str]:
    """How far the policies that were not swept are from the best cell of its environment, one line each."""
    out = []
    for number, part in enumerate(result.parts):
        if part.environment == best.cell.world and not part.cell.policy_values:
            far = excess(result, best, number).percent
            better = "; better than the best of the swept" if far.high < 0.0 else ""
            out.append(f"{part.policy}: regret {far.mean:+.1f}% ({far.low:+.1f} to {far.high:+.1f}){better}")
    return out


def save_figures(result: Result, folder: str | Path, ending: str = ".svg") -> list[Path]:
    """One figure for each parameter swept alone, and for a policy with two or more a heat map for each environment."""

    def chosen(grid: Grid) -> BestCell | None:
        return best(result, grid) if grid.of_policy and len(result.runs) >= 4 else None

    return save_all(result, grids(result), chosen, folder, ending)


_ACROSS = 3  # heat maps side by side
_RING = "#d55e00"


def save_all(
    result: Any, grids: Sequence[Any], best: Callable[[Any], Any], folder: str | Path, ending: str = ".svg"
) -> list[Path]:
    """One figure for each parameter swept alone in an environment, one with heat maps for each policy with two or
    more."""
    alone: dict[tuple[str, str], list[Any]] = {}
    wide: dict[str, list[Any]] = {}
    for grid in grids:
        if len(grid.axes) == 1:
            alone.setdefault((next(iter(grid.axes)), grid.environment), []).append(grid)
        else:
            wide.setdefault(grid.policy, []).append(grid)
    paths = [
        save_curves(result, same, Path(folder) / f"sweep-{_file(environment)}-{_file(name)}{ending}")
        for (name, environment), same in alone.items()
    ]
    for policy, several in wide.items():
        paths.append(save_maps(result, several, best, Path(folder) / f"sweep-{_file(policy)}{ending}"))
    return paths


def save_curves(result: Any, grids: list[Any], path: str | Path) -> Path:
    """Regret against one swept parameter, a line per policy; policies without it are horizontal lines."""
    (name, values), place = next(iter(grids[0].axes.items())), grids[0].environment
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        swept = {grid.policy for grid in grids}
        flat = [
            part
            for part in result.parts
            if part.environment == place and not part.cell.policy_values and part.cell.policy_name not in swept
        ]
        styles = looks([*(result.parts[grid.numbers[0]].cell.policy for grid in grids), *(p.cell.policy for p in flat)])
        for style, grid in zip(styles, grids, strict=False):
            own = next(iter(grid.axes.values()))
            x = np.array(own if numeric else range(len(own)), float)
            order = np.argsort(x)
            final = np.array([result.parts[number].final for number in grid.numbers])[order]
            x = _forgetting(x[order], name)
            axes.plot(x, final.mean(axis=1), **style, markerfacecolor="white", label=_wrapped(grid.policy))
            if len(result.runs) > 1:
                low, high = t_interval(final.T)
                axes.fill_between(x, low, high, color=style["color"], alpha=0.16, linewidth=0)
        for style, part in zip(styles[len(grids) :], flat, strict=True):
            line = {key: style[key] for key in ("color", "linestyle")}
            axes.axhline(part.final.mean(), **line, label=_wrapped(part.policy))
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
        axes.set_ylabel(f"regret (mean of {len(result.runs)} runs, 95% interval)")
        axes.yaxis.set_major_formatter(thousands)
        fixed = "; ".join(text for grid in grids if (text := _fixed(result, grid, {})))
        axes.set_title(_title(place, f"fixed: {fixed}" if fixed else "", 78), loc="left", fontsize=9)
        figure.legend(loc="outside lower left", ncols=1 if max(len(p) for p in result.policies) > 30 else 3)

    return save_chart(draw, path, (6.8, 4.8))


def save_maps(result: Any, grids: list[Any], best: Callable[[Any], Any], path: str | Path) -> Path:
    """Heat maps of one policy over its first two swept parameters, one for each environment.

    Colour is regret, numbers are regret above the best cell of that environment in per cent. A ring marks the best cell
    (chosen by half of the runs); markers show where policies of the same kind that were not swept lie between the
    cells. The title names the values at which all other parameters are fixed."""
    across = min(len(grids), _ACROSS)
    down = -(-len(grids) // across)

    def draw(figure: Any) -> None:
        title = result.provenance.get("title") or grids[0].policy
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5)
        for place, grid in enumerate(grids, 1):
            axes = figure.add_subplot(down, across, place)
            _map(figure, axes, result, grid, best(grid))
            _others(axes, result, grid)
        handles, names = figure.axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, names, loc="outside lower left", ncols=len(names))

    _, second = list(grids[0].axes.values())[:2]
    width = max(4.4, 0.62 * max(len(next(iter(g.axes.values()))) for g in grids) + 1.6)
    return save_chart(draw, path, (width * across, down * max(3.4, 0.36 * len(second) + 2.2)), dpi=130)


def _map(figure: Any, axes: Any, result: Any, grid: Any, chosen: Any) -> None:
    from matplotlib.colors import LogNorm, Normalize

    (x_name, xs), (y_name, ys) = list(grid.axes.items())[:2]
    centre = (chosen.cell if chosen else result.parts[grid.numbers[0]].cell).values
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
    fixed = _fixed(result, grid, rest)
    axes.set_title(_title(grid.environment, f"fixed: {fixed}" if fixed else "", 60), loc="left", fontsize=9)
    bar = figure.colorbar(image, ax=axes)
    bar.set_label(f"regret, mean of {len(result.runs)} runs")
    bar.ax.yaxis.set_major_formatter(thousands)
    bar.ax.yaxis.set_minor_formatter(thousands)


def _others(axes: Any, result: Any, grid: Any) -> None:
    """Policies of the same kind with parameters of their own, at their place on the map."""
    here = [result.parts[number].cell for number in grid.numbers]
    kind = type(here[0].policy)
    ends = list(grid.axes.items())[:2]
    if not all(name in getattr(kind, "_fields", ()) and values == sorted(values) for name, values in ends):
        return
    fixed = [part for part in result.parts if part.environment == here[0].world and not part.cell.policy_values]
    for number, part in enumerate(fixed):
        policy = part.cell.policy
        if isinstance(policy, kind) and all(values[0] <= getattr(policy, name) <= values[-1] for name, values in ends):
            x, y = (np.interp(getattr(policy, name), values, range(len(values))) for name, values in ends)
            marker = "D^svPX"[number % 6]  # a little above its place, so that the number there can be read
            axes.plot(x, y + 0.33, marker, ms=7, mfc="white", mec="black", mew=1.3, ls="", label=part.policy, alpha=0.9)


def _fixed(result: Any, grid: Any, held: dict[str, Any]) -> str:
    """The parameters of the policy that are not on the axes, with their values."""
    policy = result.parts[grid.numbers[0]].cell.policy
    fields = policy._asdict() if grid.of_policy and hasattr(policy, "_asdict") else {}
    values = {name: value for name, value in {**fields, **held}.items() if name in held or name not in grid.axes}
    return ", ".join(f"{name}={_value(value)}" for name, value in values.items())


def _title(first: str, second: str, width: int) -> str:
    return "\n".join(line for text in (first, second) for line in textwrap.wrap(text, width))


def _percent(above: float) -> str:
    return "best" if above == 0 else f"{above:+.0f}%".replace("-", "\u2212")


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 70, break_long_words=True))


def _file(text: str) -> str:
    return slug(text)[:40]


def _is_discount(name: str, values: list[Any]) -> bool:
    """A discount is drawn by what it forgets: 0.9 and 0.99 are as far apart as 0.99 and 0.999."""
    numbers = all(isinstance(value, float) for value in values)
    return name.split(".")[-1] == "gamma" and numbers and min(values) >= 0.5 and max(values) < 1.0


def _forgetting(x: np.ndarray, name: str) -> np.ndarray:
    return 1.0 - x if _is_discount(name, x.tolist()) else x
