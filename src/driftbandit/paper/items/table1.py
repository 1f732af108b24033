"""Table 1: how the four regret bounds depend on the gap, by their orders alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.environments import AbruptGap
from driftbandit.lab.plots.style import legend, narrow
from driftbandit.lab.support.files import save_columns
from driftbandit.paper.items.item import NARROW_WIDTH, Item, PlayedPaper
from driftbandit.paper.picture import NAMES, head, style_of
from driftbandit.paper.theory.peers import table1

_FORMULAS = {
    "cusum-ucb": r"$B_T\,/\,\Delta_T^2 + \sqrt{T B_T}$",
    "sw-ts": r"$\sqrt{T B_T}\,/\,\Delta_T$",
    "d-ucb": r"$\sqrt{T B_T}\,/\,\Delta_T^2$",
    "ds-ts": r"$\sqrt{T B_T}\,/\,\Delta_T^2$",
}
_GAPS = tuple(round(0.01 * step, 2) for step in range(1, 30))


@dataclass(frozen=True, kw_only=True)
class Orders(Item):
    """The orders of Table 1 at the horizon and phases of Figure 4. They hide constants and logarithms, so only their
    shapes can be compared with measured regret, never their heights."""

    phases: tuple[int, ...] = (5, 10)

    def size(self, run: PlayedPaper, narrow: bool = False) -> tuple[float, float]:
        """A panel for each number of phases."""
        return (NARROW_WIDTH, 2.0 + 2.8 * len(self.phases)) if narrow else (9.6, 3.9)

    def draw(self, run: PlayedPaper, figure: Any) -> None:
        """A line per policy; the trivial bound T for scale."""
        horizon = self.world.horizon
        places = figure.subplots(*((len(self.phases), 1) if narrow(figure) else (1, len(self.phases))), sharey=True)
        head(figure, self.title)
        for axes, phases in zip(places, self.phases, strict=True):
            for number, label in enumerate(_FORMULAS):
                sizes = [10.0 ** (table1(horizon, phases, gap)[label].log10 or 0.0) for gap in _GAPS]
                name = f"{NAMES[label]}:  {_FORMULAS[label]}"
                # D-UCB's order is that of DS-TS: a broad line, so that both are seen.
                broad = {"linewidth": 5.0, "alpha": 0.55} if label == "d-ucb" else {}
                axes.plot(_GAPS, sizes, **style_of(label), **broad, markevery=(number, 4), label=name)
            axes.axhline(horizon, color="#777777", linewidth=0.9)
            axes.text(0.298, horizon, "trivial bound T", ha="right", va="bottom", fontsize=8.5, color="#444444")
            axes.set(yscale="log", xlim=(0, 0.3), xlabel=r"gap $\Delta_T$")
            axes.set_title(rf"$B_T$ = {phases}", loc="left", fontsize=9.5)
        places[0].set_ylabel("order of the bound, without constants")
        handles, names = places[0].get_legend_handles_labels()
        legend(figure, handles, names, labelspacing=1.0)

    def save(self, run: PlayedPaper, path: Path, note: dict[str, Any]) -> None:
        """One row per policy, number of phases and gap."""
        horizon = self.world.horizon
        keys = [(label, phases, gap) for label in _FORMULAS for phases in self.phases for gap in _GAPS]
        orders = [table1(horizon, phases, gap)[label] for label, phases, gap in keys]
        columns = {
            "policy": [label for label, _, _ in keys],
            "formula": [order.formula for order in orders],
            "horizon": np.full(len(keys), horizon),
            "phases": [phases for _, phases, _ in keys],
            "gap": [gap for _, _, gap in keys],
            "log10_order": [order.log10 for order in orders],
        }
        save_columns(columns, path, {"id": self.id, "title": self.title, "shows": self.shows, **note})


ITEMS = (
    Orders(
        id="table1",
        title="Table 1: orders of the regret bounds against the gap, T = 100\u2009000",
        place="Table 1",
        shows="What the published bounds say about the gap: CUSUM should suffer least, D-UCB and DS-TS most.",
        world=AbruptGap(n_arms=5, horizon=100_000, phases=10, world="authors"),
    ),
)
