"""`driftbandit run`: play policies against a world, or one of the experiments."""

import argparse
import dataclasses
import math
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table
from driftbandit.commands._shared import (
    MOST_RUNS,
    add_example,
    add_interpreted,
    add_seed,
    add_workers,
    completes,
    need_lab,
    whole,
)
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
    played = parser.add_argument(
        "policies", nargs="+", metavar="POLICY", help="a policy's text, or the id of an experiment"
    )
    completes(played, "policies")
    world = parser.add_argument(
        "--env", metavar="TEXT", help='the environment\'s text (default: "Abrupt()", 5 arms, 10 phases, 100 000 rounds)'
    )
    completes(world, "environments")
    parser.add_argument(
        "--runs",
        type=whole(1, MOST_RUNS),
        metavar="N",
        help="how many independent runs (default: 100, or the experiment's)",
    )
    add_seed(parser, None, " (default: 0, or the experiment's)")
    add_interpreted(parser)
    parser.add_argument("--out", metavar="FILE.parquet", help="save all curves with a record of where they come from")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the regret curves: .svg, .png or .pdf")
    add_workers(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Play, save what was asked for, print the summary."""
    need_lab(*([] if args.interpreted else ["numba"]), "scipy", *(["pyarrow"] if args.out else []))
    need_lab("scipy", *(["matplotlib"] if args.plot else []))
    from driftbandit.lab.experiments.comparison import compare
    from driftbandit.lab.plots import regret
    from driftbandit.lab.support.files import writable

    study = _study(args)
    if args.out:
        writable(args.out, (".parquet",))
    if args.plot:
        writable(args.plot, regret.ENDINGS)
    result = compare(study, workers=args.workers, compiled=not args.interpreted).result()
    written = {"saved": result.save(args.out) if args.out else None}
    written["drew"] = regret.plot(result, args.plot) if args.plot else None
    if args.json:
        print_json({**result.provenance, "regret": result.summary(), **written})
        return
    print(f"{result.provenance['environment']}, {study.runs} runs, seed {study.seed}")
    print_table(["policy", "regret", "95 % interval", "seconds"], [_line(row) for row in result.summary()])
    for verb, path in written.items():
        if path is not None:
            print(f"{verb} {path}")


def _study(args: argparse.Namespace) -> Any:
    """The experiment named, or a study of the policies and the world on the command line."""
    from driftbandit.lab.experiments.study import Study

    known = parse.experiments()
    changes = {key: getattr(args, key) for key in ("runs", "seed") if getattr(args, key) is not None}
    if len(args.policies) == 1 and args.policies[0] in known:
        if args.env is not None:
            raise ValueError(f"{args.policies[0]} is an experiment and brings its own environment; leave --env out.")
        return dataclasses.replace(known[args.policies[0]], **changes)
    both = [text for text in args.policies if text in known]
    if both:
        raise ValueError(f"{both[0]} is an experiment and brings its own policies; run it alone.")
    return Study(args.policies, ["Abrupt()" if args.env is None else args.env], id="run", **changes)


def _line(row: Any) -> list[str]:
    interval = "-" if math.isnan(row.low) else f"{row.low:.1f} to {row.high:.1f}"
    return [row.label, f"{row.mean:.1f}", interval, f"{row.seconds:.2f}"]
