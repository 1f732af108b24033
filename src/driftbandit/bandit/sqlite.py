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

from driftbandit.bandit import tables
from driftbandit.bandit.asks import Ask, Place, Settle
from driftbandit.bandit.commit import STORED_LATE, Check, Commit, Rows
from driftbandit.bandit.journal import DROPPED, Journal
from driftbandit.bandit.ownfile import OwnFile
from driftbandit.bandit.records import CHANGE, DecisionRow, Event, mark, system_time
from driftbandit.bandit.tables import DECISION, EVENT, SQLITE, TOGETHER, chunks, insert
from driftbandit.errors import DamagedJournal, NotFound, StoreError

APPLICATION = 0x64726266  # "drbf": written into the file's header, where SQLite keeps a place for it
_FIELDS = {"decision": DECISION, "event": EVENT}
_NUMBER = {"decision": "seq", "event": "n"}  # of a row within its bandit, in the order in which they were written
_DAMAGE = ("not a database", "malformed", "no such table", "unsupported file", "decode")
_PARENTS: list[Any] = []  # connections that belong to the process this one was forked from
_YOUNG = "SELECT seq FROM decision WHERE bandit = ? AND seq > ? AND at > ? ORDER BY seq LIMIT 1"
_OLD = tables.OLD_DECISIONS + " WHERE d.bandit = ? AND d.seq > ? AND d.seq < ? ORDER BY d.seq LIMIT ?"

Numbers = dict[int, list[int]]  # bandit: numbers of its last event, its last decision and its last one settled


