"""`driftbandit keys`: make, show and revoke the keys of a service."""

import argparse
from datetime import UTC, datetime
from typing import Any

from driftbandit.cli._shared import add_example, need, print_table

_EXAMPLES = """\
  driftbandit keys add keys.json shop --scopes decide,reward --bandits button
      prints the key once; the file keeps a hash
  driftbandit keys show keys.json
  driftbandit keys revoke keys.json 3f9a12bc
      takes effect at once, in a running service too
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "keys", "make, show and revoke the keys of a service", _EXAMPLES)
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)
    add = verbs.add_parser("add", help="make a key; a name may have two, so that one can take over from the other")
    show = verbs.add_parser("show", help="show the keys' names, scopes and dates")
    revoke = verbs.add_parser("revoke", help="delete a key")
    for made in (add, show, revoke):
        made.add_argument("file", metavar="FILE")
    add.add_argument("name", metavar="NAME", help="owner of the key; the journal records it with changes")
    text = "of decide, reward, read, admin (default: decide,reward)"
    add.add_argument("--scopes", default="decide,reward", help=text)
    text = 'only these; "button:*" for all whose names begin so (default: all)'
    add.add_argument("--bandits", nargs="+", metavar="BANDIT", help=text)
    add.add_argument("--days", type=float, metavar="D", help="days until it expires (default: never)")
    add.add_argument("--rate", type=float, metavar="R", help="requests per second (default: no limit)")
    revoke.add_argument("key", metavar="KEY", help="its first eight characters, as `show` prints them")


def run(args: argparse.Namespace) -> None:
    """Run the verb."""
    need("starlette", "msgspec")
    from driftbandit.service.auth import Keys

    keys = Keys(args.file)
    if args.verb == "add":
        scopes = [word.strip() for word in args.scopes.split(",") if word.strip()]
        print(keys.add(args.name, scopes, args.bandits, args.days, args.rate))
    elif args.verb == "revoke":
        gone = keys.revoke(args.key)
        print(f"revoked {gone.prefix} of {gone.name}")
    else:
        rows = [
            [key.prefix, key.name, ",".join(key.scopes), " ".join(key.bandits), _day(key.created), _day(key.expires)]
            for key in keys.all()
        ]
        print_table(["key", "name", "scopes", "bandits", "made", "ends"], rows)


def _day(moment: float | None) -> str:
    return "never" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
