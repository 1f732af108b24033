"""`driftbandit demo`: watch bandits follow worlds that drift."""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from driftbandit.commands._shared import add_example, need_extra, whole
from driftbandit.commands.serve import add_address

_EXAMPLES = """\
  driftbandit demo
      open the printed address; the truth is drawn dashed
  driftbandit demo --seconds 20
      ends by itself
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    summary = "show a service fed by worlds that drift: open its page and watch"
    parser = add_example(subparsers, "demo", summary, _EXAMPLES)
    add_address(parser)
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after this long (default: when you stop it)")
    parser.add_argument("--seed", type=whole(0), default=1, metavar="S", help="of the traffic (default: 1)")


def run(args: argparse.Namespace) -> None:
    """Until Ctrl-C, or for some seconds; its journal is thrown away."""
    need_extra("serve", "starlette", "uvicorn", "msgspec", "jinja2", "prometheus_client")
    from driftbandit.service.demo import Feeder, shown
    from driftbandit.service.server import ServerOptions, address, bound, check, make_service, run_app

    with tempfile.TemporaryDirectory(prefix="driftbandit-demo-") as folder:
        options = ServerOptions(str(Path(folder) / "demo.db"), args.host, args.port)
        check(options)
        sock = bound(args.host, args.port)
        feeder = Feeder(shown(), args.seed)
        service = make_service(options, feeder.truth)
        print(f"the demonstration is at {address(sock)}  (dashed lines are the truth; Ctrl-C ends it)", flush=True)
        run_app(service, sock, options, feeder.start, args.seconds)
