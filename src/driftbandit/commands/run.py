"""`driftbandit run`: play policies against a world, or one of the experiments."""

import argparse
import math
from typing import Any

from driftbandit.commands._shared import add_example, need_lab, print_table, whole
from driftbandit.text import parse

_EXAMPLES = """\
  driftbandit run ds-ts ts d-ucb --runs 20
      three policies with their default parameters in the default world

  driftbandit run "DiscountedTS(gamma=0.99)" ts --env "Smooth(n_arms=5, horizon=10000, sigma=0.001)" --runs 50
      parameters in brackets; what is not given keeps its default

  driftbandit run ds-ts.tuned "ds-ts.half_life(70)" --env "abrupt(phases=20)" --out result.parquet --plot regret.svg
      named constructors; tuned takes horizon and phases from the world

  driftbandit run fig3a --runs 10
      an experiment by its id, with fewer runs

`driftbandit list` shows all names, `driftbandit list ds-ts` the parameters of one policy.
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "run", "play policies against a world and report their regret", _EXAMPLES)
    parser.add_argument("policies", nargs="+", metavar="POLICY", help="a policy's text, or the id of an experiment")
    parser.add_argument(
        "--env", metavar="TEXT", help='the environment\'s text (default: "Abrupt()", 5 arms, 10 phases, 100 000 rounds)'
    )
    parser.add_argument(
        "--runs", type=whole(1), metavar="N", help="how many independent runs (default: 100, or the experiment's)"
    )
    parser.add_argument(
        "--seed",
        type=whole(0),
        metavar="S",
        help="the same seed gives the same numbers (default: 0, or the experiment's)",
    )
    parser.add_argument("--out", metavar="FILE.parquet", help="save all curves with where they come from")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the regret curves: .svg, .png or .pdf")
    parser.add_argument(
        "--workers", type=whole(1), metavar="N", help="threads (default: one a core); changes no number"
    )


def run(args: argparse.Namespace) -> None:
    """Play, print the summary, save what was asked for."""
    need_lab("numba", "scipy", *(["pyarrow"] if args.out else []), *(["matplotlib"] if args.plot else []))
    from driftbandit.lab.experiments import experiment
    from driftbandit.lab.plots import regret
    from driftbandit.lab.support.files import writable

    chosen = _experiment(args)
    if args.out:
        writable(args.out, (".parquet",))
    if args.plot:
        writable(args.plot, regret.ENDINGS)
    result = experiment.run(chosen, workers=args.workers)
    print(f"{chosen.environment!r}, {chosen.runs} runs, seed {chosen.seed}")
    print_table(["policy", "regret", "95 % interval", "seconds"], [_line(row) for row in result.summary()])
    if args.out:
        print(f"saved {result.save(args.out)}")
    if args.plot:
        print(f"drew {regret.save(result, args.plot)}")


def _experiment(args: argparse.Namespace) -> Any:
    """The experiment named, or one made of the policies and the world on the command line."""
    from driftbandit.lab.experiments.experiment import Experiment

    known = parse.experiments()
    if len(args.policies) == 1 and args.policies[0] in known:
        if args.env is not None:
            raise ValueError(f"{args.policies[0]} is an experiment and brings its own environment; leave --env out.")
        return known[args.policies[0]].scaled(runs=args.runs, seed=args.seed)
    both = [text for text in args.policies if text in known]
    if both:
        raise ValueError(f"{both[0]} is an experiment and brings its own policies; run it alone.")
    world = parse.parse_environment("Abrupt()" if args.env is None else args.env)
    policies: dict[str, Any] = {}
    for text in args.policies:
        label = " ".join(text.split())
        if label in policies:
            raise ValueError(f"{label} is given twice; each policy needs a text of its own.")
        policies[label] = parse.parse_policy(text, world=world)
    return Experiment("run", repr(world), "", world, policies, 100 if args.runs is None else args.runs, args.seed or 0)


def _line(row: Any) -> list[str]:
    interval = "-" if math.isnan(row.low) else f"{row.low:.1f} to {row.high:.1f}"
    return [row.label, f"{row.mean:.1f}", interval, f"{row.seconds:.2f}"]
