"""Play a study, or the part of it that is not played yet, and collect its result."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.experiments.result import Part, Result
from driftbandit.lab.experiments.study import Study, Variants
from driftbandit.lab.jobs import drift
from driftbandit.lab.jobs.batch import Batch
from driftbandit.lab.jobs.drift import Still
from driftbandit.lab.jobs.store import fingerprint, prune
from driftbandit.lab.jobs.work import Cell, refuse_impossible, seconds_a_weight, weight
from driftbandit.lab.stats.intervals import Interval, difference, interval
from driftbandit.lab.support.digest import code_digest, library_versions
from driftbandit.lab.support.files import cache_root
from driftbandit.policies.beta_ts import BetaTS

_MOST = 50_000_000  # numbers kept in memory: a larger study keeps the regret at the end only


def run(
    what: Study | Sequence[Any] | Mapping[str, Any],
    environments: Any = None,
    runs: int | None = None,
    seed: int | None = None,
    *,
    first_run: int | None = None,
    checkpoints: int | None = None,
    title: str | None = None,
    folder: str | Path | None = None,
    executor: Executor | str | int | None = None,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = True,
    compiled: bool = True,
) -> Result:
    """Play policies in environments, or a `Study`, and collect the regret of every run.

    Policies and environments are objects or texts; a mapping gives each policy a label. `environments` is one or a
    list (default: "Abrupt()"), `runs` is 100 and `seed` 0 unless given. All policies meet the same environments and the
    same random numbers in run r, so differences are paired. Runs 0 to 49 and 50 to 99 made separately (`first_run`) are
    together exactly the 100 runs made at once.

    Finished pieces are kept in `folder`/chunks, or without a folder in the user's cache: the same call continues where
    it was stopped. `executor` says where the work is done (`lab.jobs.executors`). Neither it, `workers`, `progress` nor
    `compiled` changes a number.

    >>> run({"mine": "ds-ts(gamma=0.9)"}, "smooth(horizon=500)", runs=2, compiled=False).final("mine").shape
    (2,)
    """
    given = {"runs": runs, "seed": seed, "first_run": first_run, "checkpoints": checkpoints, "title": title}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if isinstance(what, Study):
        if environments is not None:
            raise ValueError("A study has environments of its own; leave `environments` out.")
        study = dataclasses.replace(what, **changes)
    else:
        policies = [Variants(p, label=label) for label, p in what.items()] if isinstance(what, Mapping) else what
        places = (
            environments if isinstance(environments, list) else ["Abrupt()" if environments is None else environments]
        )
        study = Study(policies, places, **changes)
    cells = _cells(study)
    batch = Batch(_work(study, cells), _kept_in(folder), compiled)
    tally = batch.run(executor, workers, progress, study.id or study.title or "run")
    parts, played = [], []
    ends_only = len(cells) * study.runs * study.checkpoints > _MOST
    for cell in cells:
        done = batch.result(cell)
        rounds, regret = (done.rounds[-1:], done.regret[:, -1:]) if ends_only else (done.rounds, done.regret)
        parts.append(Part(cell, np.array(rounds), np.array(regret), done.seconds))
        if study.drift:
            played.append(done.drift or {})
    numbers = np.arange(study.first_run, study.first_run + study.runs)
    drift = _drift(cells, batch, played) if study.drift else []
    about = provenance(cells, study.id, study.title, study.shows, study.reference)
    return Result(parts, numbers, about, drift, _phases(cells, played) if study.drift else {}, tally)


def provenance(
    cells: Sequence[Cell], id: str = "", title: str = "", shows: str = "", reference: str | None = None
) -> dict[str, Any]:
    """What is needed to play cells again beyond their policies and environments: plain JSON."""
    return {
        "id": id,
        "title": title,
        "shows": shows,
        "reference": reference,
        "seed": cells[0].seed,
        "runs": cells[0].runs,
        "checkpoints": cells[0].checkpoints,
        "versions": library_versions(),
        "source": code_digest(*((cell.policy, cell.environment) for cell in cells)),
    }


def _cells(study: Study) -> list[Cell]:
    """The cells of a study, once it is certain that all can be played."""
    cells = study.cells()
    for cell in cells:
        refuse_impossible(cell.policy, cell.environment, study.runs, study.checkpoints)
    return cells


def _kept_in(folder: str | Path | None, look: bool = False) -> Path:
    """Where finished chunks are kept; with `look` nothing is removed there."""
    if folder is not None:
        return Path(folder) / "chunks"
    shared = cache_root() / "chunks"
    if not look:
        prune(shared)
    return shared


def _work(study: Study, cells: list[Cell]) -> Iterator[Cell]:
    """What is simulated. The drift metrics also need every cell in an environment that does not change, and Thompson
    sampling, which never forgets, in the same environment."""
    for cell in cells:
        yield cell
        if study.drift:
            yield _still(cell)
            yield _still(cell, BetaTS())


def _still(cell: Cell, policy: Any = None) -> Cell:
    """The cell, or another policy, in the same environment without its changes."""
    return cell._replace(policy=policy or cell.policy, environment=Still(cell.environment), checkpoints=1)


def _drift(cells: list[Cell], batch: Batch, played: list[dict[str, Any]]) -> list[drift.DriftMetrics]:
    """The drift metrics of every cell."""
    lines, bases = [], {}
    for cell, columns in zip(cells, played, strict=True):
        if cell.world not in bases:
            bases[cell.world] = batch.result(_still(cell, BetaTS())).regret[:, -1]
        still = batch.result(_still(cell))
        price = Interval(*difference(still.regret[:, -1], bases[cell.world])[:3])
        alarms = (still.drift or {})["alarms"].astype(float)
        line = drift.summarise_phases(cell.world, cell.label, columns)
        lines.append(line._replace(price=price, still_alarms=interval(alarms) if (alarms >= 0).all() else None))
    return lines


def _phases(cells: list[Cell], played: list[dict[str, Any]]) -> dict[str, Any]:
    """One row per cell, run and phase."""
    columns: dict[str, Any] = {
        "environment": [cell.world for cell, part in zip(cells, played, strict=True) for _ in part["run"]],
        "policy": [cell.label for cell, part in zip(cells, played, strict=True) for _ in part["run"]],
    }
    return columns | {name: np.concatenate([part[name] for part in played]) for name in played[0]}


def play(
    cells: Sequence[Cell],
    store: str | Path,
    executor: Executor | str | int | None = None,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = False,
    label: str = "",
) -> list[Part]:
    """The results of any cells, in their order; finished chunks are kept in the folder `store`."""
    batch = Batch(cells, store)
    batch.run(executor, workers, progress, label)
    played = [(cell, batch.result(cell)) for cell in cells]
    return [Part(cell, done.rounds, done.regret, done.seconds) for cell, done in played]


class WorkPlan(NamedTuple):
    """How much work some cells are."""

    cells: int
    chunks: int
    ready: int
    rounds: int  # still to be played
    seconds: float  # about how long it takes one worker


def plan(study: Study, folder: str | Path | None = None) -> WorkPlan:
    """How much `run` would have to do; nothing is written."""
    cells = _cells(study)
    return plan_cells(list(_work(study, cells)), _kept_in(folder, look=True))._replace(cells=len(cells))


def plan_cells(cells: Sequence[Cell], store: str | Path) -> WorkPlan:
    """How much `play` would have to do. The time is measured on a fraction of a second of each kind of policy and
    environment."""
    chunks = {fingerprint(chunk): chunk for cell in cells for chunk in cell.chunks()}
    ready = {path.stem for path in Path(store).glob("*/*.chunk")}
    todo = [chunk for name, chunk in chunks.items() if name not in ready]
    speeds: dict[Any, float] = {}
    seconds = 0.0
    for chunk in todo:
        kind = (type(chunk.policy), type(chunk.environment), chunk.environment.n_arms, chunk.drift)
        if kind not in speeds:
            speeds[kind] = seconds_a_weight(chunk) if len(speeds) < 40 else next(iter(speeds.values()))
        seconds += weight(chunk) * speeds[kind]
    rounds = sum(chunk.runs * chunk.environment.horizon for chunk in todo)
    return WorkPlan(len(cells), len(chunks), len(chunks) - len(todo), rounds, seconds)
