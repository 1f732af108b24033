"""The paper again, from one call: simulate, draw, judge its claims, write a page."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from driftbandit.paper.job import PaperRun
from driftbandit.paper.options import PaperOptions
from driftbandit.paper.report import report


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
    `job.failures` and leaves the others alone."""
    job = PaperRun(options, report.extra_cells(options))
    try:
        job.compute(progress, say)
    except OSError as error:
        raise OSError(f"{error} The same call goes on from here once the folder can be written again.") from None
    return Reproduction(job, report.write(job, options.out))
