"""The journal in a PostgreSQL database: many processes on many machines append, and all fold the same order.

A sequence number is given before its transaction commits, so a reader that remembers "up to 17" can miss 16, committed
later. Every event therefore holds its transaction's id, and events are read in the order (transaction id, number), only
as far as no transaction of ours is still under way: see `events`. Nothing is ever updated."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg

from driftbandit.live.errors import Damaged, StoreError
from driftbandit.live.journal import Ask, Standing, whole
from driftbandit.live.pgcommit import LOCK, CommitGroup, standings
from driftbandit.live.pgfollow import Follower
from driftbandit.live.pgserver import OpenedServer, first_line, open_tables, sentence
from driftbandit.live.records import CHANGE, LATE, DecisionRow, Event, mark
from driftbandit.live.tables import DECISION, EVENT, Tables, altered, checked_decision

_CHUNK = 5_000
_STUCK = 0.05  # seconds for which events may wait for a transaction before we ask whose it is
_CLOCK = 1.0  # seconds after which a commit asks for the server's time again, if none had to before
_NOTIFY = 0.02  # least seconds between two calls that wake other processes: once awake they look by themselves

_CLOCK_AND_LOCK = (
    f"SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_advisory_xact_lock_shared({LOCK}, 0)"
)
# The rows come out of the primary key in order. "xid" alone in ORDER BY would be the text above it, which no index has;
# without IS TRUE, and without `_INDEX`, the server may gather all rows by two indexes and sort them for the first few.
_AFTER = f"""
    SELECT era, xid::text, seq, {EVENT}, mark FROM driftbandit.event
    WHERE bandit = %s AND (era, xid, seq) > (%s, %s::text::xid8, %s) AND (era < %s OR xid < %s) IS TRUE
    ORDER BY event.era, event.xid, event.seq LIMIT %s"""
_INDEX = "SET enable_bitmapscan = off"
_FINAL = _AFTER.replace("xid < %s", "xid < (SELECT pg_snapshot_xmin(pg_current_snapshot()))")
_BEFORE = _AFTER.replace("xid < %s", "xid < %s::text::xid8")
# In order, though any row would do: else the server, expecting many, reads the table from its beginning to the end.
_MORE = """
    SELECT FROM driftbandit.event WHERE bandit = %s AND (era, xid, seq) > (%s, %s::text::xid8, %s)
    ORDER BY era, xid, seq LIMIT 1"""
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


class PostgreSQL(Tables):
    """A journal in a database."""

    live = True
    SCHEMA, VALUE = "driftbandit.", "%s"

    def __init__(self, url: str, write: bool = True, patience: float = 20.0) -> None:
        self.target, self.patience = url, patience
        self._offset: int | None = None
        self._writer: Any = None
        self._reader: Any = None
        self._reading = threading.RLock()
        self._waiting_since: dict[int, float] = {}  # bandit: since when events wait for a transaction to end
        self._strangers = False  # whether the last look found transactions that are not ours
        self._told = self._set = 0.0
        self._server: OpenedServer | None = None
        self._lease = 0  # our row of `head`
        self._follower: Follower | None = None
        try:
            self._reader = self._connect_reader()
            open_tables(self._reader, write)
            self._server = OpenedServer(self._reader)
            self._set_clock(self._reader)
            # A dump that was restored into a younger server holds transactions of that server's future: what is written
            # from now on belongs to a new era, behind all of them.
            self._era = int(self._reader.execute(_ERA).fetchone()[0] or 0)
        except psycopg.Error as error:
            self.close()
            raise sentence(error) from None
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Any:
        connection = psycopg.connect(self.target, autocommit=True, connect_timeout=5, application_name="driftbandit")
        if self._server is not None:
            try:
                self._server.recognise(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _connect_writer(self) -> Any:
        connection = self._connect()
        self._lease = connection.execute(_LEASE).fetchone()[0]
        return connection

    def _connect_reader(self) -> Any:
        connection = self._connect()
        connection.execute(_INDEX)
        return connection

    # ---- writing -----------------------------------------------------------------------------------------------------

    def create(self, name: str, at: int) -> int:
        """The number of the bandit with this name, which is made if there is none."""
        sql = "INSERT INTO driftbandit.bandit (name, created) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING number"
        self._rows(sql, name, at)
        return int(self._rows("SELECT number FROM driftbandit.bandit WHERE name = %s", name)[0][0])

    def commit(self, asks: list[Ask]) -> tuple[list[Any], list[tuple[int, Event]]]:
        """Write all asks in one transaction. Where the connection is lost, even in the middle of a commit, all of it is
        sent again: every ask has an id, so what was written the first time is found, not doubled."""

        def write() -> list[Any]:
            answers: dict[int, Any] = {}
            left = dict(enumerate(asks))
            while left:
                left = self._transaction(left, answers)
            return [answers[place] for place in range(len(asks))]

        try:
            out = self._patiently(write, "_writer")
        except (StoreError, Damaged) as error:
            self._log_failure(error)
            raise
        if self._failing:
            self._log_success()
        return out, []

    def _transaction(self, asks: dict[int, Ask], answers: dict[int, Any]) -> dict[int, Ask]:
        """One transaction; what is left for another one."""
        assert self._server is not None
        self._server.check()
        if self._writer is None or self._writer.closed:
            self._writer = self._connect_writer()
        writer = self._writer
        batch = CommitGroup(writer, self._era, self._lease, asks)
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
                self._hear_time(clock.fetchone()[0], began)
            if batch.appended and time.monotonic() - self._told > _NOTIFY:
                # Not within the transaction: PostgreSQL lets one that notifies commit at a time.
                self._told = time.monotonic()
                writer.execute("NOTIFY driftbandit")
            batch.finish()
            self._server.note_written(*batch.last)
        except BaseException:
            with contextlib.suppress(Exception):  # a connection in the middle of something is not used again
                writer.close()
            raise
        answers.update(batch.answers)
        return batch.again

    def _patiently(self, call: Callable[[], Any], name: str) -> Any:
        """Do it, on a new connection and again and again if need be, for as long as `patience` says."""
        until, pause = time.monotonic() + self.patience, 0.02
        while True:
            try:
                return call()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                connection = getattr(self, name)
                if connection is not None:
                    with contextlib.suppress(Exception):
                        connection.close()
                    setattr(self, name, None)
                if time.monotonic() + pause > until:
                    raise StoreError(
                        f"PostgreSQL did not do it within {self.patience:g} s ({first_line(error)}); whether it was "
                        "written is not known: send it again with the same id."
                    ) from None
            except psycopg.Error as error:
                raise sentence(error) from None
            time.sleep(pause)
            pause = min(0.5, 2.0 * pause)

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        def read() -> Any:
            if self._server is not None:
                self._server.check()
            if self._reader is None or self._reader.closed:
                self._reader = self._connect_reader()
            return self._reader.execute(sql, values).fetchall()

        with self._reading:
            return list(self._patiently(read, "_reader"))

    def events(self, bandit: int, after: Any = None, limit: int | None = None) -> Iterator[tuple[Any, Event]]:
        """The events after a cursor in the order (transaction, number), as far as that order is final.

        It is final below the oldest transaction under way. That may be somebody else's, and last for hours; so when
        events have waited for a moment, we ask whose it is, and go past those that are not writing here."""
        last, left = after or (0, "0", 0), limit
        while left is None or left > 0:
            size = _CHUNK if left is None else min(left, _CHUNK)
            rows = self._rows(_FINAL, bandit, last[0], str(last[1]), last[2], self._era, size)
            if not rows:
                rows = self._unless_stuck(bandit, last, size)
            for row in rows:
                yield row[:3], _event(bandit, row)
            if rows and self._server is not None:
                last = rows[-1][:3]
                self._server.note_read(bandit, last)
            if len(rows) < size:
                return
            left = None if left is None else left - len(rows)

    def _unless_stuck(self, bandit: int, last: tuple[int, str, int], size: int) -> list[Any]:
        """Nothing is final: is there anything at all, and for how long has it waited?"""
        if not self._rows(_MORE, bandit, last[0], str(last[1]), last[2]):
            self._waiting_since.pop(bandit, None)
            return []
        since = self._waiting_since.setdefault(bandit, time.monotonic())
        if time.monotonic() - since < _STUCK and not self._strangers:
            return []
        rows = self._past_others(bandit, last, size)
        if rows:
            self._waiting_since.pop(bandit, None)
        return rows

    def _past_others(self, bandit: int, last: tuple[int, str, int], size: int) -> list[Any]:
        """The events that no transaction of ours can precede any more.

        Ours take a shared lock before they get an id, and hold it until they have ended. A transaction that was under
        way at our snapshot, was seen without that lock, and is still under way afterwards, is somebody else's: only
        one that has ended may have let go of the lock before its id."""
        with self._reading, contextlib.suppress(psycopg.Error):
            reader = self._reader
            try:
                with reader.pipeline():
                    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    running = reader.execute(_RUNNING).fetchall()
                    others = [str(x) for x, foreign in running if foreign]
                    foreign = {row[0] for row in reader.execute(_STILL, (others,)).fetchall()} if others else set()
                    self._strangers = bool(foreign)
                    horizon = min(x for x, _ in running if x not in foreign)
                    values = (bandit, last[0], str(last[1]), last[2], self._era, str(horizon), size)
                    found = reader.execute(_BEFORE, values)
                    reader.execute("COMMIT")
                return list(found.fetchall())
            except BaseException:
                with contextlib.suppress(Exception):  # a connection in the middle of something is not used again
                    reader.close()
                raise
        return []

    @property
    def pending(self) -> bool:
        """Whether events wait for a transaction to end before their order is final."""
        return bool(self._waiting_since)

    def _stream(self, sql: str, *values: Any) -> Iterator[Any]:
        """Many rows, a few at a time, over a connection of their own."""
        try:
            with self._connect() as connection, connection.transaction(), connection.cursor("driftbandit") as cursor:
                cursor.itersize = _CHUNK
                yield from cursor.execute(sql, values)
        except psycopg.Error as error:
            raise sentence(error) from None

    def decisions(self, bandit: int, by_time: bool = False, checked: bool = True) -> Iterator[DecisionRow]:
        """All decisions in order of `known`, or of time."""
        order = "at, id" if by_time else "known, at, id"
        sql = f"SELECT {DECISION}, mark FROM driftbandit.decision WHERE bandit = %s ORDER BY {order}"
        rows = self._stream(sql, bandit)
        return (checked_decision(bandit, row) if checked else DecisionRow(*row[:-1]) for row in rows)

    def recent(self, bandit: int, limit: int) -> list[DecisionRow]:
        """The last decisions, newest first."""
        return self._recent(bandit, limit, "at DESC, id DESC")

    def standing(self, bandit: int, ids: list[str]) -> dict[str, Standing]:
        """What is known of these decisions."""
        with self._reading:
            found = whole(standings(self._rows, [(bandit, id) for id in ids]))
            return {id: standing for (_, id), standing in found.items()}

    def changes(self, bandit: int) -> list[tuple[Any, Event]]:
        """The changes of configuration, in order."""
        sql = f"SELECT era, xid::text, seq, {EVENT}, mark FROM driftbandit.event WHERE bandit = %s AND kind = {CHANGE}"
        return [
            (row[:3], _event(bandit, row))
            for row in self._rows(sql + " ORDER BY event.era, event.xid, event.seq", bandit)
        ]

    def first_at(self, bandit: int) -> int | None:
        """The time of the first decision."""
        value = self._rows("SELECT min(at) FROM driftbandit.decision WHERE bandit = %s", bandit)[0][0]
        return None if value is None else int(value)

    def tally(
        self, bandit: int, since: int, until: int, width: int, due: tuple[int, int] | None = None
    ) -> list[tuple[Any, ...]]:
        """Counts per stretch of time."""
        out = self._rows(
            "SELECT (at - %s) / %s, slot, how, count(*), 0, 0.0::float8 FROM driftbandit.decision "
            "WHERE bandit = %s AND at >= %s AND at < %s GROUP BY 1, 2, 3", since, width, bandit, since, until,
        )  # fmt: skip
        if due is not None:
            since, until = since - due[0], min(until - due[0], due[1] + 1)
            return out + self._rows(
                "SELECT (d.at - %s) / %s, d.slot, d.how, 0, count(*), sum(o.value) FROM driftbandit.decision d, "
                "LATERAL (SELECT value FROM driftbandit.event o WHERE o.bandit = d.bandit AND o.decision = d.id "
                "AND (o.kind = 3) = false LIMIT 1) o WHERE d.bandit = %s AND d.at >= %s AND d.at < %s GROUP BY 1, 2, 3",
                since, width, bandit, since, until,
            )  # fmt: skip
        return out + self._rows(
            "SELECT (at - %s) / %s, slot, how, 0, count(*), sum(value) FROM driftbandit.event "
            f"WHERE bandit = %s AND at >= %s AND at < %s AND kind < {LATE} GROUP BY 1, 2, 3",
            since, width, bandit, since, until,
        )  # fmt: skip

    def check(self) -> list[str]:
        """Every row against its checksum."""
        wrong = []
        for number in self.bandits().values():
            for table, fields in (("decision", DECISION), ("event", EVENT)):
                for row in self._stream(f"SELECT mark, {fields} FROM driftbandit.{table} WHERE bandit = %s", number):
                    if row[0] != mark(row[1:]):
                        name = row[1] if table == "decision" else row[3]
                        wrong.append(f"{table} {name} of bandit {number} was altered: its checksum differs")
                        break
        return wrong + self._missing() + self._astray()

    def _after(self, cursor: Any) -> tuple[str, list[Any]]:
        return (" AND (era, xid, seq) > (%s, %s::text::xid8, %s)", list(cursor)) if cursor else ("", [])

    # ---- time, following, closing ------------------------------------------------------------------------------------

    def _set_clock(self, connection: Any) -> None:
        began = time.monotonic_ns()
        row = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").fetchone()
        self._hear_time(row[0], began)

    def _hear_time(self, told: int, began: int) -> None:
        """Note how far the server's clock is from ours, which only has to run evenly; a slow answer says little."""
        ended = time.monotonic_ns()
        if self._offset is None or ended - began < 50_000_000:
            self._set = ended / 1e9
            self._offset = int(told) - began // 1000  # it is the first thing asked; the rest is the commit's time

    def now(self) -> int:
        """The server's clock."""
        return time.monotonic_ns() // 1000 + (self._offset or 0)

    def follow(self, bandit: int, read: Callable[[], int]) -> None:
        """Have `read` called soon after any process has written for this bandit."""
        if self._follower is None:
            self._follower = Follower(self)
        self._follower.add(bandit, read)

    def unfollow(self, bandit: int, read: Callable[[], int]) -> None:
        """End that."""
        if self._follower is not None:
            self._follower.remove(bandit, read)

    def forget(self) -> None:
        """In a forked child: leave the connections to the parent."""
        self._reader = self._writer = self._follower = None
        self._reading = threading.RLock()

    def close(self) -> None:
        """Let go of the database."""
        if self._follower is not None:
            self._follower.close()
        for connection in (self._reader, self._writer):
            if connection is not None:
                with contextlib.suppress(psycopg.Error):
                    connection.close()


def _event(bandit: int, row: tuple[Any, ...], new: Any = tuple.__new__) -> Event:
    """The event of a row that begins with its cursor and ends with its checksum; quicker than `Event(...)`."""
    fields = row[3:-1]
    if mark(fields) != row[-1]:
        raise altered("event", fields[2], bandit)
    return new(Event, (0, *fields))  # type: ignore[no-any-return]
