"""Figure 4 and Table 1: regret, and the orders of its bounds, against the gap between the best arm and the others."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandit.environments import AbruptGap
from driftbandit.lab.intervals import t_interval
from driftbandit.lab.plots import add_legend, regret_label
from driftbandit.paper import picture
from driftbandit.paper.items.item import Item
from driftbandit.paper.theory.theorem import ORDERS, table1


@dataclass(frozen=True, kw_only=True)
class Gaps(Item):
    """Regret in environments that differ only in their gap. The paper draws means without intervals."""

    def draw(self, run: Any, figure: Any) -> None:
        """A panel for each parameter set, a line per policy."""
        ends: dict[str, float] = {}
        for parameters, axes in picture.make_panels(figure, run.options.parameters, self.title)[0].items():
            for number, label in enumerate(self.labels):
                finals = np.array([run.final(self.id, label, parameters, gap) for gap in self.gaps])
                means, style = finals.mean(axis=1), picture.style_of(label)
                # A marker at every fourth gap, shifted from line to line, so that none hides another.
                axes.plot(self.gaps, means, **style, markevery=(number % len(self.gaps), 4), label=picture.NAMES[label])
                if finals.shape[1] > 1:
                    low, high = t_interval(finals.T)
                    axes.fill_between(self.gaps, low, high, color=style["color"], alpha=0.22, linewidth=0, zorder=1)
                ends[label] = ends.get(label, 0.0) + float(means[-1])
            axes.set_xlim(0, 0.3)
            axes.set_xlabel(r"gap $\Delta_T$ between the best arm and the others")
            picture.format_thousands(axes.yaxis)
        figure.axes[0].set_ylim(bottom=0.0)  # after all panels are drawn, since it fixes their common scale
        figure.axes[0].set_ylabel(regret_label(run.options.runs, what="regret at the end"))
        picture.draw_legend(figure, ends)


GAPS = tuple(round(0.01 * step, 2) for step in range(1, 30))
FIGURE_4 = tuple(
    Gaps(
        id=f"fig4{letter}",
        title=f"Figure 4({letter}): regret against the gap, K = {arms}, B_T = {phases}",
        place=f"Figure 4({letter})",
        shows="How the gap between the best arm and all others affects the regret.",
        environment=AbruptGap(n_arms=arms, horizon=100_000, phases=phases, instance="authors"),
        labels=("cusum-ucb", "d-ucb", "sw-ts", "ds-ts"),
        gaps=GAPS,
        checkpoints=1,
    )
    for letter, arms, phases in (("a", 2, 5), ("b", 2, 10), ("c", 5, 5), ("d", 5, 10))
)


_FORMULAS = {
    "cusum-ucb": r"$B_T\,/\,\Delta_T^2 + \sqrt{T B_T}$",
    "sw-ts": r"$\sqrt{T B_T}\,/\,\Delta_T$",
    "d-ucb": r"$\sqrt{T B_T}\,/\,\Delta_T^2$",
    "ds-ts": r"$\sqrt{T B_T}\,/\,\Delta_T^2$",
}
_PHASES = (5, 10)


@dataclass(frozen=True, kw_only=True)
class Orders(Item):
    """The orders of Table 1 at the horizon and phases of Figure 4. Constants and logarithms are left out, so only the
    shapes can be compared with measured regret, not the heights."""

    def size(self, run: Any) -> tuple[float, float]:
        """A panel for each number of phases."""
        return 9.6, 3.9

    def draw(self, run: Any, figure: Any) -> None:
        """A line per policy, and the trivial bound T for scale."""
        horizon = self.environment.horizon
        panels = figure.subplots(1, len(_PHASES), sharey=True)
        picture.draw_title(figure, self.title)
        for axes, phases in zip(panels, _PHASES, strict=True):
            for number, label in enumerate(ORDERS):
                sizes = [table1(horizon, phases, gap)[label] for gap in GAPS]
                # D-UCB's order is that of DS-TS: a broad line, so that both are visible.
                broad = {"linewidth": 5.0, "alpha": 0.55} if label == "d-ucb" else {}
                name = f"{picture.NAMES[label]}:  {_FORMULAS[label]}"
                axes.plot(GAPS, sizes, **picture.style_of(label), **broad, markevery=(number, 4), label=name)
            axes.axhline(horizon, color="#777777", linewidth=0.9)
            axes.text(0.298, horizon, "trivial bound T", ha="right", va="bottom", fontsize=8.5, color="#444444")
            axes.set(yscale="log", xlim=(0, 0.3), xlabel=r"gap $\Delta_T$")
            axes.set_title(rf"$B_T$ = {phases}", loc="left", fontsize=9.5)
        panels[0].set_ylabel("order of the bound, without constants")
        add_legend(figure, *panels[0].get_legend_handles_labels(), labelspacing=1.0)


TABLE_1 = (
    Orders(
        id="table1",
        title="Table 1: orders of the regret bounds against the gap, T = 100,000",
        place="Table 1",
        shows="By the published bounds the gap affects CUSUM least, D-UCB and DS-TS most.",
        environment=AbruptGap(n_arms=5, horizon=100_000, phases=10, instance="authors"),
    ),
)
