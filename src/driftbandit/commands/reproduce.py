"""`driftbandit reproduce`: every figure, table and claim of the paper."""

import argparse
import contextlib
import csv
import sys
from pathlib import Path
from typing import Any

from driftbandit.commands._output import add_json, print_json
from driftbandit.commands._shared import MOST_RUNS, add_example, add_executor, add_seed, add_workers, need_lab, whole

_EXAMPLES = """\
  driftbandit reproduce
      everything, 100 runs, with the parameters of the text and of the authors' code side by side; report in build/paper

  driftbandit reproduce fig3a fig6 --parameters text --out build/try
      one figure and one family of four, with the parameters the paper prints

  driftbandit reproduce --quick
      the whole report with 10 runs

  driftbandit reproduce fig3 --with drift-ts
      four figures with a curve that the paper does not have; claims and summary stay the paper's

What is finished is kept: the same call again goes on where it stopped, or says that nothing was left to do.
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "reproduce", "run the paper's experiments and write a report", _EXAMPLES)
    parser.add_argument("items", nargs="*", metavar="ITEM", help="fig1 .. fig7b, table1, abrupt-b5-k5 ..; default: all")
    parser.add_argument(
        "--runs", type=whole(1, MOST_RUNS), metavar="N", help="how many runs (default: 100, as in the paper)"
    )
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
        "--with",
        dest="additions",
        action="append",
        choices=("drift-ts",),
        help="draw this policy, which is not the paper's, in the figures of regret curves; in no claim or summary",
    )
    add_executor(parser)
    add_workers(parser)
    parser.add_argument("--quick", action="store_true", help="10 runs instead of 100, to see that everything works")
    add_seed(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Compute, write, and say what was reused; 2 if an item failed."""
    need_lab("numba", "scipy", "matplotlib", "pyarrow")
    from driftbandit.paper.items.item import PARAMETERS, PaperOptions
    from driftbandit.paper.job import reproduce

    parameters = PARAMETERS if args.parameters == "both" else (args.parameters,)
    runs = args.runs or (10 if args.quick else 100)
    options = PaperOptions(
        args.out,
        tuple(args.items),
        runs,
        parameters,
        args.environment,
        args.seed,
        args.workers,
        args.quick,
        args.executor,
        tuple(dict.fromkeys(args.additions or ())),
    )
    job, page = reproduce(options, say=_say)
    if args.json:
        with open(args.out / "summary.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        print_json(
            {"summary": rows, "chunks": job.tally, "seconds": job.seconds, "failures": job.failures, "page": page}
        )
        return 2 if job.failures else 0
    reused, chunks = job.tally.reused, sum(job.tally)
    print(f"reused {reused} of {chunks} chunks; {job.seconds:.0f} seconds; wrote {args.out / 'summary.csv'}")
    print(f"open {page}")
    for name, why in job.failures.items():
        print(f"failed: {name}: {why}")
    return 2 if job.failures else 0


def _say(line: str) -> None:
    """How far the work has come: for anyone watching, never in the way of the work."""
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
