"""`driftbandit serve`: bandits over HTTP, and a page to watch them. `driftbandit watch`: that page for a journal that
another program writes. `driftbandit demo`: a service with bandits in environments that change."""

import argparse
from typing import Any

from driftbandit.cli._shared import SERVE, add_example, add_option, need, whole

_EXAMPLES = """\
  driftbandit serve
      driftbandit.db in this folder, on http://127.0.0.1:8000/
  driftbandit keys add keys.json shop --scopes decide,reward
  driftbandit serve postgresql://me@db/bandits --workers 4 --host 0.0.0.0 --keys keys.json
"""
_WATCH = """\
  driftbandit watch shop.db
      while your program decides; nothing is written
  driftbandit watch postgresql://me@db/bandits --port 8001
"""

_DEMO = """\
  driftbandit demo
      open the printed address; the true means are dashed
"""


def add_parser(subparsers: Any) -> None:
    """Describe the three commands to argparse."""
    parser = add_example(subparsers, "serve", "serve bandits over HTTP, with a page to watch them", _EXAMPLES)
    add = parser.add_argument
    text = "a SQLite journal, or postgresql://... (default: driftbandit.db)"
    add("journal", metavar="JOURNAL", nargs="?", default="driftbandit.db", help=text)
    _add_address(parser, keys=True)
    add("--workers", type=whole(1), default=1, metavar="N", help="processes; PostgreSQL only (default: 1)")
    text = "addresses whose X-Forwarded headers are trusted (default: 127.0.0.1)"
    add("--proxies", default="127.0.0.1", metavar="ADDRESSES", help=text)
    text = "requests answered at once; further ones get 503 (default: 512)"
    add("--most", type=whole(1), default=512, metavar="N", help=text)
    text = "seconds behind the journal above which it is not ready (default: 5)"
    add("--max-lag", type=float, default=5.0, metavar="S", help=text)
    text = "bandits kept in memory; others are opened when they are used (default: 5000)"
    add("--max-open", type=whole(1), default=5_000, metavar="N", help=text)

    text = "folder for Parquet files of rows older than a bandit's retention (default: they are dropped)"
    add("--exports", metavar="FOLDER", help=text)

    parser = add_example(subparsers, "watch", "show the page for a journal that another program writes", _WATCH)
    parser.add_argument("journal", metavar="JOURNAL", help="a SQLite journal, or postgresql://...")
    parser.set_defaults(watch=True)
    _add_address(parser, keys=True)

    summary = "run a service with made-up traffic that drifts, to see its page"
    parser = add_example(subparsers, "demo", summary, _DEMO)
    _add_address(parser, keys=False)
    add_option(parser, "seed", default=1)


def _add_address(parser: argparse.ArgumentParser, keys: bool) -> None:
    """Where to listen, and for whom."""
    parser.add_argument("--host", default="127.0.0.1", help="(default: 127.0.0.1)")
    parser.add_argument("--port", type=whole(0), default=8000, help="0 for any free one (default: 8000)")
    if keys:
        parser.add_argument("--keys", metavar="FILE", help="file of keys; required for a public address")
        text = "lines of the log, on standard error: text or json (default: text)"
        parser.add_argument("--log-format", choices=("text", "json"), default="text", help=text)


def run(args: argparse.Namespace) -> int:
    """Until SIGTERM or Ctrl-C."""
    need(*SERVE)
    if args.command == "demo":
        from driftbandit.service.traffic import demo

        demo(args.host, args.port, args.seed)
        return 0
    from driftbandit.service.server import ServerOptions, serve

    names = [name for name in ServerOptions._fields if name in args]
    return serve(ServerOptions(**{name: getattr(args, name) for name in names}))
