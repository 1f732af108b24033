"""What the commands about logs share: their options, and the log these name."""

import argparse
import json
from typing import Any

from driftbandit.commands._shared import whole


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """The log and what its columns are called."""
    parser.add_argument(
        "log",
        metavar="LOG",
        help="a .csv, .jsonl or .parquet file with one row per decision, in order; or a journal: a SQLite file or "
        "postgresql://...",
    )
    parser.add_argument("--bandit", metavar="NAME", help="which one, if a journal has several")
    columns = parser.add_argument_group("columns (each by its own name unless said otherwise)")
    for name, about in (
        ("time", "when the decision was made: dates, or numbers"),
        ("arm", "what was chosen"),
        ("reward", "the result"),
        ("propensity", 'the chance the arm had; or the word "uniform"'),
        ("reward-time", "when the reward was known, if later"),
        ("available", "the arms that could be chosen, as in a|b|c, if not all"),
    ):
        columns.add_argument(f"--{name}", metavar="COLUMN", help=about)
    parser.add_argument("--arms", metavar="A,B,..", help="the arms there are; any other is then a fault")
    parser.add_argument(
        "--reward-range", nargs=2, type=float, default=(0.0, 1.0), metavar=("LOW", "HIGH"), help="default: 0 1"
    )
    parser.add_argument(
        "--time-unit",
        metavar="UNIT",
        help="of times that are numbers: s, ms, h, ... (default: s); unix-s, unix-ms, ... if they count from 1970, "
        "which is also told by their size",
    )
    parser.add_argument("--sort", action="store_true", help="sort the rows by time")
    parser.add_argument("--block", metavar="LENGTH", help="of the bootstrap, as in day, week, 6h (default: by itself)")
    parser.add_argument("--seed", type=whole(0), default=0, metavar="S", help="the same seed gives the same numbers")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def open_log(args: argparse.Namespace) -> Any:
    """The log, read and checked."""
    from driftbandit.logs import Log

    columns = {
        name: getattr(args, name)
        for name in ("time", "arm", "reward", "propensity", "reward_time", "available")
        if getattr(args, name) is not None
    }
    arms = None if args.arms is None else [arm.strip() for arm in args.arms.split(",")]
    return Log(
        args.log,
        arms=arms,
        reward_range=tuple(args.reward_range),
        time_unit=args.time_unit,
        sort=args.sort,
        seed=args.seed,
        bandit=args.bandit,
        **columns,
    )


def print_json(result: Any) -> None:
    """A result with all its numbers; null stands for what is infinite or unknown."""
    from driftbandit.logs.replayed import plain

    print(json.dumps(plain(result), indent=2, allow_nan=False))


def print_head(log: Any) -> None:
    """What was read."""
    from driftbandit.logs.periods import said

    summary = log.summary
    print(f"{log.name}: {log.n:,} events, {log.n_arms} arms, {said(summary.span, summary.dates)}")


def print_warnings(warnings: list[str]) -> None:
    """One line each."""
    for warning in warnings:
        print(f"beware: {warning}")


def points(log: Any, estimate: Any) -> str:
    """A gain with its interval: in points if rewards are 0 to 1, else in their own unit."""
    unit = 100.0 if log.reward_range == (0.0, 1.0) else 1.0
    mean, low, high = (unit * value for value in estimate[:3])
    return f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]"
