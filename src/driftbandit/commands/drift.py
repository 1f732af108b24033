"""`driftbandit drift`: does the best arm of a log move?"""

import argparse
from typing import Any

from driftbandit.commands._logs import add_log_options, open_log, print_json, print_parts
from driftbandit.commands._shared import add_example, need_lab

_EXAMPLES = """\
  driftbandit drift log.csv
      by hour, day, week and month: what an oracle, and last period's best arm, gain over the best fixed arm

  driftbandit drift log.parquet --time when --arm button --reward click --propensity uniform --plot drift.svg
      columns by other names, arms drawn evenly; the levels and rankings over time as a figure

  driftbandit drift log.csv --world world.csv
      write the arms' smoothed means as a world: driftbandit run ds-ts ts --env 'table("world.csv")'
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "drift", "ask a log whether its best arm moves", _EXAMPLES)
    add_log_options(parser)
    parser.add_argument("--plot", metavar="FILE.svg", help="draw levels, rankings and gains: .svg, .png or .pdf")
    parser.add_argument("--world", metavar="FILE.csv", help="write the means over time, for `driftbandit run`")


def run(args: argparse.Namespace) -> None:
    """Ask, draw, answer."""
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
        from driftbandit.logs.figures import save_drift

        saved.append(f"drew {save_drift(log, found, args.plot)}")
    if args.world:
        from driftbandit.logs import world

        saved.append(f"wrote {world(log).save(args.world)}")
    if args.json:
        print_json(found)
        return
    print_parts([*drift_parts(found), *saved])
