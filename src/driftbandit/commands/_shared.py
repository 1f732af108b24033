"""What several commands need: a check that the laboratory is installed, help with examples, whole numbers from the
command line."""

import argparse
import importlib.util
from decimal import Decimal, InvalidOperation
from typing import Any

LAB = ("numba", "scipy", "matplotlib", "pyarrow", "rich")
MOST_RUNS = 10**9  # what is more, nobody waits for
MOST_WORKERS = 4096


class MissingLab(Exception):
    """Something of the `lab` extra is wanted and not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"This needs {name}, which is not installed: pip install 'driftbandit[lab]' brings all of it.")


def need_lab(*names: str) -> None:
    """Refuse before any work if one of these packages (all that simulating and saving needs, by default) is missing."""
    for name in names or ("numba", "scipy", "pyarrow"):
        if importlib.util.find_spec(name) is None:
            raise MissingLab(name)


def need_extra(extra: str, *names: str) -> None:
    """Refuse before any work if one of these packages, which an extra brings, is missing."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(
            f"This needs {missing[0]}, which is not installed: pip install 'driftbandit[{extra}]' brings it."
        )


def add_example(subparsers: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """A subparser whose help says what the command does and shows it at work."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary.replace("%", "%%"),  # argparse formats the one and not the other
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_interpreted(parser: argparse.ArgumentParser) -> None:
    """The option that plays without compiling."""
    parser.add_argument(
        "--interpreted",
        action="store_true",
        help="play without compiling: the same numbers, some hundred times slower; for a policy of your own that does "
        "not compile",
    )


def completes(action: argparse.Action, kind: str) -> None:
    """Let the Tab key offer the names of this kind ("policies", "environments"), with argcomplete installed."""

    def names(prefix: str, **_: Any) -> list[str]:
        from driftbandit.text import parse

        found = []
        for cls in getattr(parse, kind)().values():
            short = str(getattr(cls, "short", cls.__name__))
            makers = [f"{short}.{maker}" for maker in parse.constructors(cls)] if prefix.startswith(short) else []
            found += [short, *makers]
        return found

    action.completer = names  # type: ignore[attr-defined]


def whole(least: int, most: int | None = None) -> Any:
    """An argparse type: a whole number, 100000 or 100_000 or 1e5, exactly as written, of at least `least`.

    >>> whole(0)("9007199254740993"), whole(0)("1e5")
    (9007199254740993, 100000)
    """

    def convert(text: str) -> int:
        try:
            number = _exact(text.strip().replace("_", ""))
        except (ValueError, InvalidOperation):
            number = None
        if number is None or number < least or (most is not None and number > most):
            upto = f"{least} or more" if most is None else f"from {least} to {most:_}"
            raise argparse.ArgumentTypeError(f"needs a whole number, {upto}; got {shortened(text)!r}")
        return number

    return convert


def _exact(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        number = Decimal(text)
    if not number.is_finite() or number.adjusted() > 30 or number != number.to_integral_value():
        return None  # 1e999999999 would take all memory to write out
    return int(number)


def shortened(text: str, length: int = 60) -> str:
    """The text, or its beginning if it is long: a message is one line that can be read."""
    return text if len(text) <= length else text[: length - 3] + "..."


def add_bandit(parser: Any, journal: str = "a SQLite journal, or postgresql://...", absent: str = "") -> None:
    """The arguments JOURNAL and BANDIT, in the same places for every command."""
    parser.add_argument("journal", metavar="JOURNAL", help=journal)
    text = f"its name (default: {absent or 'the only one in the journal'})"
    parser.add_argument("bandit", metavar="BANDIT", nargs="?", help=text)


def add_seed(parser: Any, default: int | None = 0, more: str = "") -> None:
    """The option --seed."""
    text = f"the same seed gives the same numbers{more}"
    parser.add_argument("--seed", type=whole(0), default=default, metavar="S", help=text)


def add_workers(parser: Any, text: str = "threads (default: one per core); changes no number") -> None:
    """The option --workers."""
    parser.add_argument("--workers", type=whole(1, MOST_WORKERS), metavar="N", help=text)


def add_executor(parser: Any) -> None:
    """The option --executor."""
    parser.add_argument(
        "--executor",
        metavar="WHO",
        help="threads (default), a number of processes, processes:N, dask, dask:ADDRESS, ray or ray:ADDRESS",
    )
