"""Figures 1, 2 and 5: the means of environments, and in which rounds the analysis treats one as stationary."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandit.core.draws import ENVIRONMENT, stream_key
from driftbandit.environments import Abrupt, PhaseTable, Smooth
from driftbandit.lab.plots import add_legend
from driftbandit.paper.items.item import Item, make_policy
from driftbandit.paper.picture import draw_means, draw_title, format_thousands
from driftbandit.paper.theory import pseudo_stationary
from driftbandit.paper.theory.theorem import D

_BAND = 0.14  # height of the strip with 𝒯 and 𝒮, as a share of the panel


@dataclass(frozen=True, kw_only=True)
class Means(Item):
    """The means of one environment; nothing is simulated. Of fresh environments, that of the first run."""

    def _table(self, run: Any) -> tuple[np.ndarray, np.ndarray]:
        """Rounds (from 1) and the means of all arms in each."""
        realised = self.make_environment(run.options.environment).realise(stream_key(run.options.seed, 0, ENVIRONMENT))
        return np.arange(1, realised.horizon + 1), realised.means(0, realised.horizon)

    def size(self, run: Any) -> tuple[float, float]:
        """One panel."""
        return 7.6, 3.8

    def draw(self, run: Any, figure: Any) -> None:
        """A line per arm."""
        rounds, means = self._table(run)
        # A few hundred points show steps as well as a hundred thousand do, if every step is among them.
        jumps = np.flatnonzero((np.diff(means, axis=0) != 0).any(axis=1)) + 1
        abrupt = len(jumps) < 500
        pick = np.unique(np.concatenate([np.linspace(0, len(rounds) - 1, 400).astype(int), jumps if abrupt else []]))
        axes = figure.subplots()
        draw_means(axes, rounds[pick.astype(int)], means[pick.astype(int)], steps=abrupt)
        draw_title(figure, self.title)
        axes.set_ylim(0, 1)
        add_legend(figure, *axes.get_legend_handles_labels())


@dataclass(frozen=True, kw_only=True)
class PseudoStationary(Item):
    """The pseudo-stationary rounds 𝒯(γ) and the others 𝒮(γ) of several environments, at one γ."""

    environments: dict[str, PhaseTable]  # by their titles
    gamma: float

    def _ranges(self, environment: PhaseTable) -> list[tuple[int, int]]:
        return pseudo_stationary(list(environment.starts), environment.horizon, 1.0 - self.gamma)

    def size(self, run: Any) -> tuple[float, float]:
        """A panel per environment, one below the other."""
        return 9.2, 2.8 * len(self.environments)

    def draw(self, run: Any, figure: Any) -> None:
        """The means of each environment, 𝒮 hatched, 𝒯 plain, D(γ) as an arrow from the last breakpoint."""
        from matplotlib.patches import Patch

        plain: dict[str, Any] = {"facecolor": "#ffffff", "edgecolor": "#000000", "linewidth": 0.8}
        hatched: dict[str, Any] = {"facecolor": "#dddddd", "edgecolor": "#666666", "hatch": "////", "linewidth": 0}
        arrow = {"arrowstyle": "<->", "color": "#000000", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
        delay = D(1.0 - self.gamma)
        panels = figure.subplots(len(self.environments), 1, squeeze=False)[:, 0]
        draw_title(figure, self.title)
        for axes, (what, environment) in zip(panels, self.environments.items(), strict=True):
            horizon = environment.horizon
            draw_means(axes, np.arange(horizon), environment.realise(0).means(0, horizon), steps=True)
            axes.axvspan(0, horizon, ymax=_BAND, **hatched)
            for first, stop in self._ranges(environment):
                axes.axvspan(first, stop, ymax=_BAND, **plain)
                axes.text((first + stop) / 2, -0.34, r"$\mathcal{T}(\gamma)$", ha="center", va="center", fontsize=9)
            for number, start in enumerate(environment.starts, 1):
                axes.axvline(start, color="#444444", linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
                axes.text(start, 1.1, f"$b_{{{number}}}$", ha="center", va="bottom", fontsize=9)
            last = environment.starts[-1]
            axes.annotate("", (last, -0.13), (last + delay, -0.13), arrowprops=arrow)
            axes.text(last + delay + 60, -0.13, rf"$D(\gamma)$ = {delay:.0f}", va="center", fontsize=8.5)
            axes.set_ylim(-0.45, 1.1)
            axes.set_yticks([0, 0.5, 1])
            axes.set_title(f"{what}\n", loc="left", fontsize=9.5)
            axes.grid(False)
            format_thousands(axes.xaxis)
        handles, names = panels[0].get_legend_handles_labels()
        handles += [Patch(**plain), Patch(**hatched)]
        names += [r"$\mathcal{T}(\gamma)$: pseudo-stationary", r"$\mathcal{S}(\gamma)$: too soon after a change"]
        add_legend(figure, handles, names, handlelength=3.4, labelspacing=0.7)


def _three_arms(starts: tuple[int, ...]) -> PhaseTable:
    """Three arms with the authors' means, changing at these rounds."""
    environment: Any = Abrupt(n_arms=3, horizon=1000, phases=len(starts), instance="authors")
    rows = environment.realise(0).means(0, 1000)[np.linspace(0, 999, len(starts)).astype(int)]
    return PhaseTable(tuple(tuple(float(mean) for mean in row) for row in rows), starts, 6000)


_GAMMA = make_policy("ds-ts", "text", Abrupt(horizon=100_000, phases=10)).gamma
FIGURE_1 = (
    PseudoStationary(
        id="fig1",
        title=f"Figure 1: the pseudo-stationary rounds of two environments at γ = {_GAMMA:g}",
        place="Figure 1",
        shows="After each change the analysis waits D(γ) rounds; phases shorter than that never count as stationary.",
        environments={
            "every phase is longer than D(γ)": _three_arms((0, 2000, 4000)),
            "some phases are shorter than D(γ)": _three_arms((0, 2000, 2500, 3000, 3500)),
        },
        gamma=_GAMMA,
    ),
)

FIGURE_2 = (
    Means(
        id="fig2",
        title="Figure 2: means that change abruptly, K = 5, B_T = 10",
        place="Figure 2",
        shows="The environment of Figure 3(a): five means, redrawn in each of ten phases.",
        environment=Abrupt(n_arms=5, horizon=100_000, phases=10, instance="authors"),
    ),
)

FIGURE_5 = tuple(
    Means(
        id=f"fig5{letter}",
        title=f"Figure 5({letter}): means that change smoothly, K = 5, T = 10,000, σ = {sigma:g}",
        place=f"Figure 5({letter})",
        shows="The best arm moves to and fro along a line of arms.",
        environment=Smooth(n_arms=5, horizon=10_000, sigma=sigma, start=0),
    )
    for letter, sigma in (("a", 1e-3), ("b", 1e-4))
)
