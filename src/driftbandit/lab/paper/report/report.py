"""The report: one page with what was run, every figure with its numbers, every claim with its verdict.

Everything on it comes from the run. The page needs no network and no file beside it; where it speaks of files of the
output folder it links to them."""

import csv
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftbandit.lab.experiments.result import source_digest, versions
from driftbandit.lab.jobs.batch import Cell
from driftbandit.lab.paper import choose
from driftbandit.lab.paper.claims.claim import Verdict, claim_cells, unsettled, verdicts
from driftbandit.lab.paper.claims.evidence import FAILS, HOLDS, NOT_RUN, UNDECIDED
from driftbandit.lab.paper.disagreements import effect_cells
from driftbandit.lab.paper.report import citation
from driftbandit.lab.paper.report.claims_part import details, number, overview
from driftbandit.lab.paper.report.disagreements_part import disagreements
from driftbandit.lab.paper.report.figures_part import figures
from driftbandit.lab.paper.report.page import Markup, Table, facts, joined, page, table, tag
from driftbandit.lab.support.files import replacing, writable
from driftbandit.lab.support.machine import machine

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
    _save_verdicts(decided, run.options.parameters, path.with_name("claims.csv"))
    title = f"{citation.TITLE}, reproduced"
    body = [
        tag("header", tag("h1", title), tag("p", _lead(run), class_="lead"), _warnings(run), _contents(run)),
        tag(
            "main",
            _section("summary", "In short", _summary(run, decided)),
            _section("setup", "What was run", _setup(run)),
            _section("claims", "The paper's claims", overview(run, decided)),
            _section("figures", "Figures and tables", figures(run, Path(out))),
            _section("disagreements", "Where text, theory and code disagree", disagreements(run)),
            _section("evidence", "The claims, statement by statement", details(decided), _unsettled()),
            _section("missing", "What is missing", _missing(run, decided)),
            _section("cite", "How to cite", _cite()),
            id="content",
        ),
    ]
    with replacing(path) as draft:
        draft.write_text(page(title, body), encoding="utf-8")
    return path


def _save_verdicts(decided: list[Verdict], parameters: tuple[str, ...], path: Path) -> None:
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["claim", "place", "says", *parameters])
        for verdict in decided:
            claim = verdict.claim
            kinds = [name if claim.parameters else "worlds" for name in parameters]
            writer.writerow([claim.id, claim.place, claim.says, *(verdict.decisions[kind].verdict for kind in kinds)])


def _section(name: str, title: str, *content: str) -> Markup:
    return tag("section", tag("h2", title, id=name), *content, aria_labelledby=name)


def _lead(run: Any) -> str:
    options = run.options
    return (
        f"{len(run.items)} figures, tables and announced experiments, {options.runs} runs each, simulated anew; "
        f"parameters: {' and '.join(options.parameters)}; world: {options.environment}."
    )


def _warnings(run: Any) -> Markup:
    notes = []
    if run.options.quick:
        notes.append(
            f"A quick look with {run.options.runs} runs: intervals are wide and verdicts may change with more."
        )
    if run.failures:
        notes.append(f"Failed: {', '.join(run.failures)}. See “What is missing”.")
    return tag("div", *(tag("p", note) for note in notes), class_="warning", role="note") if notes else Markup("")


def _contents(run: Any) -> Markup:
    parts = {
        "summary": "In short",
        "setup": "What was run",
        "claims": "Claims",
        "figures": "Figures",
        "disagreements": "Disagreements",
        "evidence": "Statement by statement",
        "missing": "Missing",
        "cite": "How to cite",
    }
    own = tag("ul", *(tag("li", tag("a", name, href=f"#{key}")) for key, name in parts.items()))
    jump = tag("ul", *(tag("li", tag("a", name, href=f"#{name}")) for name in run.items), class_="figures")
    return tag("nav", own, jump, aria_label="Contents")


