"""Drift metrics: each run is cut into phases at the changes of its environment and measured phase by phase.

Workers turn whole trajectories into one row per run and phase (`measure_chunk`); `summarise_phases` turns the rows of a
cell into one line. docs/reference/drift-metrics.md explains every number."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import ENVIRONMENT, stream_key
from driftbandit.core.protocols import Realisation
from driftbandit.lab.engine.arguments import alarm_counter, with_environment
from driftbandit.lab.engine.simulate import Simulation
from driftbandit.lab.intervals import Interval, interval

WINDOW = 100  # rounds over which play is averaged to decide whether a policy has recovered
RECOVERED = 0.5  # it has if its regret is below this share of that of uniform play
_AT_ONCE = 4_000_000  # rounds whose trajectories are in memory together
_BLOCK = 65_536  # rounds whose means are computed together
_TIE = 1e-12  # a mean this near to the best is the best: environments compute the two by different formulas


COLUMNS = {
    "run": np.int64,
    "phase": np.int64,  # 0 before the first change
    "start": np.int64,  # its first round
    "length": np.int64,
    "regret": np.float64,  # in this phase
    "best_plays": np.int64,  # rounds in which an arm with the largest mean was played
    "recovery": np.int64,  # rounds until play was good again; the length if it never was
    "recovered": np.int64,  # 1 if it was
    "changed": np.int64,  # arms whose mean the change moved; 0 in the first phase
    "alarms": np.int64,  # alarms within the phase; -1 for policies without alarms
    "delay": np.int64,  # rounds to the first alarm of the phase; -1 without one
}


def measure_chunk(chunk: Any, play: Callable[[int, int], Simulation]) -> Simulation:
    """Simulate a chunk (a `work.Cell`): its regret, and the `COLUMNS` with one row per run and phase.

    `play(first_run, runs)` simulates some of its runs with trajectories."""
    step = max(1, _AT_ONCE // chunk.environment.horizon)
    first_environment = chunk.environment.realise(stream_key(0, 0, ENVIRONMENT))
    alarmed = (
        alarm_counter(with_environment(chunk.policy, first_environment).init(first_environment.n_arms)) is not None
    )
    regrets, rows, seconds, environment, table = [], [], 0.0, None, None
    end = chunk.first_run + chunk.runs
    for first in range(chunk.first_run, end, step):
        done = play(first, min(step, end - first))
        seconds += done.seconds
        regrets.append(done.regret)
        assert done.arms is not None
        assert done.alarms is not None
        for number in range(len(done.regret)):
            run = first + number
            realised = chunk.environment.realise(stream_key(chunk.seed, run, ENVIRONMENT))
            if (
                table is None or realised is not environment
            ):  # an environment that is not random is one object for all runs
                environment, table = realised, GapTable(realised)
            rows += table.rows(run, done.arms[number], done.alarms[number] if alarmed else None)
    each = zip(COLUMNS.items(), zip(*rows, strict=True), strict=True)
    columns = {name: np.array(values, kind) for (name, kind), values in each}
    return Simulation(done.rounds, np.concatenate(regrets), seconds, drift=columns)


class GapTable:
    """The environment of one run as arrays over rounds: gaps of every arm, and the first rounds of its phases."""

    def __init__(self, environment: Realisation) -> None:
        edges = range(0, environment.horizon, _BLOCK)
        means = np.concatenate([_means(environment, at, min(at + _BLOCK, environment.horizon)) for at in edges])
        self.gaps = means.max(axis=1)[:, None] - means
        self.gaps[self.gaps < _TIE] = 0.0
        self.uniform = np.append(0.0, np.cumsum(self.gaps.mean(axis=1)))
        given = getattr(environment, "breakpoints", None)
        if given is None:  # a drift: a phase begins when another arm becomes the best
            given = np.append(0, np.flatnonzero(np.diff(means.argmax(axis=1))) + 1)
        self.starts = np.asarray(given, np.int64)
        before, after = means[self.starts[1:] - 1], means[self.starts[1:]]
        self.changed = np.append(0, (np.abs(before - after) > _TIE).sum(axis=1))
        self.ends = np.append(self.starts[1:], len(means))

    def rows(self, run: int, arms: np.ndarray, alarms: np.ndarray | None) -> list[tuple[Any, ...]]:
        """The run's phases, first to last, each with the values of `COLUMNS`."""
        gap = self.gaps[np.arange(len(arms)), arms]
        lost, best = np.append(0.0, np.cumsum(gap)), np.append(0, np.cumsum(gap == 0.0))
        rows = []
        for phase, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            rounds, recovered = recovery(lost[start : end + 1], self.uniform[start : end + 1])
            raised = np.zeros(0, np.int64) if alarms is None else alarms[(alarms >= start) & (alarms < end)]
            noticed = raised[0] - start if len(raised) else -1
            count = -1 if alarms is None else len(raised)
            rows.append(
                (run, phase, start, end - start, lost[end] - lost[start], best[end] - best[start], rounds, recovered,
                 self.changed[phase], count, noticed)
            )  # fmt: skip
        return rows


