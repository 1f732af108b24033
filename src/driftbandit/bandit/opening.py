"""Opening bandits: journals by path or URL, once per process however many bandits share one, and snapshots of bandits
in memory.

Reading a snapshot is reading data: it loads, imports and calls nothing but the library's own policies and the classes
that the caller hands over. Its checksum protects against accidents, not against people."""

import atexit
import hashlib
import json
import os
import threading
import weakref
from collections.abc import Iterable
from itertools import islice
from typing import Any

from driftbandit.bandit.fold import Fold, Maker, Reread
from driftbandit.bandit.inputs import format_value
from driftbandit.bandit.journal import Journal
from driftbandit.bandit.memory import Memory
from driftbandit.bandit.records import Event
from driftbandit.bandit.settings import checked_config, checked_policy
from driftbandit.bandit.writer import Writer
from driftbandit.errors import DamagedJournal, NotFound, StoreError

FORMAT = 1
# What reading a damaged snapshot may raise.
_DAMAGE = (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError, MemoryError)
_PATIENCE = 5.0  # seconds a fork waits for a bandit that is in the middle of a call

_bandits: dict[int, Any] = {}  # in memory: weak references by id
_here = threading.local()  # the locks this thread holds around its fork

_opened: dict[str, "Opened"] = {}
_lock = threading.Lock()
_FORKED = (
    "This bandit was opened before this process was forked; open it again here. (A SQLite journal has one writing "
    "process: for several, use a PostgreSQL journal, postgresql://..., or `driftbandit serve`.)"
)


class Opened:
    """A journal open for writing in this process, with the thread that writes, and how many bandits use it."""

    def __init__(self, target: str, journal: Journal) -> None:
        self.target, self.journal, self.users = target, journal, 0
        self.writer = Writer(journal)
        self.bandits: weakref.WeakSet[Any] = weakref.WeakSet()

    def release(self) -> None:
        """One bandit fewer; the last one closes the journal."""
        with _lock:
            self.users -= 1
            if self.users > 0:
                return
            if _opened.get(self.target) is self:  # a forked child may have opened it anew
                del _opened[self.target]
        self.writer.close()
        self.journal.close()


def is_url(target: Any) -> bool:
    """Whether this names a PostgreSQL database."""
    return isinstance(target, str) and target.startswith(("postgresql://", "postgres://"))


def is_service(target: Any) -> bool:
    """Whether this is the address of a service."""
    return isinstance(target, str) and target.startswith(("http://", "https://"))


def exists(target: Any) -> bool:
    """Whether there may be a journal; for a database this needs a look inside."""
    path = _place(target)
    return is_url(path) or os.path.exists(path)


def reading(target: Any) -> Journal:
    """A journal for reading only: it may be open for writing elsewhere."""
    return _open(_place(target), write=False)


def writing(target: Any) -> Opened:
    """A journal for writing, which is made if it does not exist; shared by all bandits of this process."""
    path = _place(target)
    with _lock:
        opened = _opened.get(path)
        if opened is None:
            opened = _opened[path] = Opened(path, _open(path, write=True))
        opened.users += 1
        return opened


def _place(target: Any) -> str:
    if is_url(target):
        return str(target)
    path = os.fspath(target) if isinstance(target, os.PathLike) else target
    if not isinstance(path, str) or not path or "\0" in path or "://" in path:
        shown = path.split("://")[0] + "://..." if isinstance(path, str) and "://" in path else path
        raise ValueError(f"A journal is a file's path or postgresql://...; got {shown!r:.60}.")
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not os.path.isdir(folder):
        raise StoreError(f"{path} cannot hold a journal: {'it is' if os.path.isdir(path) else folder + ' is not'} "
                         "a folder.")  # fmt: skip
    return os.path.realpath(path)


def _open(target: str, write: bool) -> Journal:
    if not is_url(target):
        from driftbandit.bandit.sqlite import SQLite

        return SQLite(target, write)
    try:
        from driftbandit.bandit.postgres import PostgreSQL
    except ImportError as error:
        raise StoreError(f"A PostgreSQL journal needs {error.name}: pip install '.[postgres]' brings it.") from None
    return PostgreSQL(target, write)


def bandit_number(journal: Journal, name: str) -> int:
    """The number of the bandit of this name; NotFound if it does not exist."""
    number = journal.number(name)
    if number is None:
        have = ", ".join(journal.names(limit=8)) or "none yet"
        raise NotFound(
            f"There is no bandit {name!r:.60} in this journal (it has: {have}); give arms=[...] to make one."
        )
    return number


def only_bandit(names: Iterable[str]) -> str:
    """The bandit that is meant if none was named: the only one there is."""
    found = list(islice(names, 21))
    if not found:
        raise NotFound("There is no bandit in this journal.")
    if len(found) > 1:
        listed, count = ", ".join(found[:20]), str(len(found))
        if len(found) > 20:
            listed, count = listed + ", ...", "more than 20"
        raise NotFound(f"This journal has {count} bandits; write the name of one after the journal: {listed}.")
    return found[0]


