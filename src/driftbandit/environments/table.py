"""An environment from a file of means over time, as `driftbandit drift --environment` writes it from a log."""

import csv
import math
import os
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.rewards import Bernoulli, check_law

ROUNDS = "rounds"  # the column with the number of rounds of a row


@described(short="table")
@checked
class Table(NamedTuple):
    """Means from a CSV file with a column for each arm and rows in order of time.

    A column `rounds` gives the number of rounds of each row, one by default. `stretch` multiplies it, to play with more
    or less traffic. `driftbandit drift log.csv --environment environment.csv` makes such a file from a log. Without a
    file, two arms change places after 500 rounds."""

    file: str = ""
    stretch: Annotated[float, within("> 0")] = 1.0
    law: Any = Bernoulli()

    def validate(self) -> None:
        environment = self.realise(0)
        check_law(self.law, float(np.min(environment.table)), float(np.max(environment.table)))

    @property
    def n_arms(self) -> int:
        return self.realise(0).n_arms

    @property
    def horizon(self) -> int:
        return self.realise(0).horizon

    def realise(self, key: int) -> Phased:
        if not self.file:
            swap = round(500 * self.stretch)
            return phased([[0.4, 0.6], [0.6, 0.4]], [0, max(swap, 1)], max(2 * swap, 2), self.law)
        if not os.path.isfile(self.file):
            raise ValueError(
                f"There is no file {self.file!r:.100}. Table needs a CSV of means over time; `driftbandit drift LOG "
                "--environment FILE` writes one."
            )
        return _read(os.path.abspath(self.file), os.stat(self.file).st_mtime_ns, self.stretch, self.law)


@lru_cache(maxsize=16)
def _read(path: str, changed: int, stretch: float, law: Any) -> Phased:
    """The file as an environment; read again when it has changed."""
    name = os.path.basename(path)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"Table cannot read {name}: {error!s:.100}.") from None
    if len(rows) < 2 or len(rows[0]) < 1:
        raise ValueError(f"Table needs {name} to have a line of names and at least one line of means.")
    head = [cell.strip() for cell in rows[0]]
    numbers = np.empty((len(rows) - 1, len(head)))
    for at, row in enumerate(rows[1:]):
        try:
            numbers[at] = [float(cell) for cell in row] if len(row) == len(head) else math.nan
        except ValueError:
            numbers[at] = math.nan
        if not np.isfinite(numbers[at]).all():
            raise ValueError(f"Table needs {len(head)} numbers in row {at + 1} of {name}; got {','.join(row):.60}.")
    lasting = np.ones(len(numbers))
    if ROUNDS in head:
        lasting = numbers[:, head.index(ROUNDS)]
        numbers = np.delete(numbers, head.index(ROUNDS), axis=1)
    if numbers.shape[1] < 1 or (lasting <= 0).any():
        raise ValueError(f"Table needs {name} to have a column for each arm, and rows that last at least one round.")
    ends = np.maximum(np.round(np.cumsum(lasting) * stretch), np.arange(1, len(lasting) + 1)).astype(np.int64)
    starts = np.append(0, ends[:-1])
    keep = np.append(np.diff(starts) > 0, True)  # a row squeezed to nothing is left out
    return phased(numbers[keep], starts[keep], int(max(ends[-1], starts[keep][-1] + 1)), law)
