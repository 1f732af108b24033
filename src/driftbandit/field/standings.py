"""Every policy's ratio to the best tuned policy, by environment and over all of them.

The best tuned policy is the minimum over the grid, on the runs it is reported from. Families that the suite sets aside
are not part of it (`RatioSummary.aside` counts them). A minimum of many noisy means is a little too small
(`BestTuned.fair` has the size). Standard errors of ratios treat the two means as independent, which overstates them."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments.named import DESIGN, SuiteEnvironment
from driftbandit.field.suite import Suite, find_short_name
from driftbandit.lab.files import save_rows


class KeptLine(NamedTuple):
    """The regret of one setting in one environment."""

    environment: str
    label: str
    runs: int
    mean: float
    error: float  # standard error of the mean
    first_half: float  # mean over the first half of the runs

    @property
    def second_half(self) -> float:
        half = self.runs // 2
        return (self.mean * self.runs - self.first_half * half) / (self.runs - half)


def make_kept_line(environment: str, label: str, regret: np.ndarray) -> KeptLine:
    """The line of a setting from its final regret in every run (two runs or more)."""
    runs = len(regret)
    error = float(regret.std(ddof=1)) / float(np.sqrt(runs))
    return KeptLine(environment, label, runs, float(regret.mean()), error, float(regret[: runs // 2].mean()))


def read_kept(path: Path) -> list[KeptLine]:
    """Read the lines of a file; an empty list if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        head = next(rows, [])
        if tuple(head) != KeptLine._fields:
            raise ValueError(
                f"{path} is not a file of tuned settings: its first line should be {','.join(KeptLine._fields)}."
            )
        try:
            return [
                KeptLine(environment, label, int(runs), *map(float, numbers))
                for environment, label, runs, *numbers in rows
            ]
        except (TypeError, ValueError):
            raise ValueError(
                f"{path} is damaged near line {rows.line_num}; `driftbandit field --tune` makes it again."
            ) from None


def write_kept(lines: Iterable[KeptLine], path: Path) -> None:
    """Write the lines, in order of environment and then of regret."""
    ordered = sorted(lines, key=lambda one: (one.environment, one.mean))
    rows = [[one.environment, one.label, one.runs, *(f"{number:.7g}" for number in one[3:])] for one in ordered]
    save_rows(KeptLine._fields, rows, path)


Results = dict[str, KeptLine]  # by the name of an environment


class BestTuned(NamedTuple):
    """The best tuned policy of an environment."""

    line: KeptLine
    policy: str  # its text with all parameters
    fair: float  # regret of the setting chosen on one half of the runs, measured on the other; both ways, averaged
    aside: float  # the least regret if the families set aside counted


class Standing(NamedTuple):
    """A policy in an environment."""

    environment: SuiteEnvironment
    name: str
    line: KeptLine
    ratio: float
    error: float  # standard error of the ratio
    aside: float  # the ratio if the families set aside counted

    def to_dict(self) -> dict[str, Any]:
        """The columns of ratios.csv."""
        (name, kind, role, *_), line = self.environment, self.line
        about = {"environment": name, "role": role, "kind": kind, "policy": self.name, "runs": line.runs}
        numbers = {"regret": line.mean, "error": line.error, "ratio": self.ratio, "ratio_error": self.error}
        return {**about, **numbers, "setting": line.label}


class RatioSummary(NamedTuple):
    """A policy over all environments: geometric means of the ratio, the worst, and how many are near the best."""

    name: str
    design: float  # changing environments for design; nan without any
    check: float  # changing environments for checks
    mean: float  # all changing environments
    error: float  # standard error of its logarithm
    worst: float
    worst_environment: str
    every: float  # all environments, also the stationary and slow ones and the traps
    near: int  # environments within 10% of the best tuned
    environments: int
    aside: float  # all changing environments, if the families set aside counted


