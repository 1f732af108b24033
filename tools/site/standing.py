"""Where a policy stands in the field: its regret beside that of the best tuned policy, by kind of world.

Read from what `driftbandit field --tune` kept, and, for policies that have nothing to tune, from the table of ratios
that `driftbandit field` wrote; no number is copied."""

import csv
import math
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from driftbandit.field.grids import LEFT_OUT, NO_RIVALS, ON_TIME, short_of
from driftbandit.field.standings import KEPT, KeptLine
from driftbandit.field.standings import read_kept as read
from driftbandit.field.suite import SUITE, SuiteWorld
from tools.site.facts import ROOT

RATIOS = ROOT / "docs/field/ratios.csv"
SOURCES = (KEPT, RATIOS)
WORLDS = {world.name: world for world in SUITE}
STILL = "stationary"


class Mark(NamedTuple):
    """A policy in one world."""

    world: SuiteWorld
    ratio: float  # to the best tuned policy there, at this policy's own best setting
    setting: str
    theory: float  # the same as its theory sets it; nan if that was not played


class Kind(NamedTuple):
    """A policy in all worlds of one kind: geometric means of the ratio."""

    kind: str
    worlds: int
    ratio: float
    theory: float
    setting: str  # the one most often best


@cache
def _lines() -> tuple[KeptLine, ...]:
    return tuple(line for line in read() if line.world in WORLDS)


@cache
def best() -> dict[str, float]:
    """The regret of the best tuned policy of each world, by the rule of `driftbandit field`: the smallest mean of those
    who played all runs."""
    out: dict[str, float] = {}
    most: dict[str, int] = {}
    rivals = [line for line in _lines() if short_of(line.label) not in NO_RIVALS + ON_TIME]
    for line in rivals:
        most[line.world] = max(most.get(line.world, 0), line.runs)
    for line in rivals:
        if line.runs == most[line.world]:
            out[line.world] = min(out.get(line.world, math.inf), line.mean)
    return out


@cache
def marks(short: str) -> tuple[Mark, ...]:
    """The policy in every world it was played in."""
    mine = [line for line in _lines() if short_of(line.label) == short and line.world in best()]
    if not mine:
        return tuple(Mark(WORLDS[row["world"]], float(row["ratio"]), row["setting"], math.nan) for row in _rows(short))
    out = []
    for name in dict.fromkeys(line.world for line in mine):
        here = [line for line in mine if line.world == name]
        chosen = min((line for line in here if line.runs == max(o.runs for o in here)), key=lambda line: line.mean)
        theory = [line.mean for line in here if line.label.endswith(".tuned")]
        low = best()[name]
        out.append(Mark(WORLDS[name], chosen.mean / low, chosen.label, theory[0] / low if theory else math.nan))
    return tuple(sorted(out, key=lambda mark: SUITE.index(mark.world)))


def _rows(short: str) -> list[dict[str, str]]:
    if not RATIOS.exists():
        return []
    with RATIOS.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["policy"] == short and row["world"] in WORLDS]


def kinds(short: str) -> list[Kind]:
    """The policy by kind of world, where it is strongest first."""
    found = marks(short)
    out = []
    for kind in dict.fromkeys(mark.world.kind for mark in found):
        here = [mark for mark in found if mark.world.kind == kind]
        setting = Counter(mark.setting for mark in here).most_common(1)[0][0]
        theory = geometric(mark.theory for mark in here)
        out.append(Kind(kind, len(here), geometric(mark.ratio for mark in here), theory, setting))
    return sorted(out, key=lambda one: one.ratio)


def over(short: str, still: bool) -> float:
    """One number: the geometric mean over the worlds that stand still, or over those that change; nan if none was
    played."""
    found = [mark for mark in marks(short) if (mark.world.kind == STILL if still else mark.world.changing)]
    return geometric(mark.ratio for mark in found)


def geometric(values: Iterable[float]) -> float:
    """The geometric mean of those that are there."""
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def absent(short: str) -> str:
    """Why a policy stands in no table of the field."""
    if short in LEFT_OUT:
        return "It takes no part in the field: it is a yardstick, a wrapper, or by law the same as another."
    return "It has not been played in the field yet; `driftbandit field --tune` adds it."
