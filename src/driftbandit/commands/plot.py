"""`driftbandit plot`: draw saved results."""

import argparse
from typing import Any

from driftbandit.commands._shared import add_example, need_lab

_EXAMPLES = """\
  driftbandit plot result.parquet --out regret.svg
  driftbandit plot monday.parquet tuesday.parquet --out both.pdf --title "Two days"
      the curves of both in one figure
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "plot", "draw the regret curves of saved results, with 95 % intervals", _EXAMPLES)
    parser.add_argument("results", nargs="+", metavar="RESULT.parquet", help="what `driftbandit run --out` saved")
    parser.add_argument("--out", required=True, metavar="FILE.svg", help="where to draw: .svg, .png or .pdf")
    parser.add_argument(
        "--width", type=float, default=7.6, metavar="INCHES", help="a narrow figure has its legend below (default: 7.6)"
    )
    parser.add_argument("--title", metavar="TEXT", help="a title instead of the experiment's own")


def run(args: argparse.Namespace) -> None:
    """Load and draw."""
    need_lab("scipy", "matplotlib", "pyarrow")
    from driftbandit.lab.experiments.result import Result
    from driftbandit.lab.plots import regret
    from driftbandit.lab.support.files import writable

    writable(args.out, regret.ENDINGS)
    results = [Result.load(path) for path in args.results]
    print(f"drew {regret.plot(results, args.out, args.title, args.width)}")
