"""The report: one page with what was run, every figure with its numbers, every claim with its verdict.

Everything on it comes from the run. The page needs no network; its figures are the files of
the output folder."""

import csv
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.support.digest import library_versions, machine, package_digest
from driftbandit.lab.support.files import replacing, writable
from driftbandit.lab.support.progress import duration
from driftbandit.paper import choose
from driftbandit.paper.claims import claim_cells, unsettled, verdicts
from driftbandit.paper.claims.evidence import FAILS, HOLDS, NOT_RUN, UNDECIDED, ClaimVerdict
from driftbandit.paper.disagreements import effect_cells, measured
from driftbandit.paper.picture import PANELS
from driftbandit.paper.report import page as citation
from driftbandit.paper.report.page import number, render, spread
from driftbandit.paper.report.parts import HEADS, in_short, shown_claims, shown_figures

SIGNS = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?", NOT_RUN: "–"}
KINDS = tuple(SIGNS)
_PARAMETERS = {
    "text": "what the paper prints, with EXP3.S's misprint corrected",
    "code": "what the authors' code runs, DS-TS with forgotten means",
}
_WORLDS = {
    "authors": "the single world of the authors' code, the same in all runs",
    "fresh": "a new world for each run, so that intervals cover worlds too",
}


def extra_cells(options: Any, items: Mapping[str, Any] | None = None) -> dict[str, Cell]:
    """The simulations the report needs beyond the figures', for the items that are run."""
    chosen = choose(options.items) if items is None else items
    return {**claim_cells(options, chosen), **effect_cells(options, chosen)}


def write(run: Any, out: str | Path) -> Path:
    """Write OUT/index.html, and the verdicts once more as OUT/claims.csv, from a finished run."""
    path = writable(Path(out) / "index.html")
    decided = verdicts(run)
    _save_verdicts(verdict_rows(decided, run.options.parameters), path.with_name("claims.csv"))
    with replacing(path) as draft:
        draft.write_text(_page(run, decided, Path(out)), encoding="utf-8")
    return path


def _page(run: Any, decided: list[ClaimVerdict], out: Path) -> str:
    """What the templates are given; what they make of it stands in them."""
    sets = run.options.parameters
    part = bool(run.options.items)  # some items only: figures first, and no claim about the others
    decided = [verdict for verdict in decided if not part or _kinds(verdict) != {NOT_RUN}]
    return render(
        "report.html.j2",
        title=f"{citation.TITLE}, reproduced",
        options=run.options,
        items=run.items,
        failures=run.failures,
        heads=[HEADS[name] for name in sets],
        panels=[PANELS[name] for name in sets],
        kinds=list(KINDS),
        signs=SIGNS,
        spread=spread,
        in_short=in_short(run),
        counts=verdict_counts(verdict_rows(decided, sets)),
        command=command(run.options),
        setup=_setup(run),
        claims=shown_claims(decided, sets),
        part=part,
        figures=shown_figures(run, out),
        disagreements=[effect for effect in measured(run) if effect.rows or not part],
        unsettled=unsettled(),
        absent=[name for name in choose(()) if name not in run.items],
        without_runs=[] if part else sorted(v.claim.id for v in decided if NOT_RUN in _kinds(v)),
        citation=citation,
        version=library_versions()["driftbandit"],
    )


def _kinds(verdict: ClaimVerdict) -> set[str]:
    return {decision.verdict for decision in verdict.decisions.values()}


def verdict_rows(decided: list[ClaimVerdict], parameters: tuple[str, ...]) -> list[dict[str, str]]:
    """The verdicts as claims.csv has them: one row per claim, one column per parameter set. A claim about the worlds
    alone has the same verdict in each."""
    rows = []
    for verdict in decided:
        claim = verdict.claim
        kinds = {name: verdict.decisions[name if claim.parameters else "worlds"].verdict for name in parameters}
        rows.append({"claim": claim.id, "place": claim.place, "says": claim.says, **kinds})
    return rows


def verdict_counts(rows: list[dict[str, str]]) -> dict[str, list[int]]:
    """For each parameter set how many claims hold, fail, are undecided, were not run: the one count there is, for the
    page and for docs/how-to/reproduce.md."""
    sets = [name for name in rows[0] if name not in ("claim", "place", "says")] if rows else []
    counted = {name: Counter(row[name] for row in rows) for name in sets}
    return {name: [counted[name][kind] for kind in KINDS] for name in sets}


def _save_verdicts(rows: list[dict[str, str]], path: Path) -> None:
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def command(options: Any) -> str:
    """The command that makes this report again.

    >>> from driftbandit.paper.items.item import PaperOptions
    >>> command(PaperOptions(Path("build/paper"), ("fig3",), runs=10, parameters=("text",)))
    'driftbandit reproduce fig3 --runs 10 --parameters text --environment authors --seed 0'

    What was added to the figures is part of it.

    >>> command(PaperOptions(Path("build/paper"), additions=("drift-ts",)))[-24:]
    '--seed 0 --with drift-ts'
    """
    parameters = "both" if len(options.parameters) > 1 else options.parameters[0]
    return " ".join(
        [
            "driftbandit reproduce",
            *options.items,
            f"--runs {options.runs} --parameters {parameters}",
            f"--environment {options.environment} --seed {options.seed}",
            *(f"--with {label}" for label in options.additions),
        ]
    )


def _setup(run: Any) -> list[tuple[str, str]]:
    """What was run and on what, as terms and what they are."""
    options = run.options
    plan = list(run.batch.plan.values())
    rounds = sum(chunk.runs * chunk.environment.horizon for chunk in plan)
    used = library_versions()
    return [
        ("Runs", f"{options.runs}, seed {options.seed}; run r of every policy met the same world and the same luck"),
        *((f"Parameters “{name}”", _PARAMETERS[name]) for name in options.parameters),
        ("World", _WORLDS[options.environment]),
        *(("Added", f"{label}, drawn with the regret curves; in no table and no claim") for label in options.additions),
        ("Intervals", "95 %, Student's t over runs"),
        ("Simulated", f"{number(len(plan))} pieces of work, {number(rounds / 1e6)} million rounds"),
        ("Time", f"{duration(run.seconds)} for {run.tally.computed} pieces; {run.tally.reused} were there already"),
        *_effort(Path(options.out) / "summary.csv"),
        ("Machine", machine()),
        ("Versions", ", ".join(f"{name} {version}" for name, version in used.items())),
        ("Source", f"digest {package_digest()}"),
        ("Written", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
    ]


def _effort(path: Path) -> list[tuple[str, str]]:
    """How long the figures' simulations took, whenever they were made; one shared by two parameter sets counts once."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except OSError:
        return []
    each = {(line["item"], line["policy"], line["gap"], line["regret_mean"]): line["seconds"] for line in lines}
    return [("Computing", f"{duration(sum(map(float, each.values())))} of one core for the figures, compiling apart")]
