"""How the paper's figures look: one style a policy in all of them, two panels for two parameter sets, three formats."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.plots.regret import _STYLE, ENDINGS, _thousands, look
from driftbandit.lab.support.files import replacing

NAMES = {
    "ds-ts": "DS-TS",
    "sw-ts": "SW-TS",
    "ts": "TS",
    "d-ucb": "D-UCB",
    "sw-lb-sda": "SW-LB-SDA",
    "cusum-ucb": "CUSUM",
    "m-ucb": "M-UCB",
    "exp3s": "EXP3.S",
    "ds-ts-mu": "DS-TS, $\\mu_{max}$ known",
}
PANELS = {"text": "parameters of the text", "code": "parameters of the authors' code"}
_ORDER = tuple(NAMES)
# Nine policies and seven colours: the last two would take those of DS-TS and SW-TS, and only one of them is DS-TS.
_COLOURS = {"exp3s": "#7f7f7f", "ds-ts-mu": "#000000"}


def style_of(label: str) -> dict[str, Any]:
    """Colour, dashes and marker of a policy, the same in every figure of the paper."""
    style = {**look(_ORDER.index(label)), "markerfacecolor": "white", "markeredgewidth": 1.2}
    return {**style, "color": _COLOURS.get(label, style["color"])}


def save_figure(draw: Callable[[Any], None], folder: Path, name: str, size: tuple[float, float]) -> None:
    """Draw once and write `name` in all formats; the same numbers give the same bytes."""
    import matplotlib.style
    from matplotlib.figure import Figure

    blank = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}
    folder.mkdir(parents=True, exist_ok=True)
    # Embedding whole fonts into each PDF would take a third of the time; these hold the letters that occur.
    with matplotlib.style.context(["default", _STYLE, {"pdf.fonttype": 3}]):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # placed once; doing it again for each format would take most of the time
        for ending in ENDINGS:
            with replacing(folder / f"{name}{ending}") as draft:
                figure.savefig(draft, format=ending[1:], metadata=blank[ending], dpi=150)


def mathematical(title: str) -> str:
    """A title with the paper's symbols set as mathematics."""
    return title.replace("B_T", "$B_T$").replace("γ", r"$\gamma$")


def panels(figure: Any, parameters: Sequence[str], title: str) -> dict[str, Any]:
    """Axes for each parameter set, side by side on the same scale."""
    axes = figure.subplots(1, len(parameters), sharey=True, squeeze=False)[0]
    figure.suptitle(mathematical(title), x=0.01, ha="left", fontsize=10.5)
    for place, name in zip(axes, parameters, strict=True):
        place.set_title(PANELS[name], loc="left", fontsize=9.5)
        place.tick_params(labelleft=True)
    return dict(zip(parameters, axes, strict=True))


def thousands(*axes: Any) -> None:
    """100 000 in place of 100000 along these axes."""
    from matplotlib.ticker import FuncFormatter

    for axis in axes:
        axis.set_major_formatter(FuncFormatter(_thousands))


def markers(count: int, number: int, total: int, wanted: int = 10) -> tuple[int, int]:
    """Where on a curve of `count` points its markers stand: shifted from curve to curve, so that none hides another."""
    step = max(1, count // wanted)
    return min(count - 1, step // 2 + number * step // total), step


def legend(figure: Any, axes: Any, ends: dict[str, float]) -> None:
    """Beside the panels, in the order in which the curves end, so that each is found without its colour."""
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    order = sorted(ends, key=lambda label: -ends[label])
    figure.legend(
        [handles[NAMES[label]] for label in order],
        [NAMES[label] for label in order],
        loc="outside right upper",
        handlelength=4.2,
        labelspacing=0.6,
    )


def draw_means(axes: Any, rounds: np.ndarray, means: np.ndarray, steps: bool = False) -> None:
    """The mean of each arm over time, one style an arm."""
    arms = means.shape[1]
    for arm in range(arms):
        axes.plot(
            rounds,
            means[:, arm],
            **look(arm),
            drawstyle="steps-post" if steps else "default",
            markerfacecolor="white",
            markevery=markers(len(rounds), arm, arms),
            label=f"arm {arm + 1}",
        )
    axes.set_xlim(0, rounds[-1])
    axes.set_xlabel("round")
    axes.set_ylabel("expected reward")
    thousands(axes.xaxis)
