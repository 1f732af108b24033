"""`driftbandit theory`: what the paper's theorems guarantee for a policy, and how regret grows when it is measured."""

import argparse
import textwrap
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table
from driftbandit.commands._shared import MOST_RUNS, add_example, add_seed, add_workers, completes, need_lab, whole
from driftbandit.text import load

_EXAMPLES = """\
  driftbandit theory ds-ts.tuned --env "Abrupt(n_arms=5, horizon=100000, phases=10)"
      facts of the environment, bounds with their conditions, and a paragraph in plain words

  driftbandit theory ds-ts.tuned --env "AbruptGap(n_arms=5, gap=0.1)" --runs 40 --plot bound.svg
      the same with the regret of 40 runs; bound and measured regret over the horizon, on a logarithmic axis

  driftbandit theory --growth --out build/growth
      measured exponents in T, B_T, 1/gap and K for DS-TS, SW-TS, D-UCB and CUSUM, with figure and tables
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "theory", "show the theorems' bounds and measure how regret grows", _EXAMPLES)
    played = parser.add_argument("policy", nargs="?", metavar="POLICY", help="the policy's text (default: ds-ts)")
    completes(played, "policies")
    place = parser.add_argument("--env", metavar="TEXT", help='the environment\'s text (default: "Abrupt()")')
    completes(place, "environments")
    parser.add_argument("--runs", type=whole(2, MOST_RUNS), metavar="N", help="measure the regret over this many runs")
    parser.add_argument(
        "--plot", metavar="FILE.svg", help="draw bound and measured regret over T; writes a .png and a .csv next to it"
    )
    parser.add_argument("--growth", action="store_true", help="measure how regret grows instead (default: 40 runs)")
    parser.add_argument("--scale", type=float, metavar="S", help="with --growth: multiply all horizons (default: 1)")
    parser.add_argument("--out", metavar="FOLDER", help="with --growth: write growth.svg, .png, .md and .csv there")
    add_seed(parser)
    add_workers(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Evaluate the bounds, or measure the growth."""
    alone = {"growth": ("policy", "env", "plot"), "bounds": ("scale", "out")}
    for name in alone["growth" if args.growth else "bounds"]:
        if getattr(args, name) is not None:
            option = "POLICY" if name == "policy" else f"--{name}"
            raise ValueError(f"{option} does not go with --growth." if args.growth else f"{option} needs --growth.")
    need_lab("numba", "scipy", *(["matplotlib"] if args.plot or args.out else []))
    (_growth if args.growth else _bounds)(args)


def _growth(args: argparse.Namespace) -> None:
    from pathlib import Path

    from driftbandit.lab.paper.theory import growth as module
    from driftbandit.lab.support.files import writable

    if args.out:
        writable(Path(args.out) / "growth.csv")
    runs = args.runs or 40
    found = module.growth(runs, args.seed, 1.0 if args.scale is None else args.scale, args.workers)
    paths = module.save(found.measured, found.fits, args.out) if args.out else []
    if args.json:
        print_json({"runs": runs, "seed": args.seed, "fits": found.fits, "wrote": paths})
        return
    print(f"{found.measured[0].sweep.base!r}, one quantity varied at a time")
    print_table(*module.table(found.fits), f"{runs} runs per point, seed {args.seed}, policies tuned by their theory")
    for path in paths:
        print(f"wrote {path}")


def _bounds(args: argparse.Namespace) -> None:
    from driftbandit.lab.jobs.sizes import refuse_impossible
    from driftbandit.lab.paper.theory.promise import theory

    if args.plot:
        from driftbandit.lab.plots.style import ENDINGS
        from driftbandit.lab.support.files import writable

        if not args.runs:
            raise ValueError("--plot shows the measured regret next to the bounds: add --runs 40.")
        writable(args.plot, ENDINGS)
    environment = load.load_environment(args.env or "Abrupt()")
    text = args.policy or "ds-ts"
    policy = load.load_policy(text, world=environment)
    refuse_impossible(policy, environment, args.runs or 1)
    found = theory(environment, policy, args.runs or 0, args.seed, args.workers)
    written = []
    if args.plot:
        from driftbandit.lab.paper.theory.bound_figure import save_bounds

        written = save_bounds(found, lambda world: load.load_policy(text, world=world), args.plot)
    if args.json:
        print_json({**found.as_json(), "wrote": written})
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
    print("\n" + textwrap.fill(found.paragraph(), 110))
    for path in written:
        print(f"wrote {path}")
