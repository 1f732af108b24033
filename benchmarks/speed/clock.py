"""Timing that a busy machine disturbs little: CPU and wall time, the smallest of several repeats."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Timing(NamedTuple):
    """Seconds of one call: the least CPU time and the least wall time seen."""

    cpu: float
    wall: float

    def each(self, count: float) -> "Timing":
        """The time of one of `count` equal parts."""
        return Timing(self.cpu / count, self.wall / count)


def measure(function: Callable[[], Any], repeats: int = 3, enough: float = float("inf")) -> Timing:
    """The time of `function()` in this thread. Neighbours only ever add time, so the least is the best estimate; CPU
    time leaves out the time in which the machine did something else, though not what a shared cache or core costs.

    No repeat begins after `enough` seconds: a call of seconds averages over what disturbs one of milliseconds."""
    best, began = Timing(float("inf"), float("inf")), time.perf_counter()
    for turn in range(repeats):
        if turn and time.perf_counter() - began > enough:
            break
        cpu, wall = time.thread_time(), time.perf_counter()
        function()
        best = Timing(min(best.cpu, time.thread_time() - cpu), min(best.wall, time.perf_counter() - wall))
    return best


def slope(sizes: list[float], seconds: list[float]) -> float:
    """The exponent of a power law through the points: 1 means that twice the size takes twice the time.

    >>> slope([10.0, 20.0, 40.0], [1.0, 2.0, 4.0])
    1.0
    """
    import numpy as np

    return round(float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]), 12)
