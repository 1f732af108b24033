"""How a group of asks is written to PostgreSQL, and the database as one process among many sees it: its tables, whether
a connection still leads to the database that was opened, and what other processes have written.

A server that was restored under the same address lacks the later acknowledged rows. A dump goes into tables with other
numbers, mostly in a server with another identifier. A copy of the data directory has the same numbers, so the last rows
that this process has read and written must be there too. That also covers a standby that took over: it is accepted if
it has everything this process has read or written."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import psycopg

from driftbandit.bandit.asks import AddReward, Ask, NamedDecision, Settle, Settled, Within
from driftbandit.bandit.commit import STORED_LATE, Check, Commit
from driftbandit.bandit.records import LATE, DecisionRow, Event, mark
from driftbandit.bandit.tables import (
    DECISION,
    INSERT_DECISIONS,
    INSERT_EVENTS,
    INSERT_NAMED,
    INSERT_REWARDS,
    LOCK,
    POSTGRES,
    POSTGRES_TABLES,
    VERSION,
    check_version,
    columns,
)  # fmt: skip
from driftbandit.errors import DamagedJournal, JournalReplaced, Moved, NotFound

_SLACK = 5_000_000  # microseconds by which a decision may usually reach the store after its own time
_UNSETTLED = f"""
    SELECT {DECISION}, mark FROM @decision d WHERE bandit = ? AND at > ? AND at <= ?
    AND NOT EXISTS (SELECT FROM @event o WHERE o.bandit = d.bandit AND o.decision = d.id AND (o.kind = 3) = false)
    ORDER BY at, id LIMIT ?"""
_ANY = "SELECT EXISTS (SELECT FROM @decision WHERE bandit = ? AND at > ? AND at <= ?)"
Cursor = tuple[int, str, int]  # of an event: era, transaction, number

_POLL = 0.25  # seconds between looks without a notification, which a process that was killed has not sent
_SLICE = 500  # bandits in such a look: 10,000 open ones take 5 s
_SOON, _LATE = 0.003, 0.025  # least and most seconds until the next look while events keep coming
_SHARE = 2.0  # of the time a look takes: how long to leave the processor to others after it
_CHUNK = 1000  # events of one bandit in one look
_DATABASE = """
    SELECT (SELECT oid::text FROM pg_database WHERE datname = current_database()),
           to_regclass('driftbandit.event')::oid::text, (SELECT max(epoch) FROM driftbandit.version)"""
_SERVER = "SELECT system_identifier::text FROM pg_control_system()"
_EVENTS = """
    SELECT count(*) FROM unnest(%s::bigint[], %s::int[], %s::text[], %s::bigint[]) AS w (bandit, era, xid, seq)
    JOIN driftbandit.event e ON e.bandit = w.bandit AND e.era = w.era AND e.xid = w.xid::xid8 AND e.seq = w.seq"""
_DECISION = "SELECT count(*) FROM driftbandit.decision WHERE bandit = %s AND id = %s"
_EVENT = f"SELECT count(*) FROM driftbandit.event WHERE bandit = %s AND decision = %s AND (kind = {LATE}) = %s"
_DROPPED = """SELECT EXISTS (SELECT FROM driftbandit.base WHERE bandit = %(bandit)s AND at > %(at)s) OR EXISTS
    (SELECT FROM driftbandit.event WHERE bandit = %(bandit)s AND kind = 4 AND body ~ '"erased": [1-9]')"""


class PostgresCommit(Commit):
    """Everything is sent before anything is waited for, where that is possible: a wait costs a round trip to the
    server, and under load that is most of the time."""

    dialect, alone, trusts = POSTGRES, False, True

    def __init__(self, connection: Any, era: int, writer: int, asks: dict[int, Ask]) -> None:
        super().__init__(connection, asks)
        self._era, self._writer = era, writer
        # A decision and an event that the journal has after the commit, until they are dropped, each with its time.
        self.decided: tuple[int, str, int] | None = None
        self.appended: tuple[int, str, bool, int] | None = None
        self.changed: set[int] = set()  # bandits that have new events
        self._checks: list[Callable[[], None]] = []
        self._short = False  # whether fewer rows were written than requested

    @property
    def one_statement(self) -> bool:
        """Whether this is a single statement, which needs no transaction around it: only decisions, or only rewards
        whose decisions are all known."""
        asks = self._asks.values()
        return all(isinstance(ask, DecisionRow) for ask in asks) or all(
            type(ask) is AddReward and ask.row is not None for ask in asks
        )

    def finish(self) -> None:
        """After the commit: read the server's answers."""
        for check in self._checks:
            check()
        if self._short or any(isinstance(answer, NotFound) for answer in self.answers.values()):
            self._refuse_moved()

    def _refuse_moved(self) -> None:
        """Nothing was written of bandits that were moved to another database."""
        bandits = list({getattr(ask, "bandit", -1) for ask in self._asks.values()})
        sql = "SELECT bandit, name, target FROM @moved LEFT JOIN @bandit ON number = bandit WHERE bandit = ANY(?)"
        moved = {row[0]: row[1:] for row in self._rows(sql, bandits)}
        if not moved:
            return
        self.decided = self.appended = None
        for place, ask in self._asks.items():
            found = moved.get(getattr(ask, "bandit", -1))
            if found is not None and not (isinstance(ask, Within) and ask.method in ("hand_over", "purge")):
                self.again.pop(place, None)
                self.answers[place] = Settled(0, True, None) if isinstance(ask, Settle) else Moved(*found)

    def _lock_rows(self) -> None:
        self._run("SET LOCAL lock_timeout = '3s'")  # others wait behind us; we try again
        self._run("LOCK TABLE @decision, @event IN SHARE MODE")

    def erase(self, bandit: int, id: str, hidden: str) -> bool:
        self._run("LOCK TABLE @decision, @event IN ROW EXCLUSIVE MODE")
        moved = bool(self._rows("SELECT 1 FROM @moved WHERE bandit = ?", bandit))
        self._short = self._short or moved
        return not moved and super().erase(bandit, id, hidden)

    def _exclude_others(self) -> None:
        """Before the transaction has an id, so that those of a bandit follow each other in the order of events."""
        bandits = set()
        for ask in self._asks.values():
            match ask:
                case Settle() | Within(method="erase"):
                    bandits.add(ask.bandit)
                case AddReward() if ask.config.adds:
                    bandits.add(ask.bandit)
        for bandit in sorted(bandits):
            self._run(f"SELECT pg_advisory_xact_lock({LOCK + 2}, ?)", bandit)

    def _decide(self, rows: dict[int, DecisionRow]) -> None:
        # In order of ids, so that two processes with the same ids wait for each other and do not deadlock.
        ordered = sorted(rows.values(), key=lambda row: (row.bandit, row.id))
        arrays = columns((*row, mark(row), row.hidden if type(row) is NamedDecision else None) for row in ordered)
        named = any(type(row) is NamedDecision for row in ordered)
        cursor = self._connection.execute(
            INSERT_NAMED if named else INSERT_DECISIONS, [*(arrays if named else arrays[:-1]), self._writer]
        )
        self.decided = ordered[0].bandit, ordered[0].id, ordered[0].at

        def check() -> None:
            if cursor.rowcount == len(rows):
                self.answers.update(rows)
            else:
                self._short = True
                self._answer_decisions(rows)

        self._checks.append(check)

    def _append(self, events: list[tuple[int, Event]], check: Check, parts: bool | None = None) -> None:
        if not events:
            check(set())
            return
        arrays = columns(
            (bandit, *event[1:], mark(event[1:]), None if parts else f"{event.decision}+") for bandit, event in events
        )
        sql, arrays = (INSERT_EVENTS, arrays[:-1]) if parts is None else (INSERT_REWARDS, arrays)
        cursor = self._connection.execute(sql, [self._era, *arrays, self._writer])

        def compare() -> None:
            every = {(bandit, event.decision, event.kind) for bandit, event in events}
            self._short = self._short or cursor.rowcount < len(events)
            check(set() if cursor.rowcount == len(events) else every - set(cursor.fetchall()))

        self._checks.append(compare)
        self.changed.update(bandit for bandit, _ in events)
        bandit, event = events[-1]
        self.appended = bandit, event.decision, event.kind == LATE, event.at

    def _alone_with_base(self, bandit: int) -> list[Any]:
        return self._rows("SELECT n, at FROM @base WHERE bandit = ? FOR UPDATE", bandit)

    def move_base(self, bandit: int, *given: Any) -> bool:
        """While no other transaction of ours writes events: one might be a change that learns everything again."""
        self._run(f"SELECT pg_advisory_xact_lock({LOCK}, 0)")
        return super().move_base(bandit, *given)

    def _old_decisions(self, bandit: int, limit: int, n: int, at: int) -> tuple[list[Any], str, list[Any]]:
        """By time as well, for which there is an index."""
        rows = self._rows(
            "SELECT id, at, slot, how, mark FROM @decision WHERE bandit = ? AND at < ? AND known < ? "
            "ORDER BY at, id LIMIT ?", bandit, at + STORED_LATE, n, limit,
        )  # fmt: skip
        return [row[1:] for row in rows], "bandit = ? AND id = ANY(?)", [bandit, [row[0] for row in rows]]

    def _unsettled(self, ask: Settle) -> tuple[list[Any], bool, int | None]:
        low, until = ask.settled - (STORED_LATE if ask.deep else _SLACK), ask.until
        rows = self._rows(_UNSETTLED, ask.bandit, low, until, ask.limit)
        done = len(rows) < ask.limit
        if not done:  # up to here, with all of the same moment
            until = rows[-1][1]
            rows = self._rows(_UNSETTLED, ask.bandit, low, until, None)
        passed = self._rows(_ANY, ask.bandit, ask.settled, until)[0][0]
        return rows, done, until if passed else None


