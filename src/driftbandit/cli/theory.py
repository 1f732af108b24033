"""`driftbandit theory`: the bounds of the paper's theorems with their conditions, and how regret grows."""

import argparse
from typing import Any

from driftbandit.cli._shared import add_example, add_option, need, print_result, whole
from driftbandit.spec import user_code

_EXAMPLES = """\
  driftbandit theory ds-ts.tuned --environment "Abrupt(n_arms=5, horizon=100000, phases=10)"
      quantities of the environment, and bounds with the conditions that fail
  driftbandit theory --growth
      measured exponents in T, B_T, 1/gap and K for DS-TS, SW-TS, D-UCB and CUSUM, next to the orders of Table 1
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "theory", "show the theorems' bounds, or measure how regret grows", _EXAMPLES)
    parser.add_argument("policy", nargs="?", metavar="POLICY", help="the policy's text (default: ds-ts)")
    parser.add_argument("--environment", metavar="TEXT", help='the environment\'s text (default: "Abrupt()")')
    parser.add_argument("--growth", action="store_true", help="measure how regret grows instead")
    add_option(parser, "runs", type=whole(2, 10**9), help="runs of --growth (default: 40)")
    add_option(parser, "seed")
    add_option(parser, "workers")
    add_option(parser, "json")


def run(args: argparse.Namespace) -> None:
    """Evaluate the bounds, or measure the growth."""
    if args.growth and (args.policy or args.environment):
        raise ValueError("--growth has its own policies and environments; remove POLICY and --environment.")
    if args.runs and not args.growth:
        raise ValueError("--runs is the number of runs of --growth; add --growth.")
    need("numba")
    if args.growth:
        from driftbandit.paper.theory.growth import growth

        print_result(args, growth(args.runs or 40, args.seed, args.workers))
        return
    from driftbandit.lab.study import refuse_impossible
    from driftbandit.paper.theory import theory

    environment = user_code.load_environment(args.environment or "Abrupt()")
    policy = user_code.load_policy(args.policy or "ds-ts", environment=environment)
    refuse_impossible(policy, environment, 1)
    print_result(args, theory(environment, policy, args.seed))
