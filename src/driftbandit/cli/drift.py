"""`driftbandit drift`: does the best arm of a log change, and does forgetting pay?"""

import argparse
from typing import Any

from driftbandit.cli._shared import add_example, add_log_options, need, open_log, print_result

_EXAMPLES = """\
  driftbandit drift log.csv
      what this and last period's best arm gain over the best fixed one, by hour, day, week and month; and which policy
      to use
  driftbandit drift log.parquet --time when --arm button --reward click --propensity uniform --plot drift.svg
      columns by other names, arms drawn uniformly; the levels over time as a figure
  driftbandit drift log.csv --environment environment.csv
      write the arms' smoothed means as an environment, for driftbandit run --environment 'table("environment.csv")'
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(
        subparsers, "drift", "find out from a log whether anything changes and whether forgetting pays", _EXAMPLES
    )
    add_log_options(parser)
    parser.add_argument("--plot", metavar="FILE.svg", help="draw levels and gains: .svg, .png or .pdf")
    parser.add_argument("--environment", metavar="FILE.csv", help="write the means over time, for `driftbandit run`")


def run(args: argparse.Namespace) -> None:
    """Compute, draw, print."""
    if args.plot:
        need("matplotlib")
        from driftbandit.lab.files import writable
        from driftbandit.lab.plots import ENDINGS

        writable(args.plot, ENDINGS)
    from driftbandit.logs import drift, estimate_means

    log = open_log(args)
    found = drift(log, block=args.block, seed=args.seed)
    saved = [found.plot(log, args.plot)] if args.plot else []
    saved += [estimate_means(log).save(args.environment)] if args.environment else []
    print_result(args, found, [f"saved {path}" for path in saved])
