"""`driftbandit rates`: measure how regret grows and compare it with the theorems' orders."""

import argparse
import time
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table
from driftbandit.commands._shared import MOST_RUNS, add_example, add_seed, add_workers, need_lab, whole

_EXAMPLES = """\
  driftbandit rates --out docs/theory
      exponents in T, B_T, 1/gap and K for DS-TS, SW-TS, D-UCB and CUSUM; figure and tables in docs/theory

  driftbandit rates --runs 10 --scale 0.1
      a quick look at short horizons
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "rates", "measure how regret grows with T, B_T, 1/gap and K", _EXAMPLES)
    parser.add_argument(
        "--runs", type=whole(2, MOST_RUNS), default=40, metavar="N", help="runs at every point (default: 40)"
    )
    parser.add_argument("--scale", type=float, default=1.0, metavar="S", help="multiply all horizons (default: 1)")
    add_seed(parser)
    parser.add_argument("--out", metavar="FOLDER", help="write rates.svg, .png, .md and .csv there")
    add_workers(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Play all sweeps, fit, print, save."""
    need_lab("numba", "scipy", *(["matplotlib"] if args.out else []))
    from pathlib import Path

    from driftbandit.lab.investigations.rates import rates
    from driftbandit.lab.support.files import writable

    if args.out:
        writable(Path(args.out) / "rates.csv")
    started = time.perf_counter()
    found = rates(args.runs, args.seed, args.scale, args.workers)
    paths = found.save(args.out) if args.out else []
    if args.json:
        print_json({"runs": args.runs, "seed": args.seed, "fits": found.fits, "wrote": paths})
        return
    base = found.measured[0].sweep.base
    print(f"{base!r}, one quantity varied at a time")
    print(f"{args.runs} runs per point, seed {args.seed}; every policy tuned by its theory at every point")
    print_table(*found.table())
    print(f"{time.perf_counter() - started:.0f} seconds")
    for path in paths:
        print(f"wrote {path}")
