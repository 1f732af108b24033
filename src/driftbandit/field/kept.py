"""What was tuned, kept: one line per world and setting, so that a new policy is compared in minutes.

`benchmarks/field/kept.csv` is made by `driftbandit field --tune`; `driftbandit field` reads it. It is part of the
repository, not of the package. A line is the regret of one setting in one world over `runs` runs, seed 0, and that of
the first half of the runs alone."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

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


def line(world: str, label: str, regret: np.ndarray) -> KeptLine:
    """The line of a setting whose final regret in every run is given (two runs or more)."""
    runs = len(regret)
    error = float(regret.std(ddof=1)) / float(np.sqrt(runs))
    return KeptLine(world, label, runs, float(regret.mean()), error, float(regret[: runs // 2].mean()))


def read(path: Path = KEPT) -> list[KeptLine]:
    """All lines of a file; none if there is no such file."""
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
            return [KeptLine(world, label, int(runs), *map(float, numbers)) for world, label, runs, *numbers in rows]
        except (TypeError, ValueError):
            raise ValueError(
                f"{path} is damaged near line {rows.line_num}; `driftbandit field --tune` makes it anew."
            ) from None


def write(lines: Iterable[KeptLine], path: Path) -> None:
    """Write the lines, in order of world and then of regret."""
    ordered = sorted(lines, key=lambda one: (one.world, one.mean))
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(KeptLine._fields)
        for one in ordered:
            writer.writerow([one.world, one.label, one.runs, *(f"{number:.7g}" for number in one[3:])])
