"""`driftbandit demo`: a service with bandits in environments that change."""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from driftbandit.commands._shared import add_example, need_extra, whole
from driftbandit.commands.serve import add_address

_EXAMPLES = """\
  driftbandit demo
      open the printed address; the true means are dashed
  driftbandit demo --seconds 20
      stops after 20 seconds
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    summary = "run a service with made-up traffic that drifts, to see its page"
    parser = add_example(subparsers, "demo", summary, _EXAMPLES)
    add_address(parser)
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after this long (default: at Ctrl-C)")
    parser.add_argument("--seed", type=whole(0), default=1, metavar="S", help="seed of the traffic (default: 1)")


def run(args: argparse.Namespace) -> None:
    """Until Ctrl-C, or for some seconds; its journal is deleted."""
    need_extra("serve", "starlette", "uvicorn", "msgspec", "jinja2", "prometheus_client")
    from driftbandit.service.demo import Feeder, shown
    from driftbandit.service.server import ServerOptions, address, bound, check, make_service, run_app

    with tempfile.TemporaryDirectory(prefix="driftbandit-demo-") as folder:
        options = ServerOptions(str(Path(folder) / "demo.db"), args.host, args.port)
        check(options)
        sock = bound(args.host, args.port)
        feeder = Feeder(shown(), args.seed)
        service = make_service(options, feeder.truth)
        print(f"the demonstration is at {address(sock)}  (dashed lines are the true means; Ctrl-C ends it)", flush=True)
        run_app(service, sock, options, feeder.start, args.seconds)
