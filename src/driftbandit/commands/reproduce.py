"""`driftbandit reproduce`: every figure, table and claim of the paper."""

import argparse
import importlib.util
from functools import partial
from pathlib import Path
from typing import Any

from driftbandit.commands._shared import add_example, need_lab, whole

_EXAMPLES = """\
  driftbandit reproduce
      everything, 100 runs, with the parameters of the text and of the authors' code side by side; report in build/paper

  driftbandit reproduce fig3a fig6 --parameters text --out build/try
      one figure and one family of four, with the parameters the paper prints

  driftbandit reproduce --quick
      the whole report with 10 runs

What is finished is kept: the same call again goes on where it stopped, or says that nothing was left to do.
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "reproduce", "run the paper's experiments and write a report", _EXAMPLES)
    parser.add_argument("items", nargs="*", metavar="ITEM", help="fig1 .. fig7b, table1, abrupt-b5-k5 ..; default: all")
    parser.add_argument("--runs", type=whole(1), metavar="N", help="how many runs (default: 100, as in the paper)")
    parser.add_argument(
        "--parameters",
        choices=("text", "code", "both"),
        default="both",
        help="those the paper prints, those of the authors' code, or both side by side (default: both)",
    )
    parser.add_argument(
        "--environment",
        choices=("authors", "fresh"),
        default="authors",
        help="the authors' single world, or a new one for each run (default: authors)",
    )
    parser.add_argument("--out", type=Path, default=Path("build/paper"), metavar="DIR", help="default: build/paper")
    parser.add_argument(
        "--workers", type=whole(1), metavar="N", help="threads (default: one a core); changes no number"
    )
    parser.add_argument("--quick", action="store_true", help="10 runs in place of 100, to see that everything works")
    parser.add_argument("--seed", type=whole(0), default=0, metavar="S", help="the same seed gives the same numbers")


def run(args: argparse.Namespace) -> int:
    """Compute, write, and say what was reused; 2 if an item failed."""
    need_lab("numba", "scipy", "matplotlib", "pyarrow")
    from driftbandit.lab.paper.items.item import PARAMETERS
    from driftbandit.lab.paper.job import Options, PaperRun

    parameters = PARAMETERS if args.parameters == "both" else (args.parameters,)
    runs = args.runs or (10 if args.quick else 100)
    options = Options(
        args.out, tuple(args.items), runs, parameters, args.environment, args.seed, args.workers, args.quick
    )
    report = _report()
    job = PaperRun(options, report.extra_cells(options) if hasattr(report, "extra_cells") else None)
    try:
        job.compute(say=partial(print, flush=True))
    except OSError as error:
        raise OSError(f"{error} The same call goes on from here once the folder can be written again.") from None
    reused, chunks = job.tally.reused, sum(job.tally)
    print(f"reused {reused} of {chunks} chunks; {job.seconds:.0f} seconds; wrote {args.out / 'summary.csv'}")
    if report is not None:
        print(f"open {report.write(job, args.out)}")
    for name, why in job.failures.items():
        print(f"failed: {name}: {why}")
    return 2 if job.failures else 0


def _report() -> Any:
    """The module that writes the page."""
    if importlib.util.find_spec("driftbandit.lab.paper.report.report") is None:
        return None
    from importlib import import_module

    return import_module("driftbandit.lab.paper.report.report")
