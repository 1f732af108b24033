"""Where compiled loops are kept, so that the next process starts at once, and never with old code.

Three traps, and the answers used here:
* Numba's disk cache looks only at the file of the outermost function, so an edited policy would go on running its old
  code. The place in the cache is named by a digest of every source the loop is made from.
* A cache index that has seen a user's own class cannot be read where that class does not exist. A class from a file
  that `text.user_code` loaded belongs to a module named by the file's text, so its loops have a place that only this
  text is ever looked up in. Loops with any other class from outside the package are compiled afresh in each process.
* A home directory may be read-only, a file may be damaged: `kernel_files`."""

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba

from driftbandit.lab.engine import columns, compiled_draws, loop, simd_choice  # noqa: F401  what compiled loops may call
from driftbandit.lab.engine.kernel_files import KernelCache, cache_root
from driftbandit.lab.engine.numba_methods import OPTIONS
from driftbandit.lab.support.fingerprints import classes_in, kernel_digest
from driftbandit.text import user_code


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


_dispatchers: dict[tuple[Any, str], Any] = {}
LOCK = threading.RLock()  # held while something is told to the compiler, which keeps it in tables of its own


def compiled(function: Callable[..., Any], *tuples: Any) -> Any:
    """A function as machine code for these policies, states and worlds, on demand: kept on disk if every class
    involved is the package's or from a file that `text.user_code` loaded, otherwise for this process only."""
    classes = classes_in(tuples)
    kept = all(cls.__module__.startswith(("driftbandit.", user_code.PREFIX)) for cls in classes)
    place = kernel_digest(function, classes) if kept else "fresh"
    with LOCK:  # several threads may begin at once, and the compiler's setting is one for all
        if (function, place) not in _dispatchers:
            if kept:
                root = cache_root()
                _prune(root)
                with _numba_cache(root / f"kernels-{place}"):
                    made = numba.njit(nogil=True, cache=True, **OPTIONS)(function)
                    made._cache = KernelCache(function)
            else:
                made = numba.njit(nogil=True, **OPTIONS)(function)
            _dispatchers[function, place] = made
        return _dispatchers[function, place]


def compiled_advance(*tuples: Any) -> Any:
    """The simulator's loop for these policies, states and worlds."""
    return compiled(loop.advance, *tuples)
