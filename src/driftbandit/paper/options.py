"""What to reproduce and how, and what an item is given to draw and save itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from driftbandit.lab.engine.simulate import Simulation

PARAMETERS = ("text", "code")  # what the paper prints, what the authors' code runs


@dataclass(frozen=True)
class PaperOptions:
    """What to reproduce, and how."""

    out: Path  # the folder for results, figures and the report
    items: tuple[str, ...] = ()  # ids or families; none means all
    runs: int = 100
    parameters: tuple[str, ...] = PARAMETERS
    environment: str = "authors"  # or "fresh": a new world for each run
    seed: int = 0
    workers: int | None = None
    quick: bool = False  # said in the report, so that nobody takes ten runs for a hundred
    executor: Any = None  # where the simulations are done: `lab.jobs.executors`
    additions: tuple[str, ...] = ()  # policies not the paper's: drawn with its regret curves, in no claim


class PlayedPaper(Protocol):
    """A reproduction with its results: what `job.PaperRun` is to an item."""

    options: PaperOptions

    @property
    def items(self) -> Mapping[str, Any]:
        """The items by their ids."""
        ...

    @property
    def failures(self) -> Mapping[str, str]:
        """Items that have no results, and why."""
        ...

    def outcome(self, item_id: str, label: str, parameters: str, gap: float | None = None) -> Simulation:
        """What came out of one simulation."""
        ...

    def final(self, item_id: str, label: str, parameters: str, gap: float | None = None) -> np.ndarray:
        """The regret at the end of one simulation, one number per run."""
        ...
