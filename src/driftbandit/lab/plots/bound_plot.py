"""Bound against measured regret on a logarithmic axis, up to the horizon where the bound begins to speak."""

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.plots.chart import save_chart
from driftbandit.lab.plots.style import look_of, narrow
from driftbandit.lab.support.tables import save_rows

# What is not a policy has colours that no policy drawn beside it has.
_PROVED, _PRINTED, _FLOOR, _TRIVIAL = "#0072b2", "#d55e00", "#009e73", "#777777"
_UNIFORM = look_of("uniform")["color"]


def save_bounds(
    points: Sequence[Any], beyond: list[tuple[int, float]], useful: float | None, path: str | Path, title: str
) -> list[Path]:
    """Draw both panels to `path` and, beside it, to a PNG, and write the numbers as CSV.

    `useful` is log10 of the first horizon at which the bound is below T."""
    shape = dict.fromkeys([Path(path), Path(path).with_suffix(".png")])
    drawn = [
        save_chart(lambda figure: draw(figure, points, beyond, useful, title), name, (11.0, 4.2)) for name in shape
    ]
    head = ["horizon", "regret", "low", "high", "uniform", "log10_proved", "log10_printed", "log10_floor"]
    rows = [
        [
            p.horizon,
            *(f"{v:.6g}" for v in p.regret),
            f"{p.uniform:.6g}",
            *("" if v is None else f"{v:.4f}" for v in (p.proved, p.printed, p.floor)),
        ]
        for p in points
    ]
    return [*drawn, save_rows(head, rows, Path(path).with_suffix(".csv"))]


def draw(figure: Any, points: Sequence[Any], beyond: list[tuple[int, float]], useful: float | None, title: str) -> None:
    """Three panels, below each other in a narrow figure: what is proved beside what happens; what happens, close
    enough to tell DS-TS from uniform play; and where the bound begins to speak."""
    proved, played, far_off = figure.subplots(3, 1) if narrow(figure) else figure.subplots(1, 3)
    _proved(proved, points)
    _played(played, points)
    _far_off(far_off, points, beyond, useful)
    lines = "\n".join(textwrap.wrap(title, 46 if narrow(figure) else 120))
    figure.suptitle(lines, x=0.01, ha="left", fontsize=10)
    handles, names = proved.get_legend_handles_labels()
    columns = 2 if narrow(figure) else len(names)
    figure.legend(handles, names, loc="outside lower left", ncols=columns, handlelength=2.6, fontsize=8.5)


def _proved(axes: Any, points: Sequence[Any]) -> None:
    horizons = [float(point.horizon) for point in points]

    def curve(values: list[float | None], label: str, **style: Any) -> None:
        known = [(h, 10.0**v) for h, v in zip(horizons, values, strict=True) if v is not None]
        if known:
            axes.plot(*zip(*known, strict=True), label=label, markerfacecolor="white", **style)

    # What is printed lies close above what is proved, uniform play close above DS-TS: broad lines under narrow ones.
    curve([p.printed for p in points], "Theorem 1, printed", color=_PRINTED, linewidth=4.5, alpha=0.5, marker="v")
    curve([p.proved for p in points], "Theorem 1, proved", color=_PROVED, linestyle="-", marker="s", markersize=4)
    axes.plot(horizons, horizons, color=_TRIVIAL, linestyle=":", label="trivial: T")
    axes.plot(horizons, [p.uniform for p in points], color=_UNIFORM, linewidth=6.0, alpha=0.6, label="uniform play")
    axes.plot(horizons, [p.regret.mean for p in points], **look_of("ds-ts"), markersize=4, label="DS-TS, measured")
    curve([p.floor for p in points], "floor for any policy", color=_FLOOR, linestyle=(0, (1, 1)), marker="^")
    axes.set(xscale="log", yscale="log", xlabel="horizon T", ylabel="regret, and what bounds it")
    axes.set_title("(a) horizons one can play", loc="left")


def _played(axes: Any, points: Sequence[Any]) -> None:
    """Regret per round on a plain axis, where uniform play is a level line."""
    horizons = np.array([float(point.horizon) for point in points])
    mean, low, high = (np.array([p.regret[part] for p in points]) / horizons for part in range(3))
    axes.plot(horizons, [p.uniform / p.horizon for p in points], color=_UNIFORM, linewidth=6.0, alpha=0.6)
    style = {**look_of("ds-ts"), "markerfacecolor": "white"}
    axes.errorbar(horizons, mean, [mean - low, high - mean], **style, capsize=2.5)
    floors = [(p.horizon, 10.0**p.floor / p.horizon) for p in points if p.floor is not None]
    if floors:
        axes.plot(*zip(*floors, strict=True), color=_FLOOR, linestyle=(0, (1, 1)), marker="^", markerfacecolor="white")
    axes.set(xscale="log", xlabel="horizon T", ylabel="regret per round, 95 % interval")
    axes.set_ylim(bottom=0.0)
    axes.set_title("(b) what is measured, closer up", loc="left")


def _far_off(axes: Any, points: Sequence[Any], beyond: list[tuple[int, float]], useful: float | None) -> None:
    powers = [power for power, _ in beyond]
    axes.plot(powers, [value for _, value in beyond], color=_PROVED, marker="s", markevery=6, markerfacecolor="white")
    axes.plot(powers, powers, color=_TRIVIAL, linestyle=":")
    played = [point for point in points if point.regret.mean > 0.0]
    own = look_of("ds-ts")["color"]
    axes.plot([math.log10(p.horizon) for p in played], [math.log10(p.regret.mean) for p in played], color=own,
              marker="o", markersize=3)  # fmt: skip
    if useful is not None:
        axes.axvline(useful, color="#999999", linewidth=0.8)
        note = f"below T from\nT = $10^{{{useful:.1f}}}$"
        axes.annotate(note, (useful, 8), ha="right", xytext=(-4, 0), textcoords="offset points")
    axes.set(xlabel="log10 of the horizon T", ylabel="log10 of regret or bound")
    axes.set_title("(c) where the bound begins to speak", loc="left")
