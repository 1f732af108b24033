"""What was made before and is still right: a digest for everything that went into it, and one for every file."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from driftbandit.lab.files import replace_file

HERE = Path(__file__).parent
_IMPORTS = re.compile(r"^from tools\.site(?: import (\([^)]*\)|[^\n]*)|\.(\w+) import)", re.MULTILINE)


def digest(*parts: Any) -> str:
    """A digest of texts, bytes and whatever says by its text what it is."""
    made = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, bytes) else str(part).encode()
        made.update(f"{len(text)}\0".encode() + text)
    return made.hexdigest()[:32]


def own_sources(module: str) -> str:
    """A digest of what writes the pages: a module of this package, those it is made from, and all that is no Python.

    The package has other modules, whose changes make no card anew."""
    found: dict[str, str] = {}
    todo = [module]
    while todo:
        name = todo.pop()
        path = HERE / f"{name}.py"
        if name not in found and path.is_file():
            found[name] = path.read_text(encoding="utf-8")
            for several, one in _IMPORTS.findall(found[name]):
                todo += [one] if one else re.findall(r"\w+", several)
    others = [path for path in sorted(HERE.iterdir()) if path.suffix in (".css", ".html", ".js")]
    return digest(*(text for _, text in sorted(found.items())), *(path.read_bytes() for path in others))


class Made:
    """The record of a folder's files, kept next to them."""

    def __init__(self, into: Path) -> None:
        self.into, self.path = into, into / ".made.json"
        into.mkdir(parents=True, exist_ok=True)
        try:
            self.known = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self.known = {}

    def stands(self, name: str, wanted: str) -> bool:
        """Was this made from the same things, and are its files as they were written?"""
        found = self.known.get(name, {})
        return found.get("digest") == wanted and all(
            _of_file(self.into / file) == text for file, text in found.get("files", {}).items()
        )

    def note(self, name: str, wanted: str, files: Iterable[str], row: Any = None) -> None:
        """Write down what was made; `row` is what an index says of it."""
        self.known[name] = {
            "digest": wanted,
            "files": {file: _of_file(self.into / file) for file in sorted(files)},
            "row": row,
        }
        with replace_file(self.path) as draft:
            draft.write_text(json.dumps(self.known, indent=1, sort_keys=True), encoding="utf-8")

    def row(self, name: str) -> Any:
        """What an index says of it."""
        return self.known[name]["row"]

    def unless_it_stands(self, name: str, wanted: str, make: Callable[[], Iterable[str]]) -> None:
        """Make it, if it was not made from the same things before."""
        if not self.stands(name, wanted):
            self.note(name, wanted, make())

    def forget_all_but(self, names: Iterable[str]) -> None:
        """Remove the files of what is made no longer."""
        for name in set(self.known) - set(names):
            for file in self.known.pop(name).get("files", {}):
                (self.into / file).unlink(missing_ok=True)


def _of_file(path: Path) -> str:
    return digest(path.read_bytes()) if path.is_file() else ""
