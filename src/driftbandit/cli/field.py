"""`driftbandit field`: compare policies with the best tuned policy of each environment of a suite."""

import argparse
from pathlib import Path
from typing import Any

from driftbandit.cli._shared import add_example, add_option, need, print_json, print_table, whole

_EXAMPLES = """\
  driftbandit field
      drift-ts in 57 environments of 0/1 rewards, compared with kept results of tuning: table.md, ratios.csv, figures
  driftbandit field --suite linear
      drift-lin-ts with contexts; rivals are given the noise
  driftbandit field "my_policy.py:MyPolicy(gamma=0.9)" sw-ts.tuned --environments smooth,trap-K5
      other policies, in some environments; `tuned` is given the horizon, phases and arms of each
  driftbandit field --list
      the environments; `driftbandit run` takes their names too
  driftbandit field --quick
      a few short environments and a coarse grid, tuned at once: about a minute, to see that everything works
  driftbandit field --tune
      tune again and write the results to DIR/kept.csv: continues where it stopped (binary: an hour on two cores)
"""
_LEADERS = 10  # rows that are always printed, in addition to the policies given and their neighbours


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    summary = "compare policies with the best tuned one on a suite of environments"
    parser = add_example(subparsers, "field", summary, _EXAMPLES)
    parser.add_argument("policies", nargs="*", metavar="POLICY", help="a policy's text (default: that of the suite)")
    parser.add_argument(
        "--suite", choices=("binary", "scale", "linear"), default="binary",
        help="binary: 0/1 rewards (default); scale: rewards of any scale; linear: contexts",
    )  # fmt: skip
    parser.add_argument("--environments", default="", metavar="A,B", help="names, kinds or roles (default: all)")
    where = "where to write and to keep finished work (default: build/field/SUITE)"
    parser.add_argument("--out", metavar="DIR", help=where)
    add_option(parser, "runs", type=whole(2, 10**9), help="runs (default: 32, scale: 16, linear: 8)")
    add_option(parser, "seed", help="of the policies given; the same seed gives the same numbers (default: 0)")
    add_option(parser, "executor")
    add_option(parser, "workers")
    parser.add_argument("--quick", action="store_true", help="a small form, to see that everything works")
    parser.add_argument("--tune", action="store_true", help="play the whole grid again and keep it in DIR/kept.csv")
    parser.add_argument("--kept", metavar="FILE", help="results of tuning (default: those of the repository)")
    parser.add_argument("--list", action="store_true", help="show the environments, and stop")
    add_option(parser, "json")


def run(args: argparse.Namespace) -> None:
    """Tune on request, play, compare, write."""
    from driftbandit.field.suite import choose_environments
    from driftbandit.field.suites import load_suite
    from driftbandit.lab.files import writable

    folder = Path(args.out or f"build/field/{args.suite}")
    names = [word for word in args.environments.split(",") if word]
    if args.list:
        suite = load_suite(args.suite)
        chosen = choose_environments(names, suite.quick if args.quick else suite.environments)
        rows = [[one.name, one.kind, one.role, repr(one.environment)] for one in chosen]
        print_table(["name", "kind", "role", "environment"], rows)
        return
    need("numba", "matplotlib")
    from driftbandit.field.contest import field

    writable(folder / "ratios.csv")
    given = ("suite", "runs", "seed", "executor", "workers", "quick", "tune", "kept")
    options = {name: getattr(args, name) for name in given}
    progress = not args.json
    contest = field(
        args.policies, names, out=folder, progress=progress, **options, say=print if progress else lambda text: None
    )
    paths = contest.save(folder)
    if args.json:
        print_json(contest.to_dict())
        return
    _print(contest)
    for path in paths:
        print(f"wrote {path}")


def _print(contest: Any) -> None:
    from driftbandit.field.contest import ratio

    mine = [place for place, one in enumerate(contest.totals) if one.name in contest.played]
    near = {place + step for place in mine for step in (-1, 0, 1)}
    head = ["", "policy", "geometric mean", "worst", "where", "every environment", "within 10%"]
    rows = []
    for place, one in enumerate(contest.totals):
        if place < _LEADERS or place in near:
            numbers = [ratio(one.mean), ratio(one.worst), one.worst_environment, ratio(one.every)]
            mark = f"{place + 1}{' *' if place in mine else ''}"
            rows.append([mark, one.name, *numbers, f"{one.near} of {one.environments}"])
    title = "regret over that of the best tuned policy, over the averaged environments; yours are marked *"
    print_table(head, rows, title)
    left = len(contest.totals) - len(rows)
    if left:
        print(f"and {left} others: table.md has them all")
