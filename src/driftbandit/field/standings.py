"""Every policy's ratio to the best tuned policy, world by world, and what it comes to over all of them.

The best tuned policy of a world is the plain minimum over the grid, on the runs it is reported from: the target a
policy without tuning is held to. Restarts whose period was tuned fall on the evenly spaced changes of these worlds, and
are left out of it; `RatioSummary.on_time` says what would be if they counted. A minimum of many noisy means is a little
too small, so ratios are a little too large; `BestTuned.fair` says by how much. Standard errors of ratios treat the two
means as independent, which overstates them where both policies met the same worlds."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from driftbandit.field.grids import GRID, NO_RIVALS, ON_TIME, display_name, make_policy, short_of
from driftbandit.field.suite import DESIGN, SuiteWorld, known_facts
from driftbandit.lab.experiments.result import Part
from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.support.files import replacing

KEPT = Path(__file__).parents[3] / "benchmarks" / "field" / "kept.csv"
RUNS, SEED = 32, 0  # of the file


class KeptLine(NamedTuple):
    """The regret of one setting in one world."""

    world: str
    label: str
    runs: int
    mean: float
    error: float  # standard error of the mean
    first_half: float  # mean over the first half of the runs

    @property
    def second_half(self) -> float:
        """Mean over the other runs."""
        half = self.runs // 2
        return (self.mean * self.runs - self.first_half * half) / (self.runs - half)


def kept_line(world: str, label: str, regret: np.ndarray) -> KeptLine:
    """The kept_line of a setting whose final regret in every run is given (two runs or more)."""
    runs = len(regret)
    error = float(regret.std(ddof=1)) / float(np.sqrt(runs))
    return KeptLine(world, label, runs, float(regret.mean()), error, float(regret[: runs // 2].mean()))


def read_kept(path: Path = KEPT) -> list[KeptLine]:
    """All lines of a file; none if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        head = next(rows, [])
        if tuple(head) != KeptLine._fields:
            raise ValueError(
                f"{path} is not a file of tuned settings: its first kept_line should be {','.join(KeptLine._fields)}."
            )
        try:
            return [KeptLine(world, label, int(runs), *map(float, numbers)) for world, label, runs, *numbers in rows]
        except (TypeError, ValueError):
            raise ValueError(
                f"{path} is damaged near kept_line {rows.line_num}; `driftbandit field --tune` makes it anew."
            ) from None


def write_kept(lines: Iterable[KeptLine], path: Path) -> None:
    """Write the lines, in order of world and then of regret."""
    ordered = sorted(lines, key=lambda one: (one.world, one.mean))
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(KeptLine._fields)
        for one in ordered:
            writer.writerow([one.world, one.label, one.runs, *(f"{number:.7g}" for number in one[3:])])


Results = dict[str, KeptLine]  # the name of a world -> how the contestant did there


class BestTuned(NamedTuple):
    """The best tuned policy of a world."""

    line: KeptLine
    policy: str  # its text with all parameters
    fair: float  # regret of the setting chosen on one half of the runs, measured on the other; both ways, averaged
    on_time: float  # the least regret if restarts that fall on the changes counted


class Contestant(NamedTuple):
    """A contestant in a world."""

    world: SuiteWorld
    name: str
    line: KeptLine
    ratio: float
    error: float  # standard error of the ratio
    on_time: float  # the ratio if restarts that fall on the changes counted


class RatioSummary(NamedTuple):
    """A contestant over all worlds that count: geometric means of the ratio, the worst, and how many are near."""

    name: str
    design: float  # changing design worlds; nan if there are none
    check: float  # changing check worlds
    mean: float  # all changing worlds
    error: float  # standard error of its logarithm
    worst: float
    worst_world: str
    every: float  # all worlds, also those that stand still, the slow ones and the traps
    near: int  # worlds within 10 % of the best tuned
    worlds: int
    on_time: float  # all changing worlds, if restarts that fall on the changes counted


def best_tuned(worlds: Sequence[SuiteWorld], lines: Iterable[KeptLine]) -> dict[str, BestTuned]:
    """The best tuned policy of every world of which lines are kept."""
    out = {}
    rivals = [one for one in lines if short_of(one.label) not in NO_RIVALS]
    for world in worlds:
        played = [one for one in rivals if one.world == world.name]
        played = [one for one in played if one.runs == max(other.runs for other in played)]
        here = [one for one in played if short_of(one.label) not in ON_TIME]
        if here:
            best = min(here, key=lambda one: one.mean)
            first, second = min(here, key=lambda one: one.first_half), min(here, key=lambda one: one.second_half)
            fair = (first.second_half + second.first_half) / 2.0
            out[world.name] = BestTuned(
                best,
                repr(make_policy(best.label, known_facts(world.environment))),
                fair,
                min(one.mean for one in played),
            )
    return out


