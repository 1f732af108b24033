"""What `drift` and `replay` share: their options, and the log these name."""

import argparse
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table
from driftbandit.commands._shared import add_seed


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """The log and what its columns are called."""
    parser.add_argument(
        "log",
        metavar="LOG",
        help="a .csv, .jsonl or .parquet file with one row per decision, in order; or a journal: a SQLite file or "
        "postgresql://...",
    )
    parser.add_argument(
        "bandit", metavar="BANDIT", nargs="?", help="its name, if LOG is a journal (default: the only one in it)"
    )
    columns = parser.add_argument_group("columns, if they have other names")
    for name, about in (
        ("time", "when the decision was made: dates, or numbers"),
        ("arm", "what was chosen"),
        ("reward", "the result"),
        ("propensity", 'the probability the arm had; or the word "uniform"'),
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
        help="of times that are numbers: s, ms, h, ... (default: s); unix-s, unix-ms, ... if they count from 1970 "
        "(default: inferred from their size)",
    )
    parser.add_argument("--date-format", metavar="FORMAT", help="of dates, as in %%d.%%m.%%Y (default: inferred)")
    parser.add_argument("--delimiter", metavar="C", help="of a CSV file (default: inferred)")
    parser.add_argument("--sort", action="store_true", help="sort the rows by time")
    parser.add_argument("--drop-missing", action="store_true", help="leave out rows in which a value is missing")
    parser.add_argument("--block", metavar="LENGTH", help="of the bootstrap, as in day, week, 6h (default: inferred)")
    add_seed(parser)
    add_json(parser)


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
        date_format=args.date_format,
        delimiter={"tab": "\t", "\\t": "\t"}.get(args.delimiter, args.delimiter),
        sort=args.sort,
        drop_missing=args.drop_missing,
        seed=args.seed,
        bandit=args.bandit,
        **columns,
    )


def print_result(args: argparse.Namespace, result: Any, parts: Any) -> None:
    """A result as JSON if asked for, else its parts, with tables fitted to the terminal."""
    if args.json:
        print_json(result.to_dict())
        return
    for part in parts:
        if isinstance(part, str):
            print(part)
        else:
            print_table(part.head, part.rows, part.title)
