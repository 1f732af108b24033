"""The command line: finds the commands in `driftbandit.commands` and turns what goes wrong into one sentence.

Nothing heavy is imported here or by a command's description, so that `driftbandit --help` answers at once."""

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn

from driftbandit import commands
from driftbandit.checks import nearest
from driftbandit.commands._shared import LAB, MissingLab, shortened

_EPILOG = """\
examples:
  driftbandit list policies                        the policies and how they forget
  driftbandit run drift-ts ts --runs 20            which policy has less regret
  driftbandit run drift-ts ts --plot regret.svg    the same, drawn
  driftbandit help run                             more about one command
"""


class UsageError(ValueError):
    """The command line cannot be parsed."""


class _Parser(argparse.ArgumentParser):
    """Reports errors in one sentence, without a page of usage."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise one sentence that names the help."""
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
    about = subparsers.add_parser("help", help="show this help, or that of one command")
    about.add_argument("about", nargs="?", metavar="COMMAND", help="the command to explain")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 after an error, 130 after Ctrl-C, 141 if the reader of our output left."""
    words = list(sys.argv[1:] if argv is None else argv)
    _ready_streams()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note  # type: ignore[assignment, unused-ignore]
            code = _run(words)
            sys.stdout.flush()  # here, where a full disk is still a sentence
            return code
    except KeyboardInterrupt:
        return interrupted()
    except BrokenPipeError:  # the reader of our output, such as `head`, has gone
        return 141
    except (MissingLab, ImportError, ValueError, TypeError, OSError, MemoryError) as error:
        if _was_interrupted(error):
            return interrupted()
        if "--traceback" in words:
            raise
        if isinstance(error, ImportError):
            if (error.name or "").split(".")[0] in LAB:
                error = MissingLab(str(error.name))
            elif not str(error).startswith("This needs "):  # a package of an extra, such as Dask, is named so
                raise
        memory = "There is not enough memory for this: " if isinstance(error, MemoryError) else ""
        say(f"driftbandit: {memory}{error}")
        return 2
    finally:
        _let_go()


def interrupted() -> int:
    """What Ctrl-C ends with, wherever it was caught."""
    say("driftbandit: interrupted.")
    return 130


def say(text: str) -> None:
    """A line for the person at the terminal; lost without complaint if nobody listens there."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _ready_streams() -> None:
    """Streams that can be written to: a closed one leads nowhere, and letters it has not are replaced."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or getattr(stream, "closed", False):
            nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open for the rest of the process
            setattr(sys, name, nowhere)
        elif getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _let_go() -> None:
    """Flush both streams; one that fails is led nowhere, so that Python does not complain about it at the exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _was_interrupted(error: BaseException | None) -> bool:
    """Did Ctrl-C cause this? Libraries in the middle of being imported turn it into errors of their own."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _run(words: list[str]) -> int:
    parser = build_parser()
    _complete(parser)
    words = [word for word in words if word != "--traceback"]
    known = _verbs(parser)
    command = next((word for word in words if not word.startswith("-")), None)
    asked = words[words.index("help") + 1 :][:1] if command == "help" else []
    for word in [command, *asked]:
        if word is not None and not word.startswith("-") and word not in known:
            raise UsageError(
                f"There is no command {shortened(word)!r}{nearest(word, list(known)) or '.'} "
                f"The commands are: {', '.join(known)}."
            )
    try:
        args = parse_arguments(parser, words)
    except SystemExit as done:  # --help and --version have printed their text
        return int(done.code or 0)
    if "run" not in args:
        about = getattr(args, "about", None)
        (known[about] if about else parser).print_help()
        return 0
    return int(args.run(args) or 0)


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of a parser's commands, by name; empty if it has none."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def parse_arguments(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """The arguments of a command and its verbs, positional arguments and options in any order."""
    args = argparse.Namespace()
    while words and words[0] in _verbs(parser):
        action = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        setattr(args, action.dest, words[0])
        parser, words = action.choices[words[0]], words[1:]
        vars(args).update(parser._defaults)  # what set_defaults gave a command holds for its verbs
    parse = parser.parse_known_args if _verbs(parser) else parser.parse_known_intermixed_args
    args, unknown = parse(words, args)
    if unknown:
        hint = nearest(unknown[0], parser._option_string_actions) if unknown[0].startswith("-") else ""
        kind = "option" if unknown[0].startswith("-") else "argument"
        raise UsageError(f"Unknown {kind} {shortened(unknown[0])!r}{hint or '.'} See: {parser.prog} --help")
    return args


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell's Tab key, if it is the shell that asks and argcomplete is installed."""
    if "_ARGCOMPLETE" in os.environ:
        with contextlib.suppress(ImportError):
            import argcomplete

            argcomplete.autocomplete(parser)


def _note(message: Warning | str, *rest: Any, **more: Any) -> None:
    """A warning as one line, without the place in the code it came from."""
    say(f"driftbandit: note: {message}")


def _version() -> str:
    try:
        return metadata.version("driftbandit")
    except metadata.PackageNotFoundError:
        return "(from source)"
