"""The reproduction: every simulation of the chosen items computed once, and data and figures written per item."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.errors import NotComputed
from driftbandit.lab.files import library_versions, package_digest, save_rows, writable
from driftbandit.lab.progress import Progress
from driftbandit.lab.summaries import t_interval
from driftbandit.lab.work import Cell, Part, Store, Tally, chunks_by_name
from driftbandit.paper import report
from driftbandit.paper.items import choose
from driftbandit.paper.items.item import Item, ItemKey, PaperOptions
from driftbandit.paper.picture import save_figure
from driftbandit.spec.half_life import SECOND, format_duration

EXTRA = "comparisons"  # the name under which failures of the extra cells are reported


class PaperRun:
    """The chosen items with all their results; `compute` does the work.

    `extra_cells` are simulations that belong to no figure, for comparisons in the report."""

    def __init__(
        self, options: PaperOptions, extra_cells: Mapping[str, Cell] | None = None, items: Iterable[Item] | None = None
    ) -> None:
        self.options = options
        self.items = choose(options.items) if items is None else {item.id: item for item in items}
        self.extra_cells = dict(extra_cells or {})
        self.failures: dict[str, str] = {}  # item: the error, in a sentence
        self.tally = Tally(0, 0)
        self.seconds = 0.0
        self._cells = {name: item.cells(options) for name, item in self.items.items()}
        for folder in ("data", "figures"):
            writable(options.out / folder / "probe")
        everything = [cell for cells in self._cells.values() for cell in cells.values()]
        self.store = Store(options.out / "store")
        self.plan = chunks_by_name([*everything, *self.extra_cells.values()])
        self._finals: dict[tuple[str, ItemKey], np.ndarray] = {}

    def outcome(self, item_id: str, label: str, parameters: str, gap: float | None = None) -> Part:
        """The result of one simulation, read from disk: runs × checkpoints."""
        if item_id in self.failures:
            raise NotComputed(f"{item_id} has no results: {self.failures[item_id]}")
        return self.store.result(self._cells[item_id][ItemKey(label, parameters, gap)])

    def final(self, item_id: str, label: str, parameters: str, gap: float | None = None) -> np.ndarray:
        """The regret at the end of one simulation, one number per run; run r of all policies has the same seed."""
        key = item_id, ItemKey(label, parameters, gap)
        if key not in self._finals:
            self._finals[key] = self.outcome(item_id, label, parameters, gap).final.copy()
        return self._finals[key]

    def extra(self, name: str) -> Part:
        """The result of an extra cell."""
        if name not in self.extra_cells:
            raise NotComputed(f"not run: {name}")
        if EXTRA in self.failures:
            raise NotComputed(f"The {EXTRA} have no results: {self.failures[EXTRA]}")
        return self.store.result(self.extra_cells[name])

    def compute(self, progress: bool | Callable[[float], None] = True, say: Callable[[str], None] = print) -> None:
        """Compute the missing chunks and write each item's files as soon as it is complete.

        An item that fails is noted in `failures` and the others go on. A disk that is full or cannot be written ends
        the job with an OSError; finished simulations are kept, and the next call continues from there."""
        started, options, missing = time.monotonic(), self.options, self.store.missing(self.plan)
        self.tally = Tally(len(self.plan) - len(missing), len(missing))
        total = sum(chunk.weight for chunk in missing.values())
        jobs = {name: list(cells.values()) for name, cells in self._cells.items()}
        if self.extra_cells:
            jobs[EXTRA] = list(self.extra_cells.values())
        writing: dict[str, Future[None]] = {}
        with Progress(total, progress, "paper") as bar, ThreadPoolExecutor(1) as writer:
            try:
                for number, (name, cells) in enumerate(jobs.items(), 1):
                    play = partial(self.store.play, cells, options.executor, options.workers, bar)
                    done = self._try(name, say, play)
                    if done and name != EXTRA:
                        writing[name] = writer.submit(self._write, self.items[name])
                    left = bar.left()
                    rest = "" if left is None else f", about {format_duration(left * SECOND, 2)} left without compiling"
                    say(f"[{number}/{len(jobs)}] {name}{rest}")
                for name, future in writing.items():
                    self._try(name, say, future.result)
            finally:
                writer.shutdown(cancel_futures=True)
        save_rows(SUMMARY, summary_rows(self), self.options.out / "summary.csv")
        self.seconds = time.monotonic() - started

    def _try(self, name: str, say: Callable[[str], None], action: Callable[[], Any]) -> bool:
        try:
            action()
        except OSError:
            raise  # the disk: the next item would fail as well
        except Exception as error:
            self.failures[name] = " ".join(f"{type(error).__name__}: {error}".split())
            say(f"{name} failed, the others go on. {self.failures[name]}")
            return False
        return True

    def _write(self, item: Item) -> None:
        """Figure and data of one item."""
        options = self.options
        save_figure(lambda figure: item.draw(self, figure), options.out / "figures", item.id, item.size(self))
        if item.labels:
            note = {"versions": library_versions(), "source": package_digest(), "parameters": list(options.parameters)}
            item.save(self, options.out / "data" / f"{item.id}.parquet", note)


SUMMARY = (
    *("item", "policy", "parameters", "environment", "horizon", "runs"),
    *("regret_mean", "regret_ci_low", "regret_ci_high", "seconds", "gap"),
)


def summary_rows(run: PaperRun) -> list[list[Any]]:
    """Under `SUMMARY`: mean, 95% t-interval (empty for a single run), seconds of computing, and the gap if varied."""
    rows = []
    for name, item in run.items.items():
        for key in item.keys(run.options) if name not in run.failures else ():
            outcome = run.outcome(name, *key)
            final = outcome.final
            ends = ["" if math.isnan(end) else f"{end:.3f}" for end in t_interval(final)]
            setting = [name, *key[:2], run.options.environment, int(outcome.rounds[-1]), len(final)]
            shown_gap = "" if key.gap is None else f"{key.gap:.2f}"
            rows.append([*setting, f"{final.mean():.3f}", *ends, f"{outcome.seconds:.3f}", shown_gap])
    return rows


def reproduce(
    options: PaperOptions, *, progress: bool | Callable[[float], None] = True, say: Callable[[str], None] = print
) -> tuple[PaperRun, Path]:
    """Compute what `options` chooses, into its folder: data, figures, summary.csv, claims.csv and the page, whose path
    comes second.

    A call that was stopped continues where it was; an item that fails is in `failures`, and the others are written."""
    run = PaperRun(options, report.extra_cells(options, choose(options.items)))
    try:
        run.compute(progress, say)
    except OSError as error:
        raise OSError(f"{error} Run the same command again to continue when the folder can be written.") from None
    return run, report.write(run, options.out)
