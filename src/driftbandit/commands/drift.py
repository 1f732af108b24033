"""`driftbandit drift`: does the best arm of a log move?"""

import argparse
from typing import Any

from driftbandit.commands._logs import add_log_options, open_log, points, print_head, print_json, print_warnings
from driftbandit.commands._output import print_table
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
    print_head(log)
    head = ["scale", "periods", "oracle by halves", "last period's best", "levels move by", "arms move by"]
    print_table(head, [_row(log, scale) for scale in found.scales], "gain over the best fixed arm, 95 % intervals:")
    print(found.sentence)
    if found.family:
        print(f"Use {found.family}.")
    print_warnings(found.warnings)
    for line in saved:
        print(line)


def _row(log: Any, scale: Any) -> list[str]:
    unit = 100.0 if log.reward_range == (0.0, 1.0) else 1.0
    moved = [
        f"{unit * size:.2f}{'' if sure else ' (not sure)'}"
        for size, sure in ((scale.level, scale.levels_move), (scale.ranking, scale.ranking_moves))
    ]
    return [scale.name, str(scale.periods), points(log, scale.oracle), points(log, scale.last), *moved]
