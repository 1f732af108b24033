"""Bandits in memory as text and back, and in forked processes.

Reading a snapshot is reading data: it loads, imports and calls nothing but the library's own policies and the classes
that the caller hands over. Its checksum protects against accidents, not against people."""

import hashlib
import json
import os
import threading
import weakref
from typing import Any

from driftbandit.bandit.fold import Fold, Maker
from driftbandit.bandit.inputs import format_value
from driftbandit.bandit.memory import Memory
from driftbandit.bandit.settings import checked_config

FORMAT = 1
# What reading a damaged snapshot may raise.
_DAMAGE = (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError, MemoryError)
_PATIENCE = 5.0  # seconds a fork waits for a bandit that is in the middle of a call

_bandits: dict[int, Any] = {}  # in memory: weak references by id
_here = threading.local()  # the locks this thread holds around its fork


def write_snapshot(memory: Memory, fold: Fold, seeded: bool) -> str:
    """Everything that a bandit in memory is, as text; the caller holds its lock."""
    import driftbandit

    data = {"format": FORMAT, "driftbandit": driftbandit.__version__, "seeded": seeded, "memory": memory.dump(),
            "fold": fold.plain()}  # fmt: skip
    return json.dumps({**data, "check": _checksum(data)}, allow_nan=False)


def read_snapshot(text: Any, make: Maker, compiled: bool) -> tuple[Memory, Fold, bool]:
    """The store, the fold and whether it had a seed. What no bandit can have written is refused by a ValueError."""
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
        version = data["format"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(
            "This is not a snapshot of a bandit: it is not complete JSON with a format number. Was the file cut short?"
        ) from None
    if isinstance(version, bool) or version != FORMAT:
        raise ValueError(
            f"This snapshot has format {format_value(version, 40)}; this version reads format {FORMAT}. "
            "Read it with the version that made it."
        )
    if data.get("check", _checksum(data)) != _checksum(data):
        raise ValueError("This snapshot is damaged and was not restored: its checksum does not match.")
    try:
        checked_config(data["fold"]["config"], make)
        fold = Fold.read(data["fold"], make, None, compiled)
        if not isinstance(data["seeded"], bool):
            raise ValueError("seeded is not true or false.")
        return Memory.load(data["memory"], fold), fold, data["seeded"]
    except _DAMAGE as e:
        why = f"{e.args[0]!r} is missing." if isinstance(e, KeyError) else " ".join(str(e).split())
        raise ValueError(f"This snapshot is damaged and was not restored: {why:.300}") from None


def _checksum(data: dict[str, Any]) -> str:
    """A digest of everything in a snapshot but itself, however the JSON is laid out."""
    rest = {name: value for name, value in data.items() if name != "check"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not valid JSON.")


def draw_key() -> int:
    """The key of a new random stream."""
    return int.from_bytes(os.urandom(8), "little")


# ---- forks: a child gets new locks and, unless a seed was given, a new stream ----------------------------------------


def watch(bandit: Any) -> None:
    """Look after this bandit in forks for as long as it lives."""
    key = id(bandit)
    _bandits[key] = weakref.ref(bandit, lambda _: _bandits.pop(key, None))


def _alive() -> list[Any]:
    """All bandits in memory, in an order on which all threads agree."""
    found = (reference() for _, reference in sorted(_bandits.copy().items()))
    return [bandit for bandit in found if bandit is not None]


def _before_fork() -> None:
    _here.held = [bandit._lock for bandit in _alive() if bandit._lock.acquire(timeout=_PATIENCE)]


def _in_parent() -> None:
    for lock in getattr(_here, "held", ()):
        lock.release()
    _here.held = []


def _in_child() -> None:
    _here.held = []
    for bandit in _alive():
        bandit._after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
