"""Files that are either whole or not there: checked before the work, written beside their place and moved there at the
end."""

import atexit
import csv
import importlib.util
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

import numpy as np
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


NOTE = b"driftbandit"  # where in a Parquet file's metadata the note stands
BACKENDS = ("pandas", "polars", "pyarrow")  # in the order in which they are looked for


def to_frame(columns: Mapping[str, Any], backend: str | None = None) -> Any:
    """The columns as a pandas, Polars or PyArrow table: the one asked for, else the first that is installed.

    >>> to_frame({"run": [0, 1], "regret": [1.5, 2.5]}, "pyarrow").column_names
    ['run', 'regret']
    """
    if backend is None:
        backend = next((name for name in BACKENDS if importlib.util.find_spec(name) is not None), "pyarrow")
    if backend not in BACKENDS:
        raise ValueError(f"A frame is made by one of {', '.join(BACKENDS)}; got {backend!r}.")
    if importlib.util.find_spec(backend) is None:
        raise ImportError(f"This needs {backend}: pip install {backend}.", name=backend)
    plain = {name: column if isinstance(column, np.ndarray) else list(column) for name, column in columns.items()}
    library = importlib.import_module(backend)
    return library.table(plain) if backend == "pyarrow" else library.DataFrame(plain)


def save_rows(head: Sequence[str], rows: Sequence[Sequence[Any]], path: str | Path) -> Path:
    """A table as CSV, or as Markdown when the name ends in .md."""
    path = writable(path, (".csv", ".md"))
    with replacing(path) as draft, open(draft, "w", newline="", encoding="utf-8") as out:
        if path.suffix == ".csv":
            csv.writer(out, lineterminator="\n").writerows([head, *rows])
        else:
            for line in [head, ["---"] * len(head), *rows]:
                out.write("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n")
    return path


def save_columns(columns: Mapping[str, Any], path: str | Path, note: Mapping[str, Any], key: bytes = NOTE) -> Path:
    """Columns of equal length as Parquet, with where they come from as JSON in the file's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = writable(path, (".parquet",))
    made = pa.table(dict(columns)).replace_schema_metadata({key: json.dumps(dict(note)).encode()})
    with replacing(path) as draft:
        pq.write_table(made, draft, compression="zstd", write_page_checksum=True)
    return path


def encoded(column: Any) -> Any:
    """The column for `save_columns`, with texts that repeat stored once."""
    import pyarrow as pa

    if isinstance(column, np.ndarray) or not any(isinstance(value, str) for value in column):
        return pa.array(column)
    return pa.array([None if value is None else str(value) for value in column]).dictionary_encode()


def note_in(path: str | Path, key: bytes = NOTE) -> dict[str, Any]:
    """What is noted in a Parquet file of ours; nothing if it is absent, damaged or not ours."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = json.loads((pq.read_schema(path).metadata or {})[key])
    except (OSError, KeyError, ValueError, pa.ArrowException):
        return {}
    return found if isinstance(found, dict) else {}
