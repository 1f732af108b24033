"""How fast everything is on this machine, next to plain NumPy, plain C and other libraries: `make bench`."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks.speed import figure, machine, peers, report, workload
from driftbandit.cli._shared import print_table
from driftbandit.lab.files import replace_file, writable

_EXAMPLES = """\
  python -m benchmarks.speed
      everything: all policies with 5, 10, 30 and 100 arms, plain NumPy and C, other libraries installed into
      separate environments; under ten minutes, and what pip needs the first time
  python -m benchmarks.speed --no-peers
      the same without other libraries: nothing is installed
  python -m benchmarks.speed --quick
      the policies of the paper only, no other libraries; about a minute
  python -m benchmarks.speed --out docs/speed
      where to write speed.json, table.md, speed.svg and speed.png
"""


def main(argv: list[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description="Measure speed on this machine, next to plain NumPy, C and other libraries.",
        epilog="examples:\n" + _EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer policies, shorter runs, no other libraries: a look, not a figure to quote",
    )
    parser.add_argument(
        "--no-peers", action="store_true", help="leave out other libraries, which are otherwise installed with pip"
    )
    parser.add_argument("--out", default="build/bench", metavar="DIR", help="where to write (default: build/bench)")
    args = parser.parse_args(argv)
    out = Path(args.out)
    writable(out / "speed.json")
    scale = workload.QUICK if args.quick else workload.FULL
    data = report.measure(scale, None if args.quick or args.no_peers else peers.default_place(), _say)
    for name, text in (("speed.json", json.dumps(data, indent=1) + "\n"), ("table.md", report.markdown(data))):
        with replace_file(out / name) as draft:
            draft.write_text(text, encoding="utf-8")
    for ending in ("svg", "png"):
        figure.save(data, out / f"speed.{ending}")
    print(machine.sentence(data["machine"]))
    for table in report.tables(data):
        print(f"\n{table.title}: {table.about}")
        print_table(table.head, table.rows)
    print(f"\n{data['seconds']:.0f} s; wrote speed.json, table.md, speed.svg and speed.png into {out}")


def _say(what: str) -> None:
    """What is being measured now, on a line that the next one replaces; nothing in a file or pipe."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
