"""`driftbandit export`: a journal as a log of decisions, outcomes and exact probabilities."""

import argparse
from typing import Any

from driftbandit.cli._shared import add_bandit, add_example
from driftbandit.core.checks import counted

_EXAMPLES = """\
  driftbandit export shop.db --out log.parquet
      one row per decision: time, decision, arm, reward, reward_time, outcome, propensity, policy, known, ...
  driftbandit export shop.db button --propensity all --out log.jsonl
      with the probability of every arm
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "export", "write a journal as a log for drift and replay", _EXAMPLES)
    add_bandit(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help=".parquet (needs the lab extra), .csv or .jsonl")
    text = "probabilities to recompute: of the arm played (default), of all arms, or none"
    parser.add_argument("--propensity", choices=["none", "arm", "all"], default="arm", help=text)


def run(args: argparse.Namespace) -> None:
    """Write the file and print its number of decisions."""
    from driftbandit.bandit.export import export

    count = export(args.journal, args.out, args.bandit, args.propensity)
    print(f"{counted(count, 'decision')}: {args.out}")
