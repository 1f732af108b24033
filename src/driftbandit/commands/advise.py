"""`driftbandit advise`: which gamma to take, by theory, by the paper and by simulation."""

import argparse
import textwrap
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table
from driftbandit.commands._shared import MOST_RUNS, add_example, add_seed, add_workers, need_lab, whole

_EXAMPLES = """\
  driftbandit advise --horizon 100000 --phases 10
      sudden changes: Corollary 1, the paper, the best by simulation

  driftbandit advise --horizon 10000 --drift 0.001 --arms 10 --mu-max 0.1
      slow changes by less than 0.001 per round, ten arms, rare rewards
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "advise", "compare ways to tune DS-TS on worlds like yours", _EXAMPLES)
    parser.add_argument("--horizon", type=whole(2), required=True, metavar="T", help="how many rounds will be played")
    parser.add_argument("--phases", type=whole(1), metavar="B", help="sudden changes: number of phases, changes + 1")
    parser.add_argument("--drift", type=float, metavar="SIGMA", help="slow changes: the most a mean moves per round")
    parser.add_argument("--arms", type=whole(2), default=5, metavar="K", help="number of arms (default: 5)")
    parser.add_argument("--mu-max", type=float, default=1.0, metavar="M", help="largest mean reward (default: 1)")
    parser.add_argument(
        "--runs", type=whole(4, MOST_RUNS), default=200, metavar="N", help="runs, half to choose by (default: 200)"
    )
    add_seed(parser)
    add_workers(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Play and print the table and the paragraph."""
    need_lab("numba", "scipy")
    from driftbandit.lab.investigations.advice import advise

    advice = advise(
        args.horizon,
        args.phases,
        args.drift,
        args.arms,
        args.mu_max,
        args.runs,
        args.seed,
        workers=args.workers,
        progress=True,
    )
    if args.json:
        rows = [{**row._asdict(), "policy": row.policy and repr(row.policy), "half_life": row.half_life}
                for row in advice.rows]  # fmt: skip
        best = {"line": advice.line(), "half_life": advice.recommended.half_life,
                "edges": advice.edges(advice.recommended)}  # fmt: skip
        print_json({
            "environment": repr(advice.environment), "runs": advice.runs, "seed": advice.seed, "rows": rows,
            "best": best, "as_good": advice.as_good, "grid": advice.grid, "paragraph": advice.paragraph(),
        })  # fmt: skip
        return
    print_table(*advice.table())
    print("\n" + textwrap.fill(advice.paragraph(), 110))
    print("\n" + advice.line())
