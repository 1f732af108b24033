"""The report: one page with every figure and its numbers and every claim with its verdict, and claims.csv.

What is on the page is in templates/, which escape every text; its style is in templates/page.css."""

import csv
import math
import re
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from driftbandit.lab.files import library_versions, machine, package_digest, replace_file, writable
from driftbandit.lab.summaries import interval
from driftbandit.lab.work import Cell
from driftbandit.paper.claims import claim_cells, unsettled, verdicts
from driftbandit.paper.claims.evidence import FAILS, HOLDS, NOT_RUN, UNDECIDED, ClaimVerdict
from driftbandit.paper.disagreements import effect_cells, measure_effects
from driftbandit.paper.items import items
from driftbandit.paper.items.item import Item, PaperOptions
from driftbandit.paper.picture import NAMES, PANELS
from driftbandit.spec.half_life import SECOND, format_duration

SIGNS = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?", NOT_RUN: "–"}
KINDS = tuple(SIGNS)


def extra_cells(options: PaperOptions, chosen: Mapping[str, Item]) -> dict[str, Cell]:
    """The simulations the report needs beyond the figures', for the items that are run."""
    return {**claim_cells(options, chosen), **effect_cells(options, chosen)}


def write(run: Any, out: str | Path) -> Path:
    """Write OUT/index.html and OUT/claims.csv from a finished run."""
    path = writable(Path(out) / "index.html")
    decided = verdicts(run)
    rows = verdict_rows(decided, run.options.parameters)
    with replace_file(path.with_name("claims.csv")) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with replace_file(path) as draft:
        draft.write_text(_page(run, decided), encoding="utf-8")
    return path


def _page(run: Any, decided: list[ClaimVerdict]) -> str:
    part = bool(run.options.items)  # some items only: figures first, and no claim about the others
    undecided = [found for found in decided if NOT_RUN in found.verdicts(run.options.parameters)]
    shown = [found for found in decided if not part or found not in undecided]
    return render(
        "report.html.j2",
        run=run,
        options=run.options,
        part=part,
        command=command(run.options),
        panels=PANELS,
        columns=[PANELS[name] for name in run.options.parameters],
        names=NAMES,
        rank=rank_policies,
        final=lambda item, label, parameters, gap=None: spread(interval(run.final(item.id, label, parameters, gap))),
        claims=shown,
        counts=verdict_counts(verdict_rows(shown, run.options.parameters)),
        signs=SIGNS,
        effects=[found for found in measure_effects(run) if found.rows or not part],
        unsettled=unsettled(),
        absent=[name for name in items() if name not in run.items],
        without_runs=[] if part else sorted(found.claim.id for found in undecided),
        rounds=sum(chunk.runs * chunk.environment.horizon for chunk in run.plan.values()),
        time_taken=format_duration(run.seconds * SECOND, 2),
        machine=machine(),
        versions=library_versions(),
        digest=package_digest(),
        written=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    )


def verdict_rows(decided: list[ClaimVerdict], parameters: tuple[str, ...]) -> list[dict[str, str]]:
    """The verdicts as in claims.csv: one row per claim, one column per parameter set."""
    return [
        {
            "claim": found.claim.id,
            "place": found.claim.place,
            "says": found.claim.says,
            **dict(zip(parameters, found.verdicts(parameters), strict=True)),
        }
        for found in decided
    ]


def verdict_counts(rows: list[dict[str, str]]) -> dict[str, list[int]]:
    """For each parameter set how many claims hold, fail, are undecided, were not run; also for docs/paper/update.py."""
    sets = [name for name in rows[0] if name not in ("claim", "place", "says")] if rows else []
    counted = {name: Counter(row[name] for row in rows) for name in sets}
    return {name: [counted[name][kind] for kind in KINDS] for name in sets}


def command(options: PaperOptions) -> str:
    """The command that makes this report again.

    >>> from driftbandit.paper.items.item import PaperOptions
    >>> command(PaperOptions(Path("build/paper"), ("fig3",), runs=10, parameters=("text",)))
    'driftbandit reproduce fig3 --runs 10 --parameters text --environment authors --seed 0'
    """
    parameters = "both" if len(options.parameters) > 1 else options.parameters[0]
    words = [f"--runs {options.runs} --parameters {parameters} --environment {options.environment}"]
    return " ".join(["driftbandit reproduce", *options.items, *words, f"--seed {options.seed}"])


def rank_policies(run: Any, item: Item, parameters: str) -> list[tuple[str, float]]:
    """The policies of an item with their final regrets, means over runs and gaps, the lowest first."""
    gaps = item.gaps or (None,)
    ends = {
        label: float(np.mean([run.final(item.id, label, parameters, gap).mean() for gap in gaps]))
        for label in item.labels
    }
    return sorted(ends.items(), key=lambda end: end[1])


def render(template: str, **content: Any) -> str:
    """A template filled in; a name that it uses and was not given is an error."""
    pages = Environment(
        loader=PackageLoader("driftbandit.paper"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters.update(typeset=typeset, number=number, spread=spread)
    return pages.get_template(template).render(content)


def typeset(text: str) -> Markup:
    """Text with its mathematics as HTML: Greek letters of TeX, and subscripts of one letter or in braces.

    >>> print(typeset("K = 5, $B_T$ = 10, $\\\\mu_{max}$ < tau_max"))
    K = 5, B<sub>T</sub> = 10, μ<sub>max</sub> &lt; tau_max
    """
    plain = text.replace("$", "").replace(r"\mu", "μ")
    pieces = re.split(r"(?<=\w)_(?:\{(\w+)\}|(\w)\b)", plain)  # text and subscripts in turn
    out = escape(pieces[0])
    for braced, single, after in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        out += Markup("<sub>{}</sub>{}").format(braced or single, after)
    return out


def number(value: float) -> str:
    """About three digits, with commas between thousands."""
    return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}").replace("-", "−")


def spread(found: tuple[float, float, float]) -> str:
    """A mean with its interval, if there is one, to about three digits.

    >>> spread((-0.1234, -0.2, 0.01)).replace("\u00a0", " ")
    '−0.123 [−0.2, 0.01]'
    """
    mean, low, high = found
    return number(mean) + ("" if math.isnan(low) else f" [{number(low)},\u00a0{number(high)}]")
