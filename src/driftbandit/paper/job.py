"""The whole job: every simulation of the chosen items, computed once, kept as it finishes, written item by item."""

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.engine.simulate import Simulation
from driftbandit.lab.jobs.batch import Batch, Tally
from driftbandit.lab.jobs.store import fingerprint
from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.plots.style import ENDINGS
from driftbandit.lab.stats.intervals import t_interval
from driftbandit.lab.support.digest import library_versions, package_digest
from driftbandit.lab.support.files import note_in, save_rows, writable
from driftbandit.lab.support.progress import Progress, duration
from driftbandit.paper import choose
from driftbandit.paper.items.item import Item, ItemKey, PaperOptions, PlayedPaper
from driftbandit.paper.picture import save_figure
from driftbandit.paper.report import report

EXTRA = "comparisons"  # the name under which failures of the extra cells are reported


class PaperRun:
    """The chosen items with all their results. `compute` does the work; afterwards every number can be asked for.

    `extra_cells` are simulations that belong to no figure: what a report compares beside them."""

    def __init__(
        self,
        options: PaperOptions,
        extra_cells: Mapping[str, Cell] | None = None,
        items: Iterable[Item] | None = None,
    ) -> None:
        self.options = options
        chosen = choose(options.items) if items is None else {item.id: item for item in items}
        self.items: dict[str, Item] = dict(chosen)
        self.extra_cells = dict(extra_cells or {})
        self.failures: dict[str, str] = {}  # item: what went wrong, in a sentence
        self.tally = Tally(0, 0)
        self.seconds = 0.0
        self._cells = {name: item.cells(options) for name, item in self.items.items()}
        for folder in ("data", "figures"):
            writable(options.out / folder / "probe")
        everything = [cell for cells in self._cells.values() for cell in cells.values()]
        self.batch = Batch([*everything, *self.extra_cells.values()], options.out / "store")
        self._finals: dict[tuple[str, ItemKey], np.ndarray] = {}

    def labels(self, item_id: str) -> tuple[str, ...]:
        """The policies of an item, by the paper's short names."""
        return self.items[item_id].labels

    def cell(self, item_id: str, label: str, parameters: str, gap: float | None = None) -> Cell:
        """One simulation of an item."""
        if item_id in self.failures:
            raise ValueError(f"{item_id} has no results: {self.failures[item_id]}")
        return self._cells[item_id][ItemKey(label, parameters, gap)]

    def outcome(self, item_id: str, label: str, parameters: str, gap: float | None = None) -> Simulation:
        """What came out of one simulation: runs × checkpoints, read from disk."""
        return self.batch.result(self.cell(item_id, label, parameters, gap))

    def final(self, item_id: str, label: str, parameters: str, gap: float | None = None) -> np.ndarray:
        """The regret at the end of one simulation, one number per run. Run r of two policies met the same luck."""
        place = item_id, ItemKey(label, parameters, gap)
        if place not in self._finals:
            self._finals[place] = self.outcome(item_id, label, parameters, gap).regret[:, -1].copy()
        return self._finals[place]

    def extra(self, name: str) -> Simulation:
        """What came out of an extra cell."""
        if EXTRA in self.failures:
            raise ValueError(f"The {EXTRA} have no results: {self.failures[EXTRA]}")
        return self.batch.result(self.extra_cells[name])

    def compute(self, progress: bool | Callable[[float], None] = True, say: Callable[[str], None] = print) -> None:
        """Compute what is missing and write each item's files as soon as it is complete.

        An item that fails is noted in `failures` and the others go on. A disk that is full or cannot be written ends
        the job with an OSError; what was finished before is kept, and the next call goes on from there."""
        clock = _Clock(self.batch)
        jobs: dict[str, list[Cell]] = {name: list(cells.values()) for name, cells in self._cells.items()}
        if self.extra_cells:
            jobs[EXTRA] = list(self.extra_cells.values())
        self.tally = Tally(len(self.batch.plan) - clock.todo, clock.todo)
        writing: dict[Future[None], str] = {}
        workers = self.options.workers or os.cpu_count() or 1
        with Progress(clock.total, progress, "paper", workers) as bar, ThreadPoolExecutor(1) as writer:
            try:
                for number, (name, cells) in enumerate(jobs.items(), 1):
                    if self._simulated(name, cells, clock.share_of(bar), say) and name != EXTRA:
                        writing[writer.submit(self._write, self.items[name])] = name
                    self._written(writing, say, only_done=True)
                    say(f"[{number}/{len(jobs)}] {name}{_left(bar)}")
                self._written(writing, say)
            finally:
                writer.shutdown(cancel_futures=True)
        save_summary(self, self.options.out / "summary.csv")
        self.seconds = time.monotonic() - clock.started

    def _simulated(self, name: str, cells: list[Cell], share: Any, say: Callable[[str], None]) -> bool:
        part = Batch(cells, self.batch.store.folder)
        part.store = self.batch.store
        try:
            part.run(self.options.executor, self.options.workers, share(part))
        except OSError:
            raise  # the disk: the next item would fail as well
        except Exception as error:
            self._failed(name, error, say)
            return False
        return True

    def _written(self, writing: dict[Future[None], str], say: Callable[[str], None], only_done: bool = False) -> None:
        """Look at the files that were written meanwhile, or wait for all of them."""
        for future in [future for future in writing if future.done() or not only_done]:
            name = writing.pop(future)
            try:
                future.result()
            except OSError:
                raise
            except Exception as error:
                self._failed(name, error, say)

    def _failed(self, name: str, error: Exception, say: Callable[[str], None]) -> None:
        sentence = " ".join(f"{type(error).__name__}: {error}".split())
        self.failures[name] = sentence
        say(f"{name} failed, the others go on. {sentence}")

    def _write(self, item: Item) -> None:
        """Data and figure of one item, unless they are there already, made from the same results by the same code."""
        out, names = self.options.out, [fingerprint(c) for cell in self._cells[item.id].values() for c in cell.chunks()]
        story = [
            repr(item),
            names,
            self.options.parameters,
            self.options.environment,
            self.options.seed,
            package_digest(),
        ]
        made_from = hashlib.sha256(json.dumps(story).encode()).hexdigest()
        data = out / "data" / f"{item.id}.parquet"
        narrow = f"{item.id}-narrow"
        pictures = [out / "figures" / name for name in (*(f"{item.id}{ending}" for ending in ENDINGS), f"{narrow}.svg")]
        if all(path.exists() for path in pictures) and note_in(data).get("made_from") == made_from:
            return
        data.unlink(missing_ok=True)  # the mark of completeness goes first and comes last
        save_figure(lambda figure: item.draw(self, figure), out / "figures", item.id, item.size(self))
        size = item.size(self, narrow=True)
        save_figure(lambda figure: item.draw(self, figure), out / "figures", narrow, size, (".svg",))
        note = {"versions": library_versions(), "source": package_digest(), "parameters": list(self.options.parameters)}
        item.save(self, data, {**note, "made_from": made_from})


