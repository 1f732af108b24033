"""Opening journals: by path or URL, once per process however many bandits share one."""

import atexit
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from driftbandit.live.errors import Damaged, StoreError, Unknown
from driftbandit.live.fold import Maker, Reread
from driftbandit.live.journal import Journal
from driftbandit.live.records import Event
from driftbandit.live.settings import checked_policy
from driftbandit.live.writer import Writer

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


def exists(target: Any) -> bool:
    """Whether there may be a journal; of a database only a look inside can tell."""
    path = _place(target)
    return is_url(path) or os.path.exists(path)


def reading(target: Any) -> Journal:
    """A journal for reading only: it may be open for writing elsewhere."""
    path = _place(target)
    if is_url(path):
        return _postgres(path, write=False)
    from driftbandit.live.sqlite import SQLite

    return SQLite(path, write=False)


def writing(target: Any) -> Opened:
    """A journal for writing, which is made if there is none; shared by all bandits of this process."""
    path = _place(target)
    with _lock:
        opened = _opened.get(path)
        if opened is None:
            if is_url(path):
                journal: Journal = _postgres(path, write=True)
            else:
                from driftbandit.live.sqlite import SQLite

                journal = SQLite(path)
            opened = _opened[path] = Opened(path, journal)
        opened.users += 1
        return opened


def _place(target: Any) -> str:
    if is_url(target):
        return str(target)
    if isinstance(target, str) and "://" in target:
        raise ValueError(
            f"A journal is a file's path or postgresql://...; got {target.split('://')[0] + '://...'!r:.80}."
        )
    try:
        path = os.fspath(target)
    except TypeError:
        raise ValueError(f"A journal is a file's path or postgresql://...; got {target!r:.60}.") from None
    if not isinstance(path, str) or not path or "\0" in path:
        raise ValueError(f"A journal is a file's path or postgresql://...; got {path!r:.60}.")
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not os.path.isdir(folder):
        raise StoreError(f"{path} cannot hold a journal: {'it is' if os.path.isdir(path) else folder + ' is not'} "
                         "a folder.")  # fmt: skip
    return os.path.realpath(path)


def _postgres(url: str, write: bool) -> Journal:
    try:
        from driftbandit.live.postgres import PostgreSQL
    except ImportError as error:
        raise StoreError(
            f"A PostgreSQL journal needs {error.name}: pip install 'driftbandit[postgres]' brings it."
        ) from None
    return PostgreSQL(url, write)


def only_bandit(names: Iterable[str]) -> str:
    """The bandit that is meant if none was named: the only one there is."""
    found = list(names)
    if not found:
        raise Unknown("There is no bandit in this journal.")
    if len(found) > 1:
        listed = ", ".join(found[:20]) + (", ..." if len(found) > 20 else "")
        raise Unknown(f"This journal has {len(found)} bandits; write the name of one after the journal: {listed}.")
    return found[0]


def policy_maker(policies: dict[str, Any] | None = None) -> Maker:
    """How a journal's text becomes a policy again: the library's own, and the classes given here. The text of a journal
    never loads anything."""
    extra = dict(policies or {})

    def make(text: str) -> Any:
        from driftbandit.text.parse import parse_snapshot

        try:
            return checked_policy(parse_snapshot(text, extra=extra))
        except ValueError as error:
            raise Damaged(
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
    the same bits. A class says its number as `arithmetic = 2`; without it, it is 1."""
    classes = sorted(policy_classes(policy).items())
    return ", ".join(f"{name} {getattr(made, 'arithmetic', 1)}" for name, made in classes)


def rereader(journal: Journal, bandit: int) -> Reread:
    """How a fold reads the first events again, when a change asks for it."""

    def reread(count: int) -> Iterable[Event]:
        return (event for _, event in islice(journal.events(bandit, None, count), count))

    return reread


def _after_fork() -> None:
    """A child process shares no connection and no thread with its parent: its bandits say so when they are used. Any
    lock may have been held by a thread that the child does not have, so all are made anew."""
    global _lock
    _lock = threading.Lock()
    for opened in list(_opened.values()):
        opened.writer.disown(_FORKED)
        forget: Callable[[], None] | None = getattr(opened.journal, "forget", None)
        if forget is not None:
            forget()
        for bandit in list(opened.bandits):
            bandit._replica.disown(_FORKED)
            bandit._lock = bandit._replica.lock
    _opened.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _at_exit() -> None:
    """Write what nobody waited for (durability="none"), where a program ends without closing its bandits. This may wait
    for a store that is away, as `close` does."""
    for opened in list(_opened.values()):
        opened.writer.close()


def warn(text: str) -> None:
    """A remark for the person who runs the program."""
    warnings.warn(text, RuntimeWarning, stacklevel=4)
