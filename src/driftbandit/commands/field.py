"""`driftbandit field`: every policy on three worlds, as a figure and a table."""

import argparse
from pathlib import Path
from typing import Any

from driftbandit.commands._shared import add_example, need_lab, whole

_EXAMPLES = """\
  driftbandit field --out build/field
      regret.svg, regret.png and regret.csv: all policies, each tuned by its theory, in an abrupt, a smooth and a
      stationary world
  driftbandit field --runs 10 --out build/field
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    summary = "compare every policy on an abrupt, a smooth and a stationary world"
    parser = add_example(subparsers, "field", summary, _EXAMPLES)
    parser.add_argument("--out", default="build/field", metavar="DIR", help="where to write (default: build/field)")
    parser.add_argument("--runs", type=whole(2), default=40, metavar="N", help="independent runs (default: 40)")
    parser.add_argument("--workers", type=whole(1), metavar="N", help="threads (default: one a core)")


def run(args: argparse.Namespace) -> None:
    """Play, draw, write the table."""
    need_lab("numba", "scipy", "matplotlib")
    from driftbandit.lab.investigations import all_policies
    from driftbandit.lab.support.files import writable

    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    writable(out / "regret.csv")
    standings = all_policies.compare(args.runs, Path("build") / "field-store", args.workers, progress=True)
    for ending in ("svg", "png"):
        all_policies.draw(standings, out / f"regret.{ending}")
    all_policies.save_table(standings, out / "regret.csv")
    count = len({s.policy for s in standings})
    print(f"{count} policies, {args.runs} runs: {out / 'regret.svg'}, {out / 'regret.csv'}")
