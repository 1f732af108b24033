"""`driftbandit replay`: what other policies would have earned on a log."""

import argparse
from typing import Any

from driftbandit.commands._logs import add_log_options, open_log, points, print_head, print_json, print_warnings
from driftbandit.commands._output import print_table
from driftbandit.commands._shared import add_example, need_lab

_EXAMPLES = """\
  driftbandit replay log.csv --policy ds-ts kl-ucb
      their value beside ts, the best fixed arm and the logger

  driftbandit replay log.csv --propensity uniform --policy "ds-ts @ 6 h" "dts @ 1 d" "sw-ts(window=500)"
      @ is a half-life by the clock; without it a policy forgets by counting rewards
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "replay", "estimate what policies would have earned on a log", _EXAMPLES)
    add_log_options(parser)
    parser.add_argument("--policy", nargs="+", default=[], metavar="POLICY", help="policies beside ts")
    parser.add_argument("--no-own", action="store_true", help="leave out values on the policies' own histories")


def run(args: argparse.Namespace) -> None:
    """Replay and print the two tables."""
    need_lab("numba")
    from driftbandit.logs import replay
    from driftbandit.logs.periods import said

    log = open_log(args)
    result = replay(log, args.policy, block=args.block, own=not args.no_own, seed=args.seed, progress=True)
    if args.json:
        print_json(result)
        return
    print_head(log)
    good = [line for line in result.lines if not line.refused]
    head = ["policy", "follower [in this log]", "snips", "effective n"]
    rows = [[line.label, _value(line.value), f"{line.snips:.4f}", f"{line.effective:.0f}"] for line in good]
    if not args.no_own:
        head += [f"own history: value at {result.share:.3g} times your traffic", "accepted"]
        for row, line in zip(rows, good, strict=True):
            row += [_value(line.own), str(line.accepted)]
    block = said(result.block, log.summary.said_in)
    print_table(head, rows, f"value per event; 95 % intervals from {result.blocks} blocks of {block}")
    unit = "points" if log.reward_range == (0.0, 1.0) else "reward"
    head = ["policy", "over ts", "in blocks like these", f"over the best arm, {result.best_arm}", "over the logger"]
    rows = [
        [line.label, points(log, line.over_ts.here), points(log, line.over_ts.like), points(log, line.over_best.here),
         points(log, line.over_logger.here)]
        for line in good
    ]  # fmt: skip
    print_table(head, rows, f"gain of the follower, {unit} per event:")
    best = f"the best fixed arm, {result.best_arm}, {_value(result.best_value)}"
    print(f"the logger earned {result.logger:.4f}; {best} (each half of the rows chooses for the other)")
    for line in result.lines:
        if line.refused:
            print(f"no value: {line.refused}")
    print_warnings(result.warnings)


def _value(estimate: Any) -> str:
    return f"{estimate.mean:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"
