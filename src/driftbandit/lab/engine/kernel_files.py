"""Compiled code on disk, each file with a checksum: machine code that is damaged is never run.

Numba keeps an index (which signature lies in which file) and one file per signature, both pickled. A flipped bit in
either gave wrong numbers, a crash or a traceback. Here every file begins with a digest of the rest, looked at before
anything is unpickled, and machine code is kept together with the signature it is for: two processes that write at the
same moment may both take the next free name. Whatever does not fit is treated as absent, and is compiled again."""

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import platformdirs
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.serialize import dumps

_MAGIC = b"driftbandit-kernel-1 "


class CheckedFiles(IndexDataCacheFile):
    """Numba's index and data files, with a checksum each."""

    def save(self, key: Any, data: Any) -> None:
        """Keep machine code with the signature it is for. A disk that is full or read-only costs the next process its
        warm start, not this one its result."""
        with contextlib.suppress(OSError):
            super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        """The machine code for a signature, None if there is none or it cannot be trusted."""
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, overloads = _read(self._index_path)
        except OSError:
            return {}
        return dict(overloads) if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        found = _read(self._data_path(name))
        _log("data loaded from", self._data_path(name))
        return found

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)
        _log("data saved to", self._data_path(name))

    def _write(self, path: str, value: Any) -> None:
        body = dumps(value)
        with self._open_for_write(path) as file:
            file.write(_head(path, body) + b"\n" + body)


def _head(path: str, body: bytes) -> bytes:
    """A digest of what is kept and of the name it is kept under: a file in another's place is damage too."""
    return _MAGIC + hashlib.sha256(os.path.basename(path).encode() + b"\0" + body).hexdigest().encode()


def _read(path: str) -> Any:
    """What lies there; an OSError if nothing does, or something else than was written."""
    import pickle

    raw = Path(path).read_bytes()
    head, _, body = raw.partition(b"\n")
    if head != _head(path, body):
        raise OSError(f"{path} is damaged")
    return pickle.loads(body)


def _log(what: str, path: str) -> None:
    import numba

    if numba.config.DEBUG_CACHE:
        print(f"[cache] {what} {path!r}")


class KernelCache(FunctionCache):
    """Numba's cache on checked files. Before it loads anything, Numba's own reads in all that Numba can compile: a
    large part of a warm start. Machine code needs none of that to run; compiling reads it in by itself."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = CheckedFiles(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Machine code from disk, None if there is none."""
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)


def cache_root() -> Path:
    """Where compiled loops are kept: $DRIFTBANDIT_CACHE, else the user's cache directory, else a temporary one.

    What is read from a cache is run, so a folder that nobody chose must be ours and closed to all others."""
    chosen = os.environ.get("DRIFTBANDIT_CACHE")
    base = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("driftbandit", appauthor=False))
    spare = Path(tempfile.gettempdir()) / f"driftbandit-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    for root in (base, spare):
        with contextlib.suppress(OSError):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (chosen and root == base) and not _is_private(root, spare):
                continue
            with tempfile.TemporaryFile(dir=root):
                return root
    return _last_resort()


def _is_private(root: Path, spare: Path) -> bool:
    """Is the folder ours, and can nobody else write into it? In a temporary directory, which everyone may write to, a
    link may lead anywhere."""
    if not hasattr(os, "getuid"):
        return True
    seen = root.lstat() if root == spare else root.stat()
    return (
        stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid() and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


_made: list[Path] = []


def _last_resort() -> Path:
    """A folder for this process alone, made once and removed at its end."""
    if not _made:
        import atexit
        import shutil

        _made.append(Path(tempfile.mkdtemp(prefix="driftbandit-")))
        atexit.register(shutil.rmtree, _made[0], ignore_errors=True)
    return _made[0]
