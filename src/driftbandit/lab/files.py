"""Files that are written whole or not at all, and the folder for caches."""

import atexit
import csv
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs


def writable(path: str | Path, endings: tuple[str, ...] = ()) -> Path:
    """Return the path after checking that a file can be written there; make its folder if necessary.

    Called before hours of work. It writes a probe, because permission bits do not bind every user."""
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
def replace_file(path: str | Path, sync: bool = True) -> Iterator[Path]:
    """Give a draft to write to in the same folder, and rename it to `path` if the block ends well.

    A reader sees the old file or the new one, never a part of one; unless `sync` is False, also after a power
    failure."""
    path = Path(path)
    draft = path.with_name(f".{path.stem}.{os.getpid()}-{threading.get_ident()}{path.suffix}")
    try:
        yield draft
        if sync:
            with open(draft, "rb+") as written:
                os.fsync(written.fileno())
        os.replace(draft, path)
    except OSError as error:
        raise OSError(f"Cannot write {str(path)!r}: {error.strerror or error}.") from None
    finally:
        draft.unlink(missing_ok=True)


def write_checked(path: Path, body: bytes, head: bytes = b"") -> None:
    """Write bytes after a line with their checksum. What a power failure damages can be made again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path, sync=False) as draft:
        draft.write_bytes(head + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def read_checked(path: Path, head: bytes = b"") -> bytes | None:
    """The bytes that `write_checked` wrote; None if the file is absent or damaged."""
    try:
        first, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return body if first == head + hashlib.sha256(body).hexdigest().encode() else None


def slug(text: str) -> str:
    """Turn a label into a file name."""
    return re.sub(r"[^A-Za-z0-9=.]+", "-", text).strip("-.")[:80] or "environment"


def cache_root() -> Path:
    """Find the folder for compiled loops and results: $DRIFTBANDIT_CACHE, else the user's cache directory, else a
    temporary one. Cached code is run, so a folder that the user did not choose must be closed to all others."""
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
    """Whether the folder is the user's and closed to others. A link in the shared temporary directory is refused."""
    if not hasattr(os, "getuid"):
        return True
    seen = root.lstat() if root == spare else root.stat()
    return (
        stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid() and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


@cache
def _process_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="driftbandit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def save_rows(head: Sequence[str], rows: Sequence[Sequence[Any]], path: str | Path) -> Path:
    """Write a table as CSV, or as Markdown if the name ends in .md."""
    path = writable(path, (".csv", ".md"))
    with replace_file(path) as draft, open(draft, "w", newline="", encoding="utf-8") as out:
        if path.suffix == ".csv":
            csv.writer(out, lineterminator="\n").writerows([head, *rows])
        else:
            out.write(markdown_table(head, rows))
    return path


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay out a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n" for line in lines)


NOTE = b"driftbandit"  # the key of our note in the metadata of a Parquet file


def save_columns(columns: Mapping[str, Any], path: str | Path, note: Mapping[str, Any]) -> Path:
    """Write columns of equal length as Parquet, with their origin as JSON in the file's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = writable(path, (".parquet",))
    table = pa.table(dict(columns))
    with replace_file(path) as draft:
        noted = table.replace_schema_metadata({NOTE: json.dumps(dict(note)).encode()})
        pq.write_table(noted, draft, compression="zstd", write_page_checksum=True)
    return path