class OpenedServer:
    """The database that this process has opened."""

    def __init__(self, connection: Any) -> None:
        sql = "SELECT has_function_privilege('pg_control_system()', 'execute')"
        self._may_ask = bool(connection.execute(sql).fetchone()[0])
        self._identity = self._identify(connection)
        self.read: dict[int, Cursor] = {}  # bandit: the last event that was read
        self._decided: tuple[int, str, int] | None = None
        self._appended: tuple[int, str, bool, int] | None = None
        self._refusal = ""

    def _identify(self, connection: Any) -> tuple[Any, ...]:
        server = connection.execute(_SERVER).fetchone() if self._may_ask else ()
        return (*server, *connection.execute(_DATABASE).fetchone())

    def note_written(self, decided: tuple[int, str, int] | None, appended: tuple[int, str, bool, int] | None) -> None:
        self._decided, self._appended = decided or self._decided, appended or self._appended

    def check(self) -> None:
        """Refuse everything once the database was seen to be another."""
        if self._refusal:
            raise JournalReplaced(self._refusal)

    def recognise(self, connection: Any) -> None:
        """Refuse a connection to another database."""
        self.check()
        table = connection.execute("SELECT to_regclass('driftbandit.version')").fetchone()[0]
        if table is None or self._identify(connection) != self._identity:
            self._refuse("it is another database than the one that was opened")
        if not self._has_all(connection):
            self._refuse("it lacks records that this process has read or written")

    def _has_all(self, connection: Any) -> bool:
        read = [(bandit, *cursor) for bandit, cursor in list(self.read.items())]
        columns = [list(column) for column in zip(*read, strict=True)]
        if columns and connection.execute(_EVENTS, columns).fetchone()[0] != len(read):
            return False
        for sql, written in ((_DECISION, self._decided), (_EVENT, self._appended)):
            if written is not None and connection.execute(sql, written[:-1]).fetchone()[0] == 0:
                gone = connection.execute(_DROPPED, {"bandit": written[0], "at": written[-1]})
                if not gone.fetchone()[0]:  # neither dropped, nor perhaps under a hash
                    return False
        return True

    def _refuse(self, why: str) -> None:
        self._refusal = (
            f"PostgreSQL was restored or replaced under this address: {why}. Nothing of this call was written to it; "
            "close this bandit, make sure that this is the right database, and open it again."
        )
        raise JournalReplaced(self._refusal)


