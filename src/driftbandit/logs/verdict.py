"""What is said of a log's drift: a verdict, in a sentence that claims no more than the intervals do."""

from typing import NamedTuple

import numpy as np

from driftbandit.logs.bootstrap import Estimate
from driftbandit.logs.log import Log
from driftbandit.logs.periods import said
from driftbandit.logs.refusals import FEWEST_EFFECTIVE

_HARDLY = 0.25  # of what an oracle gains: "does not stay" is said if no memory asked about can gain more


class Scale(NamedTuple):
    """What was found at one length of time; values in the log's own unit."""

    name: str
    seconds: float
    periods: int
    oracle: Estimate  # gain over the best fixed arm
    last: Estimate
    level: float  # standard deviation of what all arms share from period to period
    ranking: float  # of what each arm does for itself
    levels_move: bool
    ranking_moves: bool


def verdict_of(log: Log, found: list[Scale], effective: np.ndarray) -> tuple[str, str]:
    """The verdict and the sentence. That forgetting will not pay is said only if there is enough evidence about every
    arm: `effective`, in plays."""
    known = bool(effective.min() >= FEWEST_EFFECTIVE)

    width = log.reward_range[1] - log.reward_range[0]

    def points(value: float) -> str:
        value = min(max(value, -width), width)  # nobody gains more, whatever a few heavy rows say
        return f"{100.0 * value:+.1f} points" if log.reward_range == (0.0, 1.0) else f"{value:+.3g}"

    if not found:
        return (
            "cannot tell",
            "The log is too short, or has events in too few blocks of time, to ask whether the best arm moves.",
        )
    stays = [scale for scale in found if scale.last.low > 0.0]
    if stays:
        best = max(stays, key=lambda scale: scale.last.mean)
        much = f"{points(best.last.mean)} over the best fixed one"
        return (
            "ranking",
            f"The ranking moves and stays: {_last(log, best)} gains {much}; forgetting can pay.",
        )
    moves = [scale for scale in found if scale.oracle.low > 0.0]
    most = max(found, key=lambda scale: scale.last.high)
    bound = max(most.last.high, 0.0)
    excluded = f"Gains above {points(bound)} are excluded at every scale asked."
    sure = known and bound <= log.negligible
    unpaid = f"forgetting will not pay. {excluded}"
    if not sure:
        unpaid = f"no sign that forgetting pays, but gains up to {points(bound)} are not excluded."
    top = max(moves, key=lambda scale: scale.oracle.mean) if moves else None
    if known and top is not None and most.last.high < _HARDLY * top.oracle.mean:
        return (
            "fleeting",
            f"The ranking moves ({points(top.oracle.mean)} for an oracle by {top.name}) but does not stay: "
            f"forgetting will hardly pay. {excluded}",
        )
    if top is not None or any(scale.ranking_moves for scale in found):
        by_oracle = "" if top is None else f" ({points(top.oracle.mean)} for an oracle by {top.name})"
        return (
            "unclear",
            f"The ranking moves{by_oracle}, but this log cannot tell whether a memory could follow it: "
            f"{_last(log, most)} gains between {points(most.last.low)} and {points(most.last.high)}.",
        )
    if any(scale.levels_move for scale in found):
        return (
            "levels",
            f"The levels move, the ranking {'does not' if sure else 'is not seen to'}: {unpaid}",
        )
    return "nothing", f"Nothing seems to move: {unpaid}"


def _last(log: Log, scale: Scale) -> str:
    """ "last hour's best arm", "the last 6 hours' best arm", "the best arm of the last 1/32 of the log (4.7 h)"."""
    if scale.name.isalpha():
        return f"last {scale.name}'s best arm"
    if scale.name.endswith("s"):
        return f"the last {scale.name}' best arm"
    return f"the best arm of the last {scale.name} of the log ({said(scale.seconds, log.summary.said_in)})"


def hardly_known(arms: list[str], effective: np.ndarray) -> list[str]:
    """A warning, if there is hardly any evidence about some arms."""
    few = np.flatnonzero(effective < FEWEST_EFFECTIVE)
    if not len(few):
        return []
    least = int(few[np.argmin(effective[few])])
    others = f" and {len(few) - 1} other{'s' if len(few) > 2 else ''}" if len(few) > 1 else ""
    return [
        f"Of arm {arms[least]:.40}{others} the log holds only {effective[least]:.0f} plays' worth of evidence or "
        f"little more (fewer than {FEWEST_EFFECTIVE}): what is said above says hardly anything about it."
    ]
