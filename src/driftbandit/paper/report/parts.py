"""The report's figures: each with what it shows, its parameters, and a table of the regrets it ends with."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.stats.intervals import t_interval
from driftbandit.paper.claims.evidence import FAILS, HOLDS, UNDECIDED, Claim, ClaimDecision, ClaimVerdict, Decided
from driftbandit.paper.items.item import KNOWN, Item
from driftbandit.paper.picture import NAMES, PANELS
from driftbandit.paper.report.page import number, spread

_IN_SIGHT = 5  # gaps shown before all of them are folded away

Row = tuple[str, list[str]]  # what heads it, and its cells


class Picture(NamedTuple):
    """A figure file; with its size in pixels nothing moves when it appears."""

    source: str
    width: int
    height: int


class Numbers(NamedTuple):
    """An item's final regrets: by policy, or by gap with some rows in sight and all of them folded away."""

    caption: str
    rows: list[Row]
    columns: list[tuple[str, str]]  # policy and parameter set, where rows are gaps
    few: list[Row]


class TypedWorld(NamedTuple):
    """World and policies as they can be typed."""

    world: str
    policies: list[Row]


class ShownItem(NamedTuple):
    """An item as the page has it."""

    item: Item
    failure: str
    pictures: dict[str, Picture]  # "wide" and "narrow": the page shows the one that fits the screen
    alternative: str
    numbers: Numbers | None
    played: TypedWorld | None


def shown_figures(run: Any, out: Path) -> list[ShownItem]:
    """All items, in the order of the paper."""
    return [_shown(run, item, out / "figures") for item in run.items.values()]


def _shown(run: Any, item: Item, folder: Path) -> ShownItem:
    if item.id in run.failures:
        return ShownItem(item, run.failures[item.id], {}, "", None, None)
    found = {}
    for kind, name in (("wide", f"{item.id}.svg"), ("narrow", f"{item.id}-narrow.svg")):
        if (folder / name).exists():
            width, height = item.size(run, narrow=kind == "narrow")
            found[kind] = Picture(f"{folder.name}/{name}", round(96 * width), round(96 * height))
    found = found if "wide" in found else {}
    if not item.labels:
        return ShownItem(item, "", found, _alternative(run, item), None, None)
    numbers = _by_gap(run, item) if item.gaps else _by_policy(run, item)
    return ShownItem(item, "", found, _alternative(run, item), numbers, _played(run, item))


def _plain(label: str) -> str:
    """A policy's name where no markup can stand."""
    return "DS-TS told the largest mean" if "$" in NAMES[label] else NAMES[label]


def _alternative(run: Any, item: Item) -> str:
    """What the figure shows, for those who cannot see it: the order in which the curves end."""
    if not item.labels:
        return f"{item.place}. {item.shows}"
    lines = []
    for parameters in run.options.parameters:
        if item.gaps:
            ends = {label: float(np.mean([run.final(item.id, label, parameters, gap).mean() for gap in item.gaps]))
                    for label in item.labels}  # fmt: skip
            what = "mean regret over all gaps"
        else:
            ends = {label: float(run.final(item.id, label, parameters).mean()) for label in item.labels}
            what = "regret at the end"
        order = ", ".join(f"{_plain(label)} {ends[label]:.0f}" for label in sorted(ends, key=lambda label: ends[label]))
        lines.append(f"With the {PANELS[parameters]}, {what}, lowest first: {order}.")
    return f"{item.place}. {item.shows} {' '.join(lines)}"


def _by_policy(run: Any, item: Item) -> Numbers:
    """The lowest first."""
    sets = run.options.parameters
    finals = {(label, name): run.final(item.id, label, name) for label in item.labels for name in sets}
    order = sorted(item.labels, key=lambda label: float(finals[label, sets[-1]].mean()))
    rows = []
    for label in order:
        cells = []
        for name in sets:
            final = finals[label, name]
            cells.append(spread(float(final.mean()), *(float(end) for end in t_interval(final))))
        rows.append((NAMES[label], cells))
    world = item.environment(run.options.environment)
    caption = f"Regret after {number(world.horizon)} rounds: mean of {run.options.runs} runs and 95 % interval"
    return Numbers(caption, rows, [], [])


def _by_gap(run: Any, item: Item) -> Numbers:
    """One row for each gap."""
    columns = [(label, name) for name in run.options.parameters for label in item.labels]
    rows = {}
    for gap in item.gaps:
        cells = []
        for label, name in columns:
            final = run.final(item.id, label, name, gap)
            low, high = (float(end) for end in t_interval(final))
            half = f" ±\u00a0{number((high - low) / 2)}" if len(final) > 1 else ""
            cells.append(number(float(final.mean())) + half)
        rows[gap] = f"{gap:.2f}", cells
    places = np.unique(np.linspace(0, len(item.gaps) - 1, _IN_SIGHT).round().astype(int))
    few = [rows[item.gaps[place]] for place in places]
    caption = f"Regret at the end by gap: mean of {run.options.runs} runs ± half of the 95 % interval"
    return Numbers(caption, list(rows.values()), [(NAMES[label], name) for label, name in columns], few)


def _played(run: Any, item: Item) -> TypedWorld:
    made = {name: item.policies(name) for name in run.options.parameters}
    rows = []
    for label in item.labels:
        texts = [repr(policies[label]) for policies in made.values()]
        same = len(set(texts)) == 1 and len(texts) > 1
        rows.append((NAMES[label], ["as left" if same and place else text for place, text in enumerate(texts)]))
    gap = item.gaps[0] if item.gaps else None
    return TypedWorld(repr(item.environment(run.options.environment, gap)), rows)


HEADS = {"text": "Text", "code": "Code", "worlds": "Any parameters"}


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
            [_evidence(HEADS[name], decision) for name, decision in verdict.decisions.items()],
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
