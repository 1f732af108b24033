"""Every claim that the paper makes about its experiments, and its verdict."""

from collections.abc import Mapping
from typing import Any

from driftbandit.errors import NotComputed
from driftbandit.lab.work import Cell
from driftbandit.paper.claims import abrupt_claims, other_claims, smooth_claims
from driftbandit.paper.claims.evidence import NOT_RUN, Claim, ClaimDecision, ClaimVerdict, Evidence, decide
from driftbandit.paper.items.item import Item, PaperOptions


def claims() -> list[Claim]:
    """All claims, in the order of the paper's sections; within a section as listed."""

    def section(claim: Claim) -> float:
        number = claim.place.split(",")[0].removeprefix("section ")
        return 0.0 if number == "abstract" else float(number)

    return sorted([*abrupt_claims.CLAIMS, *smooth_claims.CLAIMS, *other_claims.CLAIMS], key=section)


def claim_cells(options: PaperOptions, items: Mapping[str, Item]) -> dict[str, Cell]:
    """The simulations that claims need beyond the items', for the items that are run."""
    cells: dict[str, Cell] = {}
    for claim in claims():
        if claim.cells is not None and all(name in items for name in claim.items):
            cells.update(claim.cells(options, items))
    return cells


def verdicts(run: Any) -> list[ClaimVerdict]:
    """Decide every claim from a run."""
    found = []
    for claim in claims():
        sets = run.options.parameters if claim.parameters else ("any",)
        found.append(ClaimVerdict(claim, {name: _decide(claim, run, name) for name in sets}))
    return found


def _decide(claim: Claim, run: Any, parameters: str) -> ClaimDecision:
    missing = [item for item in claim.items if item not in run.items]
    failed = [item for item in claim.items if item in run.failures]
    if missing or failed:
        reason = f"not run: {', '.join(missing)}" if missing else f"failed: {', '.join(failed)}"
        return ClaimDecision(NOT_RUN, (), reason)
    try:
        return decide(claim.check(Evidence(run, parameters)))
    except NotComputed as error:
        return ClaimDecision(NOT_RUN, (), str(error))
