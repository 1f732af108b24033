"""How regret grows, drawn: one panel per quantity on doubly logarithmic axes."""

import math
from collections.abc import Sequence
from typing import Any

from driftbandit.lab.plots.style import looks, narrow
from driftbandit.lab.stats.intervals import t_interval


def draw(figure: Any, measured: Sequence[Any], fits: Sequence[Any]) -> None:
    """A panel per sweep on doubly logarithmic axes, each policy with its exponent in the legend."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    names = list(dict.fromkeys(line.sweep.name for line in measured))
    policies = list(dict.fromkeys(line.policy for line in measured))
    styles = dict(zip(policies, looks(policies), strict=True))
    columns = 1 if narrow(figure) else (len(names) + 1) // 2
    panels = figure.subplots(-(-len(names) // columns), columns, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        lines = [line for line in measured if line.sweep.name == name]
        for line in lines:
            exponent = next(f.exponent for f in fits if (f.policy, f.sweep) == (line.policy, name))
            low, high = t_interval(line.regret.T)
            mean = line.regret.mean(axis=1)
            style = styles[line.policy]
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
            loc="upper left" if narrow(figure) else "center left",
            bbox_to_anchor=(0.0, -0.2) if narrow(figure) else (1.0, 0.5),
            ncols=2 if narrow(figure) else 1,
            fontsize=8,
            title_fontsize=8,
            handlelength=3.6,
        )
    for axes in panels[len(names) :]:
        axes.set_visible(False)


def _guide(axes: Any, lines: Sequence[Any]) -> None:
    """A thin grey line with the slope of DS-TS's order (1 for arms: the sum over arms), below the curves."""
    sweep = lines[0].sweep
    slope = sweep.guide
    x = sweep.x()
    start = 0.8 * min(float(line.regret[0].mean()) for line in lines)
    axes.plot(x, start * (x / x[0]) ** slope, color="#888888", linewidth=0.9, linestyle="-", label=f"slope {slope:g}")
