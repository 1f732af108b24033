"""The report's disagreements: what the paper's text, its theory and its authors' code do differently, in regret."""

import math
from typing import Any

from driftbandit.lab.paper.disagreements import Measurement, measured
from driftbandit.lab.paper.report.claims_part import number, spread
from driftbandit.lab.paper.report.page import Markup, Table, joined, table, tag, typeset


def disagreements(run: Any) -> Markup:
    """Every disagreement with its measured effect."""
    lead = (
        "Each pair differs in the disputed point alone. The difference is second minus first within runs, with a 95 % "
        "interval; the share is of the first's mean regret; spread is the standard deviation over runs."
    )
    return joined([tag("p", lead), *(_effect(found) for found in measured(run))])


def _effect(found: Measurement) -> Markup:
    effect = found.effect
    head = [tag("h3", effect.title, id=f"effect-{effect.id}"), tag("p", typeset(effect.explanation))]
    if found.missing:
        return joined([*head, tag("p", found.missing)])
    rows = [
        [
            row.item,
            joined([f"{row.first}: ", tag("strong", number(row.first_mean))]),
            joined([f"{row.second}: ", tag("strong", number(row.second_mean))]),
            spread(row.difference, row.low, row.high),
            _percent(row.relative),
            f"{number(row.spread[0])} → {number(row.spread[1])}",
        ]
        for row in found.rows
    ]
    columns = ["world of", "first: mean regret", "second: mean regret", "difference", "share", "spread"]
    return joined([*head, table(Table(f"{effect.title}: effect on final regret", columns, rows, numbers=(3, 4, 5)))])


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{share:+.1%}".replace("-", "−")