def policy_maker(policies: dict[str, Any] | None = None) -> Maker:
    """How a journal's text becomes a policy again: the library's own, and the classes given here, also those added
    later. The text of a journal never loads anything."""
    extra = {} if policies is None else policies

    def make(text: str) -> Any:
        from driftbandit.spec.parse import parse_snapshot

        try:
            return checked_policy(parse_snapshot(text, extra=extra))
        except ValueError as error:
            raise DamagedJournal(
                f"The policy {text!r:.60} of this journal cannot be made ({str(error).rstrip('.')}); classes of your "
                "own are given by policies={...}."
            ) from None

    return make


def policy_classes(policy: Any) -> dict[str, type]:
    """The classes of a policy and of those within it, by name."""
    found = {type(policy).__name__: type(policy)}
    for part in policy if isinstance(policy, tuple) else ():
        if hasattr(part, "choose"):
            found |= policy_classes(part)
    return found


def arithmetic(policy: Any) -> str:
    """The version of a policy's arithmetic and of those within it: "DriftTS 1". Two versions with the same text compute
    the same bits. A class declares its number as `arithmetic = 2`; without it, it is 1."""
    classes = sorted(policy_classes(policy).items())
    return ", ".join(f"{name} {getattr(made, 'arithmetic', 1)}" for name, made in classes)


def rereader(journal: Journal, bandit: int) -> Reread:
    """How a fold reads the first events again, when a change requires it."""

    def reread(count: int) -> Iterable[Event]:
        if journal.base(bandit) is not None:
            raise DamagedJournal("The journal is damaged: a change needs events that were dropped.")
        return (event for _, event in islice(journal.events(bandit, None, count), count))

    return reread


def latest(
    journal: Journal, number: int, make: Maker, most: int | None = None, compiled: bool = False
) -> tuple[Fold, Any]:
    """The fold of the newest snapshot (of at most `most` events) that can be read, and the cursor to go on from. A
    snapshot is a cache: an older one, or none, leads to the same state. But where old events were dropped, all begins
    with the snapshot of the last of them, whatever arithmetic computed it."""
    reread, base = rereader(journal, number), journal.base(number)
    for n, body in journal.snapshots(number):
        if most is not None and n > most:
            continue
        try:
            data = json.loads(body)
            fold = Fold.read(data["fold"], make, reread, compiled)
            first = base is not None and n == base.n
            if fold.config.arithmetic != arithmetic(fold.player.policy) and not first:
                continue
            cursor = data["cursor"]
        except (DamagedJournal, ValueError, KeyError, TypeError):
            continue
        cursor = tuple(cursor) if isinstance(cursor, list) else cursor
        journal.verify(number, n, cursor)
        return fold, cursor
    now = journal.base(number)
    if now is not None:
        if now != base:  # it was moved meanwhile
            return latest(journal, number, make, most, compiled)
        if most is not None and most < now.n:
            raise NotFound(f"What was known after {most} events can no longer be computed: older ones were dropped.")
        raise DamagedJournal(f"The journal is damaged: its beginning, the state after {now.n} events, cannot be read.")
    journal.verify(number)
    return Fold(make, reread, compiled), None


def earliest(journal: Journal, number: int, make: Maker) -> tuple[Fold, Any]:
    """The fold with which the journal begins, and the cursor to go on from."""
    base = journal.base(number)
    return (Fold(make, rereader(journal, number)), None) if base is None else latest(journal, number, make, base.n)


# ---- bandits in memory as text and back ------------------------------------------------------------------------------


def write_snapshot(memory: Memory, fold: Fold, seeded: bool, next_look: int) -> str:
    """Everything that a bandit in memory is, as text; the caller holds its lock."""
    import driftbandit

    data = {"format": FORMAT, "driftbandit": driftbandit.__version__, "seeded": seeded,
            "memory": memory.dump(next_look), "fold": fold.plain()}  # fmt: skip
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


# ---- forks: of bandits in memory, a child gets new locks and, unless a seed was given, a new stream ------------------


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
    """A child process shares no connection and no thread with its parent: its bandits with a journal raise an error
    when they are used, those in memory go on. Any lock may have been held by a thread that the child does not have, so
    all are made anew."""
    global _lock
    _here.held = []
    for bandit in _alive():
        bandit._after_fork()
    _lock = threading.Lock()
    for opened in list(_opened.values()):
        opened.writer.disown(_FORKED)
        opened.journal.forget()
        for bandit in list(opened.bandits):
            bandit._replica.disown(_FORKED)
            bandit._lock = bandit._replica.lock
    _opened.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


@atexit.register
def _at_exit() -> None:
    """Write what no call waited for (durability="none") when a program ends without closing its bandits. This may wait
    for a store that is away, as `close` does."""
    for opened in list(_opened.values()):
        opened.writer.close()