def settings(
    worlds: Sequence[SuiteWorld], lines: Iterable[KeptLine], best: Mapping[str, BestTuned]
) -> dict[str, Results]:
    """The contestants that the kept lines hold: every policy as its theory says, each family with the one setting that
    does best over the design worlds, and each family tuned for each world."""
    by_label: dict[str, Results] = {}
    for one in lines:
        if one.world in best:
            by_label.setdefault(one.label, {})[one.world] = one
    out = {display_name(label): found for label, found in by_label.items() if label.endswith(".tuned")}
    design = [world.name for world in worlds if world.role == DESIGN and world.name in best]
    for family in GRID:
        members = {label: found for label, found in by_label.items() if short_of(label) == family.short}
        fixed = {
            label: found
            for label, found in members.items()
            if not label.endswith(".tuned") and design and all(name in found for name in design)
        }
        if fixed:
            choice = min(fixed, key=lambda label: _log_mean([fixed[label][name] for name in design], best))
            out[choice] = fixed[choice]
        if members:
            seen = {name for found in members.values() for name in found}
            out[f"{family.short}, tuned for each world"] = {
                name: min((found[name] for found in members.values() if name in found), key=lambda one: one.mean)
                for name in seen
            }
    return out


def _log_mean(lines: Sequence[KeptLine], best: Mapping[str, BestTuned]) -> float:
    return sum(math.log(max(one.mean, 1e-9) / best[one.world].line.mean) for one in lines) / len(lines)


def cells_of(texts: Sequence[str], worlds: Sequence[SuiteWorld], runs: int, seed: int) -> list[Cell]:
    """Every policy named in every world of the suite."""
    facts = {world.name: known_facts(world.environment) for world in worlds}
    return [
        Cell(
            make_policy(text, facts[world.name]),
            world.environment,
            runs,
            seed,
            1,
            policy_name=text,
            environment_name=world.name,
        )
        for text in texts
        for world in worlds
    ]


def by_policy(parts: Iterable[Part]) -> dict[str, Results]:
    """What was played, by policy and world."""
    out: dict[str, Results] = {}
    for part in parts:
        out.setdefault(part.policy, {})[part.environment] = kept_line(part.environment, part.policy, part.final)
    return out


def standings(
    worlds: Sequence[SuiteWorld], best: Mapping[str, BestTuned], contestants: Mapping[str, Results]
) -> list[Contestant]:
    """The ratio of every contestant in every world to the best tuned policy there."""
    out = []
    for name, results in contestants.items():
        for world in worlds:
            if world.name in results and world.name in best:
                mine, theirs = results[world.name], best[world.name].line
                ratio = mine.mean / theirs.mean
                error = ratio * math.hypot(mine.error / max(mine.mean, 1e-9), theirs.error / theirs.mean)
                out.append(Contestant(world, name, mine, ratio, error, mine.mean / best[world.name].on_time))
    return out


def summaries(found: Sequence[Contestant]) -> list[RatioSummary]:
    """Every contestant over all its worlds, the best first: by the geometric mean over the worlds that change."""
    by_name: dict[str, list[Contestant]] = {}
    for one in found:
        by_name.setdefault(one.name, []).append(one)
    out = [_summary(name, here) for name, here in by_name.items()]
    return sorted(out, key=lambda one: (math.isnan(one.mean), one.mean, one.every))


def _summary(name: str, here: Sequence[Contestant]) -> RatioSummary:
    changing = [one for one in here if one.world.changing]
    worst = max(changing or here, key=lambda one: one.ratio)
    error = math.sqrt(sum((one.error / one.ratio) ** 2 for one in changing if one.ratio > 0)) / max(1, len(changing))
    return RatioSummary(
        name,
        _geometric([one.ratio for one in changing if one.world.role == DESIGN]),
        _geometric([one.ratio for one in changing if one.world.role != DESIGN]),
        _geometric([one.ratio for one in changing]),
        error,
        worst.ratio,
        worst.world.name,
        _geometric([one.ratio for one in here]),
        sum(one.ratio <= 1.1 for one in here),
        len(here),
        _geometric([one.on_time for one in changing]),
    )


def _geometric(ratios: Sequence[float]) -> float:
    return math.exp(sum(math.log(max(ratio, 1e-9)) for ratio in ratios) / len(ratios)) if ratios else math.nan
