"""The user's own policies and environments, loaded from a file or a module by name, here and on every worker.

`my_policy.py:MyPolicy(gamma=0.9)` names a class in a file, `package.module:MyPolicy` one that can be imported. That
file or module is run, because the user named it. Text that comes from elsewhere (snapshots, results, stores) is read by
`spec.parse`, which loads nothing.

A file is loaded as a module whose name contains a digest of its text. So an edited file is another module, compiled
loops kept on disk are never stale, and a worker that receives the text builds the same module."""

import hashlib
import importlib
import importlib.util
import linecache
import os
import re
import shlex
import sys
import sysconfig
import traceback
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from driftbandit.core.checks import nearest
from driftbandit.errors import SpecError
from driftbandit.spec import parse

PREFIX = "driftbandit_own_"
_files: dict[str, tuple[str, bytes]] = {}  # module name: path and text of the user's file it was made from
_imported: set[str] = set()  # modules the user named by import
# A user's own class, "place:Name", where place is a path ending in .py or a module; text in quotes is skipped.
_OWN = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|((?:[A-Za-z]:[\\/])?[^\s()=,:'"]+\.py|[A-Za-z_][\w.]*):([A-Za-z_]\w*)"""
)
_OWN_WITH_SPACES = re.compile(r"^([^()='\"]+\.py):([A-Za-z_]\w*)")
_LOG = re.compile(r"(?:table\()?([^()\"'=]+\.(?:csv|jsonl|ndjson|parquet|db|sqlite)(?:\.gz)?)\)?", re.IGNORECASE)


def load_policy(text: str, environment: Any = None) -> Any:
    """The policy that a text describes; files and modules named in it are loaded."""
    plain, extra = _load_own(text)
    return parse.parse_policy(plain, extra, environment)


def load_environment(text: str) -> Any:
    """The environment that a text describes; files and modules named in it are loaded."""
    plain, extra = _load_own(text)
    return parse.parse_environment(plain, extra)


def _load_own(text: Any) -> tuple[Any, dict[str, Any]]:
    """The text with each `place:Name` replaced by an alias, and the classes by their aliases."""
    extra: dict[str, Any] = {}
    if not isinstance(text, str):
        return text, extra

    def replace(place: str, name: str) -> str:
        alias = f"own_{len(extra)}_{name}"
        extra[alias] = load(f"{place}:{name}")
        return alias

    text = text.strip()
    if file := _LOG.fullmatch(text):
        drift = f"driftbandit drift {shlex.quote(file[1][:200])}"
        raise SpecError(
            f"{file[1]:.200} is a file, not a policy or an environment. `{drift}` and `replay` learn from a log; "
            f"`{drift} --environment FILE.csv` writes an environment like it, for --environment 'table(\"FILE.csv\")'."
        )
    if whole := _OWN_WITH_SPACES.match(text):
        text = replace(whole[1], whole[2]) + text[whole.end() :]
    return _OWN.sub(lambda match: match[0] if match[1] else replace(match[2], match[3]), text), extra


def resolve_paths(text: str, folder: Any) -> str:
    """The text with relative paths of users' files joined to `folder`.

    >>> resolve_paths("mine.py:Mine(gamma=0.9)", "/home/me")
    '/home/me/mine.py:Mine(gamma=0.9)'
    """

    def join(match: re.Match[str], place: int) -> str:
        if not (match[place] or "").endswith(".py"):
            return match[0]
        return match[0].replace(match[place], os.path.join(folder, os.path.expanduser(match[place])), 1)

    if _OWN_WITH_SPACES.match(text):
        return _OWN_WITH_SPACES.sub(lambda match: join(match, 1), text)
    return _OWN.sub(lambda match: join(match, 2), text)


def load(target: str) -> Any:
    """The object named `place:name`, where place is a path ending in .py or the name of a module."""
    place, _, name = target.rpartition(":")
    module = file_module(place) if place.endswith(".py") else _import(place)
    if not hasattr(module, name):
        own = {key: value for key, value in vars(module).items() if not isinstance(value, ModuleType)}
        known = [key for key, value in own.items() if hasattr(value, "choose") or hasattr(value, "realise")]
        defined = ", ".join(known) or "no policy or environment"
        raise SpecError(f"{place} has no {name!r}{nearest(name, known) or '.'} It defines: {defined}.")
    return getattr(module, name)


def file_module(path: str | Path) -> ModuleType:
    """The file as a module; loaded once for each version of its text."""
    path = Path(path).expanduser()
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SpecError(f"Cannot read {str(path)!r}: {(error.strerror or str(error)).lower()}.") from None
    return _module(str(path.resolve()), text)


def _module(path: str, text: bytes) -> ModuleType:
    name = f"{PREFIX}{Path(path).stem}_{hashlib.sha256(text).hexdigest()[:12]}"
    if name in sys.modules:
        if name in _files:
            _files[name] = (path, text)  # the same text at another place
        return sys.modules[name]
    spec = importlib.util.spec_from_loader(name, loader=None, origin=path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = path
    # Tracebacks and the compiler's messages then show the user's lines, also on a worker that lacks the file.
    shown = text.decode("utf-8", "replace")
    linecache.cache[path] = (len(shown), None, shown.splitlines(keepends=True), path)
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.append(folder)  # the file may import its neighbours, as it could when run as a script
    sys.modules[name] = module
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception):
            raise
        raise SpecError(f"{where(error, path)}: {_words(error)}") from error
    _files[name] = (path, text)
    return module


def _import(name: str) -> ModuleType:
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())  # `python -m` does this, the `driftbandit` script does not
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.split(".")[: len(error.name.split("."))] == error.name.split("."):
            raise SpecError(f"There is no module {name!r} here. A file needs its ending, as in mine.py:Name.") from None
        raise SpecError(f"{where(error, name)}: {_words(error)}") from error
    except Exception as error:
        raise SpecError(f"{where(error, name)}: {_words(error)}") from error
    _imported.add(name)
    return module


