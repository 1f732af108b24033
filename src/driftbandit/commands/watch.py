"""`driftbandit watch`: the page for a journal that another program writes."""

import argparse
from typing import Any

from driftbandit.commands._shared import add_example, need_extra
from driftbandit.commands.serve import add_address

_EXAMPLES = """\
  driftbandit watch shop.db
      while your program decides; nothing is written
  driftbandit watch postgresql://me@db/bandits --port 8001
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "watch", "show the page for a journal that another program writes", _EXAMPLES)
    parser.add_argument("db", metavar="FILE_OR_URL", help="a SQLite journal, or postgresql://...")
    add_address(parser)
    parser.add_argument("--keys", metavar="FILE", help="file of keys; required for a public address")


def run(args: argparse.Namespace) -> int:
    """Until SIGTERM or Ctrl-C."""
    need_extra("serve", "starlette", "uvicorn", "msgspec", "jinja2", "prometheus_client")
    from driftbandit.service.server import ServerOptions, serve

    return serve(ServerOptions(args.db, args.host, args.port, args.keys, watch=True))
