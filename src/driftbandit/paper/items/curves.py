"""Regret over time, the kind of most figures: one curve per policy with its interval, one panel per parameter set."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.experiments.result import Part, Result
from driftbandit.lab.experiments.run import provenance
from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.plots import style
from driftbandit.lab.stats.intervals import t_interval
from driftbandit.lab.support.files import save_columns
from driftbandit.paper.items.item import NARROW_WIDTH, Item, ItemKey, PaperOptions, PlayedPaper
from driftbandit.paper.picture import (
    NAMES,
    draw_means,
    head,
    legend,
    markers,
    regret_label,
    rows_of_panels,
    style_of,
    thousands,
)
from driftbandit.text.parse import parse_policy
from driftbandit.text.user_code import text_of

_LOWEST = 5  # the second row of panels shows this many of the lowest curves whole
_CROWDED = 0.45  # ... if they end below this share of the highest
_DRAWN = 160  # points of a curve in a figure; the data keep all of them
_BAND = 2  # every second of them for its interval


@dataclass(frozen=True, kw_only=True)
class RegretCurves(Item):
    """Policies against each other in one world, their regret over the rounds."""

    def cells(self, options: PaperOptions) -> dict[ItemKey, Cell]:
        """The paper's simulations, then the additions: one each, which stands in the panel of every parameter set."""
        world = self.environment(options.environment)
        found = super().cells(options)
        for label in options.additions:
            cell = Cell(parse_policy(label), world, options.runs, options.seed, self.checkpoints)
            found.update({ItemKey(label, parameters): cell for parameters in options.parameters})
        return found

    def drawn(self, run: PlayedPaper) -> tuple[str, ...]:
        """The paper's policies and what is added to them. Everything that is not a figure knows only the paper's."""
        return (*self.labels, *run.options.additions)

    def zoom(self, run: PlayedPaper) -> float | None:
        """Up to which regret a second row of panels looks closer: where a few policies reach so high that most of the
        others share the lower part of the figure."""
        tops = []
        for parameters in run.options.parameters:
            ends = sorted(float(run.final(self.id, label, parameters).mean()) for label in self.labels)
            tops.append((ends[min(_LOWEST, len(ends)) - 1], ends[-1]))
        low, high = (max(side) for side in zip(*tops, strict=True))
        return 1.12 * low if low < _CROWDED * high else None

    def size(self, run: PlayedPaper, narrow: bool = False) -> tuple[float, float]:
        """Twice as high with a second row of panels."""
        width, height = super().size(run, narrow)
        return width, height * (1.0 if self.zoom(run) is None else 1.9)

    def draw(self, run: PlayedPaper, figure: Any) -> None:
        """A panel for each parameter set, on one scale; below them the same closer up, where curves crowd."""
        zoom = self.zoom(run)
        rows = rows_of_panels(figure, run.options.parameters, self.title, 1 if zoom is None else 2)
        lines = self._lines(run)
        for row in rows:
            for parameters, axes in row.items():
                self._panel(axes, lines, parameters, self.drawn(run))
            next(iter(row.values())).set_ylim(bottom=0.0)  # once all are drawn: it ends the search for a common scale
        for axes in rows[1].values() if zoom is not None else ():
            axes.set_ylim(0.0, zoom)
            axes.set_title(f"{axes.get_title(loc='left')}, closer up", loc="left", fontsize=9.5)
        for row in rows:
            first = next(iter(row.values()))
            first.set_ylabel(regret_label(figure, "regret", run.options.runs), fontsize=9)
        ends = {label: sum(lines[label, name][1][-1] for name in rows[0]) for label in self.drawn(run)}
        legend(figure, figure.axes[0], ends)

    def _lines(self, run: PlayedPaper) -> dict[tuple[str, str], np.ndarray]:
        """Rounds, mean, and both ends of the interval of every curve, by policy and parameter set."""
        found = {}
        for parameters in run.options.parameters:
            for label in self.drawn(run):
                outcome = run.outcome(self.id, label, parameters)
                pick = np.unique(np.linspace(0, len(outcome.rounds) - 1, _DRAWN).astype(int))
                regret = outcome.regret[:, pick]
                line = np.array([outcome.rounds[pick], regret.mean(axis=0), *t_interval(regret)])
                found[label, parameters] = np.pad(line, ((0, 0), (1, 0)))  # regret begins at 0, before the first round
        return found

    def _panel(
        self, axes: Any, lines: dict[tuple[str, str], np.ndarray], parameters: str, labels: tuple[str, ...]
    ) -> None:
        """Every policy's curve with its interval."""
        from matplotlib.ticker import MaxNLocator

        for number, label in enumerate(labels):
            x, mean, low, high = lines[label, parameters]
            style = style_of(label)
            every = markers(len(x), number, len(labels))
            axes.plot(x, mean, **style, markevery=every, label=NAMES[label], zorder=3)
            if not np.isnan(low[-1]):
                pick = np.arange(len(x) - 1, -1, -_BAND)[::-1]
                band = {"color": style["color"], "alpha": 0.16, "linewidth": 0, "zorder": 2}
                axes.fill_between(x[pick], low[pick], high[pick], **band)
        axes.set_xlim(0, self.world.horizon)
        axes.set_xlabel("round")
        thousands(axes.xaxis, axes.yaxis)
        axes.xaxis.set_major_locator(MaxNLocator(5))

    def save(self, run: PlayedPaper, path: Path, note: dict[str, Any]) -> None:
        """A result like any other: `Result.load` and `driftbandit run` read it."""
        options = run.options
        wanted = [(label, parameters) for parameters in options.parameters for label in self.labels]
        wanted += [(label, options.parameters[0]) for label in options.additions]
        cells, parts = self.cells(options), []
        for label, parameters in wanted:
            name = label if label in options.additions else f"{label} ({parameters})"
            cell = cells[ItemKey(label, parameters)]
            outcome = run.outcome(self.id, label, parameters)
            cell = cell._replace(policy_name=name, environment_name=text_of(cell.environment))
            parts.append(Part(cell, outcome.rounds, outcome.regret, outcome.seconds))
        about = provenance([part.cell for part in parts], self.id, self.title, self.shows)
        Result(parts, np.arange(options.runs), {**about, **note}).save(path)


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
        style.legend(figure, *axes.get_legend_handles_labels())

    def save(self, run: PlayedPaper, path: Path, note: dict[str, Any]) -> None:
        """One row per round, one column per arm."""
        rounds, means = self.table(run)
        columns = {"round": rounds, **{f"arm_{arm + 1}": means[:, arm] for arm in range(means.shape[1])}}
        story = {"id": self.id, "title": self.title, "environment": repr(self.environment(run.options.environment))}
        save_columns(columns, path, {**story, **note})
