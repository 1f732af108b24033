"""Which sources a number comes from: one answer for stored results, for compiled code and for provenance.

Nobody keeps a list of the files that matter. A digest begins at the modules that compute, the simulator's and those of
the classes at hand, and follows what each imports, wherever in the file the import stands. A file counts unless it
says of itself, by its room below, that it stands around the computation; what it imports is followed all the same.

What runs is what was imported. A file edited since this process began may not be what runs here, so its text counts as
one that nobody else has: nothing is read, and nothing kept, under a name that is another's.

Text is scanned for imports, not parsed: a warm start has no time for a parser (a test holds the scan to one)."""

import hashlib
import importlib.util
import inspect
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from driftbandit.text import user_code
from driftbandit.text.user_code import classes_in as classes_in

PACKAGE = "driftbandit"
ROOT = Path(__file__).parents[2]
REGRET, DRIFT, COMPILER = "lab.jobs.plain", "lab.jobs.phases", "lab.engine.code_cache"  # where numbers begin
# Present at a simulation without a say in its numbers. Anything not named here counts.
AROUND = (
    "text.",  # from text to classes: what came of it is in the name of every result
    "lab.support.",  # progress, files, this very module
    "lab.engine.code_cache",  # keeps what others compile
    "lab.engine.kernel_files",  # the files it keeps that in, which mark their own format
    "lab.engine.compile_errors",  # words
    "lab.jobs.work",  # what a piece of work is: its fields are in the name of every result
    "protocols",  # declarations
    "checks",  # these three refuse, or change nothing
    "validity",
    "rewards",
    "beliefs",  # what a live agent's probabilities are integrated from
    "policies.drift_belief",  # the same for DriftTS, and its words
)

_FROM = re.compile(r"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|(?:[^\n\\]|\\\n)*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+((?:[^\n\\]|\\\n)*)", re.MULTILINE)
_COMMENT = re.compile(r"#[^\n]*")


_BEGAN = time.time()
_ALONE = uuid.uuid4().hex.encode()


def number_digest(*values: Any, drift: bool = False) -> str:
    """A digest of everything that can change a simulated number of these policies and worlds."""
    return _digest((DRIFT if drift else REGRET,), classes_in(values))


def kernel_digest(function: Callable[..., Any], classes: Iterable[type]) -> str:
    """A digest of everything that a function compiled for these classes is made from."""
    own = function.__module__.removeprefix(f"{PACKAGE}.")
    return _digest((COMPILER, own), frozenset(classes))


@cache
def package_digest() -> str:
    """A digest of the whole package: of figures and words too."""
    files = ((path.relative_to(ROOT).as_posix(), path.read_bytes()) for path in sorted(ROOT.rglob("*.py")))
    return _hash(files)[:16]


@lru_cache(maxsize=1024)
def _digest(roots: tuple[str, ...], classes: frozenset[type]) -> str:
    """Taken once a process: what runs is what was imported, also if a file changes meanwhile."""
    ours = [cls.__module__ for cls in classes if _is_ours(cls.__module__)]
    texts = dict(sources([*(f"{PACKAGE}.{root}" for root in roots), *ours]))
    for cls in classes:
        if not _is_ours(cls.__module__):
            texts.update(own_sources(cls))
    return _hash([*sorted(texts.items()), ("", versions().encode())])[:32]


def sources(modules: Iterable[str]) -> dict[str, bytes]:
    """Name and text of the package's modules that these are made from, themselves included."""
    found: dict[str, bytes] = {}
    seen: set[str] = set()
    todo = list(modules)
    while todo:
        name = todo.pop()
        path = _path(name)
        if name in seen or path is None:
            continue
        seen.add(name)
        text = _text(path)
        if not name.removeprefix(f"{PACKAGE}.").startswith(AROUND):
            found[name] = text
        todo += [other for other in imported(text.decode(), name) if _is_ours(other)]
    return found


