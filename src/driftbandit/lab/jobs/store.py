"""Results on disk under a name that says everything they depend on: nothing is computed twice, and nothing stale is
ever read.

A chunk is some runs of one policy in one world. Its name is a hash of the policy, the world, the seed, the runs, the
checkpoints and the sources that compute them. A file is complete or absent: it is written beside its place and
renamed into it. Its first line is a checksum of the rest, so a damaged file is noticed, removed and computed again.
Two processes may share a folder; at worst they compute the same chunk twice."""

import contextlib
import hashlib
import json
import os
import pickle
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.engine.simulate import Simulation
from driftbandit.lab.jobs.work import Chunk
from driftbandit.lab.support.digest import code_digest

_MAGIC = b"driftbandit-chunk-3 "
_PROCESS = uuid.uuid4().hex
_ABANDONED = 3600.0  # seconds after which a file half written belongs to nobody


def _described(value: Any) -> Any:
    """The value as JSON, arrays by their digest, so that equal text means equal meaning."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        # A user's module is named by the digest of its file, which the sources have already counted.
        name = type(value).__module__ if type(value).__module__.startswith("driftbandit.") else ""
        return [f"{name}.{type(value).__qualname__}", *(_described(item) for item in value)]
    if isinstance(value, tuple | list):
        return [_described(item) for item in value]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    try:  # a plain object, such as a policy that is not a tuple
        return [type(value).__qualname__, hashlib.sha256(pickle.dumps(value)).hexdigest()]
    except Exception:  # it is only found again in this process
        return [type(value).__qualname__, id(value), _PROCESS]


def fingerprint(chunk: Chunk) -> str:
    """The name of the chunk's result."""
    digest = code_digest(chunk.policy, chunk.environment)
    text = json.dumps([digest, _described(chunk._replace(compiled=True))], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def prune(folder: Path, most: int = 1 << 30) -> None:
    """Remove the chunks that were used longest ago, until those left take at most this many bytes: for a store nobody
    tidies."""
    with contextlib.suppress(OSError):
        files = [(entry.stat(), entry) for entry in folder.glob("*/*.chunk")]
        left = sum(stat.st_size for stat, _ in files)
        for stat, path in sorted(files, key=lambda file: file[0].st_mtime):
            if left <= most:
                return
            path.unlink(missing_ok=True)
            left -= stat.st_size


class Store:
    """A folder of finished chunks."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise OSError(
                f"The folder {self.folder} cannot be written ({error.strerror}); choose another with --out."
            ) from None
        self._names: set[str] | None = None

    def names(self) -> set[str]:
        """The chunks that are there, listed once. What a killed process left half written is cleared away."""
        if self._names is None:
            self._names = set()
            for folder in os.scandir(self.folder):
                if folder.is_dir():
                    for entry in os.scandir(folder.path):
                        if entry.name.endswith(".chunk"):
                            self._names.add(entry.name[:-6])
                        elif entry.name.startswith("."):
                            with contextlib.suppress(OSError):
                                if time.time() - entry.stat().st_mtime > _ABANDONED:
                                    os.unlink(entry.path)
        return self._names

    def path(self, name: str) -> Path:
        """Where a chunk lies."""
        return self.folder / name[:2] / f"{name}.chunk"

    def get(self, name: str) -> Simulation | None:
        """The chunk's result, or None if it is absent or damaged; a damaged file is removed."""
        path = self.path(name)
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        head, _, body = raw.partition(b"\n")
        if head == _MAGIC + hashlib.sha256(body).hexdigest().encode():
            return _unpacked(body)
        with contextlib.suppress(OSError):
            path.unlink()
        self.names().discard(name)
        return None

    def put(self, name: str, done: Simulation) -> None:
        """Keep a result: complete under its name, or not at all."""
        body = _packed(done)
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not files.replacing: a draft must not end in .chunk, or it would be counted as finished.
        draft = path.with_name(f".{name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
        try:
            draft.write_bytes(_MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            os.replace(draft, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise OSError(
                f"Writing to {self.folder} failed ({error.strerror}); what was finished before is kept."
            ) from None
        self.names().add(name)


def _packed(done: Simulation) -> bytes:
    """The arrays as an Arrow stream of one row: a list per array, its shape beside its name."""
    import pyarrow as pa

    arrays = {"rounds": done.rounds, "regret": done.regret}
    arrays |= {f"drift.{name}": column for name, column in (done.drift or {}).items()}
    columns = [pa.ListArray.from_arrays([0, array.size], pa.array(array.ravel())) for array in arrays.values()]
    fields = [
        pa.field(name, column.type, metadata={"shape": json.dumps(array.shape)})
        for (name, array), column in zip(arrays.items(), columns, strict=True)
    ]
    about = {"seconds": repr(done.seconds), "drift": json.dumps(done.drift is not None)}
    batch = pa.record_batch(columns, schema=pa.schema(fields, metadata=about))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _unpacked(body: bytes) -> Simulation:
    import pyarrow as pa

    with pa.ipc.open_stream(body) as stream:
        batch = stream.read_next_batch()
    about, arrays = batch.schema.metadata, {}
    for field, column in zip(batch.schema, batch.columns, strict=True):
        arrays[field.name] = column.flatten().to_numpy().reshape(json.loads(field.metadata[b"shape"]))
    drift = {name[6:]: array for name, array in arrays.items() if name.startswith("drift.")}
    return Simulation(
        arrays["rounds"],
        arrays["regret"],
        float(about[b"seconds"]),
        drift=drift if json.loads(about[b"drift"]) else None,
    )
