"""The means of a world over time, the kind of Figures 2 and 5."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.plots.style import legend
from driftbandit.lab.support.tables import save_columns
from driftbandit.paper.items.item import NARROW_WIDTH, Item
from driftbandit.paper.options import PlayedPaper
from driftbandit.paper.picture import draw_means, head


@dataclass(frozen=True, kw_only=True)
class Means(Item):
    """What the policies of a figure have to follow; nothing is simulated. Of fresh worlds, that of the first run."""

    def table(self, run: PlayedPaper) -> tuple[np.ndarray, np.ndarray]:
        """Rounds (from 1) and the means of all arms in each."""
        world = self.environment(run.options.environment).realise(stream_key(run.options.seed, 0, WORLD))
        return np.arange(1, world.horizon + 1), world.means(0, world.horizon)

    def size(self, run: PlayedPaper, narrow: bool = False) -> tuple[float, float]:
        """One panel."""
        return (NARROW_WIDTH, 4.2) if narrow else (7.6, 3.8)

    def draw(self, run: PlayedPaper, figure: Any) -> None:
        """A line per arm."""
        rounds, means = self.table(run)
        # Steps are told by a few hundred points as well as by a hundred thousand, if none of the steps is missed.
        jumps = np.flatnonzero((np.diff(means, axis=0) != 0).any(axis=1)) + 1
        abrupt = len(jumps) < 500
        pick = np.unique(np.concatenate([np.linspace(0, len(rounds) - 1, 400).astype(int), jumps if abrupt else []]))
        axes = figure.subplots()
        draw_means(axes, rounds[pick.astype(int)], means[pick.astype(int)], steps=abrupt)
        head(figure, self.title)
        axes.set_ylim(0, 1)
        legend(figure, *axes.get_legend_handles_labels())

    def save(self, run: PlayedPaper, path: Path, note: dict[str, Any]) -> None:
        """One row per round, one column per arm."""
        rounds, means = self.table(run)
        columns = {"round": rounds, **{f"arm_{arm + 1}": means[:, arm] for arm in range(means.shape[1])}}
        story = {"id": self.id, "title": self.title, "environment": repr(self.environment(run.options.environment))}
        save_columns(columns, path, {**story, **note})