def open_tables(connection: Any, write: bool) -> None:
    """Make the tables where there are none and this process may write, and refuse those of another version."""
    schema, table = connection.execute(
        "SELECT to_regnamespace('driftbandit') IS NOT NULL, to_regclass('driftbandit.version') IS NOT NULL"
    ).fetchone()
    if schema and not table:
        raise DamagedJournal("The schema driftbandit of this database belongs to another program.")
    if not write and not table:
        raise NotFound("There is no journal of driftbandit in this database.")
    if write and not table:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, 1)", (LOCK,))
            # By a query, not by to_regclass, which may answer from before we waited for the lock.
            made = "SELECT count(*) FROM pg_tables WHERE schemaname = 'driftbandit' AND tablename = 'version'"
            if connection.execute(made).fetchone()[0] == 0:
                connection.execute("CREATE SCHEMA driftbandit")
                connection.execute("CREATE TABLE driftbandit.version (version int PRIMARY KEY, epoch text)")
                connection.execute("INSERT INTO driftbandit.version VALUES (%s, %s)", (VERSION, os.urandom(16).hex()))
                connection.execute(POSTGRES_TABLES)
    check_version(connection.execute("SELECT max(version) FROM driftbandit.version").fetchone()[0] or 0, "The database")


class Follower:
    """A thread that has the bandits of this process take what any process has written, by one query for all of them
    that have changed."""

    def __init__(self, journal: Any) -> None:
        self._journal = journal
        self._replicas: dict[int, list[Any]] = {}  # by the number of their bandit
        self._lock = threading.Lock()
        self._unlooked: list[int] = []  # bandits that the looks without a notification have still to come to
        self.heard = time.monotonic()  # when everything that was announced had been read
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandit-follower", daemon=True)
        self._thread.start()

    def add(self, replica: Any) -> None:
        with self._lock:
            self._replicas.setdefault(replica.number, []).append(replica)

    def remove(self, replica: Any) -> None:
        with self._lock:
            left = [other for other in self._replicas.pop(replica.number, []) if other is not replica]
            if left:
                self._replicas[replica.number] = left

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        """Look at the bandits that notifications name, and at those whose events wait for a transaction. The more a
        look takes, the longer the pause after it, during which further notifications gather. But after one that took
        very long there is much to catch up with, and the next comes at once."""
        listener: Any = None
        polled = 0.0
        changed: set[int] = set()
        while not self._stop.is_set():
            try:
                if listener is None or listener.closed:
                    listener = self._journal._connect(session=True)
                    listener.execute("LISTEN driftbandit")
                    changed = set(self._replicas)  # announcements meanwhile were missed
                began = time.monotonic()
                if began - polled > _POLL:
                    polled = began
                    self._unlooked = self._unlooked or list(self._replicas)
                    some, self._unlooked = self._unlooked[:_SLICE], self._unlooked[_SLICE:]
                    changed |= set(some)
                changed = self._read(changed)
                self._journal.announce(listener)
                if not changed:
                    self.heard = began
                changed |= set(self._journal.waiting_since)
                took = time.monotonic() - began
                pause = _SOON if took > _LATE else min(max(_SOON, _SHARE * took), _LATE)
                if changed:
                    self._stop.wait(pause)
                patience = 0.0 if changed else self._journal.announced_lately or _POLL
                for notice in listener.notifies(timeout=patience, stop_after=1):
                    changed |= _numbers(notice.payload)
                    self._stop.wait(pause)
                for notice in listener.notifies(timeout=0.0):  # one look serves them all
                    changed |= _numbers(notice.payload)
            except Exception:  # the database is away, which the journal's own calls report
                with contextlib.suppress(psycopg.Error, AttributeError):
                    listener.close()
                listener = None
                self._stop.wait(0.2)
        with contextlib.suppress(psycopg.Error, AttributeError):
            listener.close()

    def _read(self, changed: set[int]) -> set[int]:
        """Read new events of these bandits, and return those that have more."""
        more: set[int] = set()
        with self._lock:  # a bandit may be open several times in one process: one turn for each
            replicas = [list(self._replicas[number]) for number in changed if number in self._replicas]
        for turn in zip_longest(*replicas):
            cursors = {
                replica.number: replica.cursor for replica in turn if replica is not None and not replica.stopped
            }
            news = self._journal.news(cursors, _CHUNK) if cursors else {}
            for replica in turn:
                if replica is not None and replica.number in news:
                    found = news[replica.number]
                    replica.take(cursors[replica.number], found)
                    if isinstance(found, list) and len(found) == _CHUNK:
                        more.add(replica.number)
        return more


def _numbers(payload: str) -> set[int]:
    """The bandits that a notification names."""
    return {int(word) for word in payload.split() if word.isdigit()}
