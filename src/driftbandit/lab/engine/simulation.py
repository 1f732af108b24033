"""What came out of playing one policy in one world, and the rounds at which it is reported."""

from typing import NamedTuple

import numpy as np

from driftbandit.lab.support import html


class Simulation(NamedTuple):
    """What came out of playing one policy in one world: one row per run."""

    rounds: np.ndarray  # the checkpoints: number of rounds played
    regret: np.ndarray  # runs × checkpoints, pseudo-regret so far
    seconds: float  # wall time, without compiling
    pulls: np.ndarray | None = None  # runs × arms, if asked for
    arms: np.ndarray | None = None  # runs × horizon, if asked for
    rewards: np.ndarray | None = None  # runs × horizon, if asked for
    alarms: list[np.ndarray] | None = None  # with trajectories: the rounds in which each run's policy gave an alarm
    drift: dict[str, np.ndarray] | None = None  # the columns of `lab.jobs.phases`, if asked for

    def __repr__(self) -> str:
        final = self.regret[:, -1]
        return f"<{len(final)} runs of {self.rounds[-1]} rounds: regret {final.mean():.1f} on average>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the regret at the end, and how it grew."""
        final, runs = self.regret[:, -1], len(self.regret)
        spread = f"{final.std(ddof=1):.1f}" if runs > 1 else "-"
        cells = [f"{value:.1f}" for value in (final.mean(), final.min(), np.median(final), final.max())]
        head = ["regret at the end", "mean", "smallest", "median", "largest", "spread over runs", "seconds"]
        row = ["", *cells, spread, f"{self.seconds:.2f}"]
        shown = html.table(f"{runs} runs of {self.rounds[-1]} rounds", head, [row])
        low, mean, high = self.regret.min(axis=0), self.regret.mean(axis=0), self.regret.max(axis=0)
        return shown + html.curve(self.rounds, low, mean, high, "regret over the rounds: mean, smallest, largest run")


def empty(runs: int, marks: np.ndarray, n_arms: int, horizon: int, pulls: bool, trajectories: bool) -> Simulation:
    """Room for what will come out."""
    return Simulation(
        marks,
        np.zeros((runs, len(marks))),
        0.0,
        np.zeros((runs, n_arms), np.int64) if pulls else None,
        np.zeros((runs, horizon), np.int32) if trajectories else None,
        np.zeros((runs, horizon)) if trajectories else None,
        [np.zeros(0, np.int64)] * runs if trajectories else None,
    )


def checkpoint_rounds(horizon: int, checkpoints: int | np.ndarray) -> np.ndarray:
    """The rounds at which regret is reported: evenly spaced and ending at the horizon, or those given."""
    if isinstance(checkpoints, int | np.integer):
        if checkpoints < 1:
            raise ValueError(f"checkpoints needs to be 1 or more; got {checkpoints}.")
        count = min(int(checkpoints), horizon)
        return np.unique(np.round(np.linspace(horizon / count, horizon, count)).astype(np.int64))
    try:
        marks = np.asarray(checkpoints)
        marks = marks.astype(np.int64, casting="unsafe" if marks.size and (marks == np.round(marks)).all() else "safe")
    except (TypeError, ValueError):
        marks = np.zeros(0, np.int64)
    if marks.ndim != 1 or len(marks) == 0 or (np.diff(marks) <= 0).any() or marks[0] < 1 or marks[-1] > horizon:
        raise ValueError(
            f"checkpoints needs increasing rounds between 1 and the horizon {horizon}; got {checkpoints!r:.80}."
        )
    return marks
