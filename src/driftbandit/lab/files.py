"""Files that are written whole or not at all, the folder for caches, and the digest of the code.

The digest is one of the package, of the libraries that compute and of the user's files. Stored results, compiled code
and work sent to other machines are named by it. A file that was edited after this process started may differ from the
imported code. The digest of such a process is unique, so that it shares nothing with others."""

import atexit
import csv
import hashlib
import importlib.util
import inspect
import json
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import platformdirs

from driftbandit.core.checks import counted
from driftbandit.core.state import memory
from driftbandit.spec import user_code


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


# ---- which code this is ----------------------------------------------------------------------------------------------

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
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if model := re.search(r"^model name\s*: *(.*)$", text, re.MULTILINE):
            processor = model[1]
    parts = [processor, counted(cores, "core"), f"{memory() / 2**30:.0f} GB of memory"]
    return ", ".join(part for part in [*parts, f"{platform.system()} {platform.machine()}"] if part)
