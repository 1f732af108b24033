"""When a log cannot answer: one sentence each, before any number is printed; and what to beware of when it can."""

from collections.abc import Iterable

import numpy as np

from driftbandit.logs.faults import refuse
from driftbandit.logs.log import Log
from driftbandit.logs.periods import said

FEWEST_ODD = 100
FEWEST_EFFECTIVE = 200


def refuse_what_cannot_tell(log: Log) -> None:
    """Refuse a log with too few rewards that say something."""
    if log.summary.odd < FEWEST_ODD:
        raise refuse(
            f"only {log.summary.odd} rewards differ from the rest",
            f"To tell arms apart takes at least {FEWEST_ODD} of them: log for longer, or reward something less rare.",
        )


def warnings_about(log: Log, half_lives: Iterable[float] = ()) -> list[str]:
    """What a reader should know before believing a number."""
    summary = log.summary
    out = list(summary.warnings)
    finite = [h for h in half_lives if np.isfinite(h)]
    if summary.delay > 0.0 and any(summary.delay > h for h in finite):
        out.append(
            f"Half of the rewards come {said(summary.delay, summary.dates)} late or later, longer than a half-life of "
            f"{said(min(finite), summary.dates)}: such a memory is over before it begins."
        )
    gap = float(np.max(summary.gaps)) if len(summary.gaps) else 0.0
    if any(h < gap for h in finite):
        arm = log.arms[int(np.argmax(summary.gaps))]
        out.append(
            f"Arm {arm} is played every {said(gap, summary.dates)} (median), less often than a half-life of "
            f"{said(min(finite), summary.dates)}: it is mostly forgotten when it is asked about."
        )
    if summary.adaptive:
        out.append(
            "The logger's chances changed over time (an adaptive logger): estimates are several times less certain "
            "than on a log of evenly drawn arms, and what it seldom played is hardly known."
        )
    if summary.least < 0.01:
        out.append(f"Some propensities are as small as {summary.least:.2g}: a few rows carry much of the weight.")
    if summary.left_out:
        out.append(f"{summary.left_out} decisions without a reward yet were left out.")
    return out
