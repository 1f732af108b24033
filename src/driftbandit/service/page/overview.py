"""The page of all bandits."""

from typing import Any

from driftbandit.service.page.frame import percent
from driftbandit.service.page.html import Markup, element
from driftbandit.service.page.summary import BanditSummary

SHOWN = 100
_WIDE, _HIGH = 160, 32


def overview(rows: list[BanditSummary], total: int, wanted: str) -> Markup:
    """The table, which the script brings up to date."""
    if not rows:
        nothing = f"No bandit's name has {wanted!r} in it." if wanted else "There are no bandits yet."
        how = None if wanted else element("pre", None, _MAKE)
        return element("div", {"id": "bandits"}, element("p", None, nothing), how)
    head = [
        "Bandit",
        "Leader",
        "Share",
        "Decisions per minute",
        "Rewards joined",
        "Shares, last hour",
        "Needs attention",
    ]
    table = element(
        "table",
        {"class": "overview"},
        element("thead", None, element("tr", None, [element("th", {"scope": "col"}, text) for text in head])),
        element("tbody", None, [_row(row) for row in rows]),
    )
    more = element("p", None, f"{len(rows)} of {total} bandits; search to see others.") if total > len(rows) else None
    return element("div", {"id": "bandits"}, element("div", {"class": "scroll"}, table), more)


_MAKE = """curl -X POST http://127.0.0.1:8000/v1/bandits \\
  -d '{"name": "button", "arms": ["red", "green", "blue"], "wait": "1 h", "default": 0}'"""


def _row(row: BanditSummary) -> Markup:
    cells = [
        ("Leader", "–" if row.leader is None else row.leader),
        ("Share", percent(row.share)),
        ("Decisions per minute", f"{row.per_minute:,.0f}" if row.per_minute >= 100 else f"{row.per_minute:.3g}"),
        ("Rewards joined", percent(row.joined)),
        ("Shares, last hour", spark(row.spark)),
        (
            "Needs attention",
            element("ul", {"class": "attention"}, [element("li", None, text) for text in row.attention])
            if row.attention
            else element("span", {"class": "fine"}, "nothing"),
        ),
    ]
    name = element(
        "th",
        {"scope": "row"},
        element("a", {"href": f"/bandits/{row.name}"}, row.name),
        element("small", None, row.policy),
    )
    return element("tr", None, name, [element("td", {"data-label": label}, value) for label, value in cells])


def spark(shares: list[list[float]]) -> Any:
    """Shares over time, stacked, as a small drawing."""
    known = [(place, row) for place, row in enumerate(shares) if row]
    if len(known) < 2:
        return "–"
    arms, last = len(known[-1][1]), max(1, len(shares) - 1)
    layers = []
    tops = [[0.0] * len(known)]
    for arm in range(arms):
        tops.append(
            [top + (row[arm] if arm < len(row) else 0.0) for top, (_, row) in zip(tops[-1], known, strict=True)]
        )
    for arm in range(arms):
        x = [f"{_WIDE * place / last:.1f}" for place, _ in known]
        upper = [f"{a},{_HIGH * (1 - top):.1f}" for a, top in zip(x, tops[arm + 1], strict=True)]
        lower = [f"{a},{_HIGH * (1 - top):.1f}" for a, top in zip(x, tops[arm], strict=True)]
        layers.append(element("polygon", {"points": " ".join([*upper, *reversed(lower)]), "class": f"arm{arm % 8}"}))
    return element(
        "svg",
        {
            "viewBox": f"0 0 {_WIDE} {_HIGH}",
            "width": _WIDE,
            "height": _HIGH,
            "role": "img",
            "aria-label": "share of each arm over the last hour",
            "class": "spark",
        },
        layers,
    )
