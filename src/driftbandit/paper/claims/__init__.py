"""Every claim that the paper makes about its experiments, and its verdict."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from driftbandit.errors import NotComputed
from driftbandit.lab.work import Cell
from driftbandit.paper.claims.checks import CELLS, CHECKS
from driftbandit.paper.claims.evidence import NOT_RUN, Claim, ClaimDecision, ClaimVerdict, Evidence, decide
from driftbandit.paper.items import choose
from driftbandit.paper.items.item import Item, PaperOptions


@cache
def _read() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads((Path(__file__).parent / "claims.toml").read_text(encoding="utf-8"))


def claims() -> list[Claim]:
    """All claims, in the order of the paper's sections."""
    return [Claim(**{**found, "items": tuple(choose(found["items"]))}) for found in _read()["claim"]]


def unsettled() -> list[dict[str, str]]:
    """Sentences that the runs cannot decide: place, what it says, reason."""
    return _read()["unsettled"]


def claim_cells(options: PaperOptions, items: Mapping[str, Item]) -> dict[str, Cell]:
    """The simulations that claims need beyond the items', for the items that are run."""
    cells: dict[str, Cell] = {}
    for claim in claims():
        if claim.id in CELLS and all(name in items for name in claim.items):
            cells.update(CELLS[claim.id](options, items))
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
        return decide(CHECKS[claim.id](Evidence(run, parameters), claim.items))
    except NotComputed as error:
        return ClaimDecision(NOT_RUN, (), str(error))
