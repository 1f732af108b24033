"""Figure 1: in which rounds the analysis of DS-TS lets an abrupt world pass as stationary."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.environments import Abrupt, PhaseTable
from driftbandit.lab.plots.style import legend
from driftbandit.lab.support.files import save_columns
from driftbandit.paper.items.item import NARROW_WIDTH, Item, PlayedPaper, policy_for
from driftbandit.paper.picture import draw_means, head, thousands
from driftbandit.paper.theory.diagnosis import pseudo_stationary
from driftbandit.paper.theory.paper_functions import D

_BAND = 0.14  # height of the strip that tells 𝒯 from 𝒮, as a share of the panel


@dataclass(frozen=True, kw_only=True)
class Sets(Item):
    """The pseudo-stationary set 𝒯(γ) and its complement 𝒮(γ) in several worlds, at one γ."""

    worlds: dict[str, PhaseTable]  # what the world shows: the world
    gamma: float

    def ranges(self, world: PhaseTable) -> list[tuple[int, int]]:
        """The rounds of 𝒯(γ), as half-open ranges counted from 0."""
        return pseudo_stationary(list(world.starts), world.horizon, 1.0 - self.gamma)

    def size(self, run: PlayedPaper, narrow: bool = False) -> tuple[float, float]:
        """A panel per world, one below the other."""
        return (NARROW_WIDTH if narrow else 9.2), 2.8 * len(self.worlds) + (1.6 if narrow else 0.0)

    def draw(self, run: PlayedPaper, figure: Any) -> None:
        """The means of each world, 𝒮 hatched, 𝒯 plain, D(γ) as an arrow from each breakpoint."""
        delay = D(1.0 - self.gamma)
        places = figure.subplots(len(self.worlds), 1, squeeze=False)[:, 0]
        head(figure, self.title)
        for axes, (what, world) in zip(places, self.worlds.items(), strict=True):
            draw_means(axes, np.arange(world.horizon), world.realise(0).means(0, world.horizon), steps=True)
            axes.axvspan(
                0, world.horizon, ymax=_BAND, facecolor="#dddddd", edgecolor="#666666", hatch="////", linewidth=0
            )
            for first, stop in self.ranges(world):
                axes.axvspan(first, stop, ymax=_BAND, facecolor="#ffffff", edgecolor="#000000", linewidth=0.8)
                axes.text((first + stop) / 2, -0.34, r"$\mathcal{T}(\gamma)$", ha="center", va="center", fontsize=9)
            for number, start in enumerate(world.starts, 1):
                axes.axvline(start, color="#444444", linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
                axes.text(start, 1.1, f"$b_{{{number}}}$", ha="center", va="bottom", fontsize=9)
            arrow = {"arrowstyle": "<->", "color": "#000000", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
            last = world.starts[-1]
            axes.annotate("", (last, -0.13), (last + delay, -0.13), arrowprops=arrow)
            axes.text(last + delay + 60, -0.13, rf"$D(\gamma)$ = {delay:.0f}", va="center", fontsize=8.5)
            axes.set_ylim(-0.45, 1.1)
            axes.set_yticks([0, 0.5, 1])
            axes.set_title(f"{what}\n", loc="left", fontsize=9.5)
            axes.grid(False)
            thousands(axes.xaxis)
        from matplotlib.patches import Patch

        handles, names = places[0].get_legend_handles_labels()
        kinds = [
            Patch(facecolor="#ffffff", edgecolor="#000000", linewidth=0.8),
            Patch(facecolor="#dddddd", edgecolor="#666666", hatch="////", linewidth=0),
        ]
        words = [r"$\mathcal{T}(\gamma)$: passes as stationary", r"$\mathcal{S}(\gamma)$: too soon after a change"]
        legend(figure, [*handles, *kinds], [*names, *words], handlelength=3.4, labelspacing=0.7)

    def save(self, run: PlayedPaper, path: Path, note: dict[str, Any]) -> None:
        """One row per round, in or out of 𝒯(γ)."""
        names = list(self.worlds)
        inside = []
        for world in self.worlds.values():
            flags = np.zeros(world.horizon, bool)
            for first, stop in self.ranges(world):
                flags[first:stop] = True
            inside.append(flags)
        columns = {
            "world": [name for name, flags in zip(names, inside, strict=True) for _ in flags],
            "round": np.concatenate([np.arange(1, len(flags) + 1) for flags in inside]),
            "pseudo_stationary": np.concatenate(inside),
        }
        worlds = {name: repr(world) for name, world in self.worlds.items()}
        story = {
            "id": self.id,
            "title": self.title,
            "gamma": self.gamma,
            "delay": D(1.0 - self.gamma),
            "worlds": worlds,
        }
        save_columns(columns, path, {**story, **note})


def _world(starts: tuple[int, ...]) -> PhaseTable:
    """Three arms with the authors' means, changing at these rounds."""
    means = Abrupt(n_arms=3, horizon=1000, phases=len(starts), world="authors").realise(0).means(0, 1000)
    rows = means[np.linspace(0, 999, len(starts)).astype(int)]
    return PhaseTable(tuple(tuple(float(mean) for mean in row) for row in rows), starts, 6000)


_GAMMA = policy_for("ds-ts", "text", Abrupt(horizon=100_000, phases=10)).gamma
ITEMS = (
    Sets(
        id="fig1",
        title=f"Figure 1: the pseudo-stationary rounds of two worlds at γ = {_GAMMA:g}",
        place="Figure 1",
        shows="After each change the analysis waits D(γ) rounds; phases shorter than that never count as stationary.",
        worlds={
            "every phase is longer than D(γ)": _world((0, 2000, 4000)),
            "some phases are shorter than D(γ)": _world((0, 2000, 2500, 3000, 3500)),
        },
        gamma=_GAMMA,
    ),
)
