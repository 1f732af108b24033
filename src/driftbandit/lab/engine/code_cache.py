"""Where compiled loops are kept, so that the next process starts at once, and never with old code.

Three traps, and the answers used here:
* Numba's disk cache looks only at the file of the outermost function, so an edited policy would go on running its old
  code. The place in the cache is named by a digest of every source the loop is made from.
* A cache index that has seen a user's own class cannot be read where that class does not exist. A class from a file
  that `text.user_code` loaded belongs to a module named by the file's text, so its loops have a place that only this
  text is ever looked up in. Loops with any other class from outside the package are compiled afresh in each process.
* A home directory may be read-only. The cache then goes to a temporary directory."""

import contextlib
import hashlib
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import FunctionCache

from driftbandit import draws, primitives
from driftbandit.lab.engine import compiled_draws, loop, numba_methods, simd, simd_choice
from driftbandit.lab.engine.numba_methods import OPTIONS
from driftbandit.text import user_code

_IMPORT = re.compile(r"^\s*(?:from|import) (driftbandit\.[\w.]+)", re.MULTILINE)


def sources(classes: Iterable[type]) -> list[Path]:
    """The package's files whose change could change the compiled loop: the engine's, the classes' own, and what those
    take from the package."""
    modules = {
        module.__name__ for module in (draws, primitives, loop, numba_methods, simd, simd_choice, compiled_draws)
    }
    seen: set[str] = set()
    todo = [cls.__module__ for cls in classes]
    while todo:
        name = todo.pop()
        if name in modules | seen or not name.startswith(("driftbandit.", user_code.PREFIX)):
            continue
        (seen if name.startswith(user_code.PREFIX) else modules).add(name)
        todo.extend(getattr(value, "__module__", None) or "" for value in vars(sys.modules[name]).values())
        if name in modules:
            # From the text too: a number taken from another module does not say where it is from.
            text = Path(str(sys.modules[name].__file__)).read_text()
            todo.extend(found for found in _IMPORT.findall(text) if found in sys.modules)
    return sorted(Path(str(sys.modules[name].__file__)) for name in modules)


@lru_cache(maxsize=1024)
def source_digest(classes: frozenset[type]) -> str:
    """A digest of those files, of the user's own and of the compilers' versions: another digest, another place in the
    cache.

    Taken once a process: what is compiled is what was imported, also if a file changes meanwhile."""
    digest = hashlib.sha256()
    texts = [(path.name, path.read_bytes()) for path in sources(classes)]
    for module in sorted({cls.__module__ for cls in classes if cls.__module__.startswith(user_code.PREFIX)}):
        texts += user_code.texts(module)
    for name, text in texts:
        digest.update(name.encode() + b"\0" + text)
    digest.update(f"{numba.__version__} {llvmlite.__version__} {np.__version__}".encode())
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Where compiled loops are kept: $DRIFTBANDIT_CACHE, else the user's cache directory, else a temporary one."""
    chosen, home = os.environ.get("DRIFTBANDIT_CACHE"), os.environ.get("XDG_CACHE_HOME")
    base = Path(chosen) if chosen else Path(home or os.path.expanduser("~/.cache")) / "driftbandit"
    for root in (base, Path(tempfile.gettempdir()) / f"driftbandit-{os.getuid() if hasattr(os, 'getuid') else 'user'}"):
        with contextlib.suppress(OSError):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if hasattr(os, "getuid") and root.stat().st_uid != os.getuid() and not chosen:
                continue  # somebody else's: what is read from a cache is run
            with tempfile.TemporaryFile(dir=root):
                return root
    return Path(tempfile.mkdtemp(prefix="driftbandit-"))


def _prune(root: Path, keep: int = 400) -> None:
    """Forget the oldest places in the cache, so that it does not grow with every edit for ever."""
    with contextlib.suppress(OSError):
        places = sorted(root.glob("kernels-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in places[keep:]:
            shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _numba_cache(directory: Path) -> Iterator[None]:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


class _QuickCache(FunctionCache):
    """Numba's cache, which before it loads anything reads in all that Numba can compile: a large part of a warm
    start. Machine code needs none of that to run; compiling reads it in by itself."""

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)


_dispatchers: dict[tuple[Any, str], Any] = {}
LOCK = threading.RLock()  # held while something is told to the compiler, which keeps it in tables of its own


def compiled(function: Callable[..., Any], *tuples: Any) -> Any:
    """A function as machine code for these policies, states and worlds, on demand: kept on disk if every class
    involved is the package's or from a file that `text.user_code` loaded, otherwise for this process only."""
    classes = frozenset(cls for value in tuples for cls in classes_in(value))
    kept = all(cls.__module__.startswith(("driftbandit.", user_code.PREFIX)) for cls in classes)
    place = source_digest(classes) if kept else "fresh"
    with LOCK:  # several threads may begin at once, and the compiler's setting is one for all
        if (function, place) not in _dispatchers:
            if kept:
                root = cache_root()
                _prune(root)
                with _numba_cache(root / f"kernels-{place}"):
                    made = numba.njit(nogil=True, cache=True, **OPTIONS)(function)
                    made._cache = _QuickCache(function)
            else:
                made = numba.njit(nogil=True, **OPTIONS)(function)
            _dispatchers[function, place] = made
        return _dispatchers[function, place]


def compiled_advance(*tuples: Any) -> Any:
    """The simulator's loop for these policies, states and worlds."""
    return compiled(loop.advance, *tuples)


def classes_in(value: Any) -> set[type]:
    """The classes of the tuples a tuple is made of, itself included."""
    if not isinstance(value, tuple):
        return set()
    here = set() if type(value) is tuple else {type(value)}
    return here.union(*(classes_in(item) for item in value)) if value else here
