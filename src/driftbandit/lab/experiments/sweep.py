"""What a grid of parameters says: regret against each of them, the best cell, and how far another one is from it.

The smallest of a hundred noisy averages is smaller than what that cell really costs, by an amount that grows with the
number of cells. So the best cell is chosen on the first half of the runs, and what is said about it comes from the
second half, which had no part in the choice; all cells meet the same luck in run r, so differences are taken run by
run."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.experiments.result import Result
from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.stats import selection
from driftbandit.lab.stats.intervals import Interval, interval

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
    cells = [selection.Rival(number, result.parts[number].final) for number in grid.numbers]
    chosen = selection.best(cells)
    good = selection.as_good(cells, chosen)
    cell = result.parts[chosen.policy].cell
    return BestCell(cell, chosen.estimate(), len(chosen.held_out), len(good), float(chosen.judged.mean()))


def best_cells(result: Result) -> list[BestCell]:
    """The best setting of every swept policy in every environment; none with fewer than 4 runs."""
    swept = [grid for grid in grids(result) if grid.of_policy and len(grid.numbers) > 1]
    return [best(result, grid) for grid in swept] if len(result.runs) >= 4 else []


def excess(result: Result, chosen: BestCell, number: int) -> Excess:
    """How far the cell with this number is from the best, in regret and in per cent of it."""
    here = next(n for n, part in enumerate(result.parts) if part.cell is chosen.cell)
    mine, other = (selection.Rival(n, result.parts[n].final).held_out for n in (here, number))
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
    from driftbandit.lab.plots import sweep_plot

    def chosen(grid: Grid) -> BestCell | None:
        return best(result, grid) if grid.of_policy and len(result.runs) >= 4 else None

    return sweep_plot.save_all(result, grids(result), chosen, folder, ending)
