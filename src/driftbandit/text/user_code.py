"""The user's own policies and worlds: loaded from a file or a module by name, here and on every worker.

`my_policy.py:MyPolicy` names a class in a file, `package.module:MyPolicy` one that can be imported. A file is loaded
as a module whose name carries a digest of its text. So an edited file is another module, compiled loops can be kept on
disk without ever being stale, and a worker that is sent the text makes the very same module of it."""

import hashlib
import importlib
import importlib.util
import linecache
import os
import sys
import sysconfig
import traceback
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from driftbandit.checks import nearest
from driftbandit.text.registry import SpecError

PREFIX = "driftbandit_own_"
_files: dict[str, tuple[str, bytes]] = {}  # module name: path and text of the user's file it was made from
_imported: set[str] = set()  # modules the user named by import


def load(target: str) -> Any:
    """What `place:name` stands for, where place is a path ending in .py or the name of a module."""
    place, _, name = target.rpartition(":")
    module = file_module(place) if place.endswith(".py") else _import(place)
    if not hasattr(module, name):
        found = [(key, value) for key, value in vars(module).items() if not isinstance(value, ModuleType)]
        known = [key for key, value in found if hasattr(value, "choose") or hasattr(value, "realise")]
        raise SpecError(
            f"{place} has no {name!r}{nearest(name, known) or '.'} "
            f"It defines: {', '.join(known) or 'no policy or world'}."
        )
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
            _files[name] = (path, text)  # the same text at another place: that is where it was found last
        return sys.modules[name]
    spec = importlib.util.spec_from_loader(name, loader=None, origin=path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = path
    # Debuggers, tracebacks and the compiler's messages show the user's lines, also where the file itself is not.
    shown = text.decode("utf-8", "replace")
    linecache.cache[path] = (len(shown), None, shown.splitlines(keepends=True), path)
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.append(folder)  # the file may import its neighbours, as it could when run by itself
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
        sys.path.append(os.getcwd())  # as `python -m` has it: the `driftbandit` script does not
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.split(".")[: len(error.name.split("."))] == error.name.split("."):
            hint = f" A file is named with its ending, as in {name}.py:Name." if "." not in name else ""
            raise SpecError(f"There is no module {name!r} to import from here.{hint}") from None
        raise SpecError(f"{where(error, name)}: {_words(error)}") from error
    except Exception as error:
        raise SpecError(f"{where(error, name)}: {_words(error)}") from error
    _imported.add(name)
    return module


def where(error: BaseException, place: str) -> str:
    """File and line of the user's own code at which an error arose, else the place itself."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{os.path.basename(error.filename)}, line {error.lineno}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_own_file(frame.filename):
            return f"{os.path.basename(frame.filename)}, line {frame.lineno}"
    return os.path.basename(place)


def is_own_file(path: str) -> bool:
    """Is this a file of the user's, neither Python's, nor ours, nor of an installed package?"""
    library = [sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    ours = str(Path(__file__).parents[1])
    return not path.startswith("<") and not any(path.startswith(root + os.sep) for root in [*library, ours])


def _words(error: BaseException) -> str:
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {message}"


def kept_text(module: str) -> bytes | None:
    """The text of the file a module was made from, as it was when loaded; None for any other module."""
    return _files[module][1] if module in _files else None


class WorkerCode(NamedTuple):
    """What a worker needs before it can unpack the user's classes."""

    files: tuple[tuple[str, bytes], ...]  # path and text of each file that was loaded
    modules: tuple[str, ...]  # what was imported by name
    folders: tuple[str, ...]  # where to look for them, if the worker sees the same folders


def worker_code(value: Any) -> WorkerCode:
    """What of the user's is needed to unpack this tuple elsewhere: only the modules its classes come from."""
    modules = sorted({cls.__module__ for cls in classes_in(value)})
    files = tuple(_files[name] for name in modules if name in _files)
    imported = tuple(name for name in modules if name in _imported)
    if not files and not imported:
        return WorkerCode((), (), ())
    folders = (os.path.abspath(entry or os.getcwd()) for entry in sys.path)
    return WorkerCode(files, imported, tuple(folder for folder in folders if is_own_file(folder)))


def load_worker_code(code: WorkerCode) -> None:
    """Load on a worker what was loaded at home."""
    sys.path.extend(folder for folder in code.folders if folder not in sys.path and os.path.isdir(folder))
    for path, text in code.files:
        _module(path, text)
    for name in code.modules:
        importlib.import_module(name)


def text_of(value: Any) -> str:
    """The text by which a policy or world is found again: its repr, with the place before a user's own class, wherever
    in it one stands."""
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
    """The classes of the tuples and plain objects a value is made of, itself included."""
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