def where(error: BaseException, place: str) -> str:
    """File and line of the user's code that raised an error, else the place itself."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{os.path.basename(error.filename)}, line {error.lineno}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_own_file(frame.filename):
            return f"{os.path.basename(frame.filename)}, line {frame.lineno}"
    return os.path.basename(place)


def is_own_file(path: str) -> bool:
    """Is this a file of the user's, not of Python, this package or an installed one?"""
    library = [sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    ours = str(Path(__file__).parents[1])
    return not path.startswith("<") and not any(path.startswith(root + os.sep) for root in [*library, ours])


def _words(error: BaseException) -> str:
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {message}"


def source_text(module: str) -> bytes | None:
    """The text of the file that became this module; None for any other module."""
    return _files[module][1] if module in _files else None


class WorkerCode(NamedTuple):
    """What a worker needs before it can unpickle the user's classes."""

    files: tuple[tuple[str, bytes], ...]  # path and text of each file that was loaded
    modules: tuple[str, ...]  # imported by name
    folders: tuple[str, ...]  # where to look for them, if the worker sees the same folders


def worker_code(value: Any) -> WorkerCode:
    """The user's code that is needed to unpickle this value elsewhere: the modules of its classes."""
    modules = sorted({cls.__module__ for cls in classes_in(value)})
    files = tuple(_files[name] for name in modules if name in _files)
    imported = tuple(name for name in modules if name in _imported)
    if not files and not imported:
        return WorkerCode((), (), ())
    folders = (os.path.abspath(entry or os.getcwd()) for entry in sys.path)
    return WorkerCode(files, imported, tuple(folder for folder in folders if is_own_file(folder)))


def load_worker_code(code: WorkerCode) -> None:
    """Load the user's code on a worker."""
    sys.path.extend(folder for folder in code.folders if folder not in sys.path and os.path.isdir(folder))
    for path, text in code.files:
        _module(path, text)
    for name in code.modules:
        importlib.import_module(name)


def text_of(value: Any) -> str:
    """The text that `load_policy` reads back: the repr of a policy or environment, with the file or module before each
    of the user's own classes."""
    module, cls = type(value).__module__, type(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = dict(zip(value._fields, value, strict=True))
    elif module in _files or module in _imported:
        fields = vars(value) if hasattr(value, "__dict__") else {}
    else:
        return repr(value)
    given = ", ".join(f"{name}={text_of(field)}" for name, field in fields.items())
    written = f"{cls.__name__}({given})"
    if module in _files:
        return f"{_files[module][0]}:{written}"
    return f"{module}:{written}" if module in _imported else written


def classes_in(value: Any) -> frozenset[type]:
    """The classes of a value and of the tuples and objects in it."""
    found: set[type] = set()
    todo, seen = [value], set()
    while todo:
        item = todo.pop()
        plain = hasattr(item, "__dict__") and not isinstance(item, type | ModuleType | FunctionType)
        if not (plain or isinstance(item, tuple | list)) or id(item) in seen:
            continue
        seen.add(id(item))
        if type(item) not in (tuple, list):
            found.add(type(item))
        todo += item if isinstance(item, tuple | list) else vars(item).values()
    return frozenset(found)
