"""The report's claims: each with its verdicts, and every statement behind them."""

from typing import NamedTuple

from driftbandit.paper.claims.claim import Claim, ClaimVerdict
from driftbandit.paper.claims.evidence import FAILS, HOLDS, UNDECIDED, ClaimDecision, Decided
from driftbandit.paper.report.page import spread

NAMES = {"text": "Text", "code": "Code", "worlds": "Any parameters"}


class Statement(NamedTuple):
    """One row of the evidence."""

    where: str
    numbers: str
    interval: str
    verdict: str


class Evidence(NamedTuple):
    """What decided a claim under one set of parameters; the statements that speak against it first."""

    name: str
    verdict: str
    short: str
    statements: list[Statement]


class ShownClaim(NamedTuple):
    """A claim as the page has it."""

    claim: Claim
    verdicts: list[str]  # one for each set of parameters
    evidence: list[Evidence]


def shown_claims(decided: list[ClaimVerdict], parameters: tuple[str, ...]) -> list[ShownClaim]:
    """Every claim with its verdicts. One about the worlds alone has the same under each set of parameters."""
    return [
        ShownClaim(
            verdict.claim,
            [verdict.decisions[name if verdict.claim.parameters else "worlds"].verdict for name in parameters],
            [_evidence(NAMES[name], decision) for name, decision in verdict.decisions.items()],
        )
        for verdict in decided
    ]


def _evidence(name: str, decision: ClaimDecision) -> Evidence:
    rank = (FAILS, UNDECIDED, HOLDS)
    parts = sorted(decision.parts, key=lambda part: rank.index(part.verdict))
    rows = [Statement(part.where, part.numbers, _interval(part), part.verdict) for part in parts]
    return Evidence(name, decision.verdict, _short(decision), rows)


def _short(decision: ClaimDecision) -> str:
    if decision.note:
        return decision.note
    kinds = [part.verdict for part in decision.parts]
    counts = [
        f"{kinds.count(kind)} {word}" for kind, word in ((HOLDS, "hold"), (FAILS, "fail"), (UNDECIDED, "are open"))
    ]
    return f"Of {len(kinds)} statements {', '.join(counts)}." if len(kinds) > 1 else ""


def _interval(part: Decided) -> str:
    if part.mean is None or part.low is None or part.high is None:
        return "computed"
    return spread(part.mean, part.low, part.high)
