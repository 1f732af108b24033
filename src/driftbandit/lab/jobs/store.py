"""Results on disk under a name that says everything they depend on: nothing is computed twice, and nothing stale is
ever read.

A chunk is some runs of one policy in one world. Its name is a hash of the policy, the world, the seed, the runs, the
checkpoints and the sources that compute them. A file is complete or absent: it is written beside its place and
renamed into it. Its first line is a checksum of the rest, so a damaged file is noticed, removed and computed again.
Two processes may share a folder; at worst they compute the same chunk twice."""

import contextlib
import hashlib
import inspect
import json
import os
import tempfile
import time
import uuid
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.text import user_code

_PACKAGE = Path(__file__).parents[2]
_MAGIC = b"driftbandit-chunk-2 "
_ABANDONED = 3600.0  # seconds after which a file half written belongs to nobody


class Chunk(NamedTuple):
    """A piece of work: runs first_run .. first_run + runs - 1 of a policy in a world."""

    policy: Any
    environment: Any
    runs: int
    seed: int = 0
    first_run: int = 0
    checkpoints: int = 200
    drift: bool = False  # measure recovery, detection and the rest of `driftbandit.lab.jobs.phases` as well


class Outcome(NamedTuple):
    """What a chunk gave."""

    rounds: np.ndarray  # checkpoints
    regret: np.ndarray  # runs × checkpoints
    seconds: float  # wall time of the simulation
    drift: dict[str, np.ndarray] | None = None  # the columns of `driftbandit.lab.jobs.phases`, if asked for


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of every source that can change a simulated number, and of the libraries that compile it: not the
    figures, not the reports, not the commands."""
    digest = hashlib.sha256()
    parts = [*_PACKAGE.glob("*.py"), *(_PACKAGE / "policies").glob("*.py"), *(_PACKAGE / "environments").glob("*.py")]
    parts += [*(_PACKAGE / "lab" / "engine").glob("*.py"), _PACKAGE / "lab" / "jobs" / "phases.py"]
    silent = ("cli.py", "__main__.py", "__init__.py", "beliefs.py")
    for path in sorted(parts):
        if path.name not in silent:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update(f"{np.__version__} {metadata.version('numba')}".encode())
    return digest.hexdigest()


@lru_cache(maxsize=1024)
def _class_digest(cls: type) -> str:
    """What identifies a class: its name and, for a user's own, the text of the files it is made from."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    if cls.__module__.split(".")[0] == "driftbandit":
        return name
    try:
        files = user_code.texts(cls.__module__) or [("", Path(inspect.getsourcefile(cls) or "").read_bytes())]
        source = b"\0".join(text for _, text in files)
    except (OSError, TypeError):
        source = uuid.uuid4().bytes  # a class without a file may have changed: never reuse
    return f"{cls.__qualname__}:{hashlib.sha256(source).hexdigest()}"


def _described(value: Any) -> Any:
    """The value as JSON, arrays by their digest, so that equal text means equal meaning."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [_class_digest(type(value)), *(_described(item) for item in value)]
    if isinstance(value, tuple | list):
        return [_described(item) for item in value]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]
    return value


def fingerprint(chunk: Chunk) -> str:
    """The name of the chunk's result."""
    text = json.dumps([code_digest(), _described(chunk)], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


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

    def get(self, name: str) -> Outcome | None:
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

    def put(self, name: str, outcome: Outcome) -> None:
        """Keep a result: complete under its name, or not at all."""
        body = _packed(outcome)
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
        try:
            beside.write_bytes(_MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            os.replace(beside, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise OSError(
                f"Writing to {self.folder} failed ({error.strerror}); what was finished before is kept."
            ) from None
        self.names().add(name)


def _packed(outcome: Outcome) -> bytes:
    """A line of JSON that says what follows, then the arrays as they lie in memory: ten times quicker to read than a
    zip file, which counts when ten thousand of them are summed up."""
    arrays = {"rounds": outcome.rounds, "regret": outcome.regret}
    arrays |= {f"drift.{name}": column for name, column in (outcome.drift or {}).items()}
    little = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    head = {
        "seconds": outcome.seconds,
        "drift": outcome.drift is not None,
        "arrays": [[name, array.dtype.str, array.shape] for name, array in little.items()],
    }
    return b"\n".join([json.dumps(head).encode(), b"".join(array.tobytes() for array in little.values())])


def _unpacked(body: bytes) -> Outcome:
    line, _, data = body.partition(b"\n")
    head, arrays, at = json.loads(line), {}, 0
    for name, kind, shape in head["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(data, np.dtype(kind), count, at).reshape(shape)
        at += arrays[name].nbytes
    drift = {name[6:]: array for name, array in arrays.items() if name.startswith("drift.")}
    return Outcome(arrays["rounds"], arrays["regret"], head["seconds"], drift if head["drift"] else None)
