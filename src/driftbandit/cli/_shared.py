"""What several commands share: options, checks of installed packages, logs, tables that fit the terminal, and JSON.

A command saves its results before it prints anything, because printing can fail: the reader of its output may have gone
or the disk may be full."""

import argparse
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from driftbandit.core.checks import as_plain, layout_table
from driftbandit.errors import MissingPackage

EXTRAS = {
    **dict.fromkeys(("numba", "matplotlib", "pyarrow"), "lab"),
    **dict.fromkeys(("starlette", "uvicorn", "msgspec", "jinja2", "prometheus_client"), "serve"),
    "httpx": "client",
}
SERVE = tuple(name for name, extra in EXTRAS.items() if extra == "serve")


# ---- packages --------------------------------------------------------------------------------------------------------


def missing_package(name: str) -> MissingPackage:
    """The error for a package that is not installed, with the extra that brings it."""
    extra = f".[{EXTRAS[name]}]"
    return MissingPackage(f"This needs {name}, which is not installed: pip install '{extra}' brings it.")


def need(*names: str) -> None:
    """Refuse to begin if one of these packages is missing, instead of failing after hours of work."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise missing_package(name)


# ---- options ---------------------------------------------------------------------------------------------------------


def add_example(subparsers: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """A subparser whose help has a summary and examples."""
    return subparsers.add_parser(  # type: ignore[no-any-return]
        name,
        help=summary.replace("%", "%%"),  # argparse formats the help and not the description
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def whole(least: int, most: int | None = None) -> Any:
    """An argparse type: a whole number of at least `least`, exactly as written: 100000, 100_000 or 1e5.

    >>> whole(0)("9007199254740993"), whole(0)("1e5")
    (9007199254740993, 100000)
    """

    def convert(text: str) -> int:
        try:
            number = int(text) if text.strip().lstrip("+-").replace("_", "").isdigit() else float(text)
            right = number == int(number) and number >= least and (most is None or number <= most)
        except (ValueError, OverflowError):
            right = False
        if not right:
            limits = f"{least} or more" if most is None else f"from {least} to {most:_}"
            raise argparse.ArgumentTypeError(f"needs a whole number, {limits}; got {shorten(text)!r}")
        return int(number)

    return convert


def shorten(text: str, length: int = 60) -> str:
    """The text, or its beginning if it is long."""
    return text if len(text) <= length else text[: length - 3] + "..."


def add_bandit(parser: Any, journal: str = "a SQLite journal, or postgresql://...", absent: str = "") -> None:
    """The arguments JOURNAL and BANDIT."""
    parser.add_argument("journal", metavar="JOURNAL", help=journal)
    text = f"its name (default: {absent or 'the only one in the journal'})"
    parser.add_argument("bandit", metavar="BANDIT", nargs="?", help=text)


def _executor(text: str) -> str:
    from driftbandit.lab import executors

    try:
        executors.check(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
    return text


_EXECUTORS = "threads (default), a number of processes, processes:N, dask, dask:ADDRESS, ray or ray:ADDRESS"
_WORKERS = "threads (default: one per core); the numbers stay the same"
_OPTIONS: dict[str, dict[str, Any]] = {
    "runs": {"type": whole(1, 10**9), "metavar": "N"},
    "seed": {"type": whole(0), "default": 0, "metavar": "S", "help": "the same seed gives the same numbers"},
    "executor": {"type": _executor, "metavar": "WHERE", "help": _EXECUTORS},
    "workers": {"type": whole(1, 4096), "metavar": "N", "help": _WORKERS},
    "json": {"action": "store_true", "help": "print the results as one JSON document and nothing else"},
}


def add_option(parser: Any, name: str, **changes: Any) -> None:
    """An option that several commands have, with what differs in this one."""
    parser.add_argument(f"--{name}", **{**_OPTIONS[name], **changes})


# ---- logs, for drift and replay --------------------------------------------------------------------------------------

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
    range_help = "refuse rewards outside (default: accept any up to 1e30)"
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


# ---- output ----------------------------------------------------------------------------------------------------------


def print_json(value: Any) -> None:
    """Print one JSON document, as `as_plain` makes it."""
    print(json.dumps(as_plain(value), indent=1, allow_nan=False))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Rows under a head. In a file or pipe there is one line per row. On a narrow terminal columns of text are
    wrapped; numbers are never cut."""
    width = terminal_width()
    if title:
        print(title)
    bold = width is not None and "NO_COLOR" not in os.environ and os.environ.get("TERM") not in (None, "dumb")
    for number, line in layout_table(head, rows, width):
        print(f"\033[1m{line}\033[0m" if bold and number == 0 else line)


def terminal_width() -> int | None:
    """The number of columns of the terminal; None if the output is not a terminal."""
    return max(20, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def print_result(args: argparse.Namespace, result: Any, more: Sequence[str] = ()) -> None:
    """Print a result as JSON on request, else as text."""
    if args.json:
        print_json(result.to_dict())
    else:
        print_contents(result)
        for line in more:
            print(line)


def print_contents(result: Any) -> None:
    """Print a `lab.summaries.Report`, with tables fitted to the terminal."""
    for part in result.contents():
        if isinstance(part, str):
            print(part)
        else:
            print_table(part.head, part.rows, part.title)
