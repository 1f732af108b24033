"""The rates experiment on paper: four panels on doubly logarithmic axes, and two tables."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driftbandit.lab.investigations.rates import Fit, Measured, order_slope, table
from driftbandit.lab.plots.chart import save_chart, save_rows
from driftbandit.lab.plots.regret import look
from driftbandit.lab.stats.intervals import t_interval


def save(measured: Sequence[Measured], fits: Sequence[Fit], folder: str | Path) -> list[Path]:
    """Write rates.svg, rates.png, rates.md (exponents) and rates.csv (every mean with its interval) into a folder."""
    folder = Path(folder)
    points = []
    for line in measured:
        low, high = t_interval(line.regret.T)
        for place, value in enumerate(line.sweep.values):
            numbers = (line.regret[place].mean(), low[place], high[place])
            points.append([line.sweep.name, line.policy, f"{value:g}", *(f"{number:.6g}" for number in numbers)])
    head = ["regret against", "policy", "value", "regret", "low", "high"]
    return [
        save_chart(lambda figure: draw(figure, measured, fits), folder / "rates.svg", (11.0, 6.4)),
        save_chart(lambda figure: draw(figure, measured, fits), folder / "rates.png", (11.0, 6.4)),
        save_rows(*table(fits), folder / "rates.md"),
        save_rows(head, points, folder / "rates.csv"),
    ]


def draw(figure: Any, measured: Sequence[Measured], fits: Sequence[Fit]) -> None:
    """A panel a sweep on doubly logarithmic axes, each policy with its exponent in the legend."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    names = list(dict.fromkeys(line.sweep.name for line in measured))
    policies = list(dict.fromkeys(line.policy for line in measured))
    panels = figure.subplots(2, (len(names) + 1) // 2, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        lines = [line for line in measured if line.sweep.name == name]
        for line in lines:
            exponent = next(f.exponent for f in fits if (f.policy, f.sweep) == (line.policy, name))
            low, high = t_interval(line.regret.T)
            mean = line.regret.mean(axis=1)
            style = look(policies.index(line.policy))
            axes.errorbar(
                line.sweep.x(), mean, [mean - low, high - mean], **style, markerfacecolor="white", markersize=5,
                label=f"{line.policy}: {'saturated' if math.isnan(exponent) else f'{exponent:.2f}'}",
            )  # fmt: skip
        _guide(axes, lines)
        axes.set(xscale="log", yscale="log", xlabel=name, ylabel="final regret")
        axes.tick_params(axis="x", labelsize=8)
        axes.set_xticks(lines[0].sweep.x())
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, place=0: f"{value:.2g}" if value < 1000 else f"{value / 1000:g}k")
        )
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place=0: f"{value:g}"))
        axes.legend(
            title="policy: exponent",
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            fontsize=8,
            title_fontsize=8,
            handlelength=3.6,
        )
    for axes in panels[len(names) :]:
        axes.set_visible(False)


def _guide(axes: Any, lines: Sequence[Measured]) -> None:
    """A thin grey line with the slope of DS-TS's order (1 for arms: the sum over arms), below the curves."""
    sweep = lines[0].sweep
    slope = order_slope("ds-ts", sweep)
    slope = 1.0 if slope is None else slope
    x = sweep.x()
    start = 0.8 * min(float(line.regret[0].mean()) for line in lines)
    axes.plot(x, start * (x / x[0]) ** slope, color="#888888", linewidth=0.9, linestyle="-", label=f"slope {slope:g}")
