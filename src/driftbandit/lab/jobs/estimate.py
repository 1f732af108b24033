"""How long will it take? Play a little of it and see."""

import threading
import time

from driftbandit.lab.engine.runs import LANES
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.jobs.work import Chunk, weight

_LONG_ENOUGH = 0.25  # seconds


def seconds_a_weight(chunk: Chunk) -> float:
    """Seconds for each unit of `weight`, from the first fraction of a second of the chunk's first runs."""
    stop = threading.Event()
    seen: list[tuple[float, float]] = []

    def look(share: float) -> None:
        now = time.perf_counter()
        seen.append((now, share))
        if now - seen[0][0] > _LONG_ENOUGH:
            stop.set()

    runs = min(chunk.runs, LANES)
    started = time.perf_counter()
    try:
        done = simulate(
            chunk.policy,
            chunk.environment,
            runs,
            chunk.seed,
            workers=1,
            trajectories=chunk.drift,
            progress=look,
            stop=stop,
        )
        return done.seconds / weight(chunk._replace(runs=runs))
    except KeyboardInterrupt:
        if not stop.is_set() or len(seen) < 2:
            raise  # somebody else's Ctrl-C
        (first, before), (last, after) = seen[0], seen[-1]
        if after <= before:
            return (last - started) / weight(chunk._replace(runs=runs))
        return (last - first) / (after - before) / weight(chunk._replace(runs=runs))
