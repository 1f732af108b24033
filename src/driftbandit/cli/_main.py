"""The command line: finds the commands in `driftbandit.cli`, and prints errors as one sentence.

Nothing heavy is imported here or by a command's description, so `driftbandit --help` is quick."""

import argparse
import contextlib
import importlib
import os
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn

from driftbandit import cli
from driftbandit.cli._shared import EXTRAS, missing_package, shorten
from driftbandit.core.checks import nearest
from driftbandit.errors import DriftbanditError

_EPILOG = """\
examples:
  driftbandit list policies                        the policies and how they forget
  driftbandit run drift-ts ts --runs 20            which policy has less regret
  driftbandit run drift-ts ts --plot regret.svg    the same, drawn
  driftbandit run --help                           more about one command
"""


class UsageError(DriftbanditError, ValueError):
    """The command line cannot be parsed."""


class _Parser(argparse.ArgumentParser):
    """Reports errors in one sentence, without a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:]}. See: {self.prog} --help")


def modules(command: str | None = None) -> list[Any]:
    """The module named like this command, or without such a module every command's, in alphabetical order."""
    names = sorted(info.name for info in pkgutil.iter_modules(cli.__path__) if not info.name.startswith("_"))
    return [importlib.import_module(f"{cli.__name__}.{name}") for name in ([command] if command in names else names)]


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser with this command, or with all of them."""
    parser = _Parser(
        prog="driftbandit",
        description="Bandits for rewards that change over time: play policies against each other, draw their regret.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"driftbandit {_version()}")
    parser.add_argument("--traceback", action="store_true", help="show where in the code an error arose")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", parser_class=_Parser)
    for module in modules(command):
        before = set(subparsers.choices)
        module.add_parser(subparsers)
        for name in set(subparsers.choices) - before:
            subparsers.choices[name].set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. The exit code is 0, 2 after an error, 130 after Ctrl-C, 141 if the reader of the output left."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # characters that the terminal does not have
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note  # type: ignore[assignment, unused-ignore]
            code = _run(words)
            sys.stdout.flush()  # a full disk is reported like other errors
            return code
    except BrokenPipeError:  # the reader of the output, such as `head`, has gone
        return 141
    except KeyboardInterrupt:
        say("driftbandit: interrupted.")
        return 130
    except (DriftbanditError, ImportError, ValueError, TypeError, OSError, MemoryError) as error:
        if "--traceback" in words:
            raise
        if isinstance(error, ImportError):
            if (name := (error.name or "").split(".")[0]) in EXTRAS:
                error = missing_package(name)
            elif not str(error).startswith("This needs "):  # as for a missing package of an extra, such as Dask
                raise
        memory = "There is not enough memory for this: " if isinstance(error, MemoryError) else ""
        say(f"driftbandit: {memory}{error}")
        return 2
    finally:
        _flush_streams()


def say(text: str) -> None:
    """Print a line to stderr, if it can be written."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _flush_streams() -> None:
    """Flush both streams. One that fails is redirected, so that Python prints no error at the exit."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(words: list[str]) -> int:
    words = [word for word in words if word != "--traceback"]
    name = next((word for word in words if not word.startswith("-")), None)
    parser = build_parser(words[0] if words else None)
    known = _verbs(parser)
    if name is not None and name not in known:
        raise UsageError(
            f"There is no command {shorten(name)!r}{nearest(name, list(known)) or '.'} "
            f"The commands are: {', '.join(known)}."
        )
    try:
        args = parse_arguments(parser, words)
    except SystemExit as done:  # --help and --version have printed their text
        return int(done.code or 0)
    if "run" not in args:
        parser.print_help()
        return 0
    return int(args.run(args) or 0)


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of a parser's commands, by name; empty if it has none."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def parse_arguments(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """The arguments of a command and its verbs, positional arguments and options in any order."""
    args = argparse.Namespace()
    while words and words[0] in (verbs := _verbs(parser)):
        args.__dict__["verb" if "command" in args else "command"] = words[0]
        parser, words = verbs[words[0]], words[1:]
        vars(args).update(parser._defaults)  # what set_defaults gave a command holds for its verbs
    parse = parser.parse_known_args if _verbs(parser) else parser.parse_known_intermixed_args
    args, unknown = parse(words, args)
    if unknown:
        option = unknown[0].startswith("-")
        hint = nearest(unknown[0], parser._option_string_actions) if option else ""
        kind = "option" if option else "argument"
        raise UsageError(f"Unknown {kind} {shorten(unknown[0])!r}{hint or '.'} See: {parser.prog} --help")
    return args


def _note(message: Warning | str, *rest: Any, **more: Any) -> None:
    """Print a warning as one line, without its place in the code."""
    say(f"driftbandit: note: {message}")


def _version() -> str:
    try:
        return metadata.version("driftbandit")
    except metadata.PackageNotFoundError:
        return "(from source)"
