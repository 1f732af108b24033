"""Figures 3, 4, 6 and 7, Table 1 and the announced experiments: regret over time and against the gap, and the orders of
its bounds."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandit.environments import Abrupt, AbruptFinite, AbruptGap, AbruptLimited, Smooth
from driftbandit.lab.plots import add_legend, draw_mean, from_zero, marker_places, regret_label
from driftbandit.paper import picture
from driftbandit.paper.items.item import EIGHT, KNOWN, SIX, Item
from driftbandit.paper.theory.theorem import ORDERS, table1

_LOWEST = 5  # the second row of panels shows this many of the lowest curves whole
_CROWDED = 0.45  # ... if they end below this share of the highest
_DRAWN = 160  # points of a curve in a figure; the data keep all of them


@dataclass(frozen=True, kw_only=True)
class RegretCurves(Item):
    """The regret of several policies in one environment, over the rounds."""

    def _zoom(self, run: Any) -> float | None:
        """The largest regret of a second, closer row of panels; None if most curves do not crowd at the bottom."""
        tops = []
        for parameters in run.options.parameters:
            ends = sorted(float(run.final(self.id, label, parameters).mean()) for label in self.labels)
            tops.append((ends[min(_LOWEST, len(ends)) - 1], ends[-1]))
        low, high = (max(side) for side in zip(*tops, strict=True))
        return 1.12 * low if low < _CROWDED * high else None

    def size(self, run: Any) -> tuple[float, float]:
        """Higher with a second row of panels."""
        width, height = super().size(run)
        return width, height * (1.0 if self._zoom(run) is None else 1.9)

    def draw(self, run: Any, figure: Any) -> None:
        """A panel for each parameter set, on one scale; below them the same closer up, where curves crowd."""
        zoom, labels = self._zoom(run), self.labels
        rows = picture.make_panels(figure, run.options.parameters, self.title, 1 if zoom is None else 2)
        for parameters in run.options.parameters:
            curves = {label: _curve(run.outcome(self.id, label, parameters)) for label in labels}
            for row in rows:
                self._draw_panel(row[parameters], curves)
        for row in rows:
            first = next(iter(row.values()))
            first.set_ylim(bottom=0.0)  # after all are drawn, since it fixes their common scale
            first.set_ylabel(regret_label(run.options.runs), fontsize=9)
        for axes in rows[1].values() if zoom is not None else ():
            axes.set_ylim(0.0, zoom)
            axes.set_title(f"{axes.get_title(loc='left')}, closer up", loc="left", fontsize=9.5)
        ends = [sum(run.final(self.id, label, name).mean() for name in rows[0]) for label in labels]
        picture.draw_legend(figure, ends)

    def _draw_panel(self, axes: Any, curves: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
        from matplotlib.ticker import MaxNLocator

        for number, (label, (x, regret)) in enumerate(curves.items()):
            every = marker_places(len(x), number, len(curves))
            look = {"markevery": every, "label": picture.NAMES[label], "zorder": 3}
            draw_mean(axes, x, regret, picture.style_of(label), **look)
        axes.set_xlim(0, self.environment.horizon)
        axes.set_xlabel("round")
        picture.format_thousands(axes.xaxis, axes.yaxis)
        axes.xaxis.set_major_locator(MaxNLocator(5))


def _curve(outcome: Any) -> tuple[np.ndarray, np.ndarray]:
    pick = np.unique(np.linspace(0, len(outcome.rounds) - 1, _DRAWN).astype(int))
    return from_zero(outcome.rounds[pick], outcome.regret[:, pick])


_ARMS = (5, 10, 20, 30)
FIGURE_3 = tuple(
    RegretCurves(
        id=f"fig3{letter}",
        title=f"Figure 3({letter}): abrupt changes, K = {arms}, B_T = 10",
        place=f"Figure 3({letter})",
        shows="The regret of eight policies where the means are redrawn in each of ten phases.",
        environment=Abrupt(n_arms=arms, horizon=100_000, phases=10, instance="authors"),
        labels=EIGHT,
    )
    for letter, arms in zip("abcd", _ARMS, strict=True)
)

# The policies that look for abrupt changes do not take part.
_SMOOTH = {"a": (5, 10_000, 1e-3), "b": (5, 10_000, 1e-4), "c": (5, 100_000, 1e-4), "d": (10, 100_000, 1e-4)}
FIGURE_6 = tuple(
    RegretCurves(
        id=f"fig6{letter}",
        title=f"Figure 6({letter}): smooth changes, K = {arms}, T = {horizon:,}, σ = {sigma:g}",
        place=f"Figure 6({letter})",
        shows="The regret of six policies where the means follow a sine.",
        environment=Smooth(n_arms=arms, horizon=horizon, sigma=sigma, start=0),  # the authors' rounds begin with 0
        labels=SIX,
    )
    for letter, (arms, horizon, sigma) in _SMOOTH.items()
)

FIGURE_7 = (
    RegretCurves(
        id="fig7a",
        title="Figure 7(a): abrupt changes, no mean above 0.7, K = 10, B_T = 10",
        place="Figure 7(a)",
        shows="The regret where all means are low, and of DS-TS if it is given the largest mean.",
        environment=AbruptLimited(n_arms=10, horizon=100_000, phases=10, instance="authors"),
        labels=(*EIGHT, KNOWN),
        mu_max=0.7,
    ),
    RegretCurves(
        id="fig7b",
        title="Figure 7(b): smooth changes, no mean above 0.5, K = 5, T = 10,000, σ = 0.001",
        place="Figure 7(b)",
        shows="The same with smooth changes and means scaled to at most one half.",
        environment=Smooth(n_arms=5, horizon=10_000, sigma=1e-3, start=0, rescaled=True),
        labels=(*SIX, KNOWN),
        mu_max=0.5,
    ),
)

# Experiments that the paper announces and does not show.
ANNOUNCED = (
    *(
        RegretCurves(
            id=f"abrupt-b{phases}-k{arms}",
            title=f"Abrupt changes, K = {arms}, B_T = {phases} (announced, not shown)",
            place='Section "Abruptly Changing Settings", announced',
            shows=f"Figure 3 with {phases} phases instead of 10.",
            environment=Abrupt(n_arms=arms, horizon=100_000, phases=phases, instance="authors"),
            labels=EIGHT,
        )
        for phases in (5, 20)
        for arms in _ARMS
    ),
    *(
        RegretCurves(
            id=f"smooth-k{arms}",
            title=f"Smooth changes, K = {arms}, T = 100,000, σ = 0.0001 (announced, not shown)",
            place='Section "Smoothly Changing Settings", announced',
            shows="Figure 6(c) and (d) with more arms.",
            environment=Smooth(n_arms=arms, horizon=100_000, sigma=1e-4, start=0),
            labels=SIX,
        )
        for arms in (20, 30)
    ),
    *(
        RegretCurves(
            id=f"finite-k{arms}",
            title=f"Rewards from a finite support, K = {arms}, B_T = 10 (announced, not shown)",
            place='Section "Experiments", announced: "an arbitrarily generated bounded reward distribution"',
            shows="Figure 3 with rewards that take one of five values per arm, instead of 0 and 1.",
            environment=AbruptFinite(n_arms=arms, horizon=100_000, phases=10, instance="authors"),
            labels=EIGHT,
        )
        for arms in _ARMS
    ),
)


# ---- against the gap -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Gaps(Item):
    """Regret in environments that differ only in their gap. The paper draws means without intervals."""

    def draw(self, run: Any, figure: Any) -> None:
        """A panel for each parameter set, a line per policy."""
        ends: dict[str, float] = {}
        for parameters, axes in picture.make_panels(figure, run.options.parameters, self.title)[0].items():
            for number, label in enumerate(self.labels):
                finals = np.array([run.final(self.id, label, parameters, gap) for gap in self.gaps])
                # A marker at every fourth gap, shifted from line to line, so that none hides another.
                look = {"markevery": (number % len(self.gaps), 4), "label": picture.NAMES[label]}
                draw_mean(axes, self.gaps, finals.T, picture.style_of(label), **look)
                ends[label] = ends.get(label, 0.0) + float(finals[-1].mean())
            axes.set_xlim(0, 0.3)
            axes.set_xlabel(r"gap $\Delta_T$ between the best arm and the others")
            picture.format_thousands(axes.yaxis)
        figure.axes[0].set_ylim(bottom=0.0)  # after all panels are drawn, since it fixes their common scale
        figure.axes[0].set_ylabel(regret_label(run.options.runs, what="regret at the end"))
        picture.draw_legend(figure, list(ends.values()))


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
