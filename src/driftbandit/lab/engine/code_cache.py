"""Compiled loops on disk: one file per signature, in a folder named by the digest of all sources.

Numba's own cache is not used: it compares only the file of the outermost function, runs a damaged file, and loads all
that Numba can compile first, 0.8 s of every start. A file here begins with a checksum and contains its signature; a
mismatch is compiled again."""

import contextlib
import hashlib
import pickle
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.compiler import CompileResult
from numba.core.errors import NumbaError
from numba.core.serialize import dumps

from driftbandit.lab.engine import compiled_draws, lane_arrays, numba_methods  # noqa: F401  what compiled loops call
from driftbandit.lab.files import cache_root, code_digest, read_checked, write_checked
from driftbandit.spec import user_code

_FOLDERS = 100  # versions of the code whose compiled loops are kept
_dispatchers: dict[tuple[Any, ...], Any] = {}
LOCK = threading.RLock()  # held while the compiler's tables change


class KernelCache:
    """The compiled signatures of one function on disk, with the methods that Numba expects of a cache."""

    def __init__(self, folder: Path, name: str) -> None:
        self.cache_path, self._name = str(folder), name

    def _path(self, signature: Any, codegen: Any) -> Path:
        key = repr((self._name, str(signature), codegen.magic_tuple()))
        return Path(self.cache_path) / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.kernel"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The machine code for a signature; None if it is absent or damaged."""
        body = read_checked(self._path(signature, target_context.codegen()))
        if body is None:
            return None
        if "unicode_type" in str(signature):  # machine code that compares texts calls what only this makes known
            target_context.refresh()
        *kept, payload = pickle.loads(body)
        return CompileResult._rebuild(target_context, *payload) if kept == [self._name, signature] else None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep machine code. A full or read-only disk costs the next process its warm start, and this one nothing."""
        if result.lifted or result.library.has_dynamic_globals:
            return
        body = dumps((self._name, signature, result._reduce()))
        with contextlib.suppress(OSError):
            write_checked(self._path(signature, result.codegen), body)


def compiled(function: Callable[..., Any], *tuples: Any) -> Any:
    """The function as machine code for these policies, states and environments: kept on disk if every class is the
    package's or from a file that `spec.user_code` loaded, otherwise for this process only."""
    classes = user_code.classes_in(tuples)
    kept = all(cls.__module__.startswith(("driftbandit.", user_code.PREFIX)) for cls in classes)
    key = (function, classes, code_digest(tuples)) if kept else (function,)
    with LOCK:  # several threads may begin at once
        if not kept or key not in _dispatchers:
            for value in tuples:
                numba_methods.prepare(value)
        if key not in _dispatchers:
            made = numba.njit(nogil=True, **numba_methods.OPTIONS)(function)
            if kept:
                root = cache_root()
                _prune(root)
                names = sorted(f"{cls.__module__}.{cls.__qualname__}" for cls in classes)
                name = f"{function.__module__}.{function.__qualname__} {' '.join(names)}"
                made._cache = KernelCache(root / f"kernels-{key[-1]}", name)
            _dispatchers[key] = made
        return _dispatchers[key]


def _prune(root: Path) -> None:
    """Remove the oldest folders, so that the cache does not grow with every edit."""
    with contextlib.suppress(OSError):
        folders = sorted(root.glob("kernels-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in folders[_FOLDERS:]:
            shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def compiling(policy: Any) -> Iterator[None]:
    """A block in which machine code for a policy is made: by one thread at a time, with errors that name its lines."""
    try:
        with LOCK, numba_methods.refuse_fractions():
            yield
    except NumbaError as error:
        raise TypeError(numba_methods.explain(error, policy)) from error
