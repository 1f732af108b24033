"""`driftbandit serve`: bandits over HTTP, and a page to watch them."""

import argparse
from typing import Any

from driftbandit.commands._shared import add_example, need_extra, whole

_EXAMPLES = """\
  driftbandit serve
      driftbandit.db in this folder, on http://127.0.0.1:8000/
  driftbandit serve --config bandits.toml
      makes or changes the bandits that the file describes
  driftbandit keys add keys.json shop --scopes decide,reward
  driftbandit serve --db postgresql://me@db/bandits --workers 4 --host 0.0.0.0 --keys keys.json
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    summary = "serve bandits over HTTP, with a page to watch them"
    parser = add_example(subparsers, "serve", summary, _EXAMPLES)
    parser.add_argument("--db", default="driftbandit.db", metavar="FILE_OR_URL", help="(default: driftbandit.db)")
    add_address(parser)
    parser.add_argument("--keys", metavar="FILE", help="file of keys; required for a public address")
    parser.add_argument("--config", metavar="FILE", help="bandits to make or change at the start (TOML)")
    parser.add_argument(
        "--workers", type=whole(1), default=1, metavar="N", help="processes; PostgreSQL only (default: 1)"
    )
    parser.add_argument("--proxies", default="127.0.0.1", metavar="ADDRESSES",
                        help="addresses whose X-Forwarded headers are trusted (default: 127.0.0.1)")  # fmt: skip
    parser.add_argument("--most", type=whole(1), default=512, metavar="N",
                        help="requests answered at once; further ones get 503 (default: 512)")  # fmt: skip
    parser.add_argument(
        "--max-lag",
        type=float,
        default=5.0,
        metavar="S",
        help="seconds behind the journal above which it is not ready (default: 5)",
    )


def add_address(parser: argparse.ArgumentParser) -> None:
    """Where to listen."""
    parser.add_argument("--host", default="127.0.0.1", help="(default: 127.0.0.1)")
    parser.add_argument("--port", type=whole(0), default=8000, help="0 for any free one (default: 8000)")


def run(args: argparse.Namespace) -> int:
    """Until SIGTERM or Ctrl-C."""
    need_extra("serve", "starlette", "uvicorn", "msgspec", "jinja2", "prometheus_client")
    from driftbandit.service.server import ServerOptions, serve

    asked = (args.db, args.host, args.port, args.keys, args.config, args.workers, args.proxies, args.most, args.max_lag)
    return serve(ServerOptions(*asked))
