"""What happens between two changes: each run cut at the changes of its world and measured piece by piece.

This is the part of the drift metrics that workers compute, from whole trajectories; what is kept is one row per phase
and run. `driftbandit.lab.stats.drift_metrics` turns the rows into answers."""

import threading
from typing import Any

import numpy as np

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.engine.simulate import Simulation, simulate
from driftbandit.lab.jobs.work import Chunk

WINDOW = 100  # rounds over which play is averaged to say whether a policy has recovered
RECOVERED = 0.5  # of the regret of uniform play: below this share it has
_AT_ONCE = 4_000_000  # rounds whose trajectories are held in memory together
_BLOCK = 65_536  # rounds whose means are computed together
_TIE = 1e-12  # a mean this near to the best is the best: worlds compute the two by different formulas

COLUMNS = {
    "run": np.int64,
    "phase": np.int64,  # 0 before the first change
    "start": np.int64,  # its first round
    "length": np.int64,
    "regret": np.float64,  # lost in this phase
    "uniform": np.float64,  # what uniform play would have lost
    "best_plays": np.int64,  # rounds in which an arm with the largest mean was played
    "recovery": np.int64,  # rounds until play was good again; the length if it never was
    "recovered": np.int64,  # 1 if it was
    "changed": np.int64,  # arms whose mean the change moved; 0 in the first phase
    "alarms": np.int64,  # alarms within the phase; -1 for policies that give none
    "delay": np.int64,  # rounds to the first alarm of the phase; -1 without one
    "fixed": np.float64,  # regret of the arm that is best on the whole in hindsight, in this phase
}


def measured(chunk: Chunk, stop: threading.Event | None = None) -> Simulation:
    """The chunk's regret and, for each run and phase, what `COLUMNS` says."""
    horizon = chunk.environment.horizon
    step = max(1, _AT_ONCE // horizon)
    regrets, rows, seconds, known = [], [], 0.0, {}
    for first in range(0, chunk.runs, step):
        done = simulate(
            chunk.policy,
            chunk.environment,
            min(step, chunk.runs - first),
            chunk.seed,
            first_run=chunk.first_run + first,
            checkpoints=chunk.checkpoints,
            workers=1,
            trajectories=True,
            compiled=chunk.compiled,
            progress=False,
            stop=stop,
        )
        seconds += done.seconds
        regrets.append(done.regret)
        assert done.arms is not None
        assert done.alarms is not None
        alarmed = detects(chunk.policy, chunk.environment)
        for number in range(len(done.regret)):
            run = chunk.first_run + first + number
            world = chunk.environment.realise(stream_key(chunk.seed, run, WORLD))
            if id(world) not in known:  # worlds without chance are the same object for every run
                known = {id(world): (world, WorldTable(world))}
            rows += known[id(world)][1].rows(run, done.arms[number], done.alarms[number] if alarmed else None)
    columns = {name: np.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()}
    return Simulation(done.rounds, np.concatenate(regrets), seconds, drift=columns)


class WorldTable:
    """One run's world as arrays over rounds: gaps of every arm, and the first rounds of its phases."""

    def __init__(self, world: Any) -> None:
        means = np.concatenate(
            [_means(world, at, min(at + _BLOCK, world.horizon)) for at in range(0, world.horizon, _BLOCK)]
        )
        best = means.max(axis=1)
        self.gaps = best[:, None] - means
        self.gaps[self.gaps < _TIE] = 0.0
        self.uniform = np.append(0.0, np.cumsum(self.gaps.mean(axis=1)))
        fixed = int(means.sum(axis=0).argmax())
        self.fixed = np.append(0.0, np.cumsum(self.gaps[:, fixed]))
        self.starts = starts(world, means)
        before, after = means[self.starts[1:] - 1], means[self.starts[1:]]
        self.changed = np.append(0, (np.abs(before - after) > _TIE).sum(axis=1))
        self.ends = np.append(self.starts[1:], len(means))

    def rows(self, run: int, arms: np.ndarray, alarms: np.ndarray | None) -> list[dict[str, Any]]:
        """The run's phases, first to last."""
        gap = self.gaps[np.arange(len(arms)), arms]
        lost, best = np.append(0.0, np.cumsum(gap)), np.append(0, np.cumsum(gap == 0.0))
        out = []
        for phase, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            rounds, recovered = recovery(lost[start : end + 1], self.uniform[start : end + 1])
            rung = np.zeros(0, np.int64) if alarms is None else alarms[(alarms >= start) & (alarms < end)]
            out.append(
                {
                    "run": run,
                    "phase": phase,
                    "start": start,
                    "length": end - start,
                    "regret": lost[end] - lost[start],
                    "uniform": self.uniform[end] - self.uniform[start],
                    "best_plays": best[end] - best[start],
                    "recovery": rounds,
                    "recovered": recovered,
                    "changed": self.changed[phase],
                    "alarms": -1 if alarms is None else len(rung),
                    "delay": rung[0] - start if len(rung) else -1,
                    "fixed": self.fixed[end] - self.fixed[start],
                }
            )
        return out


def starts(world: Any, means: np.ndarray) -> np.ndarray:
    """First rounds of the phases: what the world calls its breakpoints; where it has none, as in a drift, the rounds in
    which another arm becomes the best."""
    given = getattr(world, "breakpoints", None)
    if given is not None:
        return np.asarray(given, np.int64)
    leader = means.argmax(axis=1)
    return np.append(0, np.flatnonzero(np.diff(leader)) + 1).astype(np.int64)


def recovery(lost: np.ndarray, uniform: np.ndarray) -> tuple[int, bool]:
    """Rounds of a phase before play is good again, and whether it ever is, from cumulated regret and the cumulated
    regret of uniform play (one entry more than rounds).

    Good is: over the next `WINDOW` rounds, at most half the regret that choosing at random would bring. Judging by
    regret and not by the best arm means that an arm which is as good as the best counts as the best.

    >>> lost = np.cumsum([0.0] + [1.0] * 300 + [0.0] * 300)
    >>> recovery(lost, np.arange(601) * 0.5)  # 75 bad rounds in the next 100 are 0.75, 25 are 0.25 = half of 0.5
    (275, True)
    """
    rounds = len(lost) - 1
    window = min(WINDOW, rounds)
    cost = lost[window:] - lost[:-window]
    allowed = RECOVERED * (uniform[window:] - uniform[:-window])
    good = np.flatnonzero(cost <= allowed + 1e-9)
    return (int(good[0]), True) if len(good) else (rounds, False)


def _means(world: Any, start: int, stop: int) -> np.ndarray:
    table = getattr(world, "means", None)
    if callable(table):
        return np.asarray(table(start, stop), np.float64)
    # A world of the user's need not have the table: then it is asked arm by arm, which is slow but right.
    return np.array([[float(world.mean(t, arm)) for arm in range(world.n_arms)] for t in range(start, stop)])


def detects(policy: Any, environment: Any) -> bool:
    """Does the policy give alarms?"""
    from driftbandit.lab.engine.arguments import alarm_counter, with_world

    world = environment.realise(stream_key(0, 0, WORLD))
    return alarm_counter(with_world(policy, world).init(world.n_arms)) is not None
