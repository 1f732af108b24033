"""summary.csv: one line per policy, item and parameter set, with the regret at the end."""

import math
from pathlib import Path
from typing import Any

from driftbandit.lab.stats.intervals import t_interval
from driftbandit.lab.support.tables import save_rows
from driftbandit.paper.options import PlayedPaper

COLUMNS = (
    "item",
    "policy",
    "parameters",
    "environment",
    "horizon",
    "runs",
    "regret_mean",
    "regret_ci_low",
    "regret_ci_high",
    "seconds",
    "gap",
)


def summary_rows(run: PlayedPaper) -> list[list[Any]]:
    """The lines of the summary: the mean of the runs, a 95 % t-interval (empty for a single run), the seconds of
    computing, and the gap where it is varied."""
    rows = []
    for item in run.items.values():
        if item.id in run.failures:
            continue
        for parameters in run.options.parameters:
            for label in item.labels:
                for gap in item.gaps or (None,):
                    outcome = run.outcome(item.id, label, parameters, gap)
                    final = outcome.regret[:, -1]
                    low, high = (float(side) for side in t_interval(final))
                    rows.append(
                        [
                            item.id,
                            label,
                            parameters,
                            run.options.environment,
                            int(outcome.rounds[-1]),
                            len(final),
                            f"{final.mean():.3f}",
                            *("" if math.isnan(side) else f"{side:.3f}" for side in (low, high)),
                            f"{outcome.seconds:.3f}",
                            "" if gap is None else f"{gap:.2f}",
                        ]
                    )
    return rows


def save_summary(run: PlayedPaper, path: Path) -> Path:
    """Write the summary of all items that did not fail."""
    return save_rows(COLUMNS, summary_rows(run), path)