def _summary(run: Any, decided: list[Verdict]) -> Markup:
    sets = [*run.options.parameters, "worlds"]
    counts = {name: Counter(v.decisions[name].verdict for v in decided if name in v.decisions) for name in sets}
    heads = {"text": "text's parameters", "code": "code's parameters", "worlds": "about the worlds alone"}
    kinds = (HOLDS, FAILS, UNDECIDED, NOT_RUN)
    rows = [[heads[name], *(str(counts[name][kind]) for kind in kinds)] for name in sets]
    made = Table("How many of the paper's claims hold", ["claims decided with the", *kinds], rows, numbers=(1, 2, 3, 4))
    sentence = (
        f"From what the paper says of its experiments {len(decided)} claims were made that computing can decide. What "
        "became of vague words, and why, is said with each; a word with two fair readings gives two claims."
    )
    return joined([tag("p", sentence), table(made)])


def command(options: Any) -> str:
    """The command that makes this report again.

    >>> from driftbandit.lab.paper.job import Options
    >>> command(Options(Path("build/paper"), ("fig3",), runs=10, parameters=("text",)))
    'driftbandit reproduce fig3 --runs 10 --parameters text --environment authors --seed 0'
    """
    parameters = "both" if len(options.parameters) > 1 else options.parameters[0]
    return " ".join(
        [
            "driftbandit reproduce",
            *options.items,
            f"--runs {options.runs} --parameters {parameters}",
            f"--environment {options.environment} --seed {options.seed}",
        ]
    )


def _setup(run: Any) -> Markup:
    options = run.options
    plan = list(run.batch.plan.values())
    rounds = sum(chunk.runs * chunk.environment.horizon for chunk in plan)
    used = versions()
    rows: list[tuple[str, str]] = [
        ("Command", tag("code", command(options))),
        ("Runs", f"{options.runs}, seed {options.seed}; run r of every policy met the same world and the same luck"),
        *((f"Parameters “{name}”", _PARAMETERS[name]) for name in options.parameters),
        ("World", _WORLDS[options.environment]),
        ("Intervals", "95 %, Student's t over runs"),
        ("Simulated", f"{number(len(plan))} pieces of work, {number(rounds / 1e6)} million rounds"),
        ("Time", f"{_duration(run.seconds)} for {run.tally.computed} pieces; {run.tally.reused} were there already"),
        *_effort(Path(options.out) / "summary.csv"),
        ("Machine", machine()),
        ("Versions", ", ".join(f"{name} {version}" for name, version in used.items())),
        ("Source", f"digest {source_digest()}"),
        ("Written", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
    ]
    files = (
        tag("a", "summary.csv", href="summary.csv"),
        " holds every final regret, ",
        tag("code", "data/"),
        " every curve of every run as Parquet, ",
        tag("code", "figures/"),
        " every figure as SVG, PNG and PDF.",
    )
    return joined([facts(rows), tag("p", *files)])


def _effort(path: Path) -> list[tuple[str, str]]:
    """How long the figures' simulations took, whenever they were made; one shared by two parameter sets counts once."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except OSError:
        return []
    each = {(line["item"], line["policy"], line["gap"], line["regret_mean"]): line["seconds"] for line in lines}
    return [("Computing", f"{_duration(sum(map(float, each.values())))} of one core for the figures, compiling apart")]


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def _unsettled() -> Markup:
    rows = [[claim.says, claim.place, claim.reason] for claim in unsettled()]
    made = Table("Sentences that these runs cannot decide", ["sentence", "place", "why not"], rows)
    return joined([tag("h3", "Left open on purpose", id="left-open"), table(made)])


def _missing(run: Any, decided: list[Verdict]) -> Markup:
    known = choose(())
    absent = [name for name in known if name not in run.items]
    undecided = sorted({v.claim.id for v in decided for d in v.decisions.values() if d.verdict == NOT_RUN})
    lines = [f"{name} failed: {why}" for name, why in run.failures.items()]
    if absent:
        lines.append(f"Not asked for: {', '.join(absent)}.")
    if undecided:
        lines.append(f"Claims without the runs they need: {', '.join(undecided)}.")
    if not lines:
        return tag("p", f"Nothing: all {len(run.items)} items were computed and every claim has its runs.")
    return tag("ul", *(tag("li", line) for line in lines))


def _cite() -> Markup:
    return joined(
        [
            tag("p", "The paper:"),
            tag("p", citation.reference(), " ", tag("a", citation.URL, href=citation.URL)),
            tag("pre", citation.bibtex()),
            tag("p", f"The software: {citation.SOFTWARE}, version {versions()['driftbandit']}."),
        ]
    )
