"""How the paper's figures look: one style a policy in all of them, two panels for two parameter sets, three formats."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.plots import style
from driftbandit.lab.plots.style import ENDINGS, RC, look, look_of, narrow
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
    "drift-ts": "DriftTS (added)",
}
PANELS = {"text": "parameters of the text", "code": "parameters of the authors' code"}


def style_of(label: str) -> dict[str, Any]:
    """Colour, dashes and marker of a policy, the same in every figure of the paper."""
    return {**look_of(label), "markerfacecolor": "white", "markeredgewidth": 1.2}


def save_figure(
    draw: Callable[[Any], None],
    folder: Path,
    name: str,
    size: tuple[float, float],
    endings: Sequence[str] = ENDINGS,
) -> None:
    """Draw once and write `name` in all formats; the same numbers give the same bytes."""
    import matplotlib.style
    from matplotlib.figure import Figure

    blank = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}
    folder.mkdir(parents=True, exist_ok=True)
    # Embedding whole fonts into each PDF would take a third of the time; these hold the letters that occur.
    with matplotlib.style.context(["default", RC, {"pdf.fonttype": 3}]):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # placed once; doing it again for each format would take most of the time
        for ending in endings:
            with replacing(folder / f"{name}{ending}") as draft:
                figure.savefig(draft, format=ending[1:], metadata=blank[ending], dpi=150)


def mathematical(title: str) -> str:
    """A title with the paper's symbols set as mathematics."""
    return title.replace("B_T", "$B_T$").replace("γ", r"$\gamma$")


def panels(figure: Any, parameters: Sequence[str], title: str) -> dict[str, Any]:
    """Axes for each parameter set on the same scale: side by side, or below each other in a narrow figure."""
    return rows_of_panels(figure, parameters, title, 1)[0]


def head(figure: Any, title: str) -> None:
    """The title over all panels, in lines that fit."""
    kept = title.replace(" = ", "\u00a0=\u00a0")  # no line begins with an equal sign
    lines = textwrap.wrap(kept, 48 if narrow(figure) else 100)
    figure.suptitle("\n".join(map(mathematical, lines)), x=0.01, ha="left", fontsize=10.5)


def rows_of_panels(figure: Any, parameters: Sequence[str], title: str, rows: int) -> list[dict[str, Any]]:
    """Several rows of such panels, each row with a scale of its own."""
    across = not narrow(figure)
    shape = (rows, len(parameters)) if across else (rows * len(parameters), 1)
    places = figure.subplots(*shape, squeeze=False).ravel()
    head(figure, title)
    out = []
    for row in range(rows):
        axes = places[row * len(parameters) : (row + 1) * len(parameters)]
        for place, name in zip(axes, parameters, strict=True):
            place.sharey(axes[0]) if place is not axes[0] else None
            place.set_title(PANELS[name], loc="left", fontsize=9.5)
            place.tick_params(labelleft=True)
        out.append(dict(zip(parameters, axes, strict=True)))
    return out


def regret_label(figure: Any, what: str, runs: int) -> str:
    """What stands beside an axis of regret: what it is, from how many runs, and what the bands are."""
    if runs < 2:
        return f"{what} (one run)"
    return f"{what}, 95 % interval" if narrow(figure) else f"{what} (mean of {runs} runs, 95 % interval)"


def thousands(*axes: Any) -> None:
    """100 000 in place of 100000 along these axes."""
    from matplotlib.ticker import FuncFormatter

    for axis in axes:
        axis.set_major_formatter(FuncFormatter(style.thousands))


def markers(count: int, number: int, total: int, wanted: int = 10) -> tuple[int, int]:
    """Where on a curve of `count` points its markers stand: shifted from curve to curve, so that none hides another."""
    step = max(1, count // wanted)
    return min(count - 1, step // 2 + number * step // total), step


def legend(figure: Any, axes: Any, ends: dict[str, float]) -> None:
    """Beside the panels, in the order in which the curves end, so that each is found without its colour."""
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    order = sorted(ends, key=lambda label: -ends[label])
    named = [NAMES[label] for label in order]
    style.legend(figure, [handles[name] for name in named], named, labelspacing=0.6)


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
