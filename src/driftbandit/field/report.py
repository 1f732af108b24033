"""The field as tables: CSV for programs, Markdown for people."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from driftbandit.field.figures import FrontierPoint, undominated
from driftbandit.field.standings import BestTuned, Contestant, KeptLine, RatioSummary
from driftbandit.field.suite import SuiteWorld
from driftbandit.lab.support.files import replacing


def number(value: float) -> str:
    """A regret for people: no digits that mean nothing.

    >>> number(3912.4), number(98.64), number(4.25)
    ('3,912', '99', '4.2')
    """
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1f}"


def ratio(value: float) -> str:
    """A ratio for people.

    >>> ratio(1.049), ratio(12.34), ratio(math.nan)
    ('1.05', '12.3', '-')
    """
    return "-" if math.isnan(value) else (f"{value:.2f}" if value < 10 else f"{value:.1f}")


def save_csv(found: Sequence[Contestant], best: Mapping[str, BestTuned], path: Path) -> None:
    """Every contestant in every world, and the best tuned policies with their parameters."""
    head = ["world", "role", "kind", "policy", "runs", "regret", "error", "ratio", "ratio_error", "setting"]
    rows: list[list[Any]] = []
    worlds = {one.world.name: one.world for one in found}
    for name, world in worlds.items():
        mine = best[name]
        numbers = [f"{mine.line.mean:.5g}", f"{mine.line.error:.3g}", "1", ""]
        rows.append([name, world.role, world.kind, "best tuned", mine.line.runs, *numbers, mine.policy])
    for one in found:
        numbers = [f"{v:.5g}" for v in (one.line.mean, one.line.error, one.ratio, one.error)]
        here = [one.world.name, one.world.role, one.world.kind, one.name, one.line.runs]
        rows.append([*here, *numbers, one.line.label])
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def save_frontier(marks: Sequence[FrontierPoint], path: Path) -> Path:
    """Every setting's regret in the stationary world and in the trap, and whether some other setting beats it in
    both."""
    edge = set(undominated(marks))
    head = ["policy", "stationary", "stationary_error", "trap", "trap_error", "undominated"]
    rows = [
        [
            point.label,
            *(f"{value:.5g}" for value in (point.still, point.still_error, point.trap, point.trap_error)),
            point in edge,
        ]
        for point in sorted(marks, key=_still)
    ]
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    return path


def _still(point: FrontierPoint) -> float:
    return point.still


def save_markdown(
    worlds: Sequence[SuiteWorld],
    best: Mapping[str, BestTuned],
    found: Sequence[Contestant],
    totals: Sequence[RatioSummary],
    shown: Sequence[str],
    path: Path,
    how: str,
) -> None:
    """The worlds, with the best tuned policy and the ratios of those `shown`; every policy's summary; what each
    world is."""
    parts = [f"# The field, measured\n\n{how}\n"]
    parts.append("## World by world\n\n" + _worlds_part(worlds, best, found, shown))
    parts.append("## Everybody\n\n" + _summary_part(totals))
    rows = [[world.name, world.kind, world.role, f"`{world.environment!r}`"] for world in worlds]
    parts.append("## The worlds\n\n" + _table(["world", "kind", "role", "`--env`"], rows))
    with replacing(path) as draft:
        draft.write_text("\n".join(parts), encoding="utf-8")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _worlds_part(
    worlds: Sequence[SuiteWorld], best: Mapping[str, BestTuned], found: Sequence[Contestant], shown: Sequence[str]
) -> str:
    at = {(one.world.name, one.name): one for one in found}
    rows = []
    for world in worlds:
        if world.name not in best:
            continue
        mine = best[world.name]
        row = [world.name, world.role, f"`{mine.line.label}`", f"{number(mine.line.mean)} ± {number(mine.line.error)}"]
        for name in shown:
            one = at.get((world.name, name))
            row.append("-" if one is None else f"{ratio(one.ratio)} ± {one.error:.2f}")
        rows.append(row)
    fair = [math.log(one.fair / one.line.mean) for one in best.values() if one.line.mean > 0 and one.fair > 0]
    note = (
        "Regret and ratios, each ± one standard error. Best tuned is the plain minimum over the grid, on the runs it "
        "is reported from, but for policies that play at random or know that arms lie on a line, and for restarts "
        "after a fixed period: changes in many of these worlds are evenly spaced, so that a tuned period falls on "
        "them as if it had been told. Choosing the setting on one half of the runs and measuring it on the other gives "
        f"{100 * (math.exp(sum(fair) / len(fair)) - 1):.1f} % more regret in geometric mean over these worlds: by so "
        "much the ratios are too large.\n\n"
        if fair
        else ""
    )
    names = [f"{name}, ratio" for name in shown]
    return note + _table(["world", "role", "best tuned policy", "its regret", *names], rows)


def _summary_part(totals: Sequence[RatioSummary]) -> str:
    head = [
        "policy",
        "design",
        "check",
        "all that change",
        "worst",
        "where",
        "every world",
        "within 10 %",
        "restarts counted",
    ]
    rows = [
        [
            f"`{one.name}`" if "," not in one.name or "(" in one.name else one.name,
            ratio(one.design),
            ratio(one.check),
            f"{ratio(one.mean)} ± {one.mean * one.error:.2f}" if one.mean == one.mean else "-",
            ratio(one.worst),
            one.worst_world,
            ratio(one.every),
            f"{one.near} of {one.worlds}",
            ratio(one.on_time),
        ]
        for one in totals
    ]
    note = (
        "Geometric means of the ratio to the best tuned policy: over the design worlds that change, the check worlds "
        "that change, both; the worst of them and where; over every world, also those that stand still, the slow ones "
        "and the traps; how many worlds are within 10 % of the best tuned; and over those that change once more, if "
        "restarts after a fixed period counted among the tuned.\n\n"
    )
    return note + _table(head, rows)


def as_json(
    best: Mapping[str, BestTuned],
    found: Sequence[Contestant],
    totals: Sequence[RatioSummary],
    worlds: Sequence[SuiteWorld],
) -> dict[str, Any]:
    """Everything as plain values."""
    return {
        "worlds": [
            {
                "name": world.name,
                "kind": world.kind,
                "role": world.role,
                "environment": repr(world.environment),
                "best": {**_line(one.line), "policy": one.policy, "fair": one.fair, "on_time": one.on_time},
            }
            for world in worlds
            if (one := best.get(world.name)) is not None
        ],
        "standings": [
            {**_line(one.line), "policy": one.name, "ratio": one.ratio, "ratio_error": one.error} for one in found
        ],
        "summary": [one._asdict() for one in totals],
    }


def _line(line: KeptLine) -> dict[str, Any]:
    return {"world": line.world, "setting": line.label, "runs": line.runs, "regret": line.mean, "error": line.error}
