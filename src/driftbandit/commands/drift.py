"""`driftbandit drift`: does the best arm of a log move, and does forgetting pay?"""

import argparse
from typing import Any

from driftbandit.commands._logs import add_log_options, open_log, print_result
from driftbandit.commands._shared import add_example, need_lab

_EXAMPLES = """\
  driftbandit drift log.csv
      by hour, day, week and month: what this and last period's best arm gain over the best fixed one; and which policy
      to use

  driftbandit drift log.parquet --time when --arm button --reward click --propensity uniform --plot drift.svg
      columns by other names, arms drawn uniformly; the levels and rankings over time as a figure

  driftbandit drift log.csv --world world.csv
      write the arms' smoothed means as an environment: driftbandit run ds-ts ts --env 'table("world.csv")'
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(
        subparsers, "drift", "find out from a log whether anything changes and whether forgetting pays", _EXAMPLES
    )
    add_log_options(parser)
    parser.add_argument("--plot", metavar="FILE.svg", help="draw levels, rankings and gains: .svg, .png or .pdf")
    parser.add_argument("--world", metavar="FILE.csv", help="write the means over time, for `driftbandit run`")


def run(args: argparse.Namespace) -> None:
    """Compute, draw, print."""
    if args.plot:
        need_lab("matplotlib")
        from driftbandit.lab.plots.regret import ENDINGS
        from driftbandit.lab.support.files import writable

        writable(args.plot, ENDINGS)
    from driftbandit.logs import drift
    from driftbandit.logs.report import drift_parts

    log = open_log(args)
    found = drift(log, block=args.block, seed=args.seed)
    saved = []
    if args.plot:
        saved.append(f"saved {found.plot(log, args.plot)}")
    if args.world:
        from driftbandit.logs import world

        saved.append(f"saved {world(log).save(args.world)}")
    print_result(args, found, [*drift_parts(found), *saved])
