"""The report's claims: one table of verdicts, and every statement behind them."""

import math
from typing import Any

from driftbandit.lab.paper.claims.claim import Verdict
from driftbandit.lab.paper.claims.evidence import FAILS, HOLDS, NOT_RUN, UNDECIDED, Decided, Decision
from driftbandit.lab.paper.report.page import Markup, Table, excerpt, joined, table, tag, typeset

SIGNS = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?", NOT_RUN: "–"}
NAMES = {"text": "Text", "code": "Code", "worlds": "Any parameters"}
_SHOWN = 4  # statements shown before the rest is folded away


def badge(verdict: str) -> Markup:
    """A verdict as sign and word, so that colour adds nothing a reader needs."""
    return tag("span", f"{SIGNS[verdict]} {verdict}", class_=f"verdict {verdict.replace(' ', '-')}")


def overview(run: Any, decided: list[Verdict]) -> Markup:
    """One row a claim."""
    sets = run.options.parameters
    rows = []
    for verdict in decided:
        claim = verdict.claim
        says = joined([tag("a", claim.says, href=f"#{claim.id}"), tag("span", claim.place, class_="place")])
        cells = [badge(verdict.decisions[name if claim.parameters else "worlds"].verdict) for name in sets]
        rows.append([says, *cells])
    made = Table(
        "What the paper says of its experiments, and whether it is so under each set of parameters",
        ["claim and its place", *(NAMES[name] for name in sets)],
        rows,
    )
    meanings = {
        HOLDS: "lies wholly on the claim's side",
        FAILS: "lies wholly on the other",
        UNDECIDED: "covers the border",
    }
    lead = [
        "The 95 % interval of a difference within runs decides: ",
        *(joined([badge(kind), f" it {meaning}. "]) for kind, meaning in meanings.items()),
        "The intervals of a claim of several statements are widened, so that the chance of a wrong verdict stays below "
        "one in twenty for the claim as a whole.",
    ]
    return joined([tag("p", *lead), table(made)])


def details(decided: list[Verdict]) -> Markup:
    """Every claim with its criterion and its numbers."""
    return joined(_claim(verdict) for verdict in decided)


def _claim(verdict: Verdict) -> Markup:
    claim = verdict.claim
    parts = [
        tag("h3", claim.says, " ", tag("span", claim.place, class_="place"), id=claim.id),
        tag("p", tag("strong", "Decided: "), typeset(claim.criterion), " ", tag("em", typeset(claim.reason))),
    ]
    for name, decision in verdict.decisions.items():
        parts.append(tag("p", f"{NAMES[name]}: ", badge(decision.verdict), " ", _short(decision)))
        parts.append(_numbers(f"{NAMES[name]}: {claim.says}", decision))
    return tag("article", *parts, class_="claim", aria_labelledby=claim.id)


def _short(decision: Decision) -> str:
    if decision.note:
        return decision.note
    kinds = [part.verdict for part in decision.parts]
    counts = [
        f"{kinds.count(kind)} {word}" for kind, word in ((HOLDS, "hold"), (FAILS, "fail"), (UNDECIDED, "are open"))
    ]
    return f"Of {len(kinds)} statements {', '.join(counts)}." if len(kinds) > 1 else ""


def _numbers(caption: str, decision: Decision) -> Markup:
    """The statements in a table, those that speak against the claim first; of many, most are folded away."""
    if not decision.parts:
        return Markup("")
    rank = (FAILS, UNDECIDED, HOLDS)
    parts = sorted(decision.parts, key=lambda part: rank.index(part.verdict))
    rows = [[part.where, part.numbers, _interval(part), badge(part.verdict)] for part in parts]
    head = ["where", "numbers", "must be above 0", "statement"]
    few = table(Table(caption, head, rows[:_SHOWN], numbers=(2,)))
    if len(rows) <= _SHOWN:
        return few
    every = table(Table(f"{caption} All statements", head, rows, numbers=(2,)))
    return excerpt(few, f"All {len(rows)} statements", every)


def _interval(part: Decided) -> str:
    if part.mean is None or part.low is None or part.high is None:
        return "computed"
    return spread(part.mean, part.low, part.high)


def spread(mean: float, low: float, high: float) -> str:
    """A mean with its interval, to about three digits.

    >>> spread(-0.1234, -0.2, 0.01)
    '−0.123 [−0.2, 0.01]'
    """
    ends = "" if math.isnan(low) else f" [{number(low)}, {number(high)}]"
    return number(mean) + ends


def number(value: float) -> str:
    """About three digits, with narrow spaces, which do not break, between thousands."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace(",", "\u202f").replace("-", "−")
