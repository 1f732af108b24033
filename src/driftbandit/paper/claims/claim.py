"""Every claim the paper makes about its experiments, made decidable and decided.

The paper's words are vague where they praise ("almost the same", "competitive", "near-linear"). Each claim here says
what was made of the words and why, so that a reader who would draw the line elsewhere can do so from the numbers. The
lists are in the modules next to this one."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from driftbandit.lab.jobs.work import Cell
from driftbandit.paper.claims.evidence import ClaimDecision, Node, Reader

# What vague words mean, for all claims alike.
ALMOST = 0.10  # "almost the same": by less than a tenth, about what one run differs from the next for SW-TS
SIMILAR = 0.25  # "similar": by less than a quarter
COMPETITIVE = 2.0  # "competitive": at most twice the regret of any other policy of the figure


class Claim(NamedTuple):
    """A sentence of the paper and the statement it was made into."""

    id: str
    place: str  # where the sentence stands
    says: str  # what it says, in our words
    criterion: str  # the statement that is decided
    reason: str  # why this one
    needs: tuple[str, ...]  # the items it speaks of
    statement: Callable[[Reader], Node]
    parameters: bool = True  # False: about the worlds alone, the same under every parameter set
    cells: Callable[[Any, Mapping[str, Any]], dict[str, Cell]] | None = None  # simulations beyond the items'


class ClaimVerdict(NamedTuple):
    """A claim with its decision under each parameter set."""

    claim: Claim
    decisions: dict[str, ClaimDecision]  # by "text", "code"; by "worlds" for a claim about the worlds alone


class Unsettled(NamedTuple):
    """A sentence that is no claim these runs could decide, and why."""

    place: str
    says: str
    reason: str
