"""Which code a number was computed with: one digest of the whole package, of the libraries that compute and of the
user's own files. Stored results, compiled code and work sent to other machines are all named by it.

A file that was edited after this process started may differ from what was imported, so the digest of such a process is
unique: it neither reads nor stores anything under a name that others use."""

import ast
import hashlib
import importlib.util
import inspect
import os
import platform
import re
import sys
import time
import uuid
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from driftbandit.state import memory
from driftbandit.text import user_code

PACKAGE = "driftbandit"
ROOT = Path(__file__).parents[2]
_STARTED = time.time()
_UNIQUE = uuid.uuid4().hex.encode()


def code_digest(*values: Any) -> str:
    """A digest of all the code that these policies and environments run."""
    return _digest(_own_classes(values))


@lru_cache(maxsize=1024)
def _digest(own: frozenset[type]) -> str:
    modules = _modules_of(own)
    loose = sorted(_class_text(cls) for cls in own if cls.__module__ not in modules)
    return _hash([("", modules_digest(modules).encode()), *(("", text) for text in loose)])[:32]


def sent_modules(*values: Any) -> tuple[str, ...]:
    """The user's modules that another process needs in the same version, to run these policies and environments. The
    user's script itself is not one of them: its classes are sent by value."""
    return tuple(sorted(_modules_of(_own_classes(values)) - {"__main__"}))


def modules_digest(modules: Iterable[str]) -> str:
    """A digest of the package, of the libraries that compute and of these modules, as this process has them."""
    # The name of a module made from a file contains a digest of the file, and must not depend on its folder.
    texts = {re.sub(rf"^{user_code.PREFIX}(.*)_\w+$", r"\1", name): _module_text(name) or b"" for name in modules}
    return _hash([("", f"{package_digest()} {versions()}".encode()), *sorted(texts.items())])[:32]


@cache
def package_digest() -> str:
    """A digest of every source file of the package, taken once per process."""
    return _hash((path.relative_to(ROOT).as_posix(), _text(path)) for path in sorted(ROOT.rglob("*.py")))[:16]


@cache
def versions() -> str:
    """The libraries that compute, and their versions."""
    found = {name: next(iter(metadata.distributions(name=name)), None) for name in ("numpy", "numba", "llvmlite")}
    return ", ".join(f"{name} {dist.version if dist else None}" for name, dist in found.items())


def _own_classes(values: Any) -> frozenset[type]:
    return frozenset(cls for cls in user_code.classes_in(values) if not _is_ours(cls.__module__))


def _modules_of(own: frozenset[type]) -> set[str]:
    """The user's modules that these classes are made from: theirs, and what those import, wherever in the file."""
    found: set[str] = set()
    todo = [cls.__module__ for cls in own]
    families = {name.partition(".")[0] for name in todo}
    while todo:
        name = todo.pop()
        if name in found or _is_ours(name):
            continue
        file = _file(name)
        if user_code.kept_text(name) is None and (file is None or not user_code.is_own_file(str(file))):
            if file is None or name.partition(".")[0] not in families:
                continue  # a module of Python, of an installed package, or one that does not exist
        found.add(name)
        todo += _imports(_module_text(name) or b"", name)
    return found


def _module_text(name: str) -> bytes | None:
    kept, file = user_code.kept_text(name), _file(name)
    try:
        return kept if kept is not None else _text(file) if file else None
    except OSError:
        return None


def _file(module: str) -> Path | None:
    """The file of a module, which need not have been imported."""
    if module in sys.modules:
        file = getattr(sys.modules[module], "__file__", None)
    else:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, AttributeError, ValueError):
            return None
        file = spec.origin if spec is not None and spec.has_location else None
    return Path(file) if file else None


def _class_text(cls: type) -> bytes:
    """The text of a class from a notebook's cell; a class without any text is different every time."""
    try:
        return inspect.getsource(cls).encode()
    except (OSError, TypeError):
        return uuid.uuid4().bytes


def _imports(text: bytes, module: str) -> list[str]:
    """The modules that a module's text imports, by their full names."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):  # a compiled module
        return []
    found = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    package = getattr(sys.modules.get(module), "__package__", None) or module.rpartition(".")[0]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            place = ".".join([*parts, *filter(None, [node.module])])
            found += [place, *(f"{place}.{alias.name}" for alias in node.names)]
    return found


def _text(path: Path) -> bytes:
    text = path.read_bytes()
    return text if path.stat().st_mtime <= _STARTED else text + b"\n# " + _UNIQUE


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE


def _hash(files: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, text in files:
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


def machine() -> str:
    """Processor, cores, memory and system, as far as they can be found out."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parts = [_processor(), f"{cores} core{'s' if cores != 1 else ''}", f"{memory() / 2**30:.0f} GB of memory"]
    return ", ".join(part for part in [*parts, f"{platform.system()} {platform.machine()}"] if part)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor()


def library_versions() -> dict[str, str]:
    """The library_versions that a number may depend on."""
    out = {"python": platform.python_version()}
    for name in ("driftbandit", "numpy", "numba"):
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            out[name] = "from source" if name == "driftbandit" else "not installed"
    return out
