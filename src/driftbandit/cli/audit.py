"""`driftbandit audit`: recompute every decision of a journal and compare it with the stored one."""

import argparse
from typing import Any

from driftbandit.cli._shared import add_bandit, add_example, add_option, print_json, print_table

_EXAMPLES = """\
  driftbandit audit shop.db
      every bandit of the file, which may be in use; exit code 1 if anything differs
  driftbandit audit postgresql://me@host/db button
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    summary = "recompute every live decision and the state from a journal, and name the first difference"
    parser = add_example(subparsers, "audit", summary, _EXAMPLES)
    add_bandit(parser, absent="all")
    add_option(parser, "json")


def run(args: argparse.Namespace) -> int:
    """Audit, print one line per bandit; exit code 1 on any difference."""
    from driftbandit.bandit.audit import audit

    reports = audit(args.journal, args.bandit)
    code = 1 if any(report.differences for report in reports) else 0
    if args.json:
        print_json({"bandits": reports})
        return code
    rows = [[one.bandit, str(one.decisions), str(one.events), str(one.snapshots), _verdict(one)] for one in reports]
    print_table(["bandit", "decisions", "events", "snapshots", "verdict"], rows)
    for report in reports:
        for difference in report.differences:
            print(f"{report.bandit}: {difference}.")
        for stretch in report.unproved:
            print(f"{report.bandit}: not proved: {stretch}.")
        if report.dropped:
            print(f"{report.bandit}: the first {report.dropped} events and their decisions were dropped (retention).")
    return code


def _verdict(report: Any) -> str:
    if report.differences:
        return f"{len(report.differences)} differ"
    return "proved in part" if report.unproved else "all proved"
