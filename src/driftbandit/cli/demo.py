"""`driftbandit demo`: a service with bandits in environments that change."""

import argparse
from typing import Any

from driftbandit.cli._shared import SERVE, add_example, add_option, need
from driftbandit.cli.serve import add_address

_EXAMPLES = """\
  driftbandit demo
      open the printed address; the true means are dashed
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    summary = "run a service with made-up traffic that drifts, to see its page"
    parser = add_example(subparsers, "demo", summary, _EXAMPLES)
    add_address(parser, keys=False)
    add_option(parser, "seed", default=1)


def run(args: argparse.Namespace) -> None:
    """Until Ctrl-C; its journal is deleted."""
    need(*SERVE)
    from driftbandit.service.traffic import demo

    demo(args.host, args.port, args.seed)
