"""A chunk without drift metrics: its regret, and nothing of its trajectories."""

import threading

from driftbandit.lab.engine.simulate import Simulation, simulate
from driftbandit.lab.jobs.work import Chunk


def played(chunk: Chunk, stop: threading.Event | None = None) -> Simulation:
    """The chunk's regret at its checkpoints."""
    return simulate(
        chunk.policy,
        chunk.environment,
        chunk.runs,
        chunk.seed,
        first_run=chunk.first_run,
        checkpoints=chunk.checkpoints,
        workers=1,
        compiled=chunk.compiled,
        progress=False,
        stop=stop,
    )
