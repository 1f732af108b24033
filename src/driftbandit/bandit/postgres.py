"""The journal in a PostgreSQL database: many processes on many machines append, and all fold the same order.

A sequence number is given before its transaction commits, so a reader that remembers "up to 17" can miss 16, committed
later. Every event therefore holds its transaction's id, and events are read in the order (transaction id, number), only
as far as no transaction of ours is still under way: see `_next_events`. Decisions and events are never updated, except
where an id is erased, which moves nothing."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg

from driftbandit.bandit.asks import Ask
from driftbandit.bandit.journal import DROPPED, Journal
from driftbandit.bandit.pgcommit import Follower, OpenedServer, PostgresCommit, open_tables
from driftbandit.bandit.records import Event
from driftbandit.bandit.tables import DECISION, EVENT, LOCK, POSTGRES
from driftbandit.errors import DamagedJournal, StoreError

DIRECT = "DRIFTBANDIT_DIRECT_URL"  # past a pooler that hands out connections for a transaction
_STUCK = 0.05  # seconds for which events may wait for a transaction before we look up its owner
_CLOCK = 1.0  # seconds after which a commit reads the server's time again, if none had to before
_NOTIFY = 0.02  # least seconds between two notifications: those of others wait for the next
_NAMED = 350  # bandits in one notification, which has at most 8,000 bytes
_TIME = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

_CLOCK_AND_LOCK = f"SELECT {_TIME}, pg_advisory_xact_lock_shared({LOCK}, 0)"
# One look for many bandits, each after its own cursor: its next events, and whether their place in the order is final.
# The rows of a bandit come out of the primary key in order. A bare "xid" in ORDER BY would be the text above it, which
# has no index. Without `_INDEX`, the server may gather all rows by two indexes and sort them for the first few.
_AFTER = f"""
    SELECT e.*, dropped FROM unnest(%s::bigint[], %s::int[], %s::text[], %s::bigint[]) AS w (bandit, era, xid, seq)
    CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM driftbandit.base b WHERE b.bandit = w.bandit
        AND (b.era, b.xid, b.seq) > (w.era, w.xid::xid8, w.seq)) AS dropped) AS f
    CROSS JOIN LATERAL (
        SELECT bandit, (era < %s OR xid < %s) IS TRUE AS final, era, xid::text, seq, {EVENT}, mark
        FROM driftbandit.event WHERE event.bandit = w.bandit
        AND (event.era, event.xid, event.seq) > (w.era, w.xid::xid8, w.seq)
        ORDER BY event.era, event.xid, event.seq LIMIT %s) AS e"""
_INDEX = "SET enable_bitmapscan = off"
_FINAL = _AFTER.replace("xid < %s", "xid < (SELECT pg_snapshot_xmin(pg_current_snapshot()))")
_BEFORE = _AFTER.replace("xid < %s", "xid < %s::text::xid8")
_ERA = """
    SELECT max(CASE WHEN e.xid < pg_snapshot_xmax(pg_current_snapshot()) THEN e.era ELSE e.era + 1 END)
    FROM driftbandit.bandit b CROSS JOIN LATERAL (
        SELECT era, xid FROM driftbandit.event WHERE bandit = b.number ORDER BY era DESC, xid DESC LIMIT 1) AS e"""
_RUNNING = f"""
    WITH locks AS MATERIALIZED (SELECT locktype, classid, objid, transactionid, pid, granted FROM pg_locks)
    SELECT x::text::bigint, EXISTS (
        SELECT FROM locks h WHERE h.locktype = 'transactionid' AND h.granted
        AND h.transactionid::text::bigint = x::text::bigint & 4294967295
        AND NOT EXISTS (SELECT FROM locks o WHERE o.locktype = 'advisory' AND o.pid IS NOT DISTINCT FROM h.pid
                        AND o.classid::bigint = {LOCK} AND o.objid::bigint = 0))
    FROM pg_snapshot_xip(pg_current_snapshot()) AS x UNION ALL
    SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, false"""
# A row of `head` that no other connection uses; the lock ends with the connection.
_LEASE = f"SELECT n FROM generate_series(2, 4096) AS n WHERE pg_try_advisory_lock({LOCK}, n) LIMIT 1"
_STILL = "SELECT x::bigint FROM unnest(%s::text[]) x WHERE pg_xact_status(x::xid8) = 'in progress'"


class PostgreSQL(Journal):
    """A journal in a database."""

    live = True
    dialect = POSTGRES

    def __init__(self, url: str, write: bool = True, patience: float = 20.0) -> None:
        self.target, self.patience = url, patience
        self._offset: int | None = None
        self._connections: dict[str, Any] = {}  # "reader", "writer", "copier", and "leaser", which holds our lease
        self._reading = threading.RLock()
        self.waiting_since: dict[int, float] = {}  # bandit: since when events wait for a transaction to end
        self._foreign = False  # whether the last look found transactions of other programs
        self._notified = self._set = 0.0
        self._announcing = threading.Lock()
        self._unannounced: set[int] = set()  # bandits with events of ours that were not announced to other processes
        self._server: OpenedServer | None = None
        self._lease: tuple[Any, int] = None, 0  # for which connection, and our row of `head`
        self._follower: Follower | None = None
        try:
            reader = self._connections["reader"] = self._connect()
            open_tables(reader, write)
            self._server = OpenedServer(reader)
            began = time.monotonic_ns()
            self._note_time(reader.execute(f"SELECT {_TIME}").fetchone()[0], began)
            # A dump that was restored into a younger server holds transactions of that server's future: what is written
            # from now on belongs to a new era, behind all of them.
            self._era = int(reader.execute(_ERA).fetchone()[0] or 0)
        except BaseException as error:
            self.close()
            raise (_translate_error(error) if isinstance(error, psycopg.Error) else error) from None

    def _connect(self, session: bool = False) -> Any:
        """A new connection. Behind a pooler, one that needs a separate session goes past it."""
        direct = os.environ.get(DIRECT)
        shares = direct is not None and not session
        connection = psycopg.connect(
            self.target if direct is None or shares else direct, autocommit=True, connect_timeout=5,
            application_name="driftbandit", client_encoding="UTF8", prepare_threshold=None if shares else 5,
        )  # fmt: skip
        try:
            if not shares:
                connection.execute(_INDEX)
            if self._server is not None:
                self._server.recognise(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    # ---- writing -----------------------------------------------------------------------------------------------------

    def create(self, name: str, at: int) -> int:
        sql = "INSERT INTO driftbandit.bandit (name, created) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING number"
        made = self._rows(sql, name, at)
        return int(made[0][0]) if made else self.number(name)  # type: ignore[return-value]

    def commit(self, asks: list[Ask]) -> tuple[list[Any], list[tuple[int, Event]]]:
        """Where the connection is lost, even in the middle of a commit, all of it is sent again: every ask has an id,
        so rows written the first time are found, not doubled."""

        def write(writer: Any) -> list[Any]:
            answers: dict[int, Any] = {}
            left = dict(enumerate(asks))
            while left:
                left = self._transaction(writer, left, answers)
            return [answers[place] for place in range(len(asks))]

        return self._patiently(write, "writer"), []

    def _transaction(self, writer: Any, asks: dict[int, Ask], answers: dict[int, Any]) -> dict[int, Ask]:
        """Write one transaction, and return the asks that need another one."""
        if self._lease[0] is not writer:
            leaser = self._connect(session=True) if os.environ.get(DIRECT) else writer
            self._connections["leaser"] = leaser
            if leaser is writer:  # a statement prepared while a table is small must not read all of it later
                writer.execute("SET enable_seqscan = off")
            self._lease = writer, leaser.execute(_LEASE).fetchone()[0]
        batch = PostgresCommit(writer, self._era, self._lease[1], asks)
        try:
            if batch.one_statement and time.monotonic() - self._set < _CLOCK:
                batch.send()
            else:
                began = time.monotonic_ns()
                with writer.pipeline():
                    writer.execute("BEGIN")
                    clock = writer.execute(_CLOCK_AND_LOCK)
                    batch.send()
                    writer.execute("COMMIT")
                self._note_time(clock.fetchone()[0], began)
            with self._announcing:
                self._unannounced |= batch.changed
            if batch.changed and time.monotonic() - self._notified > _NOTIFY:
                self.announce(writer)
            batch.finish()
            self._server.note_written(batch.decided, batch.appended)  # type: ignore[union-attr]
        except BaseException:
            with contextlib.suppress(Exception):  # a connection in the middle of something is not used again
                writer.close()
            raise
        answers.update(batch.answers)
        return batch.again

    def copy(self, statements: list[tuple[str, Any]]) -> None:
        """Run statements in one transaction, and once more where the connection is lost: they write nothing twice."""

        def write(copier: Any) -> None:
            with copier.pipeline(), copier.transaction():
                for sql, values in statements:
                    copier.execute(self.dialect.translate(sql), values)

        self._patiently(write, "copier")

    def announce(self, connection: Any) -> None:
        """Notify all processes of the bandits that have new events. Not within the transaction that wrote them:
        PostgreSQL lets one that notifies commit at a time. Whether this one survives a crash does not matter."""
        with self._announcing:
            changed = sorted(self._unannounced)
            self._unannounced.clear()
        if not changed:
            return
        self._notified = time.monotonic()
        with connection.pipeline(), connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = off")
            for first in range(0, len(changed), _NAMED):
                text = " ".join(map(str, changed[first : first + _NAMED]))
                connection.execute("SELECT pg_notify('driftbandit', %s)", (text,))

    @property
    def announced_lately(self) -> float:
        """The seconds during which further events may be left for the next announcement."""
        return max(0.0, _NOTIFY - (time.monotonic() - self._notified))

    def _patiently(self, call: Callable[[Any], Any], name: str) -> Any:
        """Call it with the connection of this name until it succeeds, each time with a new one, for at most `patience`
        seconds."""
        until, pause = time.monotonic() + self.patience, 0.02
        while True:
            try:
                if self._server is not None:
                    self._server.check()
                connection = self._connections.get(name)
                if connection is None or connection.closed:
                    connection = self._connections[name] = self._connect()
                return call(connection)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                with contextlib.suppress(Exception):
                    self._connections.pop(name).close()
                if time.monotonic() + pause > until:
                    raise StoreError(
                        f"PostgreSQL did not respond within {self.patience:g} s ({_first_line(error)}); the call may "
                        "or may not have been written: send it again with the same id."
                    ) from None
            except psycopg.Error as error:
                raise _translate_error(error) from None
            time.sleep(pause)
            pause = min(0.5, 2.0 * pause)

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        def read(reader: Any) -> Any:
            return reader.execute(self.dialect.translate(sql), values).fetchall()

        with self._reading:
            return list(self._patiently(read, "reader"))

    def _next_events(self, bandit: int, after: Any, limit: int) -> list[tuple[Any, Event]]:
        found = self.news({bandit: after}, limit).get(bandit, [])
        if isinstance(found, DamagedJournal):
            raise found
        return list(found)

    def news(self, cursors: dict[int, Any], limit: int = Journal.chunk) -> dict[int, Any]:
        """The next events of several bandits, each after its cursor, as far as their order is final: below the oldest
        transaction under way. That may be another program's and last for hours; so when events have waited for a
        moment, we look which transactions are ours, and read past all others. The error for a damaged bandit."""
        places = [(bandit, *self.dialect.cursor_values(cursor)) for bandit, cursor in cursors.items()]
        values = [list(column) for column in zip(*places, strict=True)]
        rows = self._rows(_FINAL, *values, self._era, limit)
        if self._note_waiting(cursors, rows):
            rows = self._past_others([*values, self._era], limit) or rows
            self._note_waiting(cursors, rows)
        out: dict[int, Any] = {}
        for row in rows:
            bandit = row[0]
            if row[1] and not isinstance(out.get(bandit), DamagedJournal):
                try:
                    if row[-1]:
                        raise DamagedJournal(DROPPED)
                    out.setdefault(bandit, []).append(self.read_event(bandit, row[2:-1]))
                except DamagedJournal as error:
                    out[bandit] = error
        for bandit, found in out.items():
            if self._server is not None and not isinstance(found, DamagedJournal):
                self._server.read[bandit] = found[-1][0]
        return out

    def _note_waiting(self, cursors: dict[int, Any], rows: list[Any]) -> bool:
        """Note which bandits have events whose order is not final; whether any has waited for long."""
        now, waiting = time.monotonic(), {row[0] for row in rows if not row[1]}
        for bandit in cursors:
            if bandit in waiting:
                self.waiting_since.setdefault(bandit, now)
            else:
                self.waiting_since.pop(bandit, None)
        return any(self._foreign or now - self.waiting_since[bandit] >= _STUCK for bandit in waiting)

    def _past_others(self, places: list[Any], size: int) -> list[Any]:
        """The same look, where those events are final that no transaction of ours can precede any more.

        Ours take a shared lock before they get an id, and hold it until they have ended. A transaction that was under
        way at our snapshot, was seen without that lock, and is still under way afterwards, is another program's: only
        one that has ended may have released the lock before its id."""
        with self._reading, contextlib.suppress(psycopg.Error):
            reader = self._connections["reader"]
            try:
                with reader.pipeline():
                    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    running = reader.execute(_RUNNING).fetchall()
                    others = [str(x) for x, foreign in running if foreign]
                    foreign = {row[0] for row in reader.execute(_STILL, (others,)).fetchall()} if others else set()
                    self._foreign = bool(foreign)
                    horizon = min(x for x, _ in running if x not in foreign)
                    found = reader.execute(_BEFORE, [*places, str(horizon), size])
                    reader.execute("COMMIT")
                return list(found.fetchall())
            except BaseException:
                with contextlib.suppress(Exception):  # a connection in the middle of something is not used again
                    reader.close()
                raise
        return []

    @contextlib.contextmanager
    def claim(self, bandit: int) -> Iterator[bool]:
        """By a lock that ends with its connection."""
        with self._connect(session=True) as connection:
            yield bool(connection.execute(f"SELECT pg_try_advisory_lock({LOCK + 1}, %s)", (bandit,)).fetchone()[0])

    def _scan(self, table: str, bandit: int, until: int | None = None, known: int = 0) -> Iterator[tuple[Any, ...]]:
        """Over a separate connection, so that other reads go on meanwhile."""
        fields, order = (DECISION, "known, at, id") if table == "decision" else (EVENT, "era, xid, seq")
        before = ("" if until is None else f"AND at < {until:d} ") + (f"AND known >= {known:d} " if known else "")
        sql = f"SELECT {fields}, mark FROM driftbandit.{table} WHERE bandit = %s {before}ORDER BY {order}"
        try:
            with self._connect() as connection, connection.transaction(), connection.cursor("driftbandit") as cursor:
                cursor.itersize = self.chunk
                yield from cursor.execute(sql, (bandit,))
        except psycopg.Error as error:
            raise _translate_error(error) from None

    def _between(self, table: str, bandit: int, since: int, until: int) -> tuple[str, list[Any]]:
        return "bandit = ? AND at >= ? AND at < ?", [bandit, since, until]

    # ---- time, following, closing ------------------------------------------------------------------------------------

    def _note_time(self, server: int, began: int) -> None:
        """Note how far the server's clock is from ours. A slow answer is too inexact to be used."""
        ended = time.monotonic_ns()
        if self._offset is None or ended - began < 50_000_000:
            self._set = ended / 1e9
            self._offset = int(server) - began // 1000  # the first statement sent; the rest is the commit's time

    def now(self) -> int:
        """The server's clock."""
        return time.monotonic_ns() // 1000 + (self._offset or 0)

    def follow(self, replica: Any) -> None:
        """Have a replica (see `replica`) take what any process writes, soon after it was written."""
        if self._follower is None:
            self._follower = Follower(self)
        self._follower.add(replica)

    def unfollow(self, replica: Any) -> None:
        if self._follower is not None:
            self._follower.remove(replica)
        self.waiting_since.pop(replica.number, None)
        if self._server is not None:
            self._server.read.pop(replica.number, None)

    def lag(self, bandit: int) -> float:
        """For how many seconds this process may not have had all events of a bandit that it follows."""
        heard = self._follower.heard if self._follower is not None else time.monotonic()
        return time.monotonic() - min(heard, self.waiting_since.get(bandit, heard))

    def forget(self) -> None:
        """In a forked child: leave the connections to the parent."""
        self._connections, self._follower = {}, None
        self._reading, self._announcing = threading.RLock(), threading.Lock()

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()
        for connection in self._connections.values():
            with contextlib.suppress(psycopg.Error):
                connection.close()


def _first_line(error: Exception) -> str:
    """The first line of PostgreSQL's message."""
    return (str(error).strip().splitlines() or ["no answer"])[0].rstrip(".")


def _translate_error(error: Exception) -> Exception:
    """PostgreSQL's errors as one sentence each."""
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return StoreError(f"PostgreSQL does not allow it: {_first_line(error)}. Give this user the right to do so.")
    if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
        return DamagedJournal(f"The database is not a whole journal: {_first_line(error)}.")
    return StoreError(f"PostgreSQL: {_first_line(error)}.")
