"""The command line: finds the commands in `driftbandit.commands` and turns what goes wrong into one sentence.

Nothing heavy is imported here or by a command's description, so that `driftbandit --help` answers at once."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn

from driftbandit import commands
from driftbandit.commands._shared import LAB, MissingLab
from driftbandit.text.registry import nearest

_EPILOG = """\
examples:
  driftbandit list policies                        what there is to play
  driftbandit run ds-ts ts --runs 20               who regrets less
  driftbandit run ds-ts ts --plot regret.svg       the same, drawn
  driftbandit run --help                           more about one command
"""


class UsageError(ValueError):
    """The words on the command line do not fit."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, in place of a page of usage."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Refuse, and say where help is."""
        raise UsageError(f"{message[:1].upper()}{message[1:]}. See: {self.prog} --help")


def build_parser() -> argparse.ArgumentParser:
    """The parser with every command."""
    parser = _Parser(
        prog="driftbandit",
        description="Bandits for rewards that change over time: play policies against each other, draw their regret.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"driftbandit {_version()}")
    parser.add_argument("--traceback", action="store_true", help="show where in the code an error arose")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", parser_class=_Parser)
    for module in commands.modules():
        before = set(subparsers.choices)
        module.add_parser(subparsers)
        for name in set(subparsers.choices) - before:
            subparsers.choices[name].set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 after an error, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note  # type: ignore[assignment, unused-ignore]
            return _run(words)
    except KeyboardInterrupt:
        print("driftbandit: interrupted.", file=sys.stderr)
        return 130
    except (
        BrokenPipeError
    ):  # the reader of our output, such as `head`, has gone; Python must not complain about it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (MissingLab, ImportError, ValueError, TypeError, OSError) as error:
        if "--traceback" in words:
            raise
        if isinstance(error, ImportError):
            if (error.name or "").split(".")[0] not in LAB:
                raise
            error = MissingLab(str(error.name))
        print(f"driftbandit: {error}", file=sys.stderr)
        return 2


def _run(words: list[str]) -> int:
    parser = build_parser()
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    known = list(actions[0].choices)
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in known:
        raise UsageError(
            f"There is no command {command!r}{nearest(command, known) or '.'} The commands are: {', '.join(known)}."
        )
    try:
        args, unknown = parser.parse_known_args(words)
    except SystemExit as done:  # --help and --version have printed what was asked for
        return int(done.code or 0)
    if unknown:
        chosen = actions[0].choices[args.command] if args.command else parser
        hint = nearest(unknown[0], chosen._option_string_actions)
        raise UsageError(f"{chosen.prog} knows no {unknown[0]!r}{hint or '.'} See: {chosen.prog} --help")
    if args.command is None:
        parser.print_help()
        return 0
    return int(args.run(args) or 0)


def _note(message: Warning | str, *rest: Any, **more: Any) -> None:
    """A warning as one line, without the place in the code it came from."""
    print(f"driftbandit: note: {message}", file=sys.stderr)


def _version() -> str:
    try:
        return metadata.version("driftbandit")
    except metadata.PackageNotFoundError:
        return "(from source)"
