"""`driftbandit reproduce`: every figure, table and claim of the paper."""

import argparse
import contextlib
import csv
import sys
from pathlib import Path
from typing import Any

from driftbandit.cli._shared import add_example, add_option, need, print_json

_EXAMPLES = """\
  driftbandit reproduce
      everything, 100 runs, with the parameters of the text and of the authors' code; report in build/paper
  driftbandit reproduce fig3a fig6 --parameters text --out build/try
      one figure and one family of four, with the parameters the paper prints

Finished work is kept: the same command continues where it stopped.
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "reproduce", "run the paper's experiments and write a report", _EXAMPLES)
    parser.add_argument("items", nargs="*", metavar="ITEM", help="fig1 .. fig7b, table1, abrupt-b5-k5 ..; default: all")
    add_option(parser, "runs", help="default: 100, as in the paper")
    sets = "printed in the paper, of the authors' code, or both (default: both)"
    parser.add_argument("--parameters", choices=("text", "code", "both"), default="both", help=sets)
    kinds = "the authors' single environment, or another in each run (default: authors)"
    parser.add_argument("--environment", choices=("authors", "fresh"), default="authors", help=kinds)
    parser.add_argument("--out", type=Path, default=Path("build/paper"), metavar="DIR", help="default: build/paper")
    add_option(parser, "executor")
    add_option(parser, "workers")
    parser.add_argument("--quick", action="store_true", help="10 runs instead of 100, to see that everything works")
    add_option(parser, "seed")
    add_option(parser, "json")


def run(args: argparse.Namespace) -> int:
    """Compute and write; 2 if an item failed."""
    need("numba", "matplotlib", "pyarrow")
    from driftbandit.paper.items.item import PARAMETERS, PaperOptions
    from driftbandit.paper.reproduction import reproduce

    options = PaperOptions(
        out=args.out,
        items=tuple(args.items),
        runs=args.runs or (10 if args.quick else 100),
        parameters=PARAMETERS if args.parameters == "both" else (args.parameters,),
        environment=args.environment,
        seed=args.seed,
        workers=args.workers,
        quick=args.quick,
        executor=args.executor,
    )
    done, page = reproduce(options, say=_print_progress)
    if args.json:
        rows = list(csv.DictReader((args.out / "summary.csv").read_text(encoding="utf-8").splitlines()))
        about = {"chunks": done.tally, "seconds": done.seconds, "failures": done.failures, "page": page}
        print_json({"summary": rows, **about})
    else:
        reused, chunks = done.tally.reused, sum(done.tally)
        print(f"reused {reused} of {chunks} chunks; {done.seconds:.0f} seconds; wrote {args.out / 'summary.csv'}")
        print(f"open {page}")
        for name, error in done.failures.items():
            print(f"failed: {name}: {error}")
    return 2 if done.failures else 0


def _print_progress(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # a closed standard error must not stop the work
        print(line, file=sys.stderr, flush=True)
