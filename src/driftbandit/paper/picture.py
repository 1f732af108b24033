"""How the paper's figures look: one style per policy, one panel per parameter set, three formats."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab import plots as style
from driftbandit.lab.plots import ENDINGS, RC, choose_style, find_style

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


def style_of(label: str) -> dict[str, Any]:
    """Colour, dashes and marker of a policy, the same in every figure of the paper."""
    return {**find_style(label), "markerfacecolor": "white", "markeredgewidth": 1.2}


def save_figure(draw: Callable[[Any], None], folder: Path, name: str, size: tuple[float, float]) -> None:
    """Draw once and write `name` in all formats; the same numbers give the same bytes."""
    import matplotlib.style
    from matplotlib.figure import Figure

    with matplotlib.style.context(["default", RC]):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once; repeating it for each format would take most of the time
    for ending in ENDINGS:
        # Embedding whole fonts into each PDF would take a third of the time; Type 3 holds only the letters that occur.
        style.save_figure(figure, folder / f"{name}{ending}", 150, **{"pdf.fonttype": 3})


def draw_title(figure: Any, title: str) -> None:
    """The title over all panels, in lines that fit, with the paper's symbols set as mathematics."""
    kept = title.replace(" = ", "\u00a0=\u00a0")  # no line begins with an equal sign
    lines = textwrap.wrap(kept, 100)
    text = "\n".join(lines).replace("B_T", "$B_T$").replace("γ", r"$\gamma$")
    figure.suptitle(text, x=0.01, ha="left", fontsize=10.5)


def make_panels(figure: Any, parameters: Sequence[str], title: str, rows: int = 1) -> list[dict[str, Any]]:
    """Rows of axes, one for each parameter set, side by side on one scale."""
    draw_title(figure, title)
    out = []
    for axes in figure.subplots(rows, len(parameters), squeeze=False):
        for panel, name in zip(axes, parameters, strict=True):
            if panel is not axes[0]:
                panel.sharey(axes[0])
            panel.set_title(PANELS[name], loc="left", fontsize=9.5)
            panel.tick_params(labelleft=True)
        out.append(dict(zip(parameters, axes, strict=True)))
    return out


def format_thousands(*axes: Any) -> None:
    """Separate the thousands along these axes."""
    from matplotlib.ticker import FuncFormatter

    for axis in axes:
        axis.set_major_formatter(FuncFormatter(style.thousands))


def draw_legend(figure: Any, ends: Sequence[float]) -> None:
    """A legend of the curves, which end at these values."""
    style.add_legend(figure, *style.order_legend(figure.axes[0], ends), labelspacing=0.6)


def draw_means(axes: Any, rounds: np.ndarray, means: np.ndarray, steps: bool = False) -> None:
    """The mean of each arm over time, one style per arm."""
    arms = means.shape[1]
    for arm in range(arms):
        axes.plot(
            rounds,
            means[:, arm],
            **choose_style(arm),
            drawstyle="steps-post" if steps else "default",
            markerfacecolor="white",
            markevery=style.marker_places(len(rounds), arm, arms),
            label=f"arm {arm + 1}",
        )
    axes.set_xlim(0, rounds[-1])
    axes.set_xlabel("round")
    axes.set_ylabel("expected reward")
    format_thousands(axes.xaxis)
