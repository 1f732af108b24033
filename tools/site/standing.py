"""Where a policy stands in the field: its regret next to that of the best tuned policy, by kind of environment.

Read from what `driftbandit field --tune` kept, and, for policies that have nothing to tune, from the table of ratios
that `driftbandit field` wrote; no number is copied."""

import csv
import math
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from driftbandit.environments.named import STILL, SuiteEnvironment
from driftbandit.field.standings import KeptLine, read_kept
from driftbandit.field.suite import find_short_name
from driftbandit.field.suites import BINARY, LEFT_OUT
from tools.site.facts import ROOT

RATIOS = ROOT / "docs/field/ratios.csv"
SOURCES = (BINARY.kept, RATIOS)
ENVIRONMENTS = {environment.name: environment for environment in BINARY.environments}


class Mark(NamedTuple):
    """A policy in one environment."""

    environment: SuiteEnvironment
    ratio: float  # to the best tuned policy there, at this policy's own best setting
    setting: str
    theory: float  # the same as its theory sets it; nan if that was not played


class Kind(NamedTuple):
    """A policy in all environments of one kind: geometric means of the ratio."""

    kind: str
    environments: int
    ratio: float
    theory: float
    setting: str  # the one most often best


@cache
def _lines() -> tuple[KeptLine, ...]:
    return tuple(line for line in read_kept(BINARY.kept) if line.environment in ENVIRONMENTS)


@cache
def best() -> dict[str, float]:
    """The regret of the best tuned policy of each environment, by the rule of `driftbandit field`: the smallest mean of
    those who played all runs."""
    out: dict[str, float] = {}
    most: dict[str, int] = {}
    rivals = [line for line in _lines() if find_short_name(line.label) not in BINARY.no_rivals + BINARY.aside]
    for line in rivals:
        most[line.environment] = max(most.get(line.environment, 0), line.runs)
    for line in rivals:
        if line.runs == most[line.environment]:
            out[line.environment] = min(out.get(line.environment, math.inf), line.mean)
    return out


@cache
def marks(short: str) -> tuple[Mark, ...]:
    """The policy in every environment it was played in."""
    mine = [line for line in _lines() if find_short_name(line.label) == short and line.environment in best()]
    if not mine:
        return tuple(
            Mark(ENVIRONMENTS[row["environment"]], float(row["ratio"]), row["setting"], math.nan)
            for row in _rows(short)
        )
    out = []
    for name in dict.fromkeys(line.environment for line in mine):
        here = [line for line in mine if line.environment == name]
        chosen = min((line for line in here if line.runs == max(o.runs for o in here)), key=lambda line: line.mean)
        theory = [line.mean for line in here if line.label.endswith(".tuned")]
        low = best()[name]
        out.append(Mark(ENVIRONMENTS[name], chosen.mean / low, chosen.label, theory[0] / low if theory else math.nan))
    return tuple(sorted(out, key=lambda mark: BINARY.environments.index(mark.environment)))


def _rows(short: str) -> list[dict[str, str]]:
    if not RATIOS.exists():
        return []
    with RATIOS.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["policy"] == short and row["environment"] in ENVIRONMENTS]


def kinds(short: str) -> list[Kind]:
    """The policy by kind of environment, where it is strongest first."""
    found = marks(short)
    out = []
    for kind in dict.fromkeys(mark.environment.kind for mark in found):
        here = [mark for mark in found if mark.environment.kind == kind]
        setting = Counter(mark.setting for mark in here).most_common(1)[0][0]
        theory = geometric(mark.theory for mark in here)
        out.append(Kind(kind, len(here), geometric(mark.ratio for mark in here), theory, setting))
    return sorted(out, key=lambda one: one.ratio)


def over(short: str, still: bool) -> float:
    """One number: the geometric mean over the stationary environments, or over those that change; nan if none was
    played."""
    found = [mark for mark in marks(short) if (mark.environment.kind == STILL if still else mark.environment.changing)]
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
