"""The law of watching: who loses nothing in a world that stands still cannot notice an arm that nobody plays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from driftbandit.lab.field.grids import NO_RIVALS, ON_TIME, short_of
from driftbandit.lab.field.kept import KeptLine
from driftbandit.lab.field.standings import Results

STILL, TRAP = "stat-K5", "trap-K5"


class FrontierPoint(NamedTuple):
    """A setting: its regret in the stationary world and in the trap."""

    family: str
    label: str
    still: float
    trap: float
    still_error: float = 0.0  # standard errors
    trap_error: float = 0.0


def _point(family: str, label: str, still: KeptLine, trap: KeptLine) -> FrontierPoint:
    return FrontierPoint(family, label, still.mean, trap.mean, still.error, trap.error)


def points(
    lines: Iterable[KeptLine], played: Mapping[str, Results], still: str = STILL, trap: str = TRAP
) -> list[FrontierPoint]:
    """Every setting that was played in both worlds, and the contestants."""
    at: dict[str, Results] = {}
    for one in lines:
        at.setdefault(one.label, {})[one.world] = one
    found = [
        _point(short_of(label), label, here[still], here[trap])
        for label, here in at.items()
        if still in here and trap in here and short_of(label) not in NO_RIVALS + ON_TIME
    ]
    for name, results in played.items():
        if still in results and trap in results:
            found.append(_point(name, name, results[still], results[trap]))
    return found


def undominated(found: Sequence[FrontierPoint]) -> list[FrontierPoint]:
    """The settings that no other beats in both worlds, by rising regret in the stationary one.

    >>> found = [FrontierPoint("family", *point) for point in (("a", 1, 9), ("b", 2, 9), ("c", 3, 4))]
    >>> [point.label for point in undominated(found)]
    ['a', 'c']
    """
    out: list[FrontierPoint] = []
    for point in sorted(found, key=lambda point: (point.still, point.trap)):
        if not out or point.trap < out[-1].trap:
            out.append(point)
    return out
