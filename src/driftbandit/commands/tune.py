"""`driftbandit tune`: how fast to forget, from a log."""

import argparse
from typing import Any

from driftbandit.commands._logs import add_log_options, open_log, print_json, print_parts
from driftbandit.commands._shared import add_example, need_lab

_EXAMPLES = """\
  driftbandit tune log.csv
      a half-life by the clock, chosen on the first part of the log and judged on the last; or why the log cannot tell

  driftbandit tune log.csv --propensity uniform --rounds --plot tune.svg
      a half-life in rewards; value against half-life as a figure
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "tune", "choose from a log how fast to forget", _EXAMPLES)
    add_log_options(parser)
    parser.add_argument(
        "--half-lives", nargs="+", metavar="LENGTH", help="the grid, as in 1h 6h 1d (default: by itself)"
    )
    parser.add_argument("--rounds", action="store_true", help="forget by counting rewards, not by the clock")
    parser.add_argument("--policy", nargs="+", default=[], metavar="POLICY", help="try these too")
    parser.add_argument("--all", action="store_true", help="print every candidate, not the best of each half-life")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw value against half-life: .svg, .png or .pdf")


def run(args: argparse.Namespace) -> None:
    """Choose, judge, and print the lines to paste."""
    need_lab("numba", *(["matplotlib"] if args.plot else []))
    from driftbandit.logs import tune
    from driftbandit.logs.report import tune_parts

    if args.plot:
        from driftbandit.lab.plots.regret import ENDINGS
        from driftbandit.lab.support.files import writable

        writable(args.plot, ENDINGS)
    grid = None if args.half_lives is None else [_length(text, args.rounds) for text in args.half_lives]
    log = open_log(args)
    result = tune(
        log,
        block=args.block,
        half_lives=grid,
        by_clock=not args.rounds,
        others=args.policy,
        seed=args.seed,
        progress=True,
    )
    drew = ""
    if args.plot:
        from driftbandit.logs.figures import save_tune

        drew = f"drew {save_tune(log, result, args.plot)}"
    if args.json:
        print_json(result)
        return
    parts = tune_parts(result, args.all)
    print_parts([*parts[:-2], *([drew] if drew else []), *parts[-2:]])


def _length(text: str, rounds: bool) -> float:
    """A half-life as it was typed: a length of time, or with --rounds a number of rewards."""
    from driftbandit.logs.periods import duration

    if not rounds:
        return duration(text)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"With --rounds a half-life is a number of rewards, as in 500; got {text!r:.40}.") from None
