"""Every claim the paper makes about its experiments, made decidable and decided.

The paper's words are vague where they praise ("almost the same", "competitive", "near-linear"). Each claim here says
what was made of the words and why, so that a reader who would draw the line elsewhere can do so from the numbers. The
lists are in the modules beside this one, `claims_abrupt` and so on; this module decides them."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.paper.claims.evidence import NOT_RUN, ClaimDecision, Node, NotComputed, Reader, decide

# What vague words mean, for all claims alike.
ALMOST = 0.10  # "almost the same": by less than a tenth, about what one run differs from the next for SW-TS
SIMILAR = 0.25  # "similar": by less than a quarter
COMPETITIVE = 2.0  # "competitive": at most twice the regret of any other policy of the figure
_LISTS = ("abrupt", "gap", "smooth", "prior", "overall")


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


def claims() -> list[Claim]:
    """All claims, in the order of the paper."""
    found = [claim for name in _LISTS for claim in import_module(f"{__package__}.{name}").CLAIMS]
    return sorted(found, key=lambda claim: _order(claim.place))


def unsettled() -> list[Unsettled]:
    """The sentences left undecided on purpose."""
    found = [claim for name in _LISTS for claim in import_module(f"{__package__}.{name}").UNSETTLED]
    return sorted(found, key=lambda claim: _order(claim.place))


def _order(place: str) -> tuple[float, str]:
    """The abstract first, then sections by number; within a section as listed."""
    head = place.split(",")[0].removeprefix("section ")
    return (float(head) if head.replace(".", "").isdigit() else 0.0, "")


def claim_cells(options: Any, items: Mapping[str, Any]) -> dict[str, Cell]:
    """The simulations that claims need beyond the items', for the items that are run."""
    cells: dict[str, Cell] = {}
    for claim in claims():
        if claim.cells is not None and all(name in items for name in claim.needs):
            cells.update(claim.cells(options, items))
    return cells


def verdicts(run: Any) -> list[ClaimVerdict]:
    """Decide every claim from a run."""
    found = []
    for claim in claims():
        sets = run.options.parameters if claim.parameters else ("worlds",)
        found.append(ClaimVerdict(claim, {name: _decision(claim, run, name) for name in sets}))
    return found


def _decision(claim: Claim, run: Any, parameters: str) -> ClaimDecision:
    missing = [item for item in claim.needs if item not in run.items]
    failed = [item for item in claim.needs if item in run.failures]
    if missing or failed:
        parts = [f"not run: {', '.join(missing)}"] * bool(missing) + [f"failed: {', '.join(failed)}"] * bool(failed)
        return ClaimDecision(NOT_RUN, (), "; ".join(parts))
    try:
        return decide(claim.statement(Reader(run, parameters)))
    except NotComputed as error:
        return ClaimDecision(NOT_RUN, (), str(error))