class _Clock:
    """How much is to be done, and how long it may still take."""

    def __init__(self, batch: Batch) -> None:
        missing = batch.missing()
        self.todo = len(missing)
        self.total = sum(_work(batch.plan[name]) for name in missing)
        self.started = time.monotonic()

    def share_of(self, bar: Progress) -> Callable[[Batch], Callable[[float], None]]:
        """A bar over the whole job, moved by the shares that each item's batch reports."""

        def start(part: Batch) -> Callable[[float], None]:
            mine, seen = sum(_work(part.plan[name]) for name in part.missing()), 0.0

            def report(share: float) -> None:
                nonlocal seen
                bar.add((share - seen) * mine)
                seen = share

            return report

        return start


def _left(bar: Progress) -> str:
    """The time left, once there is something to judge by; compiling is not counted."""
    seconds = bar.left()
    return "" if seconds is None else f", about {duration(seconds)} left, not counting compilation"


def _work(chunk: Any) -> float:
    """About how much work a chunk is: policies that draw from Beta laws take several times as long an arm."""
    an_arm = 20.0 if hasattr(chunk.policy, "prior_wins") else 3.0
    return float(chunk.runs * chunk.environment.horizon * (30.0 + an_arm * chunk.environment.n_arms))


SUMMARY = (
    "item",
    "policy",
    "parameters",
    "environment",
    "horizon",
    "runs",
    "regret_mean",
    "regret_ci_low",
    "regret_ci_high",
    "seconds",
    "gap",
)


def summary_rows(run: PlayedPaper) -> list[list[Any]]:
    """The lines of the summary: the mean of the runs, a 95 % t-interval (empty for a single run), the seconds of
    computing, and the gap where it is varied."""
    rows = []
    for item in run.items.values():
        if item.id in run.failures:
            continue
        for parameters in run.options.parameters:
            for label in item.labels:
                for gap in item.gaps or (None,):
                    outcome = run.outcome(item.id, label, parameters, gap)
                    final = outcome.regret[:, -1]
                    low, high = (float(side) for side in t_interval(final))
                    rows.append(
                        [
                            item.id,
                            label,
                            parameters,
                            run.options.environment,
                            int(outcome.rounds[-1]),
                            len(final),
                            f"{final.mean():.3f}",
                            *("" if math.isnan(side) else f"{side:.3f}" for side in (low, high)),
                            f"{outcome.seconds:.3f}",
                            "" if gap is None else f"{gap:.2f}",
                        ]
                    )
    return rows


def save_summary(run: PlayedPaper, path: Path) -> Path:
    """Write the summary of all items that did not fail."""
    return save_rows(SUMMARY, summary_rows(run), path)


class Reproduction(NamedTuple):
    """The job with all its results, and the page about it."""

    job: PaperRun
    page: Path


def reproduce(
    options: PaperOptions,
    *,
    progress: bool | Callable[[float], None] = True,
    say: Callable[[str], None] = print,
) -> Reproduction:
    """Compute what `options` asks for, into the folder it names: data, figures, summary.csv, claims.csv and a page.

    Finished pieces are kept there, so that a call that was stopped goes on where it was; an item that fails is named in
    `job.failures` and leaves the others as they are."""
    job = PaperRun(options, report.extra_cells(options))
    try:
        job.compute(progress, say)
    except OSError as error:
        raise OSError(f"{error} The same call goes on from here once the folder can be written again.") from None
    return Reproduction(job, report.write(job, options.out))
