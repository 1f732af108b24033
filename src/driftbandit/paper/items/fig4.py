"""Figure 4: the regret at the end against the gap between the best arm and all others."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.environments import AbruptGap
from driftbandit.lab.stats.intervals import t_interval
from driftbandit.lab.support.files import save_columns
from driftbandit.paper.items.item import Item, PlayedPaper
from driftbandit.paper.picture import NAMES, legend, panels, regret_label, style_of, thousands


@dataclass(frozen=True, kw_only=True)
class Gaps(Item):
    """Policies against each other in worlds that differ by their gap alone. The paper draws means without intervals;
    here each has its own."""

    def draw(self, run: PlayedPaper, figure: Any) -> None:
        """A panel for each parameter set, a line per policy."""
        ends: dict[str, float] = {}
        for parameters, axes in panels(figure, run.options.parameters, self.title).items():
            for number, label in enumerate(self.labels):
                finals = np.array([run.final(self.id, label, parameters, gap) for gap in self.gaps])
                means, style = finals.mean(axis=1), style_of(label)
                # A marker at every fourth gap, shifted from line to line, so that none hides another.
                axes.plot(self.gaps, means, **style, markevery=(number % len(self.gaps), 4), label=NAMES[label])
                if finals.shape[1] > 1:
                    low, high = t_interval(finals.T)
                    axes.fill_between(self.gaps, low, high, color=style["color"], alpha=0.22, linewidth=0, zorder=1)
                ends[label] = ends.get(label, 0.0) + float(means[-1])
            axes.set_xlim(0, 0.3)
            axes.set_xlabel(r"gap $\Delta_T$ between the best arm and the others")
            thousands(axes.yaxis)
        figure.axes[0].set_ylim(bottom=0.0)  # once all panels are drawn, since it ends the search for a common scale
        figure.axes[0].set_ylabel(regret_label(figure, "regret at the end", run.options.runs))
        legend(figure, figure.axes[0], ends)

    def save(self, run: PlayedPaper, path: Path, note: dict[str, Any]) -> None:
        """One row per policy, parameter set, gap and run."""
        options = run.options
        keys = [(label, p, gap) for p in options.parameters for label in self.labels for gap in self.gaps]
        runs = options.runs
        columns = {
            "policy": [label for label, _, _ in keys for _ in range(runs)],
            "parameters": [p for _, p, _ in keys for _ in range(runs)],
            "gap": np.repeat([gap for _, _, gap in keys], runs),
            "run": np.tile(np.arange(runs), len(keys)),
            "regret": np.concatenate([run.final(self.id, *key) for key in keys]),
        }
        story = {
            "id": self.id,
            "title": self.title,
            "shows": self.shows,
            "environment": repr(self.environment(options.environment)),
            "policies": {f"{k} ({p})": repr(v) for p in options.parameters for k, v in self.policies(p).items()},
            "seed": options.seed,
            "runs": runs,
        }
        save_columns(columns, path, {**story, **note})


_GAPS = tuple(round(0.01 * step, 2) for step in range(1, 30))
ITEMS = tuple(
    Gaps(
        id=f"fig4{letter}",
        title=f"Figure 4({letter}): regret against the gap, K = {arms}, B_T = {phases}",
        place=f"Figure 4({letter})",
        shows="How the gap between the best arm and all others affects the regret.",
        world=AbruptGap(n_arms=arms, horizon=100_000, phases=phases, world="authors"),
        labels=("cusum-ucb", "d-ucb", "sw-ts", "ds-ts"),
        gaps=_GAPS,
        checkpoints=1,
    )
    for letter, arms, phases in (("a", 2, 5), ("b", 2, 10), ("c", 5, 5), ("d", 5, 10))
)
