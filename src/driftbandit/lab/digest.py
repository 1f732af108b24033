"""Which code a number was computed with: one digest of the package, of the libraries that compute and of the user's
files. Stored results, compiled code and work sent to other machines are named by it.

A file that was edited after this process started may differ from the imported code. The digest of such a process is
unique, so that it shares nothing with others."""

import contextlib
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

from driftbandit.core.checks import counted
from driftbandit.core.state import memory
from driftbandit.spec import user_code

ROOT = Path(__file__).parents[1]
_STARTED = time.time()
_UNIQUE = uuid.uuid4().hex.encode()


def code_digest(*values: Any) -> str:
    """A digest of all the code that these policies and environments run."""
    return _digest(_find_own_classes(values))


@lru_cache(maxsize=1024)
def _digest(own: frozenset[type]) -> str:
    modules = _modules_of(own)
    loose = sorted(_class_text(cls) for cls in own if cls.__module__ not in modules)
    return _hash([("", modules_digest(modules, True).encode()), *(("", text) for text in loose)])[:32]


def find_sent_modules(*values: Any) -> tuple[str, ...]:
    """The user's modules that another process needs in the same version. The user's script is not one of them: its
    classes are sent by value."""
    return tuple(sorted(_modules_of(_find_own_classes(values)) - {"__main__"}))


def modules_digest(modules: Iterable[str], neighbours: bool = False) -> str:
    """A digest of the package, of the libraries that compute and of these modules, as this process has them. A module
    counts with its whole package; with `neighbours`, one without a package counts with the files of its folder."""
    texts: dict[str, bytes] = {}
    for module in modules:
        # The name of a module made from a file contains a digest of the file, but not its folder.
        name = re.sub(rf"^{user_code.PREFIX}(.*)_\w+$", r"\1", module)
        kept, file = user_code.source_text(module), _file(module)
        texts[name] = kept if kept is not None else _text(file) if file else b""
        depth = name.count(".") + (file is not None and file.name == "__init__.py")
        if file is not None and (depth or neighbours):
            folder = file.parents[max(0, depth - 1)]
            found = folder.rglob("*.py") if depth else folder.glob("*.py")
            texts |= {f"{name}/{path.relative_to(folder).as_posix()}": _text(path) for path in found}
    return _hash([("", f"{package_digest()} {versions()}".encode()), *sorted(texts.items())])[:32]


@cache
def package_digest() -> str:
    """A digest of every source file of the package, taken once per process."""
    return _hash((path.relative_to(ROOT).as_posix(), _text(path)) for path in sorted(ROOT.rglob("*.py")))[:16]


@cache
def versions() -> str:
    """The libraries that compute, and their versions."""
    return ", ".join(f"{name} {_version(name)}" for name in ("numpy", "numba", "llvmlite"))


def library_versions() -> dict[str, str]:
    """The versions that a number may depend on."""
    found = {name: _version(name) or "not installed" for name in ("numpy", "numba")}
    return {"python": platform.python_version(), "driftbandit": _version("driftbandit") or "from source", **found}


def _version(name: str) -> str | None:
    dist = next(iter(metadata.distributions(name=name)), None)
    return dist.version if dist else None


def _find_own_classes(values: Any) -> frozenset[type]:
    return frozenset(cls for cls in user_code.classes_in(values) if not _is_ours(cls.__module__))


def _modules_of(own: frozenset[type]) -> set[str]:
    """The modules of these classes that have a file; a notebook has none."""
    names = {cls.__module__ for cls in own}
    return {name for name in names if user_code.source_text(name) is not None or _file(name) is not None}


def _file(module: str) -> Path | None:
    """The file of a module, which need not have been imported."""
    if module in sys.modules:
        file = getattr(sys.modules[module], "__file__", None)
    else:
        try:
            file = getattr(importlib.util.find_spec(module), "origin", None)
        except (ImportError, AttributeError, ValueError):
            file = None
    return Path(file) if file and os.path.isfile(file) else None


def _class_text(cls: type) -> bytes:
    """The text of a class from a notebook's cell; a class without a text is different every time."""
    try:
        return inspect.getsource(cls).encode()
    except (OSError, TypeError):
        return uuid.uuid4().bytes


def _text(path: Path) -> bytes:
    text = path.read_bytes()
    return text if path.stat().st_mtime <= _STARTED else text + b"\n# " + _UNIQUE


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "driftbandit"


def _hash(files: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, text in files:
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


def machine() -> str:
    """Processor, cores, memory and system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    processor = platform.processor()
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if model := re.search(r"^model name\s*: *(.*)$", text, re.MULTILINE):
            processor = model[1]
    parts = [processor, counted(cores, "core"), f"{memory() / 2**30:.0f} GB of memory"]
    return ", ".join(part for part in [*parts, f"{platform.system()} {platform.machine()}"] if part)
