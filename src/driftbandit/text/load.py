"""Texts in which users name their own code: arguments of commands, study files, experiments written in Python.

`my_policy.py:MyPolicy(gamma=0.9)` and `package.module:MyPolicy` load that file or module, which runs it: the user named
it. Of what is in there only policies, worlds and reward laws are ever called. Text that comes from elsewhere
(snapshots, results, stores) is read by `text.parse`, which loads nothing."""

import os
import re
import shlex
from typing import Any

from driftbandit.text import parse, user_code
from driftbandit.text.registry import SpecError

# A user's own class, "place:Name": a path ending in .py or a module's name, a colon, a name. Texts in quotes are left.
_OWN = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|((?:[A-Za-z]:[\\/])?[^\s()=,:'"]+\.py|[A-Za-z_][\w.]*):([A-Za-z_]\w*)"""
)
_FILE = re.compile(r"(?:table\()?([^()\"'=]+\.(?:csv|jsonl|ndjson|parquet|db|sqlite)(?:\.gz)?)\)?", re.IGNORECASE)
_OWN_WITH_SPACES = re.compile(r"^([^()='\"]+\.py):([A-Za-z_]\w*)")


def load_policy(text: str, world: Any = None) -> Any:
    """The policy that a text of the user's describes; files and modules named in it are loaded."""
    plain, extra = _with_own(text)
    return parse.parse_policy(plain, extra, world)


def load_environment(text: str) -> Any:
    """The world that a text of the user's describes; files and modules named in it are loaded."""
    plain, extra = _with_own(text)
    return parse.parse_environment(plain, extra)


def _with_own(text: Any) -> tuple[Any, dict[str, Any]]:
    """The text with each `place:Name` replaced by a name of its own, and the classes under those names."""
    extra: dict[str, Any] = {}
    if not isinstance(text, str):
        return text, extra

    def loaded(place: str, name: str) -> str:
        alias = f"own_{len(extra)}_{name}"
        extra[alias] = user_code.load(f"{place}:{name}")
        return alias

    text = text.strip()
    if file := _FILE.fullmatch(text):
        raise SpecError(_no_world(file[1]))
    whole = _OWN_WITH_SPACES.match(text)
    if whole:
        text = loaded(whole[1], whole[2]) + text[whole.end() :]
    return _OWN.sub(lambda match: match[0] if match[1] else loaded(match[2], match[3]), text), extra


def _no_world(path: str) -> str:
    """A log is asked, not played in: where to go from here."""
    drift = f"driftbandit drift {shlex.quote(path[:200])}"
    return (
        f"{path:.200} is a file, not a policy or a world: `{drift}` and `replay` answer questions about a log, "
        f"and `{drift} --world world.csv` makes a world like it, to be played with --env 'table(\"world.csv\")'."
    )


def rooted(text: str, folder: Any) -> str:
    """The text with the paths of users' files beginning in `folder`, unless they begin at the root.

    >>> rooted("mine.py:Mine(gamma=0.9)", "/home/me")
    '/home/me/mine.py:Mine(gamma=0.9)'
    """

    def placed(match: re.Match[str], place: int) -> str:
        if not match[place].endswith(".py"):
            return match[0]
        return match[0].replace(match[place], os.path.join(folder, os.path.expanduser(match[place])), 1)

    if _OWN_WITH_SPACES.match(text):
        return _OWN_WITH_SPACES.sub(lambda match: placed(match, 1), text)
    return _OWN.sub(lambda match: match[0] if match[1] else placed(match, 2), text)
