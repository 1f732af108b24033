"""`driftbandit field`: how policies compare, in worlds of every kind, with the best tuned policy of each."""

import argparse
import os
from pathlib import Path
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table
from driftbandit.commands._shared import MOST_RUNS, add_example, add_executor, add_seed, add_workers, need_lab, whole

_EXAMPLES = """\
  driftbandit field
      drift-ts on the whole suite, beside what was tuned and kept: table.md, ratios.csv, figures (some minutes)
  driftbandit field "my_policy.py:MyPolicy(gamma=0.9)" sw-ts.tuned
      policies of your own, or any others; `tuned` is told the horizon, phases and arms of each world
  driftbandit field drift-ts --worlds smooth,trap-K5
      some worlds only: names, kinds, design or check
  driftbandit field --suite late --out docs/field
      what late, one-sided and reordered outcomes cost drift-ts and its rivals, and how long to wait: late.md
  driftbandit field --list
      the worlds, and how to name each for `--env`
  driftbandit field --quick
      six short worlds and a coarse grid, tuned on the spot: about a minute, to see that everything works
  driftbandit field --tune
      tune again and write the results to DIR/kept.csv: about an hour on two cores, continues where it stopped
"""

_LEADERS = 10  # rows that are always printed, beside one's own policies and their neighbours


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    summary = "compare policies with the best tuned one on a suite of worlds"
    parser = add_example(subparsers, "field", summary, _EXAMPLES)
    parser.add_argument("policies", nargs="*", metavar="POLICY", help="a policy's text (default: drift-ts)")
    parser.add_argument(
        "--suite", choices=("worlds", "late"), default="worlds",
        help="worlds: regret beside the best tuned policy; late: outcomes that are learned late or in another order",
    )  # fmt: skip
    parser.add_argument("--worlds", default="", metavar="A,B", help="names, kinds or roles (default: all)")
    parser.add_argument(
        "--out",
        default="build/field",
        metavar="DIR",
        help="where to write and to keep finished pieces (default: build/field)",
    )
    parser.add_argument("--runs", type=whole(2, MOST_RUNS), metavar="N", help="runs of each policy given (default: 32)")
    add_seed(parser, 0, ", of the policies given (default: 0)")
    add_executor(parser)
    add_workers(parser)
    parser.add_argument("--quick", action="store_true", help="a small form, to see that everything works")
    parser.add_argument("--tune", action="store_true", help="play the whole grid again and keep it in DIR/kept.csv")
    parser.add_argument("--kept", metavar="FILE", help="read what was tuned from here (default: the package's own)")
    parser.add_argument("--list", action="store_true", help="show the worlds, and stop")
    add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Tune if asked, play, compare, write."""
    from driftbandit.field import suite

    if args.suite == "late":
        return _late(args)
    names = [word for word in args.worlds.split(",") if word]
    if args.list:
        worlds = suite.choose_worlds(names, suite.quick() if args.quick else suite.SUITE)
        rows = [[world.name, world.kind, world.role, repr(world.environment)] for world in worlds]
        print_table(["world", "kind", "role", "environment"], rows)
        return
    need_lab("numba", "scipy", "matplotlib")
    from driftbandit.field.job import field
    from driftbandit.lab.support.files import writable

    out = Path(args.out)
    writable(out / "ratios.csv")
    done = field(
        args.policies,
        names,
        out=out,
        runs=args.runs,
        seed=args.seed,
        executor=args.executor,
        workers=args.workers,
        quick=args.quick,
        tune=args.tune,
        kept=args.kept,
        progress=not args.json,
        say=(lambda text: None) if args.json else lambda text: print(text, flush=True),
    )
    paths = done.save(out)
    if args.json:
        print_json(done.as_json())
        return
    _print(done)
    for path in paths:
        print(f"wrote {os.fspath(path)}")


def _late(args: argparse.Namespace) -> None:
    """The suite of late outcomes: printed line by line as it is measured, and written to DIR/late.md."""
    for option in ("worlds", "tune", "kept", "list"):
        if getattr(args, option):
            raise ValueError(f"--{option} does not apply to --suite late; remove one of them.")
    need_lab("numba", "scipy")
    from driftbandit.field.late import POLICIES, QUICK_RUNS, RUNS, LateSuite
    from driftbandit.lab.support.files import replacing, writable

    path = Path(args.out) / "late.md"
    writable(path)
    runs = args.runs or (QUICK_RUNS if args.quick else RUNS)
    texts = tuple(dict.fromkeys(args.policies)) or (POLICIES[1:2] if args.quick else POLICIES)
    suite = LateSuite(texts, runs, args.seed, args.workers)
    page = []
    for line in suite.lines():
        page.append(line)
        if not args.json:
            print(line, flush=True)
    with replacing(path) as draft:
        draft.write_text("\n".join(page) + "\n", encoding="utf-8")
    if args.json:
        print_json(list(suite.played.values()))
    else:
        print(f"wrote {os.fspath(path)}")


def _print(done: Any) -> None:
    from driftbandit.field.report import ratio

    mine = [place for place, one in enumerate(done.totals) if one.name in done.played]
    near = {place + step for place in mine for step in (-1, 0, 1)}
    head = ["", "policy", "geometric mean", "worst", "where", "every world", "within 10 %"]
    rows = [
        [
            f"{place + 1}{' *' if place in mine else ''}",
            one.name,
            ratio(one.mean),
            ratio(one.worst),
            one.worst_world,
            ratio(one.every),
            f"{one.near} of {one.worlds}",
        ]
        for place, one in enumerate(done.totals)
        if place < _LEADERS or place in near
    ]
    title = "regret over that of the best tuned policy: the worlds that change, the worst, every world"
    print_table(head, rows, f"{title}; yours are marked *")
    left = len(done.totals) - len(rows)
    if left:
        print(f"and {left} others: table.md has them all")