def own_sources(cls: type) -> dict[str, bytes]:
    """Name and text of all that a class from outside the package is made from: the user's files, those they import, and
    what of the package they build on. A class without a file may have changed, so it is never the same twice."""
    found: dict[str, bytes] = {}
    todo, family = [cls.__module__], cls.__module__.partition(".")[0]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        if _is_ours(name):
            found.update(sources([name]))
            continue
        text = _own_text(name, family, cls)
        if text is None:
            continue
        found[name] = text
        todo += imported(text.decode("utf-8", "replace"), name)
        for value in vars(sys.modules[name]).values() if name in sys.modules else ():
            todo.append(value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or "")
    # The name of a module made from a file carries the file's digest; its place must not count.
    return {re.sub(rf"^{user_code.PREFIX}(.*)_\w+$", r"\1", name): text for name, text in found.items()}


def _own_text(name: str, family: str, cls: type) -> bytes | None:
    """The text of a module of the user's, or None for one that is Python's, an installed package's, or nobody's."""
    kept = user_code.kept_text(name)
    if kept is not None:
        return kept
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None and name == cls.__module__:
        return _text_of_class(cls)
    if file is None and name not in sys.modules:
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, AttributeError, ValueError):
            return None
        file = found.origin if found is not None and found.has_location else None
    if file is None or not (user_code.is_own_file(file) or name.partition(".")[0] == family):
        return None
    try:
        return _text(Path(file)) if file.endswith(".py") else hashlib.sha256(_text(Path(file))).digest()
    except OSError:
        return None


def _text(path: Path) -> bytes:
    """The text of a file, marked as ours alone if it was edited since this process began."""
    text = path.read_bytes()
    return text if path.stat().st_mtime <= _BEGAN else text + b"\n# " + _ALONE


def _text_of_class(cls: type) -> bytes:
    """The text of a class from a notebook's cell; a class without any is new each time."""
    try:
        return inspect.getsource(cls).encode()
    except (OSError, TypeError):
        return uuid.uuid4().bytes


def imported(text: str, module: str) -> set[str]:
    """The modules that a text imports, at its top or inside its functions, by their full names; a name taken from a
    package stands for the module it comes from."""
    found: set[str] = set()
    for match in _IMPORT.finditer(text):
        found.update(part.split()[0] for part in _names(match[1]).split(",") if part.split())
    for match in _FROM.finditer(text):
        place = _absolute(match[1], module)
        for part in _names(match[2]).split(","):
            if part.split():
                found.add(_origin(place, part.split()[0]))
    return found


def _names(written: str) -> str:
    """What stands after `import`, on one line."""
    return _COMMENT.sub("", written).replace("\\\n", " ").split(";")[0].strip("() \n")


def _absolute(place: str, module: str) -> str:
    """A place as it is written after `from`, in full."""
    dots = len(place) - len(place.lstrip("."))
    if dots == 0:
        return place
    path = _path(module) if _is_ours(module) else None
    is_package = path.name == "__init__.py" if path else hasattr(sys.modules.get(module), "__path__")
    parts = module.split(".") if is_package else module.split(".")[:-1]
    parts = parts[: len(parts) - dots + 1]
    return ".".join([*parts, *filter(None, [place.lstrip(".")])])


@cache
def _origin(place: str, name: str) -> str:
    """The module that `from place import name` is about: place.name if there is such a module; where the package of
    that name says or keeps it, if place is one of our packages; else place itself."""
    whole = f"{place}.{name}"
    if not _is_ours(place):
        return whole if whole in sys.modules else place
    if _path(whole) is not None:
        return whole
    path = _path(place)
    if path is None or path.name != "__init__.py":
        return place
    for match in _FROM.finditer(path.read_text()):
        if re.search(rf"\b{name}\b", match[2]):
            return _absolute(match[1], place)
    for file in sorted(path.parent.glob("*.py")):  # a package that looks its classes up when asked
        if re.search(rf"^(?:class|def) {name}\b", file.read_text(), re.MULTILINE) and file != path:
            return f"{place}.{file.stem}"
    return place


def _is_ours(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


@cache
def _path(module: str) -> Path | None:
    """The file of one of the package's modules."""
    if not _is_ours(module):
        return None
    base = ROOT.joinpath(*module.split(".")[1:])
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


@cache
def versions() -> str:
    """The libraries that compute, and their versions."""
    out = []
    for name in ("numpy", "numba", "llvmlite"):
        try:
            out.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            out.append(f"no {name}")
    return ", ".join(out)


def _hash(files: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, text in files:
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()
