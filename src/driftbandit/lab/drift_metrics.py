"""Drift metrics: each run is cut into phases at the changes of its environment, and measured phase by phase.

Workers turn whole trajectories into one number per run and column (`measure`); `summarise` turns the columns of a
cell into one line. docs/reference/drift-metrics.md explains every number."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import ENVIRONMENT, stream_key
from driftbandit.core.protocols import Realisation
from driftbandit.lab.engine.arguments import alarm_counter, with_environment
from driftbandit.lab.engine.simulate import Simulation, simulate
from driftbandit.lab.summaries import Interval, interval

WINDOW = 100  # rounds over which play is averaged to decide whether a policy has recovered
RECOVERED = 0.5  # it has if its regret is below this share of that of uniform play
_AT_ONCE = 4_000_000  # rounds whose trajectories are in memory together
_BLOCK = 65_536  # rounds whose means are computed together
_TIE = 1e-12  # a mean this near to the best is the best: environments compute the two by different formulas


class RunMetrics(NamedTuple):
    """Numbers of one run, or of many as arrays; the last three are NaN for a policy without alarms."""

    changes: Any  # phases after the first
    recovery: Any  # rounds after changes until play was good again, in total; a whole phase if it never was
    recovered: Any  # changes after which it was
    worst_phase: Any  # regret
    best_share: Any  # share of rounds in which an arm with the largest mean was played
    noticed: Any  # changes with an alarm in their phase
    delay: Any  # rounds from these changes to the first alarm, in total
    false_alarms: Any  # in the first phase, and beyond one for each arm whose mean moved in later ones


def measure(policy: Any, environment: Any, runs: int, seed: int, *, first_run: int = 0, **options: Any) -> Simulation:
    """`simulate` with the columns of `RunMetrics` for every run."""
    step = max(1, _AT_ONCE // environment.horizon)
    any_run = environment.realise(stream_key(0, 0, ENVIRONMENT))
    alarmed = alarm_counter(with_environment(policy, any_run).init(any_run.n_arms)) is not None
    regrets, rows, seconds, table, end = [], [], 0.0, None, first_run + runs
    realised: Any = None
    for first in range(first_run, end, step):
        few = min(step, end - first)
        done = simulate(policy, environment, few, seed, first_run=first, trajectories=True, **options)
        seconds += done.seconds
        regrets.append(done.regret)
        assert done.arms is not None
        assert done.alarms is not None
        for run, (arms, alarms) in enumerate(zip(done.arms, done.alarms, strict=True), first):
            before, realised = realised, environment.realise(stream_key(seed, run, ENVIRONMENT))
            if table is None or realised is not before:  # one that is not random is one object for all runs
                table = GapTable(realised)
            rows.append(table.measure(arms, alarms if alarmed else None))
    columns = dict(zip(RunMetrics._fields, np.array(rows).T, strict=True))
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

    def measure(self, arms: np.ndarray, alarms: np.ndarray | None) -> RunMetrics:
        """The metrics of a run by its arms and the rounds of its alarms, None for a policy without alarms."""
        gap = self.gaps[np.arange(len(arms)), arms]
        lost = np.append(0.0, np.cumsum(gap))
        changes = list(zip(self.starts, self.ends, strict=True))[1:]
        found = np.array([recovery(lost[start : end + 1], self.uniform[start : end + 1]) for start, end in changes])
        rounds, recovered = found.reshape(-1, 2).sum(axis=0)
        noticed = delay = false_alarms = np.nan
        if alarms is not None:
            first, stop = np.searchsorted(alarms, self.starts), np.searchsorted(alarms, self.ends)
            seen = (stop > first) & (self.starts > 0)
            noticed, delay = seen.sum(), (alarms[first[seen]] - self.starts[seen]).sum()
            false_alarms = np.maximum(stop - first - self.changed, 0).sum()
        worst = (lost[self.ends] - lost[self.starts]).max()
        return RunMetrics(
            len(changes), rounds, recovered, worst, (gap == 0.0).mean(), noticed, delay, false_alarms
        )  # fmt: skip


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


def summarise(part: Any) -> DriftMetrics:
    """Summarise the columns of one cell, a `work.Part`."""
    runs = RunMetrics(**part.drift)
    changes, detects = runs.changes.sum(), not np.isnan(runs.noticed).any()
    with np.errstate(invalid="ignore", divide="ignore"):
        return DriftMetrics(
            part.environment,
            part.policy,
            _over_runs(part.final),
            _over_runs(runs.recovery / runs.changes),
            float(runs.recovered.sum() / changes),
            _over_runs(runs.worst_phase),
            _over_runs(runs.best_share),
            _over_runs(runs.delay / runs.noticed) if detects else None,
            float(1.0 - runs.noticed.sum() / changes) if detects else None,
            _over_runs(runs.false_alarms) if detects else None,
        )


def _over_runs(values: np.ndarray) -> Interval:
    """The interval over the runs in which the quantity exists: a run without a change has no recovery."""
    values = values[np.isfinite(values)]
    return interval(values) if len(values) else Interval(float("nan"), float("nan"), float("nan"))


_SHOWN = {"recovery": ".0f", "recovered": ".0%", "worst_phase": ".1f", "best_share": ".1%", "delay": ".0f",
          "missed": ".0%", "false_alarms": ".2f"}  # fmt: skip
DRIFT_HEAD = ["policy", "environment", "recovery", "recovered", "worst phase", "best arm", "detection delay", "missed",
              "false alarms"]  # fmt: skip


def drift_row(line: DriftMetrics) -> list[str]:
    """A line of the printed table, under `DRIFT_HEAD`."""
    found = [(getattr(line, name), form) for name, form in _SHOWN.items()]
    shown = ["-" if value is None else format(getattr(value, "mean", value), form) for value, form in found]
    return [line.policy, line.environment, *shown]


def drift_table(lines: Sequence[DriftMetrics]) -> tuple[list[str], list[list[Any]]]:
    """Head and rows of the file: numbers as numbers, an interval as three columns."""
    single = ("environment", "policy", "recovered", "missed")
    head = [column for name in DriftMetrics._fields
            for column in ([name] if name in single else [name, f"{name}_low", f"{name}_high"])]  # fmt: skip
    rows = [
        [
            cell
            for name, value in line._asdict().items()
            for cell in ([value] if name in single else value or [None] * 3)
        ]
        for line in lines
    ]
    return head, rows