class SQLiteCommit(Commit):
    """Python lets other threads run at every step of a statement, and a writer that steps once per row waits its turn
    among them once per row. So rows are written and looked up many to a statement. `last` is kept by the caller from
    one group to the next, and thrown away when one fails."""

    dialect, alone, trusts = SQLITE, True, True

    def __init__(self, connection: sqlite3.Connection, asks: list[Ask], last: Numbers) -> None:
        super().__init__(connection, dict(enumerate(asks)))
        self._last = last
        self.added: list[tuple[int, Event]] = []

    def write(self) -> list[Any]:
        """The answers, once everything is on disk."""
        asks = list(self._asks.values())
        if len(asks) <= TOGETHER and all(type(ask) is DecisionRow for ask in asks):
            with contextlib.suppress(sqlite3.IntegrityError):  # an id is there already
                self._insert_decisions(asks)  # type: ignore[arg-type]
                return asks  # one statement is a transaction
        try:
            self._transact()
        except sqlite3.IntegrityError as error:  # a decision that was trusted to have no outcome has one: look at all
            if "another program wrote" in str(error):
                raise
            self._connection.execute("ROLLBACK")
            self._last.clear()
            self.answers, self.added, self.trusts = {}, [], False
            self._transact()
        return [self.answers[place] for place in range(len(asks))]

    def _transact(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self.send()
        self._connection.execute("COMMIT")

    def _numbers(self, bandit: int) -> list[int]:
        numbers = self._last.get(bandit)
        if numbers is None:
            events, decisions, *last = self._connection.execute(
                "SELECT events, decisions, (SELECT max(n) FROM event WHERE bandit = ?1), "
                "(SELECT max(seq) FROM decision WHERE bandit = ?1) FROM head WHERE bandit = ?1", (bandit,)
            ).fetchone() or (0, 0, -1, -1)  # fmt: skip
            if [events, decisions] != [number or 0 for number in last]:
                raise DamagedJournal(f"The journal is damaged: the last rows of bandit {bandit} are missing.")
            numbers = self._last[bandit] = [events, decisions, -1]
        return numbers

    def _decide(self, rows: dict[int, DecisionRow]) -> None:
        for some in chunks(list(rows.items())):
            try:
                self._insert_decisions([row for _, row in some])
                self.answers.update(some)
            except sqlite3.IntegrityError:  # which undoes the statement and leaves the transaction open
                there = self.states([(row.bandit, row.id) for _, row in some])
                fresh: dict[Place, DecisionRow] = {}
                for _, row in some:
                    if (row.bandit, row.id) not in there:
                        fresh.setdefault((row.bandit, row.id), row)
                self._insert_decisions(list(fresh.values()))
                self._answer_decisions(dict(some))

    def _insert_decisions(self, rows: list[DecisionRow]) -> None:
        """All of these, which are at most `TOGETHER`, or an error and none."""
        if not rows:
            return
        last = {bandit: self._numbers(bandit)[1] for bandit in {row.bandit for row in rows}}
        values: list[Any] = []
        for row in rows:
            last[row.bandit] += 1
            values += (last[row.bandit], *row, mark(row))
        self._connection.execute(insert("decision", tables.DECISIONS, len(rows)), values)
        for bandit, seq in last.items():
            self._last[bandit][1] = seq

    def _append(self, events: list[tuple[int, Event]], check: Check, parts: bool | None = None) -> None:
        """Outcomes are judged by what stands, so only other events can be there already."""
        there: set[tuple[int, str, int]] = set()
        rows: list[tuple[Any, ...]] = []
        for bandit, event in events:
            sql = "SELECT 1 FROM event WHERE bandit = ? AND decision = ? AND (kind = 3) = false"
            if event.kind >= CHANGE and self._rows(sql, bandit, event.decision):
                there.add((bandit, event.decision, event.kind))
                continue
            numbers = self._numbers(bandit)
            numbers[0] += 1
            event = tuple.__new__(Event, (numbers[0], *event[1:]))
            rows.append((bandit, *event, mark(event[1:])))
            self.added.append((bandit, event))
        for some in chunks(rows):
            self._connection.execute(
                insert("event", tables.EVENTS, len(some)), [value for row in some for value in row]
            )
        check(there)

    def purge(self, bandit: int, name: str, limit: int = 2000) -> bool:
        self._last.pop(bandit, None)
        return super().purge(bandit, name, limit)

    def erase(self, bandit: int, id: str, hidden: str) -> bool:
        """What is overwritten does not stay in unused parts of the file."""
        self._connection.execute("PRAGMA secure_delete=ON")
        found = super().erase(bandit, id, hidden)
        self._connection.execute("PRAGMA secure_delete=OFF")
        return found

    def _old_decisions(self, bandit: int, limit: int, n: int, at: int) -> tuple[list[Any], str, list[Any]]:
        end = first_number(self._rows, "decision", "seq", bandit, n, "known")
        sql = "SELECT seq, at, slot, how, mark FROM decision WHERE bandit = ? AND seq < ? ORDER BY seq LIMIT ?"
        rows = self._rows(sql, bandit, end, limit)
        return [row[1:] for row in rows], "bandit = ? AND seq <= ?", [bandit, rows[-1][0] if rows else 0]

    def _unsettled(self, ask: Settle) -> tuple[list[Any], bool, int | None]:
        """Decisions are numbered in the order in which they are stored, so the number of the last one settled is enough
        to remember."""
        numbers, until = self._numbers(ask.bandit), ask.until
        if numbers[2] < 0:
            numbers[2] = first_number(self._rows, "decision", "seq", ask.bandit, ask.settled - STORED_LATE) - 1
        after = numbers[2]
        stop = (self._rows(_YOUNG, ask.bandit, after, until) or [(1 << 62,)])[0][0]
        rows = self._rows(_OLD, ask.bandit, after, stop, ask.limit)
        done = len(rows) < ask.limit
        if not done:  # up to here, with all of the same moment
            until = max(row[2] for row in rows)
            stop = (self._rows(_YOUNG, ask.bandit, after, until) or [(1 << 62,)])[0][0]
            rows = self._rows(_OLD, ask.bandit, after, stop, -1)
        numbers[2] = rows[-1][0] if rows else after
        passed = any(row[2] > ask.settled for row in rows)
        return [row[1:-1] for row in rows if row[-1] is None], done, until if passed else None


def first_number(rows: Rows, table: str, number: str, bandit: int, at: int, column: str = "at") -> int:
    """The number of a bandit's first row at or after a time, by bisection: times do not go back along the numbers, and
    neither does `known`. Where rows were dropped, the next one is looked at."""
    low, high = 1, (rows(f"SELECT max({number}) FROM {table} WHERE bandit = ?", bandit)[0][0] or 0) + 1
    sql = f"SELECT {number}, {column} FROM {table} WHERE bandit = ? AND {number} >= ? ORDER BY {number} LIMIT 1"
    while low < high:
        middle = (low + high) // 2
        found = rows(sql, bandit, middle)
        low, high = (found[0][0] + 1, high) if found and found[0][1] < at else (low, middle)
    return low


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
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._last: Numbers = {}
        self._file = OwnFile(path) if write else None
        try:
            with _translate_errors(path):
                if write:
                    self._writer = _connect(path)
                    self._open(self._writer, write=True)
                    self._writer.executescript("BEGIN IMMEDIATE; COMMIT")  # now there is a WAL
                    self._file.note()  # type: ignore[union-attr]
                self._reader = _connect_reader(path)
                if not write:
                    self._open(self._reader, write=False)
        except BaseException:
            self.close()
            raise

    def _open(self, connection: sqlite3.Connection, write: bool) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        found = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION and (found or version or application or not write):
            raise DamagedJournal(f"{self.target} is not a journal of driftbandit but another program's SQLite file.")
        if write:  # only now: it would alter another program's file
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA fullfsync=ON")  # macOS: also empty the cache of the disk
            if application != APPLICATION:
                connection.executescript(
                    f"BEGIN IMMEDIATE; {tables.SQLITE_TABLES} PRAGMA application_id={APPLICATION}; "
                    f"PRAGMA user_version={tables.VERSION}; COMMIT;"
                )
                version = tables.VERSION
        tables.check_version(version, self.target)

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
        file: Any = self._file
        with self._writing, _translate_errors(self.target):
            file.check()
            try:
                return call()
            except BaseException as error:
                self._last.clear()
                with contextlib.suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                if "another program wrote" in str(error):
                    file.refuse(f"Another program wrote into {self.target} while it was open; nothing of this call "
                                 "was written. Close this bandit and open it again.")  # fmt: skip
                raise
            finally:  # a failed transaction may have written to the WAL as well
                file.note()

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
                base = self.base(bandit)
                if base is not None and n <= base.n:
                    raise DamagedJournal(DROPPED)
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
        if self._file is not None:
            self._file.close()
        self._reading, self._writing = threading.Lock(), threading.Lock()
        _PARENTS.append((self.__dict__.pop("_reader", None), self.__dict__.pop("_writer", None)))
        with contextlib.suppress(sqlite3.Error, NotFound):
            self._reader = _connect_reader(self.target)

    def close(self) -> None:
        """The last connection to close moves the WAL into the file, unless it only reads. So the writer is closed last,
        but first where the WAL does not belong to this file."""
        for name in ("_writer", "_reader") if self._file and self._file.refusal else ("_reader", "_writer"):
            if hasattr(self, name):
                getattr(self, name).close()
        if self._file is not None:
            self._file.release()


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
