"""What happens between two changes: each run cut at the changes of its world and measured piece by piece.

This is the part of the drift metrics that workers compute, from whole trajectories; what is kept is one row per phase
and run. `driftbandit.lab.jobs.drift` turns the rows into answers."""

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.engine.simulate import Simulation, simulate
from driftbandit.lab.jobs.work import Chunk
from driftbandit.lab.stats.intervals import Interval, interval


class StillWorld(NamedTuple):
    """A world that stays for ever as it is in one round."""

    n_arms: int
    horizon: int
    base: Any
    at: int

    def mean(self, t: int, arm: Any) -> Any:
        """The mean of an arm, the same in every round."""
        return self.base.mean(self.at, arm)

    def best(self, t: int) -> Any:
        """The largest mean."""
        return self.base.best(self.at)

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        """The reward of an arm: the law of round `at`, the luck of round t."""
        return self.base.pull(self.at, arm, rng)

    def best_arm(self, t: int) -> int:
        """The first arm with the largest mean."""
        return int(np.argmax([self.base.mean(self.at, arm) for arm in range(self.n_arms)]))

    def change(self, t: int) -> bool:
        """Nothing ever changes."""
        return False

    @property
    def breakpoints(self) -> np.ndarray:
        """One phase, from 0."""
        return np.zeros(1, np.int64)

    def means(self, start: int, stop: int) -> np.ndarray:
        """Rows start..stop-1 of the mean table, one column per arm, all the same."""
        row = np.array([float(self.base.mean(self.at, arm)) for arm in range(self.n_arms)])
        return np.broadcast_to(row, (stop - start, self.n_arms))

    def realise(self, key: int) -> "StillWorld":
        """Nothing is left to chance."""
        return self


class Still(NamedTuple):
    """The world `base` stopped in round `at`: for every run, the means that run's world has then.

    >>> from driftbandit.environments import PhaseTable
    >>> world = Still(PhaseTable(means=((0.2, 0.8), (0.9, 0.1)), starts=(0, 50), horizon=100)).realise(0)
    >>> float(world.mean(99, 0)), float(world.best(99))
    (0.2, 0.8)
    """

    if not TYPE_CHECKING:  # type: ignore[misc]  # mypy takes plain class attributes of a NamedTuple for fields
        phases = 1  # what `ds-ts.tuned` and the like ask a world

    base: Any
    at: int = 0

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return int(self.base.n_arms)

    @property
    def horizon(self) -> int:
        """The number of rounds."""
        return int(self.base.horizon)

    def realise(self, key: int) -> StillWorld:
        """The world of one run."""
        return StillWorld(self.n_arms, self.horizon, self.base.realise(key), self.at)


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


def measure_chunk(chunk: Chunk, stop: threading.Event | None = None) -> Simulation:
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


class DriftMetrics(NamedTuple):
    """How one policy copes with the changes of one world. Intervals are over runs."""

    environment: str
    policy: str
    regret: Interval
    recovery: Interval  # rounds after a change until play is good again, mean over changes
    recovered: float  # share of changes after which it ever was
    worst_phase: Interval  # regret of the run's worst phase
    worst_share: float  # that phase's share of the run's regret
    best_share: Interval  # share of rounds on a best arm
    against_fixed: Interval  # regret minus that of the best fixed arm in hindsight; below 0 it beats that arm
    delay: Interval | None  # rounds from a change to the next alarm, over changes that were noticed; None: no detector
    missed: float | None  # share of changes without an alarm before the next one
    false_alarms: Interval | None  # a run: in the first phase, and beyond one for each arm that changed in later ones
    price: Interval | None = None  # regret above a policy that never forgets when the world stands still
    still_alarms: Interval | None = None  # alarms a run when the world stands still: all of them false


def summarise_phases(environment: str, policy: str, rows: Mapping[str, np.ndarray]) -> DriftMetrics:
    """The rows of `driftbandit.lab.jobs.drift` as one line."""
    runs, place = np.unique(rows["run"], return_inverse=True)

    def a_run(values: np.ndarray) -> np.ndarray:
        return np.bincount(place, values.astype(float), len(runs))

    regret, after = a_run(rows["regret"]), rows["phase"] > 0
    changes = a_run(after)
    worst = np.full(len(runs), -np.inf)
    np.maximum.at(worst, place, rows["regret"])
    with np.errstate(invalid="ignore", divide="ignore"):
        recovery = a_run(np.where(after, rows["recovery"], 0)) / changes
        share = np.where(regret > 0, worst / regret, 0.0)
    delay, missed, false = None, None, None
    if (rows["alarms"] >= 0).all():
        noticed = after & (rows["delay"] >= 0)
        count = a_run(noticed)
        with np.errstate(invalid="ignore", divide="ignore"):
            delay = _over_runs(a_run(np.where(noticed, rows["delay"], 0)) / count)
        missed = float(1.0 - noticed.sum() / after.sum()) if after.any() else float("nan")
        false = _over_runs(a_run(np.maximum(rows["alarms"] - rows["changed"], 0)))
    return DriftMetrics(
        environment,
        policy,
        _over_runs(regret),
        _over_runs(recovery),
        float(rows["recovered"][after].mean()) if after.any() else float("nan"),
        _over_runs(worst),
        float(share.mean()),
        _over_runs(a_run(rows["best_plays"]) / a_run(rows["length"])),
        _over_runs(regret - a_run(rows["fixed"])),
        delay,
        missed,
        false,
    )


def _over_runs(values: np.ndarray) -> Interval:
    """Over the runs in which the quantity exists: a run without a change has no recovery."""
    values = values[np.isfinite(values)]
    return interval(values) if len(values) else Interval(float("nan"), float("nan"), float("nan"))


DRIFT_HEAD = ["policy", "environment", "recovery", "recovered", "worst phase", "best arm", "above best fixed arm",
        "price of forgetting", "detection delay", "missed", "false alarms when still"]  # fmt: skip


def drift_row(line: DriftMetrics) -> list[str]:
    """A line of the printed drift_table, under `DRIFT_HEAD`."""
    return [
        line.policy,
        line.environment,
        f"{line.recovery.mean:.0f}",
        f"{line.recovered:.0%}",
        f"{line.worst_phase.mean:.1f}",
        f"{line.best_share.mean:.1%}",
        f"{line.against_fixed.mean:.1f}",
        f"{line.price.mean:.1f}" if line.price else "-",
        f"{line.delay.mean:.0f}" if line.delay else "-",
        f"{line.missed:.0%}" if line.missed is not None else "-",
        f"{line.still_alarms.mean:.2f}" if line.still_alarms else "-",
    ]


def drift_table(lines: Sequence[DriftMetrics]) -> tuple[list[str], list[list[Any]]]:
    """Head and rows, numbers as numbers, intervals as three columns."""
    head: list[str] = []
    for name in DriftMetrics._fields:
        wide = name not in ("environment", "policy", "recovered", "worst_share", "missed")
        head += [name, f"{name}_low", f"{name}_high"] if wide else [name]
    rows = []
    for line in lines:
        drift_row: list[Any] = []
        for name, value in zip(DriftMetrics._fields, line, strict=True):
            if isinstance(value, Interval):
                drift_row += list(value)
            elif value is None:
                drift_row += ["", "", ""] if name != "missed" else [""]
            else:
                drift_row.append(value)
        rows.append(drift_row)
    return head, rows