def recovery(lost: np.ndarray, uniform: np.ndarray) -> tuple[int, bool]:
    """Rounds of a phase before play is good again, and whether it ever is, from cumulated regret and the cumulated
    regret of uniform play (one entry more than rounds).

    Play is good if the next `WINDOW` rounds have at most half the regret of uniform play.

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


def _means(environment: Realisation, start: int, stop: int) -> np.ndarray:
    table = getattr(environment, "means", None)
    if callable(table):
        return np.asarray(table(start, stop), np.float64)
    # A user's environment need not have the table.
    return np.array(
        [[float(environment.mean(t, arm)) for arm in range(environment.n_arms)] for t in range(start, stop)]
    )


class DriftMetrics(NamedTuple):
    """How one policy copes with the changes of one environment. Intervals are over runs."""

    environment: str
    policy: str
    regret: Interval
    recovery: Interval  # rounds after a change until play is good again, mean over changes
    recovered: float  # share of changes after which it ever was
    worst_phase: Interval  # regret of the run's worst phase
    best_share: Interval  # share of rounds on a best arm
    delay: Interval | None  # rounds from a change to the next alarm, over changes that were noticed; None: no detector
    missed: float | None  # share of changes without an alarm before the next one
    false_alarms: Interval | None  # per run: in the first phase, and beyond one for each arm that changed in later ones


def summarise_phases(environment: str, policy: str, rows: Mapping[str, np.ndarray]) -> DriftMetrics:
    """Summarise the rows of one cell."""
    runs, place = np.unique(rows["run"], return_inverse=True)

    def per_run(values: np.ndarray) -> np.ndarray:
        return np.bincount(place, values.astype(float), len(runs))

    regret, after = per_run(rows["regret"]), rows["phase"] > 0
    worst = np.full(len(runs), -np.inf)
    np.maximum.at(worst, place, rows["regret"])
    delay, missed, false = None, None, None
    with np.errstate(invalid="ignore", divide="ignore"):
        recovery = per_run(np.where(after, rows["recovery"], 0)) / per_run(after)
        if (rows["alarms"] >= 0).all():
            noticed = after & (rows["delay"] >= 0)
            delay = _over_runs(per_run(np.where(noticed, rows["delay"], 0)) / per_run(noticed))
            missed = float(1.0 - noticed.sum() / after.sum()) if after.any() else float("nan")
            false = _over_runs(per_run(np.maximum(rows["alarms"] - rows["changed"], 0)))
    return DriftMetrics(
        environment,
        policy,
        _over_runs(regret),
        _over_runs(recovery),
        float(rows["recovered"][after].mean()) if after.any() else float("nan"),
        _over_runs(worst),
        _over_runs(per_run(rows["best_plays"]) / per_run(rows["length"])),
        delay,
        missed,
        false,
    )


def _over_runs(values: np.ndarray) -> Interval:
    """The interval over the runs in which the quantity exists: a run without a change has no recovery."""
    values = values[np.isfinite(values)]
    return interval(values) if len(values) else Interval(float("nan"), float("nan"), float("nan"))


DRIFT_HEAD = ["policy", "environment", "recovery", "recovered", "worst phase", "best arm", "detection delay", "missed",
              "false alarms"]  # fmt: skip


def drift_row(line: DriftMetrics) -> list[str]:
    """A line of the printed table, under `DRIFT_HEAD`."""
    return [
        line.policy,
        line.environment,
        f"{line.recovery.mean:.0f}",
        f"{line.recovered:.0%}",
        f"{line.worst_phase.mean:.1f}",
        f"{line.best_share.mean:.1%}",
        f"{line.delay.mean:.0f}" if line.delay else "-",
        f"{line.missed:.0%}" if line.missed is not None else "-",
        f"{line.false_alarms.mean:.2f}" if line.false_alarms else "-",
    ]


def drift_table(lines: Sequence[DriftMetrics]) -> tuple[list[str], list[list[Any]]]:
    """Head and rows of the file: numbers as numbers, an interval as three columns."""
    single = ("environment", "policy", "recovered", "missed")
    head = [column for name in DriftMetrics._fields
            for column in ([name] if name in single else [name, f"{name}_low", f"{name}_high"])]  # fmt: skip
    rows: list[list[Any]] = []
    for line in lines:
        rows.append([])
        for name, value in line._asdict().items():
            width = 1 if name in single else 3
            rows[-1] += [""] * width if value is None else [value] if width == 1 else list(value)
    return head, rows
