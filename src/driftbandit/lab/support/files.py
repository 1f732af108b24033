"""Files that are either whole or not there: checked before the work, written beside their place and moved there at the
end."""

import atexit
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import platformdirs


def writable(path: str | Path, endings: tuple[str, ...] = ()) -> Path:
    """The path, once it is certain that a file can be written there; its folder is made if need be.

    Call it before hours of work: a wrong ending, a folder in the way or a full or read-only disk is then an OSError or
    ValueError of one sentence at once. Permissions are tried, not read, since they do not bind everyone alike."""
    path = Path(path)
    if endings and path.suffix.lower() not in endings:
        raise ValueError(f"Cannot write {str(path)!r}: the name must end in {' or '.join(endings)}.")
    if path.is_dir():
        raise OSError(f"Cannot write {str(path)!r}: there is a folder of that name.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            probe.write(b"0" * 4096)
    except OSError as error:
        raise OSError(f"Cannot write in the folder {str(path.parent)!r}: {error.strerror or error}.") from None
    return path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A name to write to in the same folder; when the block ends well the file takes the place of `path` in one step.

    Whoever reads sees the old file or the new one, never half of one, also if the machine stops in between."""
    path = Path(path)
    draft = path.with_name(f".{path.stem}.{os.getpid()}-{threading.get_ident()}{path.suffix}")
    try:
        yield draft
        with open(draft, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(draft, path)
    except OSError as error:
        raise OSError(f"Cannot write {str(path)!r}: {error.strerror or error}.") from None
    finally:
        draft.unlink(missing_ok=True)


def slug(text: str) -> str:
    """A file name from a world's text."""
    return re.sub(r"[^A-Za-z0-9=.]+", "-", text).strip("-.")[:80] or "world"


def cache_root() -> Path:
    """Where compiled loops and results are kept: $DRIFTBANDIT_CACHE, else the user's cache directory, else a temporary
    one. What is read from a cache is run, so a folder that the user did not choose must be closed to all others."""
    chosen = os.environ.get("DRIFTBANDIT_CACHE")
    base = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("driftbandit", appauthor=False))
    spare = Path(tempfile.gettempdir()) / f"driftbandit-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    for root in (base, spare):
        with suppress(OSError):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (chosen and root == base) and not _is_private(root, spare):
                continue
            with tempfile.TemporaryFile(dir=root):
                return root
    return _process_folder()


def _is_private(root: Path, spare: Path) -> bool:
    """Whether the folder is ours and nobody else can write into it. In a temporary directory, which everyone may write
    to, a link may lead anywhere."""
    if not hasattr(os, "getuid"):
        return True
    seen = root.lstat() if root == spare else root.stat()
    return (
        stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid() and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


@cache
def _process_folder() -> Path:
    """A folder for this process only, removed at its end."""
    folder = Path(tempfile.mkdtemp(prefix="driftbandit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
