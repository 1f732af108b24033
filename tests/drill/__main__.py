"""`python -m tests.drill`: fault tests of live bandits on this machine, as a table."""

import argparse
import json
import sys

from driftbandit.cli._shared import print_table
from tests.drill.all import LONG, SMALL, STORES, USUAL, drill, plan

_EXAMPLES = """\
examples:
  python -m tests.drill
      kill -9 under load, power loss, retry storms, outages, a full disk, a clock set back, many processes, fuzzed
      calls, against SQLite and PostgreSQL, and kill -9 and restarts behind HTTP; takes some minutes
  python -m tests.drill --store sqlite --only kill storm --size small
  python -m tests.drill --only http-kill http-restart
  python -m tests.drill --only kill-drop --kills 100
      kill -9 while old rows are dropped
  python -m tests.drill --only move --bandits 1000
      kill -9 while bandits are moved to another database
  python -m tests.drill --only upgrade --before ../older-checkout
      two processes on PostgreSQL are replaced by this version one by one, and back, under load
  python -m tests.drill --size long --kills 1000
  python -m tests.drill --only power power-drop --images 1000

A power loss is tried with SQLite, on Linux with gcc or cc: of what was not flushed, anything may be lost or torn. It is
not tried with PostgreSQL. Lines that begin with "to be found" have a fault: they hold if the drill finds it.
"""


def main(arguments: list[str] | None = None) -> int:
    """Drill, print a line as each is done and the table at the end; exit code 1 if any promise was broken."""
    parser = argparse.ArgumentParser(
        "python -m tests.drill", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [name for name, *_ in plan(SMALL, before="")]
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both", help="(default: both)")
    parser.add_argument("--size", choices=["small", "usual", "long"], default="usual", help="(default: usual)")
    parser.add_argument("--only", nargs="+", choices=names, metavar="DRILL", help=", ".join(names))
    parser.add_argument("--kills", type=int, metavar="N", help="how many times to kill -9")
    parser.add_argument("--fuzzed", type=int, metavar="N", help="how many fuzzed calls")
    parser.add_argument("--images", type=int, metavar="N", help="how many disks after a power loss")
    parser.add_argument("--bandits", type=int, metavar="N", dest="moved", help="how many bandits to move")
    parser.add_argument("--before", metavar="FOLDER", help="a checkout of an older version, for the drill upgrade")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="(default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(arguments)
    if args.before is None and "upgrade" in (args.only or ()):
        parser.error("upgrade needs a checkout of an older version: --before FOLDER.")

    sizes = {"small": SMALL, "usual": USUAL, "long": LONG}[args.size]
    sizes = sizes._replace(
        **{name: getattr(args, name) for name in ("kills", "fuzzed", "images", "moved") if getattr(args, name)}
    )
    stores = STORES if args.store == "both" else (args.store,)
    found, rows, good = [], [], True
    for finding, seconds in drill(stores, sizes, args.seed, args.only, args.before):
        row = {"drill": finding.what, "store": finding.store, "tried": finding.tried,
               "promise": "held" if finding.good else "BROKEN", "found": finding.result}  # fmt: skip
        found.append({**row, "seconds": round(seconds, 3)})
        rows.append([*row.values(), f"{seconds:.1f} s"])
        good &= finding.good
        if not args.json:
            print("  ".join(rows[-1]), flush=True)
    if args.json:
        print(json.dumps(found))
    else:
        print()
        head = ["drill", "store", "tried", "promise", "found", "time"]
        print_table(head, rows, f"seed {args.seed}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
