"""`driftbandit replay`: what other policies would have earned on a log."""

import argparse
from typing import Any

from driftbandit.cli._shared import add_example, add_log_options, need, open_log, print_result

_EXAMPLES = """\
  driftbandit replay log.csv --policy drift-ts kl-ucb
      their value, and the paired differences from ts, from the best arm in hindsight and from the logger
  driftbandit replay log.csv --policy "ds-ts(gamma=[0.9, 0.99, 0.999])"
      three policies, one for each value
  driftbandit replay log.csv --propensity uniform --policy "ds-ts @ 6 h" "dts @ 1 d" "sw-ts(window=500)"
      @ is a half-life by the clock; without it a policy forgets by counting rewards
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "replay", "estimate what policies would have earned on a log", _EXAMPLES)
    add_log_options(parser)
    text = "policies to compare with ts (default: as in Bandit)"
    parser.add_argument("--policy", nargs="+", metavar="POLICY", help=text)
    parser.add_argument("--no-own", action="store_true", help="leave out values on the policies' own histories")


def run(args: argparse.Namespace) -> None:
    """Replay and print the two tables."""
    need("numba")
    from driftbandit.logs import replay

    options = {"own": not args.no_own, "seed": args.seed, "progress": True}
    print_result(args, replay(open_log(args), args.policy, block=args.block, **options))
