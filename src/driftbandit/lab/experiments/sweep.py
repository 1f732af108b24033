"""What a grid of parameters says: regret against each of them, the best cell, and how far another one is from it.

The smallest of a hundred noisy averages is smaller than what that cell really costs, by an amount that grows with the
number of cells. So the best cell is chosen on the first half of the runs, and what is said about it comes from the
second half, which had no part in the choice; all cells meet the same luck in run r, so differences are taken run by
run."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.experiments.comparison import Comparison
from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.stats import selection
from driftbandit.lab.stats.intervals import Interval, interval

_RESAMPLES = 2000


class Grid(NamedTuple):
    """All variants of one policy in one world (or in all variants of one world, when its parameters are swept)."""

    policy: str
    environment: str
    axes: dict[str, list[Any]]  # swept parameter: its values in order; the world's first
    numbers: list[int]  # the cells' numbers in the comparison


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


def grids(comparison: Comparison) -> list[Grid]:
    """Every swept policy or world of a study, in order."""
    found: dict[tuple[str, str], list[int]] = {}
    for number, cell in enumerate(comparison.cells):
        if cell.values:
            found.setdefault((cell.policy_name, cell.environment_name), []).append(number)
    out = []
    for (policy, environment), numbers in found.items():
        cells = [comparison.cells[number] for number in numbers]
        names = dict.fromkeys(name for cell in cells for name in cell.values)
        axes = {name: list(dict.fromkeys(cell.values[name] for cell in cells)) for name in names}
        out.append(Grid(policy, environment, axes, numbers))
    return out


def best(comparison: Comparison, grid: Grid) -> BestCell:
    """The best cell of a grid. Over several worlds it is the easiest one's, which says little: see `best_by_world`."""
    if comparison.study.runs < 4:
        raise ValueError(
            f"Choosing needs 4 runs or more, half to choose by and half to judge; got {comparison.study.runs}."
        )
    cells = [selection.Rival(number, comparison.final[number]) for number in grid.numbers]
    chosen = selection.best(cells)
    good = selection.as_good(cells, chosen)
    return BestCell(
        comparison.cells[chosen.policy], chosen.estimate(), len(chosen.held_out), len(good), float(chosen.judged.mean())
    )


def best_by_world(comparison: Comparison, grid: Grid) -> list[BestCell]:
    """The best cell in each variant of the world."""
    worlds = dict.fromkeys(comparison.cells[number].world for number in grid.numbers)
    parts = [[n for n in grid.numbers if comparison.cells[n].world == world] for world in worlds]
    return [best(comparison, grid._replace(numbers=numbers)) for numbers in parts if len(numbers) > 1]


def excess(comparison: Comparison, chosen: BestCell, number: int) -> Excess:
    """How far the cell with this number is from the best, in regret and in per cent of it."""
    here = next(n for n, cell in enumerate(comparison.cells) if cell is chosen.cell)
    mine, other = (selection.Rival(n, comparison.final[n]).held_out for n in (here, number))
    rng = np.random.default_rng(0)
    draws = rng.integers(len(mine), size=(_RESAMPLES, len(mine)))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = 100.0 * (other[draws].mean(axis=1) / mine[draws].mean(axis=1) - 1.0)
        percent = 100.0 * (other.mean() / mine.mean() - 1.0)
    low, high = np.quantile(ratios, [0.025, 0.975]) if len(mine) > 1 else (np.nan, np.nan)
    return Excess(comparison.cells[number], interval(other - mine), Interval(float(percent), float(low), float(high)))


def save_figures(comparison: Comparison, folder: str | Path, ending: str = ".svg") -> list[Path]:
    """One figure for each parameter swept alone, one heat map for each world of a policy with two or more."""
    from driftbandit.lab.plots import sweep_plot

    def chosen(grid: Grid) -> BestCell | None:
        return best(comparison, grid) if comparison.study.runs >= 4 else None

    return sweep_plot.save_all(comparison, grids(comparison), chosen, folder, ending)
