"""The journal in one SQLite file: one process writes, any number read.

WAL and synchronous=FULL: a commit is on the disk when it returns. Two connections that write to one WAL at the same
moment can corrupt it in SQLite versions before 3.51.3, which most Pythons have. So only one connection writes and moves
the WAL into the file, and a lock on a second file keeps other processes from writing."""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from driftbandit.bandit.asks import Ask
from driftbandit.bandit.commit import Numbers, SQLiteCommit, first_number
from driftbandit.bandit.journal import Journal
from driftbandit.bandit.records import Event, system_time
from driftbandit.bandit.tables import DECISION, EVENT, SQLITE, SQLITE_TABLES, VERSION, check_version
from driftbandit.errors import DamagedJournal, JournalLocked, NotFound, StoreError

APPLICATION = 0x64726266  # "drbf": written into the file's header, where SQLite keeps a place for it
_FIELDS = {"decision": DECISION, "event": EVENT}
_NUMBER = {"decision": "seq", "event": "n"}  # of a row within its bandit, in the order in which they were written
_DAMAGE = ("not a database", "malformed", "no such table", "unsupported file", "decode")
_PARENTS: list[Any] = []  # connections that belong to the process this one was forked from


class SQLite(Journal):
    """A journal in a file."""

    live = False
    dialect = SQLITE
    oldest, newest = "seq", "seq DESC"
    # Their ids begin with "#", by which the index finds them among millions of rewards; +n keeps SQLite from walking
    # those in order instead.
    change, change_order = "AND decision >= '#' AND decision < '$'", "+n"
    chunk = 20_000  # short enough for the WAL to be emptied meanwhile

    def __init__(self, path: str, write: bool = True) -> None:
        self.target = path
        self._refusal = ""  # why nothing is written any more
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._last: Numbers = {}
        self._lock = FileLock(path) if write else None
        try:
            with _translate_errors(path):
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

    def _open(self, connection: sqlite3.Connection, write: bool) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION and (tables or version or application or not write):
            raise DamagedJournal(f"{self.target} is not a journal of driftbandit but another program's SQLite file.")
        if write:  # only now: it would alter another program's file
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA fullfsync=ON")  # macOS: also empty the cache of the disk
            if application != APPLICATION:
                connection.executescript(
                    f"BEGIN IMMEDIATE; {SQLITE_TABLES} PRAGMA application_id={APPLICATION}; "
                    f"PRAGMA user_version={VERSION}; COMMIT;"
                )
                version = VERSION
        check_version(version, self.target)

    # ---- writing -----------------------------------------------------------------------------------------------------

    def create(self, name: str, at: int) -> int:
        def make() -> Any:
            execute = self._writer.execute
            execute("BEGIN IMMEDIATE")
            execute("INSERT OR IGNORE INTO bandit (name, created) VALUES (?, ?)", (name, at))
            found = execute("SELECT number FROM bandit WHERE name = ?", (name,)).fetchone()
            execute("INSERT OR IGNORE INTO head VALUES (?, 0, 0, 0, 0)", found)
            execute("COMMIT")
            return found[0]

        return int(self._write(make))

    def commit(self, asks: list[Ask]) -> tuple[list[Any], list[tuple[int, Event]]]:
        group = SQLiteCommit(self._writer, asks, self._last)
        return self._write(group.write), group.added

    def _write(self, call: Callable[[], Any]) -> Any:
        """Write to the file that was opened, or not at all; one call at a time, as other threads make new bandits."""
        with self._writing, _translate_errors(self.target):
            self._check_files()
            try:
                return call()
            except BaseException as error:
                self._last.clear()
                with contextlib.suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                if "another program wrote" in str(error):
                    self._refuse(f"Another program wrote into {self.target} while it was open; nothing of this call "
                                 "was written. Close this bandit and open it again.")  # fmt: skip
                raise
            finally:  # a failed transaction may have written to the WAL as well
                self._files = self._files_now()

    def _refuse(self, why: str) -> None:
        """Write nothing from now on."""
        self._refusal = why
        raise StoreError(why) from None

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
            self._refuse(
                f"{self.target} or the -wal next to it was overwritten or cut by another program while it was open; "
                "nothing of this call was written. Close this bandit; if the file was restored from a backup, delete "
                f"{os.path.basename(self.target)}-wal and -shm, which belong to the former file; then open it again."
            )

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
        with _translate_errors(self.target), self._reading:
            return self._reader.execute(self.dialect.translate(sql), values).fetchall()

    def _next_events(self, bandit: int, after: Any, limit: int) -> list[tuple[Any, Event]]:
        after = after or 0
        sql = f"SELECT n, {EVENT}, mark FROM event WHERE bandit = ? AND n > ? ORDER BY n LIMIT ?"
        rows = self._rows(sql, bandit, after, limit)
        for n, row in enumerate(rows, after + 1):
            if row[0] != n:
                self._check_dropped(bandit, n)
                raise DamagedJournal(f"The journal is damaged: event {n} of bandit {bandit} is missing.")
        return [self.read_event(bandit, row) for row in rows]

    def claim(self, bandit: int) -> contextlib.AbstractContextManager[bool]:
        """Only this process writes."""
        return contextlib.nullcontext(True)

    def _scan(self, table: str, bandit: int, until: int | None = None, known: int = 0) -> Iterator[tuple[Any, ...]]:
        """In the order in which they were written, which is that of time and of `known` as well."""
        number, last = _NUMBER[table], 0
        sql = f"""SELECT {number}, {_FIELDS[table]}, mark FROM {table}
            WHERE bandit = ? AND {number} > ? ORDER BY {number} LIMIT {self.chunk}"""
        while rows := self._rows(sql, bandit, last):
            yield from (row[1:] for row in rows)
            last = rows[-1][0]

    def _between(self, table: str, bandit: int, since: int, until: int) -> tuple[str, list[Any]]:
        number = _NUMBER[table]
        low, high = (first_number(self._rows, table, number, bandit, at) for at in (since, until))
        return f"bandit = ? AND {number} >= ? AND {number} < ? AND at >= ?", [bandit, low, high, since]

    def check_file(self) -> list[str]:
        """SQLite's own check of the file."""
        try:
            found = [str(row[0]) for row in self._rows("PRAGMA integrity_check(10)")]
        except DamagedJournal as error:
            return [str(error)]
        return [f"SQLite finds the file damaged: {text}" for text in found if text != "ok"]

    # ---- time, forking, closing --------------------------------------------------------------------------------------

    def now(self) -> int:
        """The system's clock."""
        return system_time()

    def forget(self) -> None:
        """In a forked child: leave the connections and the lock to the parent. A connection must not even be closed;
        a new one is made for reading."""
        if self._lock is not None:
            self._lock.close()
        self._reading, self._writing = threading.Lock(), threading.Lock()
        _PARENTS.append((self.__dict__.pop("_reader", None), self.__dict__.pop("_writer", None)))
        with contextlib.suppress(sqlite3.Error, NotFound):
            self._reader = _connect_reader(self.target)

    def close(self) -> None:
        """The last connection to close moves the WAL into the file, unless it only reads. So the writer is closed last,
        but first where the WAL does not belong to this file."""
        for name in ("_writer", "_reader") if self._refusal else ("_reader", "_writer"):
            if hasattr(self, name):
                getattr(self, name).close()
        if self._lock is not None:
            self._lock.release()


