"""Regret over time, the kind of most figures: one curve a policy with its interval, one panel a parameter set."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit.lab.experiments.experiment import Experiment
from driftbandit.lab.experiments.result import Result, provenance
from driftbandit.lab.paper.items.item import PARAMETERS, Item
from driftbandit.lab.paper.picture import NAMES, legend, markers, panels, style_of, thousands
from driftbandit.lab.stats.intervals import t_interval

if TYPE_CHECKING:
    from driftbandit.lab.paper.job import PaperRun

_DRAWN = 250  # points of a curve in a figure; the data keep all of them


@dataclass(frozen=True, kw_only=True)
class Curves(Item):
    """Policies against each other in one world, their regret over the rounds."""

    def experiment(
        self,
        runs: int = 100,
        seed: int = 0,
        parameters: tuple[str, ...] = PARAMETERS,
        environment: str = "authors",
    ) -> Experiment:
        """The same as an experiment on its own, every policy once a parameter set."""
        policies = {f"{label} ({p})": policy for p in parameters for label, policy in self.policies(p).items()}
        world = self.environment(environment)
        return Experiment(self.id, self.title, self.shows, world, policies, runs, seed, self.checkpoints)

    def draw(self, run: "PaperRun", figure: Any) -> None:
        """A panel for each parameter set, on one scale."""
        options = run.options
        ends: dict[str, float] = {}
        for parameters, axes in panels(figure, options.parameters, self.title).items():
            for number, label in enumerate(self.labels):
                outcome = run.outcome(self.id, label, parameters)
                pick = np.unique(np.linspace(0, len(outcome.rounds) - 1, _DRAWN).astype(int))
                regret = outcome.regret[:, pick]
                mean, (low, high) = regret.mean(axis=0), t_interval(regret)
                x = np.append(0, outcome.rounds[pick])  # regret begins at 0, before the first round
                style = style_of(label)
                axes.plot(
                    x,
                    np.append(0.0, mean),
                    **style,
                    markevery=markers(len(x), number, len(self.labels)),
                    label=NAMES[label],
                    zorder=3,
                )
                if len(regret) > 1:
                    sides = np.append(0.0, low), np.append(0.0, high)
                    axes.fill_between(x, *sides, color=style["color"], alpha=0.16, linewidth=0, zorder=2)
                ends[label] = ends.get(label, 0.0) + float(mean[-1])
            axes.set_xlim(0, self.world.horizon)
            axes.set_xlabel("round")
            thousands(axes.xaxis, axes.yaxis)
        figure.axes[0].set_ylim(bottom=0.0)  # once all panels are drawn, since it ends the search for a common scale
        figure.axes[0].set_ylabel(f"regret (mean of {options.runs} runs, 95 % interval)")
        legend(figure, figure.axes[0], ends)

    def save(self, run: "PaperRun", path: Path, note: dict[str, Any]) -> None:
        """A result like any other: `driftbandit plot` and `Result.load` read it."""
        options = run.options
        curves, seconds = {}, {}
        for parameters in options.parameters:
            for label in self.labels:
                outcome = run.outcome(self.id, label, parameters)
                name = f"{label} ({parameters})"
                curves[name], seconds[name] = outcome.regret, outcome.seconds
        experiment = self.experiment(options.runs, options.seed, options.parameters, options.environment)
        story = {**provenance(experiment, seconds), **note}
        Result(outcome.rounds, np.arange(options.runs), curves, story).save(path)
