"""When a log cannot answer: one sentence each, before any number is printed; and what to beware of when it can."""

from collections.abc import Iterable

import numpy as np

from driftbandit.logs.faults import refuse
from driftbandit.logs.log import Log
from driftbandit.logs.periods import said

FEWEST_ODD = 100
FEWEST_EFFECTIVE = 200
_NEARLY_ALWAYS = 0.98


def refuse_what_cannot_tell(log: Log) -> None:
    """Refuse a log with too few rewards that say something, or that came too late for anybody to learn from."""
    summary = log.summary
    if not summary.delay < summary.span:  # seldom: only then are they counted
        heard = sum(int((events.known <= summary.end).sum()) for events in log.pieces())
        if heard < FEWEST_ODD:
            raise refuse(
                f"only {heard} rewards became known before the log ended",
                "Nobody could have learnt from them: log for longer, or check the column reward_time.",
            )
    if log.summary.odd < FEWEST_ODD:
        raise refuse(
            f"only {log.summary.odd} rewards differ from the rest",
            f"To tell arms apart takes at least {FEWEST_ODD} of them: log for longer, or reward something less rare.",
        )


def warnings_about(log: Log, half_lives: Iterable[float] = ()) -> list[str]:
    """What a reader should know before believing a number."""
    summary = log.summary
    out = []
    finite = [h for h in half_lives if np.isfinite(h)]
    shorter = [h for h in finite if h < summary.delay]
    if shorter:  # the first thing to know: with late rewards the order of memories reverses
        out.append(
            f"Half of the rewards come {said(summary.delay, summary.said_in)} late or later, longer than a half-life "
            f"of {_several(shorter, summary.said_in)}: such a memory is over before it begins."
        )
    out += summary.warnings
    gap = float(np.max(summary.gaps)) if len(summary.gaps) else 0.0
    shorter = [h for h in finite if h < gap]
    if shorter:
        arm = log.arms[int(np.argmax(summary.gaps))]
        often = (
            f"is played every {said(gap, summary.said_in)} (median)" if np.isfinite(gap) else "is hardly ever played"
        )
        out.append(
            f"Arm {arm:.40} {often}, less often than a half-life of {_several(shorter, summary.said_in)}: it is mostly "
            "forgotten when it is asked about."
        )
    rare = int(np.argmin(summary.offered))
    if summary.offered[rare] < _NEARLY_ALWAYS:
        out.append(
            f"Arm {log.arms[rare]:.40} was available at {100.0 * summary.offered[rare]:.0f} % of the events only: "
            "gains over the best fixed arm take an arm to earn as usual where it was not available, which is a guess."
        )
    if summary.adaptive:
        out.append(
            "The logger's chances changed over time (an adaptive logger): estimates are several times less certain "
            "than on a log of evenly drawn arms, and what it seldom played is hardly known."
        )
    if summary.forced:
        out.append(
            f"In {summary.forced:,} of {summary.n:,} events the logger had no choice (propensity 1 though other arms "
            "were available): what they would have earned there is a guess, and no interval covers it."
        )
    if summary.least < 0.01:
        out.append(f"Some propensities are as small as {summary.least:.2g}: a few rows carry much of the weight.")
    if summary.never:
        out.append(f"{summary.never:,} rewards never became known: policies do not learn from them, values count them.")
    if summary.left_out:
        out.append(f"{summary.left_out:,} decisions without a reward yet were left out.")
    return out


def _several(half_lives: list[float], unit: bool | str) -> str:
    """One length, or the shortest and the longest of several."""
    low, high = said(min(half_lives), unit), said(max(half_lives), unit)
    return low if low == high else f"{low} to {high}"