class FileLock:
    """A lock on a file next to the journal, held by one process at a time: the operating system frees it when its
    holder dies, however it dies."""

    def __init__(self, journal: str) -> None:
        try:
            file = os.open(journal + ".lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise StoreError(f"{journal} cannot be written here: {error.strerror}.") from None
        try:
            _lock(file)
        except OSError:
            holder = os.read(file, 20).decode("ascii", "replace").strip()
            os.close(file)
            raise JournalLocked(
                f"{journal} is open for writing in another process{f' ({holder})' if holder else ''}, and a SQLite "
                "journal has one writing process; for several, use a PostgreSQL journal, postgresql://..., or "
                "`driftbandit serve`, which writes the file for all of them."
            ) from None
        os.ftruncate(file, 0)
        os.write(file, f"process {os.getpid()}\n".encode())
        self._file: int | None = file

    def release(self) -> None:
        """Free the lock."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
        self.close()

    def close(self) -> None:
        """Close the file; a forked child leaves the lock with its parent this way."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


try:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

except ImportError:  # Windows
    import msvcrt

    def _lock(file: int) -> None:
        # A byte far behind the text, since a locked one cannot be read by others.
        os.lseek(file, 1 << 30, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        os.lseek(file, 0, os.SEEK_SET)


def _connect(path: str, read_only: bool = False, unchanging: bool = False) -> sqlite3.Connection:
    if read_only and not os.path.exists(path):
        raise NotFound(f"There is no journal {path}.")
    mode = "?mode=ro" + ("&immutable=1" if unchanging else "") if read_only else ""
    return sqlite3.connect(
        Path(os.path.abspath(path)).as_uri() + mode,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=10.0,
        cached_statements=300,  # those of `commit`, one for each number of rows
    )


def _connect_reader(path: str) -> sqlite3.Connection:
    """In a folder that cannot be written to, SQLite cannot share a WAL. Where there is none, no process can be writing
    there, and the file is read as it is."""
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
def _translate_errors(path: str) -> Iterator[None]:
    """SQLite's errors as one sentence each."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        text = f"{' '.join(str(error).split()):.120}"
        if any(word in text for word in _DAMAGE):
            raise DamagedJournal(f"{path} is not a journal, or it is damaged: {text}.") from None
        if "full" in text:
            raise StoreError(f"The disk of {path} is full; nothing of this call was written.") from None
        raise StoreError(f"SQLite cannot use {path}: {text}. Nothing of this call was written.") from None
