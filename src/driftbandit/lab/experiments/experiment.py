"""An experiment is data: which policies, in which world, how often. `run` plays it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftbandit.lab.engine.simulate import checkpoint_rounds, simulate
from driftbandit.lab.experiments.result import Result, provenance
from driftbandit.lab.support.progress import Progress
from driftbandit.protocols import Environment, Policy
from driftbandit.text.parse import parse_environment, parse_policy


@dataclass(frozen=True)
class Experiment:
    """Policies against each other in one world, each with a label for tables and legends.

    Policies and world may be given as text. Every policy meets the same worlds and the same luck in run r, so
    differences between two labels are paired. Nothing here depends on the machine: the same experiment gives the same
    numbers everywhere.

    >>> Experiment("try", "A first try", "", "smooth(horizon=500)", {"ds-ts": "ds-ts(gamma=0.9)"}, runs=2).policies
    {'ds-ts': DiscountedTS(gamma=0.9, tau_max=0.2, forget_below=0.0, weight=1.0)}
    """

    id: str  # a short name to call it by: "fig3a"
    title: str  # what stands above the figure
    shows: str  # what it is meant to show, in a sentence
    environment: Any
    policies: Mapping[str, Any]
    runs: int = 100
    seed: int = 0
    checkpoints: int | tuple[int, ...] = 200  # how many rounds to report, or which

    def __post_init__(self) -> None:
        world = parse_environment(self.environment) if isinstance(self.environment, str) else self.environment
        if isinstance(world, type) or not isinstance(world, Environment):
            raise TypeError(f"An experiment needs an environment with n_arms, horizon and realise; got {world!r:.60}.")
        if not self.policies:
            raise ValueError(f"The experiment {self.id!r} has no policies; give at least one.")
        made = {label: parse_policy(p, world=world) if isinstance(p, str) else p for label, p in self.policies.items()}
        for label, policy in made.items():
            if isinstance(policy, type) or not isinstance(policy, Policy):
                raise TypeError(f"{label!r} needs a policy with init, choose and learn; got {policy!r:.60}.")
        for name, value, least in (("runs", self.runs, 1), ("seed", self.seed, 0)):
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise ValueError(f"An experiment needs {name} >= {least}, a whole number; got {value!r}.")
        marks = self.checkpoints if isinstance(self.checkpoints, int) else tuple(int(mark) for mark in self.checkpoints)
        checkpoint_rounds(world.horizon, marks if isinstance(marks, int) else np.array(marks))
        for name, checked in {"environment": world, "policies": made, "checkpoints": marks}.items():
            object.__setattr__(self, name, checked)

    def scaled(self, runs: int | None = None, seed: int | None = None, horizon: int | None = None) -> "Experiment":
        """The same experiment with other numbers, e.g. small enough for a test. Policies stay as they are, also at
        another horizon."""
        changes: dict[str, Any] = {} if runs is None else {"runs": runs}
        if seed is not None:
            changes["seed"] = seed
        if horizon is not None:
            fields = {**self.environment._asdict(), "horizon": horizon}
            changes["environment"] = type(self.environment)(**fields)
        return replace(self, **changes)


def run(
    experiment: Experiment,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = True,
    *,
    first_run: int = 0,
    compiled: bool = True,
) -> Result:
    """Play every policy of an experiment and collect the regret curves.

    `progress` shows a bar on a terminal, or is called with the share done. `first_run` starts the numbering of runs
    elsewhere: runs 0 to 49 and 50 to 99 made apart are together exactly the 100 runs made at once.

    >>> small = Experiment("try", "A first try", "", "smooth(horizon=500)", {"ds-ts": "ds-ts(gamma=0.9)"}, runs=2)
    >>> run(small, compiled=False).final("ds-ts").shape
    (2,)
    """
    marks = experiment.checkpoints
    curves, seconds = {}, {}
    rounds = checkpoint_rounds(experiment.environment.horizon, marks if isinstance(marks, int) else np.array(marks))
    with Progress(len(experiment.policies), progress, label=experiment.id) as bar:
        for label, policy in experiment.policies.items():
            done = simulate(
                policy,
                experiment.environment,
                experiment.runs,
                experiment.seed,
                first_run=first_run,
                checkpoints=rounds,
                workers=workers,
                compiled=compiled,
                progress=_share_of(bar),
            )
            curves[label], seconds[label] = done.regret, done.seconds
    runs = np.arange(first_run, first_run + experiment.runs)
    return Result(rounds, runs, curves, provenance(experiment, seconds))


def _share_of(bar: Progress) -> Callable[[float], None]:
    """What one simulation reports as its share of the work, added to a bar on which each simulation counts 1."""
    seen = 0.0

    def report(share: float) -> None:
        nonlocal seen
        bar.add(share - seen)
        seen = share

    return report
