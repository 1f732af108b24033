"""The report's figures: each with what it shows, its parameters, and a table of the regrets it ends with."""

from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.paper.items.item import Item
from driftbandit.lab.paper.picture import NAMES, PANELS
from driftbandit.lab.paper.report.claims_part import number, spread
from driftbandit.lab.paper.report.page import Markup, Table, excerpt, folded, joined, picture, table, tag, typeset
from driftbandit.lab.stats.intervals import t_interval


def figures(run: Any, out: Path) -> Markup:
    """All items, in the order of the paper."""
    return joined(_item(run, item, out) for item in run.items.values())


def _item(run: Any, item: Item, out: Path) -> Markup:
    head = tag("h3", typeset(item.title), id=item.id)
    if item.id in run.failures:
        return tag("article", head, tag("p", f"Failed: {run.failures[item.id]}", class_="warning"))
    path = out / "figures" / f"{item.id}.svg"
    caption = tag("figcaption", f"{item.place}. {item.shows} Also as ", *_links(item.id))
    parts: list[Markup] = [head]
    if path.exists():
        image = tag("div", picture(path, _alternative(run, item)), class_="scroll", tabindex="0", role="region",
                    aria_label=f"{item.place}, figure")  # fmt: skip
        parts.append(tag("figure", image, caption))
    else:
        parts.append(tag("p", f"The figure {path.name} is missing.", class_="warning"))
    if item.labels:
        parts += [_gap_table(run, item) if item.gaps else _table(run, item), _parameters(run, item)]
    return tag("article", *parts, aria_labelledby=item.id)


def _links(name: str) -> list[Markup]:
    ends = [tag("a", ending, href=f"figures/{name}.{ending.lower()}") for ending in ("SVG", "PNG", "PDF")]
    return [
        joined([ends[0], ", ", ends[1], ", ", ends[2], "; data: ", tag("a", "Parquet", href=f"data/{name}.parquet")])
    ]


def shown(label: str) -> Markup:
    """A policy's name as the figures have it."""
    return typeset(NAMES[label])


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


def _table(run: Any, item: Item) -> Markup:
    """Final regrets, the lowest first."""
    sets = run.options.parameters
    finals = {(label, name): run.final(item.id, label, name) for label in item.labels for name in sets}
    order = sorted(item.labels, key=lambda label: float(finals[label, sets[-1]].mean()))
    rows = []
    for label in order:
        cells = []
        for name in sets:
            final = finals[label, name]
            cells.append(spread(float(final.mean()), *(float(end) for end in t_interval(final))))
        rows.append([shown(label), *cells])
    head = ["policy", *(PANELS[name] for name in sets)]
    world = item.environment(run.options.environment)
    caption = f"Regret after {number(world.horizon)} rounds: mean of {run.options.runs} runs and 95 % interval"
    return table(Table(caption, head, rows, numbers=tuple(range(1, len(head)))))


def _gap_table(run: Any, item: Item) -> Markup:
    """Final regrets by gap; a few gaps in sight, all of them folded."""
    sets = run.options.parameters
    columns = [(label, name) for name in sets for label in item.labels]
    head = ["gap", *(joined([shown(label), " ", tag("span", name, class_="place")]) for label, name in columns)]
    rows = {}
    for gap in item.gaps:
        cells = []
        for label, name in columns:
            final = run.final(item.id, label, name, gap)
            low, high = (float(end) for end in t_interval(final))
            cells.append(f"{number(float(final.mean()))} ± {number((high - low) / 2)}" if len(final) > 1
                         else number(float(final.mean())))  # fmt: skip
        rows[gap] = [f"{gap:.2f}", *cells]
    right = tuple(range(1, len(head)))
    pick = [item.gaps[place] for place in np.unique(np.linspace(0, len(item.gaps) - 1, 5).round().astype(int))]
    caption = f"Regret at the end by gap: mean of {run.options.runs} runs ± half of the 95 % interval"
    few = table(Table(caption, head, [rows[gap] for gap in pick], numbers=right))
    every = table(Table(f"{caption}, all gaps", head, list(rows.values()), numbers=right))
    return excerpt(few, f"All {len(item.gaps)} gaps", every)


def _parameters(run: Any, item: Item) -> Markup:
    """World and policies as they can be typed."""
    sets = run.options.parameters
    made = {name: item.policies(name) for name in sets}
    rows = []
    for label in item.labels:
        texts = [repr(made[name][label]) for name in sets]
        same = len(set(texts)) == 1 and len(texts) > 1
        rows.append([shown(label), *(tag("code", "as left" if same and i else text) for i, text in enumerate(texts))])
    gap = item.gaps[0] if item.gaps else None
    world = repr(item.environment(run.options.environment, gap))
    where = "World, at its smallest gap: " if item.gaps else "World: "
    listing = table(Table("Policies with their parameters", ["policy", *(PANELS[name] for name in sets)], rows))
    return folded("World and parameters", tag("p", where, tag("code", world)), listing)
