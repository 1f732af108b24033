"""Drift metrics: how a policy copes with change, beside how much it regrets.

Regret adds everything up; these say where it comes from. All are made from one row per run and phase
(`lab.jobs.phases`); the price of forgetting also needs a simulation of the same environment without its changes, which
`lab.run` makes for a study with `drift = true`."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.stats.intervals import Interval, interval


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


def summarised(environment: str, policy: str, rows: Mapping[str, np.ndarray]) -> DriftMetrics:
    """The rows of `driftbandit.lab.jobs.phases` as one line."""
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
            delay = _over(a_run(np.where(noticed, rows["delay"], 0)) / count)
        missed = float(1.0 - noticed.sum() / after.sum()) if after.any() else float("nan")
        false = _over(a_run(np.maximum(rows["alarms"] - rows["changed"], 0)))
    return DriftMetrics(
        environment,
        policy,
        _over(regret),
        _over(recovery),
        float(rows["recovered"][after].mean()) if after.any() else float("nan"),
        _over(worst),
        float(share.mean()),
        _over(a_run(rows["best_plays"]) / a_run(rows["length"])),
        _over(regret - a_run(rows["fixed"])),
        delay,
        missed,
        false,
    )


def _over(values: np.ndarray) -> Interval:
    """Over the runs in which the quantity exists: a run without a change has no recovery."""
    values = values[np.isfinite(values)]
    return interval(values) if len(values) else Interval(float("nan"), float("nan"), float("nan"))


HEAD = ["policy", "environment", "recovery", "recovered", "worst phase", "best arm", "above best fixed arm",
        "price of forgetting", "detection delay", "missed", "false alarms when still"]  # fmt: skip


def row(line: DriftMetrics) -> list[str]:
    """A line of the printed table, under `HEAD`."""
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


def table(lines: Sequence[DriftMetrics]) -> tuple[list[str], list[list[Any]]]:
    """Head and rows, numbers as numbers, intervals as three columns."""
    head: list[str] = []
    for name in DriftMetrics._fields:
        wide = name not in ("environment", "policy", "recovered", "worst_share", "missed")
        head += [name, f"{name}_low", f"{name}_high"] if wide else [name]
    rows = []
    for line in lines:
        row: list[Any] = []
        for name, value in zip(DriftMetrics._fields, line, strict=True):
            if isinstance(value, Interval):
                row += list(value)
            elif value is None:
                row += ["", "", ""] if name != "missed" else [""]
            else:
                row.append(value)
        rows.append(row)
    return head, rows
