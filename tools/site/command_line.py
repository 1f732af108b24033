"""The page of the command line, from the parsers themselves: what `--help` says, for every command."""

import argparse
import os
import re
from pathlib import Path

from driftbandit.cli import _main as cli

_HEAD = """# The command line

`driftbandit COMMAND --help` prints the same in the terminal. Every command that prints results takes `--json`; bad
input ends with exit code 2 and one sentence, Ctrl-C with 130.

"""


def write(path: Path) -> None:
    """One section per command, with its options and its examples."""
    os.environ["COLUMNS"] = "100"  # argparse folds its text at the width of the terminal
    parser = cli.build_parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    summaries = {choice.dest: (choice.help or "").replace("%%", "%") for choice in commands._choices_actions}
    listed = "".join(f"- [`{name}`](#driftbandit-{name}): {summaries[name]}\n" for name in sorted(summaries))
    parts = [_HEAD, listed, "\n"]
    for name in sorted(summaries):
        parts.append(f"## driftbandit {name}\n\n{_sentence(summaries[name])}\n\n{_help(commands.choices[name])}\n")
    path.write_text("".join(parts), encoding="utf-8")


def _help(parser: argparse.ArgumentParser) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", parser.format_help())  # newer Pythons colour it
    return f"```text\n{text.strip()}\n```\n"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
