"""`driftbandit theory`: what the paper's theorems guarantee for a policy, and how regret grows when it is measured."""

import argparse
import math
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table
from driftbandit.commands._shared import MOST_RUNS, add_example, add_seed, add_workers, completes, need_lab, whole
from driftbandit.text import load

_EXAMPLES = """\
  driftbandit theory ds-ts.tuned --env "Abrupt(n_arms=5, horizon=100000, phases=10)"
      facts of the environment and bounds with their conditions

  driftbandit theory ds-ts.tuned --env "AbruptGap(n_arms=5, gap=0.1)" --runs 40
      the same with the measured regret of 40 runs, and how far the bounds are from it

  driftbandit theory --growth
      measured exponents in T, B_T, 1/gap and K for DS-TS, SW-TS, D-UCB and CUSUM, next to the orders of Table 1
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "theory", "show the theorems' bounds and measure how regret grows", _EXAMPLES)
    played = parser.add_argument("policy", nargs="?", metavar="POLICY", help="the policy's text (default: ds-ts)")
    completes(played, "policies")
    place = parser.add_argument("--env", metavar="TEXT", help='the environment\'s text (default: "Abrupt()")')
    completes(place, "environments")
    parser.add_argument("--runs", type=whole(2, MOST_RUNS), metavar="N", help="measure the regret over this many runs")
    parser.add_argument("--growth", action="store_true", help="measure how regret grows instead (default: 40 runs)")
    parser.add_argument("--scale", type=float, metavar="S", help="with --growth: multiply all horizons (default: 1)")
    add_seed(parser)
    add_workers(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Evaluate the bounds, or measure the growth."""
    if args.growth and (args.policy or args.env):
        raise ValueError("--growth plays policies and environments of its own; leave POLICY and --env out.")
    if args.scale is not None and not args.growth:
        raise ValueError("--scale multiplies the horizons of --growth; add --growth.")
    need_lab("numba", "scipy")
    (_growth if args.growth else _bounds)(args)


def _growth(args: argparse.Namespace) -> None:
    from driftbandit.paper.theory.growth import HEAD, growth

    runs = args.runs or 40
    found = growth(runs, args.seed, 1.0 if args.scale is None else args.scale, args.workers)
    if args.json:
        print_json({"runs": runs, "seed": args.seed, "fits": found})
        return
    title = f"AbruptGap, one quantity varied at a time; {runs} runs per point, seed {args.seed}; tuned by theory"
    print_table(HEAD, [fit.row() for fit in found], title)


def _bounds(args: argparse.Namespace) -> None:
    from driftbandit.lab.jobs.work import refuse_impossible
    from driftbandit.paper.theory.promise import theory

    environment = load.load_environment(args.env or "Abrupt()")
    text = args.policy or "ds-ts"
    policy = load.load_policy(text, world=environment)
    refuse_impossible(policy, environment, args.runs or 1)
    found = theory(environment, policy, args.runs or 0, args.seed, args.workers)
    if args.json:
        print_json(found.as_json())
        return
    print(f"{environment!r}\n{policy!r}\n")
    title = "the environment, as run 0 realises it"
    print_table(["quantity", "value", "what it is"], [list(fact) for fact in found.facts], title)
    print()
    head = ["statement", "for", "bound", "verdict", "measured regret x"]
    print_table(head, found.table(), "what is proved (vacuous: not below T)")
    for line in dict.fromkeys(f"{bound.name}: {c}" for bound in found.bounds for c in bound.failed):
        print(f"  {line}")
    if 2 * found.found.phases < found.found.horizon:  # an environment that drifts every round has no phases
        rows = [[order.policy, order.formula, order.size] for order in found.orders.values()]
        title = "Table 1 of the paper: orders without constants or logarithms"
        print()
        print_table(["policy", "order of regret", "its size here"], rows, title)
    if found.measured is not None:
        share = found.measured.mean / found.found.uniform_regret if found.found.uniform_regret > 0.0 else math.nan
        print(f"\nmeasured over {found.runs} runs: regret {found.measured}, {share:.0%} of uniform play")
