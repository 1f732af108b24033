"""Policies against each other in one world: a study of a single world, and its curves."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from driftbandit.lab.experiments.comparison import compare
from driftbandit.lab.experiments.result import Result
from driftbandit.lab.experiments.study import Study, Variants


def run(
    policies: Sequence[Any] | Mapping[str, Any],
    environment: Any = "Abrupt()",
    runs: int = 100,
    seed: int = 0,
    *,
    first_run: int = 0,
    checkpoints: int = 200,
    title: str = "",
    folder: str | Path | None = None,
    executor: Executor | str | int | None = None,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = True,
    compiled: bool = True,
) -> Result:
    """Play policies in one world and collect their regret curves.

    Policies and world are objects or texts; a mapping gives each policy a label of its own. All of them meet the same
    worlds and the same luck in run r, so differences are paired. Runs 0 to 49 and 50 to 99 made separately
    (`first_run`) are together exactly the 100 runs made at once. Finished pieces are kept, as `compare` keeps them: the
    same call continues where it was stopped.

    >>> run({"mine": "ds-ts(gamma=0.9)"}, "smooth(horizon=500)", runs=2, compiled=False).final("mine").shape
    (2,)
    """
    named = [Variants(p, label=label) for label, p in policies.items()] if isinstance(policies, Mapping) else policies
    study = Study(named, [environment], runs, seed, checkpoints=checkpoints, title=title, first_run=first_run, id="run")
    return compare(study, folder, executor, workers, progress, compiled=compiled).result()
