"""A cell of a chart: what a minute, an hour, or a day of one bandit came to.

Cells of a minute are dropped when they are eight days old, cells of an hour after four hundred days: by then an hour,
or a day, stands for them. A bandit has at most some 21,000 cells and one more per day, however long it runs."""

import json
from typing import Any, NamedTuple

from driftbandit.half_life import SECOND

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
COARSER = {MINUTE: HOUR, HOUR: DAY}
_KEPT = {MINUTE: 8 * DAY, HOUR: 400 * DAY}  # how long a cell of this width is kept


def kept_from(width: int, now: int) -> int:
    """When the cells of this width begin that are still there; a boundary of the next coarser ones."""
    return (now - _KEPT[width]) // COARSER[width] * COARSER[width]


class ChartCell(NamedTuple):
    """Counts by slot within the stretch, and beliefs at its end."""

    decisions: list[int]
    outcomes: list[int]
    rewards: list[float]  # sums
    mean: list[float | None]
    spread: list[float | None]
    weight: list[float | None]
    alarms: int | None
    n: int  # events folded by then

    def text(self) -> str:
        """As the journal keeps it. Beliefs are rounded to what a chart can show."""
        rounded = {name: [_short(x) for x in getattr(self, name)] for name in ("rewards", "mean", "spread", "weight")}
        return json.dumps({**self._asdict(), **rounded}, separators=(",", ":"), allow_nan=False)

    @classmethod
    def read(cls, text: str) -> "ChartCell | None":
        """The inverse of `text`; None for a cell of another version, which is then as if it were not there."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def joined(cells: list[ChartCell]) -> ChartCell:
    """Several stretches as one: counts add up, beliefs are the last."""
    size = max(len(cell.decisions) for cell in cells)

    def total(name: str, zero: Any) -> list[Any]:
        rows = [[*getattr(cell, name), *[zero] * (size - len(getattr(cell, name)))] for cell in cells]
        return [sum(column) for column in zip(*rows, strict=True)]

    last = cells[-1]
    return last._replace(decisions=total("decisions", 0), outcomes=total("outcomes", 0), rewards=total("rewards", 0.0))
