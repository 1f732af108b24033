"""The index over the cards: one table of all policies, which a small script makes sortable and filterable.

Without the script it is a plain table with plain links, which the site's builder checks like any other."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driftbandit.field.contest import ratio
from driftbandit.lab.files import replace_file
from tools.site import facts, standing
from tools.site.behaviour import Behaviour
from tools.site.environments import SmallEnvironment
from tools.site.made import HERE
from tools.site.page import by_the_clock, prose, rewards, table

ARMS = 10  # of the speed that is shown
CAN = {"clock": "forgets by the clock", "exact": "exact propensities", "lockstep": "in lockstep"}


def row(
    cls: Any, policy: Any, mine: Behaviour, ts: Behaviour, environments: Sequence[SmallEnvironment]
) -> dict[str, Any]:
    """What the index says of a policy: words, and numbers (None where there is none)."""
    short, speed = facts.find_short_name(cls), facts.speed(facts.find_short_name(cls))
    able = {"clock": by_the_clock(cls), "exact": hasattr(cls, "belief"), "lockstep": bool(getattr(cls, "lockstep", 0))}
    beside = {}
    for environment, seen, other in zip(environments, mine.seen, ts.seen, strict=True):
        beside[environment.name] = _plain(seen.regret[:, -1].mean() / max(other.regret[:, -1].mean(), 1e-9))
    return {
        "short": short,
        "forgets": str(getattr(cls, "forgets", "")).split(";")[0],
        "knows": str(getattr(cls, "knows", "")),
        "rewards": rewards(cls),
        "can": [CAN[word] for word, yes in able.items() if yes],
        "beside": beside,
        "changing": _plain(standing.over(short, still=False)),
        "still": _plain(standing.over(short, still=True)),
        "ns": speed.alone.get(ARMS),
        "per_arm": None if hasattr(policy, "with_environment") else sum(one.per_arm for one in facts.fields(policy)),
    }


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def write(rows: Sequence[dict[str, Any]], into: Path) -> list[str]:
    """Write index.md."""
    names = list(rows[0]["beside"]) if rows else []
    head = [
        "policy",
        *names,
        "field: changing",
        "field: still",
        "ns",
        "numbers per arm",
        "must be given",
        "how it forgets",
        "rewards",
        "can",
    ]
    lines = [
        [
            f"[{one['short']}]({one['short']}.md)",
            *(_number(one["beside"][name]) for name in names),
            _number(one["changing"]),
            _number(one["still"]),
            "-" if one["ns"] is None else f"{one['ns']:,.0f}",
            "-" if one["per_arm"] is None else f"{one['per_arm']:,.0f}",
            prose(one["knows"]),
            prose(one["forgets"]),
            prose(one["rewards"]),
            ", ".join(one["can"]) or "-",
        ]
        for one in sorted(rows, key=lambda one: one["short"])
    ]
    text = "\n\n".join(
        [
            "# Policies",
            "A card for each: what it assumes, its parameters and its rule, what it costs, how it behaves in three "
            "small environments, with late rewards and in the field, and its source next to its slow twin.",
            "```{raw} html\n" + (HERE / "index.html").read_text(encoding="utf-8") + "```",
            "````{container} policy-table\n" + table(head, lines) + "\n````",
            "Columns *abrupt*, *smooth* and *still*: regret in the small environments of the cards, divided by "
            "that of `ts`; "
            "below 1 is better. Columns *field*: regret divided by that of the best policy tuned for the same "
            "environment, "
            "over the environments that change and the stationary ones, each policy at its best setting for "
            "each environment; "
            f"1 is as good. *ns*: nanoseconds of one round of one run with {ARMS} arms, as `make bench` measured "
            "it. *Numbers per arm*: by how much the state grows with an arm. A dash: not measured, or there is nothing "
            "to measure. A click on a heading, or Enter, sorts by it; once more, the other way round.",
            "```{toctree}\n:hidden:\n:maxdepth: 1\n\n" + "\n".join(sorted(one["short"] for one in rows)) + "\n```",
            "```{raw} html\n<script>\n" + (HERE / "index.js").read_text(encoding="utf-8") + "</script>\n```",
        ]
    )
    with replace_file(into / "index.md") as draft:
        draft.write_text(text + "\n", encoding="utf-8")
    return ["index.md"]


def _number(value: float | None) -> str:
    return "-" if value is None else ratio(value)