def find_best_tuned(
    suite: Suite, environments: Sequence[SuiteEnvironment], lines: Iterable[KeptLine]
) -> dict[str, BestTuned]:
    """The best tuned policy of every environment that has lines."""
    out = {}
    rivals = [one for one in lines if find_short_name(one.label) not in suite.no_rivals]
    for environment in environments:
        played = [one for one in rivals if one.environment == environment.name]
        played = [one for one in played if one.runs == max(other.runs for other in played)]
        here = [one for one in played if find_short_name(one.label) not in suite.aside]
        if here:
            best = min(here, key=lambda one: one.mean)
            first, second = min(here, key=lambda one: one.first_half), min(here, key=lambda one: one.second_half)
            fair = (first.second_half + second.first_half) / 2.0
            policy = repr(suite.make_policy(best.label, environment))
            out[environment.name] = BestTuned(best, policy, fair, min(one.mean for one in played))
    return out


def settings(
    suite: Suite, environments: Sequence[SuiteEnvironment], lines: Iterable[KeptLine], best: Mapping[str, BestTuned]
) -> dict[str, Results]:
    """The policies in the lines: each as its theory tunes it, each family with the setting that is best over the
    environments for design, and each family tuned for each environment."""
    by_label: dict[str, Results] = {}
    for one in lines:
        if one.environment in best:
            by_label.setdefault(one.label, {})[one.environment] = one
    out = {suite.display_name(label): found for label, found in by_label.items() if label.endswith(".tuned")}
    design = [one.name for one in environments if one.role == DESIGN and one.name in best]

    def ratio_over_design(label: str) -> float:
        return geometric([by_label[label][name].mean / best[name].line.mean for name in design])

    for family in suite.families:
        members = [label for label in by_label if find_short_name(label) == family]
        fixed = [label for label in members if not label.endswith(".tuned") and set(design) <= set(by_label[label])]
        if fixed and design:
            choice = min(fixed, key=ratio_over_design)
            out[choice] = by_label[choice]
        least: Results = {}
        for one in (one for label in members for one in by_label[label].values()):
            if one.environment not in least or one.mean < least[one.environment].mean:
                least[one.environment] = one
        if least:
            out[f"{family}, tuned for each environment"] = least
    return out


def standings(
    environments: Sequence[SuiteEnvironment], best: Mapping[str, BestTuned], played: Mapping[str, Results]
) -> list[Standing]:
    """The ratio of every policy in every environment to the best tuned policy there."""
    out = []
    for name, results in played.items():
        for environment in environments:
            if environment.name in results and environment.name in best:
                mine, (theirs, _, _, aside) = results[environment.name], best[environment.name]
                ratio = mine.mean / theirs.mean
                error = ratio * math.hypot(mine.error / max(mine.mean, 1e-9), theirs.error / theirs.mean)
                out.append(Standing(environment, name, mine, ratio, error, mine.mean / aside))
    return out


def summaries(found: Sequence[Standing]) -> list[RatioSummary]:
    """Every policy over all its environments, ordered by the geometric mean over those that change."""
    out = []
    for name in dict.fromkeys(one.name for one in found):
        here = [one for one in found if one.name == name]
        changing = [one for one in here if one.environment.changing]
        worst = max(changing or here, key=lambda one: one.ratio)
        error = math.hypot(*(one.error / one.ratio for one in changing if one.ratio > 0)) / max(1, len(changing))
        out.append(
            RatioSummary(
                name,
                geometric([one.ratio for one in changing if one.environment.role == DESIGN]),
                geometric([one.ratio for one in changing if one.environment.role != DESIGN]),
                geometric([one.ratio for one in changing]),
                error,
                worst.ratio,
                worst.environment.name,
                geometric([one.ratio for one in here]),
                sum(one.ratio <= 1.1 for one in here),
                len(here),
                geometric([one.aside for one in changing]),
            )
        )
    return sorted(out, key=lambda one: (math.isnan(one.mean), one.mean, one.every))


def geometric(ratios: Sequence[float]) -> float:
    """The geometric mean; nan of nothing."""
    return math.exp(sum(math.log(max(ratio, 1e-9)) for ratio in ratios) / len(ratios)) if ratios else math.nan
