"""The journal in one SQLite file: one process writes, any number read.

WAL and synchronous=FULL: a commit is on the disk when it returns. Two connections that write to one WAL at the same
moment can corrupt it in SQLite versions before 3.51.3, which most Pythons have; here one connection writes and alone
moves the WAL into the file, and a lock beside the file keeps other processes from writing."""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from driftbandit.live.clock import system_time
from driftbandit.live.errors import Damaged, StoreError, Unknown
from driftbandit.live.filelock import FileLock
from driftbandit.live.journal import Ask, Standing, whole
from driftbandit.live.records import CHANGE, LATE, DecisionRow, Event, mark
from driftbandit.live.sqlitecommit import Group, Numbers, standings
from driftbandit.live.tables import (
    DECISION,
    EVENT,
    SQLITE,
    VERSION,
    Tables,
    altered,
    check_version,
    checked_decision,
)

APPLICATION = 0x64726266  # "drbf": written into the file's header, where SQLite keeps a place for it
_CHUNK = 20_000  # rows read at a time, so that memory stays small and the WAL can be emptied meanwhile

_EVENT = "n, " + EVENT
_PARENTS: list[Any] = []  # connections that belong to the process this one was forked from


class SQLite(Tables):
    """A journal in a file."""

    live = False

    def __init__(self, path: str, write: bool = True) -> None:
        self.target = path
        self._refusal = ""  # why nothing is written any more
        self._writing = threading.Lock()
        self._lock = FileLock(path + ".lock") if write else None
        if self._lock is not None:
            self._lock.take(path)
        try:
            with _sentence(path):
                if write:
                    self._writer = _connect(path)
                    self._open(self._writer, write=True)
                    self._writer.executescript("BEGIN IMMEDIATE; COMMIT")  # now there is a WAL
                    whole = os.path.abspath(path)
                    self._names = whole, whole + "-wal"
                    self._files = self._files_now()
                self._reader = _connect_reader(path)
                if not write:
                    self._open(self._reader, write=False)
        except BaseException:
            self.close()
            raise
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._last: Numbers = {}

    def _open(self, connection: sqlite3.Connection, write: bool) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION and (tables or version or application or not write):
            raise Damaged(f"{self.target} is not a journal of driftbandit but another program's SQLite file.")

        if write:  # only now: it would alter another program's file
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            if application != APPLICATION:
                connection.executescript(
                    f"BEGIN IMMEDIATE; {SQLITE} PRAGMA application_id={APPLICATION}; PRAGMA user_version={VERSION}; "
                    "COMMIT;"
                )
                return
        check_version(version, self.target)

    # ---- writing -----------------------------------------------------------------------------------------------------

    def create(self, name: str, at: int) -> int:
        """The number of the bandit with this name, which is made if there is none."""
        return int(self._write(lambda: self._create(name, at)))

    def _create(self, name: str, at: int) -> Any:
        row = "SELECT number FROM bandit WHERE name = ?"
        found = self._writer.execute(row, (name,)).fetchone()
        if found is None:
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.execute("INSERT INTO bandit (name, created) VALUES (?, ?)", (name, at))
            found = self._writer.execute(row, (name,)).fetchone()
            self._writer.execute("INSERT INTO head VALUES (?, 0, 0, 0, 0)", found)
            self._writer.execute("COMMIT")
        return found[0]

    def commit(self, asks: list[Ask]) -> tuple[list[Any], list[tuple[int, Event]]]:
        """Write all asks in one transaction."""
        group = Group(self._writer, self._last)
        return self._write(lambda: group.write(asks)), group.added

    def _write(self, call: Callable[[], Any]) -> Any:
        """Write to the file that was opened, or not at all; one call at a time, as other threads make new bandits."""
        with self._writing:
            return self._write_alone(call)

    def _write_alone(self, call: Callable[[], Any]) -> Any:
        try:
            self._check_files()
            try:
                out = call()
            except BaseException as error:
                self._last = {}
                with contextlib.suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                if "another program wrote" in str(error):
                    self._refusal = (
                        f"Another program wrote into {self.target} while it was open; nothing of this call was "
                        "written. Close this bandit and open it again."
                    )
                    raise StoreError(self._refusal) from None
                raise
            finally:  # a failed transaction may have written to the WAL as well
                self._files = self._files_now()
        except (sqlite3.DatabaseError, UnicodeDecodeError, StoreError, Damaged) as error:
            told = error if isinstance(error, StoreError | Damaged) else _told(self.target, error)
            self._log_failure(told)
            raise told from None
        if self._failing:
            self._log_success()
        return out

    def _check_files(self) -> None:
        """Only this process writes to the file and its WAL: they must be as its last transaction left them."""
        if self._refusal:
            raise StoreError(self._refusal)
        for was, now in zip(self._files, self._files_now(), strict=True):
            if was is None or was == now:
                continue
            if now is None or was[:2] != now[:2]:
                raise StoreError(
                    f"{self.target} or the -wal next to it was moved, replaced or deleted while it was open; nothing "
                    "of this call was written. Close this bandit, put the file back, and open it again."
                )
            self._refusal = (
                f"{self.target} or the -wal next to it was overwritten or cut by another program while it was open; "
                "nothing of this call was written. Close this bandit; if the file was restored from a backup, delete "
                f"{os.path.basename(self.target)}-wal and -shm, which belong to the former file; then open it again."
            )
            raise StoreError(self._refusal)

    def _files_now(self) -> list[tuple[int, ...] | None]:
        """Which files the names of the journal and of its WAL refer to, their sizes, and when they were written to.
        (Windows updates the last two only when a file is closed.)"""
        found: list[tuple[int, ...] | None] = []
        for name in self._names:
            try:
                seen = os.stat(name)
            except OSError:
                found.append(None)
            else:
                written = () if os.name == "nt" else (seen.st_size, seen.st_mtime_ns)
                found.append((seen.st_dev, seen.st_ino, *written))
        return found

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with _sentence(self.target), self._reading:
            return self._reader.execute(sql, values).fetchall()

    def events(self, bandit: int, after: Any = None, limit: int | None = None) -> Iterator[tuple[Any, Event]]:
        """The events after number `after`."""
        last, left = after or 0, limit
        sql = f"SELECT {_EVENT}, mark FROM event WHERE bandit = ? AND n > ? ORDER BY n LIMIT ?"
        while left is None or left > 0:
            rows = self._rows(sql, bandit, last, _CHUNK if left is None else min(left, _CHUNK))
            for n, row in enumerate(rows, last + 1):
                if row[0] != n:
                    raise Damaged(f"The journal is damaged: event {n} of bandit {bandit} is missing.")
                yield n, _event(bandit, row)
            if not rows:
                return
            last = rows[-1][0]
            left = None if left is None else left - len(rows)

    def decisions(self, bandit: int, by_time: bool = False, checked: bool = True) -> Iterator[DecisionRow]:
        """All decisions in the order they were written, which is that of time and of `known` as well."""
        last = 0
        sql = f"SELECT seq, {DECISION}, mark FROM decision WHERE bandit = ? AND seq > ? ORDER BY seq LIMIT {_CHUNK}"
        while rows := self._rows(sql, bandit, last):
            for row in rows:
                yield checked_decision(bandit, row[1:]) if checked else DecisionRow(*row[1:-1])
            last = rows[-1][0]

    def recent(self, bandit: int, limit: int) -> list[DecisionRow]:
        """The last decisions, newest first."""
        return self._recent(bandit, limit, "seq DESC")

    def standing(self, bandit: int, ids: list[str]) -> dict[str, Standing]:
        """What is known of these decisions."""
        return whole(standings(self._rows, bandit, ids))

    def changes(self, bandit: int) -> list[tuple[Any, Event]]:
        """The changes of configuration, in order. Their ids begin with "#", by which the index finds them among
        millions of rewards; +n keeps SQLite from walking those in order instead."""
        named = "decision >= '#' AND decision < '$'"
        sql = f"SELECT {_EVENT}, mark FROM event WHERE bandit = ? AND {named} AND kind = {CHANGE} ORDER BY +n"
        return [(row[0], _event(bandit, row)) for row in self._rows(sql, bandit)]

    def first_at(self, bandit: int) -> int | None:
        """The time of the first decision."""
        rows = self._rows("SELECT at FROM decision WHERE bandit = ? AND seq = 1", bandit)
        return rows[0][0] if rows else None

    def tally(
        self, bandit: int, since: int, until: int, width: int, due: tuple[int, int] | None = None
    ) -> list[tuple[Any, ...]]:
        """Counts per stretch of time."""
        low, high = self._place("decision", "seq", bandit, since), self._place("decision", "seq", bandit, until)
        out = self._rows(
            "SELECT (at - ?) / ?, slot, how, count(*), 0, 0.0 FROM decision WHERE bandit = ? AND seq >= ? AND seq < ? "
            "GROUP BY 1, 2, 3", since, width, bandit, low, high,
        )  # fmt: skip
        if due is not None:
            since, until = since - due[0], min(until - due[0], due[1] + 1)
            low, high = self._place("decision", "seq", bandit, since), self._place("decision", "seq", bandit, until)
            return out + self._rows(
                "SELECT (d.at - ?) / ?, d.slot, d.how, 0, count(*), sum(o.value) FROM decision d JOIN event o ON "
                "o.bandit = d.bandit AND o.decision = d.id AND (o.kind = 3) = 0 WHERE d.bandit = ? AND d.seq >= ? AND "
                "d.seq < ? AND d.at >= ? GROUP BY 1, 2, 3", since, width, bandit, low, high, since,
            )  # fmt: skip
        low, high = self._place("event", "n", bandit, since), self._place("event", "n", bandit, until)
        return out + self._rows(
            "SELECT (at - ?) / ?, slot, how, 0, count(*), sum(value) FROM event WHERE bandit = ? AND n >= ? AND n < ? "
            f"AND kind < {LATE} GROUP BY 1, 2, 3", since, width, bandit, low, high,
        )  # fmt: skip

    def _after(self, cursor: Any) -> tuple[str, list[Any]]:
        return (" AND n > ?", [cursor]) if cursor else ("", [])

    def _place(self, table: str, number: str, bandit: int, at: int) -> int:
        """The first row of a bandit at or after a time, by bisection: times do not go back along the numbers."""
        low, high = 1, (self._rows(f"SELECT max({number}) FROM {table} WHERE bandit = ?", bandit)[0][0] or 0) + 1
        while low < high:
            middle = (low + high) // 2
            found = self._rows(f"SELECT at FROM {table} WHERE bandit = ? AND {number} = ?", bandit, middle)
            if found and found[0][0] < at:
                low = middle + 1
            else:
                high = middle
        return low

    def check(self) -> list[str]:
        """SQLite's own look at the file, and every row against its checksum."""
        try:
            found = [str(row[0]) for row in self._rows("PRAGMA integrity_check(10)")]
        except Damaged as error:
            return [str(error)]
        wrong = [f"SQLite finds the file damaged: {text}" for text in found if text != "ok"]
        for number in self.bandits().values():
            for table, fields, key in (("decision", DECISION, "seq"), ("event", _EVENT, "n")):
                last = 0
                sql = f"SELECT {key}, {fields}, mark FROM {table} WHERE bandit = ? AND {key} > ? ORDER BY {key} LIMIT ?"
                while rows := self._rows(sql, number, last, _CHUNK):
                    for row in rows:
                        if row[-1] != mark(row[1:-1]):
                            wrong.append(f"{table} {row[0]} of bandit {number} was altered: its checksum differs")
                            break
                        if row[0] != last + 1:
                            wrong.append(f"{table} {last + 1} of bandit {number} is missing")
                            break
                        last = row[0]
                    else:
                        continue
                    break
        return wrong + self._missing() + self._astray()

    def now(self) -> int:
        """The system's clock."""
        return system_time()

    def forget(self) -> None:
        """In a forked child: leave the connections and the lock to the parent. A connection must not even be closed
        here; for whoever wants to read there is a new one."""
        if self._lock is not None:
            self._lock.forget()
        self._reading, self._writing = threading.Lock(), threading.Lock()
        _PARENTS.append((self.__dict__.pop("_reader", None), self.__dict__.pop("_writer", None)))
        with contextlib.suppress(sqlite3.Error, Unknown):
            self._reader = _connect_reader(self.target)

    def close(self) -> None:
        """Let go of the file. The last connection to close moves the WAL into the file, unless it only reads: so the
        writer goes last, but first where the WAL does not belong to this file."""
        for name in ("_writer", "_reader") if self._refusal else ("_reader", "_writer"):
            if hasattr(self, name):
                getattr(self, name).close()
        if self._lock is not None:
            self._lock.give()


