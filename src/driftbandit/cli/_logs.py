"""Options and output shared by `drift` and `replay`."""

import argparse
from collections.abc import Sequence
from typing import Any

from driftbandit.cli._shared import add_option, need, print_json, print_table

_COLUMNS = {
    "time": "when the decision was made: dates, or numbers",
    "arm": "the arm that was chosen",
    "reward": "the reward",
    "propensity": 'the probability the arm had; or the word "uniform"',
    "reward_time": "when the reward was known, if later",
    "available": "the arms that could be chosen, as in a|b|c, if not all",
}


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """The log and the names of its columns."""
    log = "a .csv, .jsonl or .parquet file with one row per decision; or a SQLite or postgresql:// journal"
    parser.add_argument("log", metavar="LOG", help=log)
    bandit = "its name, if LOG is a journal (default: the only one in it)"
    parser.add_argument("bandit", metavar="BANDIT", nargs="?", help=bandit)
    columns = parser.add_argument_group("columns, if they have other names")
    for name, text in _COLUMNS.items():
        columns.add_argument(f"--{name.replace('_', '-')}", metavar="COLUMN", help=text)
    features = "columns that describe a decision, as in device,basket:number,time:hour; or the word all"
    parser.add_argument("--features", metavar="COLUMNS", help=features)
    range_help = "refuse rewards outside (default: accept any finite reward)"
    parser.add_argument("--reward-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=range_help)
    unit = "of times that are numbers: s, ms, h, ..., or since 1970 unix-s, unix-ms, ... (default: s)"
    parser.add_argument("--time-unit", metavar="UNIT", help=unit)
    parser.add_argument("--block", metavar="LENGTH", help="of the bootstrap, as in day, week, 6h (default: inferred)")
    add_option(parser, "seed")
    add_option(parser, "json")


def open_log(args: argparse.Namespace) -> Any:
    """Read and check the log."""
    need("pyarrow")
    from driftbandit.logs import Log

    columns = {name: getattr(args, name) for name in _COLUMNS if getattr(args, name) is not None}
    return Log(
        args.log,
        reward_range=None if args.reward_range is None else tuple(args.reward_range),
        time_unit=args.time_unit,
        seed=args.seed,
        bandit=args.bandit,
        features=args.features,
        **columns,
    )


def print_result(args: argparse.Namespace, result: Any, more: Sequence[str] = ()) -> None:
    """Print a result as JSON on request, else as text, with tables fitted to the terminal."""
    if args.json:
        print_json(result.to_dict())
        return
    for part in [*result.parts(), *more]:
        if isinstance(part, str):
            print(part)
        else:
            print_table(part.head, part.rows, part.title)
