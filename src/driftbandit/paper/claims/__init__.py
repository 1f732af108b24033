"""Every claim that the paper makes about its experiments, and its verdict."""

from collections.abc import Mapping
from typing import Any

from driftbandit.lab.jobs.work import Cell
from driftbandit.paper.claims import abrupt, gap, overall, prior, smooth
from driftbandit.paper.claims.evidence import (
    NOT_RUN,
    Claim,
    ClaimDecision,
    ClaimVerdict,
    NotComputed,
    Reader,
    Unsettled,
    decide,
)

_LISTS = (abrupt, gap, smooth, prior, overall)


def claims() -> list[Claim]:
    """All claims, in the order of the paper."""
    found = [claim for module in _LISTS for claim in module.CLAIMS]
    return sorted(found, key=lambda claim: _order(claim.place))


def unsettled() -> list[Unsettled]:
    """The sentences left undecided on purpose."""
    found = [claim for module in _LISTS for claim in module.UNSETTLED]
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