def _event(bandit: int, row: tuple[Any, ...], new: Any = tuple.__new__) -> Event:
    """The event of a row that ends with its checksum; quicker than `Event(*row)`."""
    if mark(row[:-1]) != row[-1]:
        raise altered("event", row[0], bandit)
    return new(Event, row[:-1])  # type: ignore[no-any-return]


def _connect(path: str, read_only: bool = False, unchanging: bool = False) -> sqlite3.Connection:
    if read_only and not os.path.exists(path):
        raise Unknown(f"There is no journal {path}.")
    mode = "?mode=ro" + ("&immutable=1" if unchanging else "") if read_only else ""
    return sqlite3.connect(
        Path(os.path.abspath(path)).as_uri() + mode,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=10.0,
        cached_statements=300,  # those of sqlitecommit, one for each number of rows
    )


def _connect_reader(path: str) -> sqlite3.Connection:
    """A reader. In a folder that cannot be written to, SQLite cannot share a WAL; where there is none, nobody can be
    writing there, and the file is read as it is."""
    connection = _connect(path, read_only=True)
    try:
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        connection.close()
        wal = path + "-wal"
        if os.access(os.path.dirname(os.path.abspath(path)), os.W_OK) or (os.path.exists(wal) and os.path.getsize(wal)):
            raise
        connection = _connect(path, read_only=True, unchanging=True)
    return connection


@contextlib.contextmanager
def _sentence(path: str) -> Iterator[None]:
    """SQLite's errors as one sentence each."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise _told(path, error) from None


_DAMAGE = ("not a database", "malformed", "no such table", "unsupported file", "decode")


def _told(path: str, error: Exception) -> Exception:
    text = f"{' '.join(str(error).split()):.120}"
    if any(word in text for word in _DAMAGE):
        return Damaged(f"{path} is not a journal, or it is damaged: {text}.")
    if "full" in text:
        return StoreError(f"The disk of {path} is full; nothing of this call was written.")
    return StoreError(f"SQLite cannot use {path}: {text}. Nothing of this call was written.")
