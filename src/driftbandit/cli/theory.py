"""`driftbandit theory`: the bounds of the paper's theorems with their conditions, and how regret grows."""

import argparse
from typing import Any

from driftbandit.cli._shared import add_example, add_option, need, print_json, print_table, whole
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
    (_growth if args.growth else _bounds)(args)


def _growth(args: argparse.Namespace) -> None:
    from driftbandit.paper.theory.growth import growth

    runs = args.runs or 40
    fits = growth(runs, args.seed, args.workers)
    if args.json:
        print_json({"runs": runs, "seed": args.seed, "fits": fits})
        return
    rows = []
    for fit in fits:
        fitted = [f"{fit.exponent:.2f}", f"{fit.low:.2f} to {fit.high:.2f}", f"{fit.last:.2f}"]
        order = "-" if fit.order is None else f"{fit.order:.2f}"
        shown = fitted if fit.points > 2 else ["-", "-", "-"]
        rows.append([fit.sweep, fit.policy, str(fit.points), *shown, order, fit.verdict])
    head = ["regret against", "policy", "points", "exponent", "95% interval", "last three", "order", "verdict"]
    title = f"AbruptGap, one quantity varied at a time; {runs} runs per point, seed {args.seed}; tuned by theory"
    print_table(head, rows, title)


def _bounds(args: argparse.Namespace) -> None:
    from driftbandit.lab.study import refuse_impossible
    from driftbandit.paper.theory import theory
    from driftbandit.paper.theory.theorem import show_power

    environment = user_code.load_environment(args.environment or "Abrupt()")
    policy = user_code.load_policy(args.policy or "ds-ts", environment=environment)
    refuse_impossible(policy, environment, 1)
    found = theory(environment, policy, args.seed)
    if args.json:
        print_json({"environment": repr(environment), "policy": repr(policy), **found._asdict()})
        return
    print(f"{environment!r}\n{policy!r}\n")
    print_table(["letter", "value", "meaning"], found.quantities, "the environment, as run 0 realises it")
    if not found.bounds:
        print("\nThe paper's theorems are about DS-TS; they have no bound for this policy.")
        return
    print()
    rows = [[bound.name, f"<= {show_power(bound.log10)}", bound.verdict] for bound in found.bounds]
    print_table(["theorem", "plays of sub-optimal arms", "verdict"], rows, "bounds (vacuous: not below T)")
    for condition in dict.fromkeys(condition for bound in found.bounds for condition in bound.failed):
        print(f"  fails: {condition.text} ({condition.found})")
