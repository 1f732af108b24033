"""Files that are either whole or not there: checked before the work, written beside their place and moved there at the
end."""

import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
