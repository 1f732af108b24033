"""What came out, in three sentences computed from the run: abrupt worlds, smooth worlds, the largest mean known."""

from typing import Any

import numpy as np

from driftbandit.paper.items.item import KNOWN
from driftbandit.paper.picture import NAMES

_SETS = {"text": "with the parameters the paper prints", "code": "with those of its authors' code"}
_KINDS = {"fig3": ("abrupt", "Figure 3"), "fig6": ("smooth", "Figure 6")}


def in_short(run: Any) -> list[str]:
    """The sentences, for what of Figures 3, 6 and 7 was run."""
    sentences = [_compared(run, kind, *words) for kind, words in _KINDS.items()]
    return [sentence for sentence in [*sentences, _told(run)] if sentence]


def _ready(run: Any, kind: str, *labels: str) -> list[str]:
    """The items of a figure that were run and hold these policies."""
    return [
        name
        for name, item in run.items.items()
        if name.startswith(kind) and name not in run.failures and set(labels) <= set(item.labels)
    ]


def _ends(run: Any, name: str, parameters: str) -> dict[str, float]:
    return {label: float(run.final(name, label, parameters).mean()) for label in run.items[name].labels}


def _compared(run: Any, kind: str, change: str, figure: str) -> str:
    """DS-TS beside the best of the others, over the worlds of one figure."""
    items = _ready(run, kind, "ds-ts")
    clauses = []
    for parameters in run.options.parameters if items else ():
        ratios, rivals = [], []
        for name in items:
            ends = _ends(run, name, parameters)
            own = ends.pop("ds-ts")
            if not ends or min(ends.values()) <= 0.0:
                return ""
            rival = min(ends, key=lambda label: ends[label])
            ratios.append(own / ends[rival])
            rivals.append(NAMES[rival])
        ahead = sum(ratio < 1.0 for ratio in ratios)
        lead = f" (the lowest of all in {ahead} of {len(items)})" if ahead else ""
        clauses.append(
            f"{_range(ratios)} times that of the best other policy, {_either(rivals)}, {_SETS[parameters]}{lead}"
        )
    where = f"the {len(items)} {change} worlds" if len(items) > 1 else f"the {change} world"
    return f"In {where} of {figure} the regret of DS-TS is {', and '.join(clauses)}." if clauses else ""


def _told(run: Any) -> str:
    """What knowing the largest mean changes."""
    items = _ready(run, "fig7", "ds-ts", KNOWN)
    clauses = []
    for parameters in run.options.parameters if items else ():
        found = [_ends(run, name, parameters) for name in items]
        if min(ends["ds-ts"] for ends in found) <= 0.0:
            return ""
        shares = [100.0 * (1.0 - ends[KNOWN] / ends["ds-ts"]) for ends in found]
        ahead = sum(min(ends, key=lambda label: ends[label]) == KNOWN for ends in found)
        saved = f"{min(shares):.0f} to {max(shares):.0f} %" if len(shares) > 1 else f"{shares[0]:.0f} %"
        saved = saved.replace("-", "−")
        clauses.append(f"{saved} of its regret {_SETS[parameters]} (the lowest of all in {ahead} of {len(items)})")
    where = f"the {len(items)} worlds" if len(items) > 1 else "the world"
    if not clauses:
        return ""
    return f"Telling DS-TS the largest mean saves it, in {where} of Figure 7, {', and '.join(clauses)}."


def _range(values: list[float]) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"


def _either(names: list[str]) -> str:
    different = list(dict.fromkeys(names))
    return different[0] if len(different) == 1 else f"{', '.join(different[:-1])} or {different[-1]}"
