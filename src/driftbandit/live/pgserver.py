"""The tables of a journal in PostgreSQL, and whether a new connection leads to the database that has them.

A server that was restored under the same address lacks what was acknowledged since. A dump goes into tables with other
numbers, mostly in a server with another identifier. A copy of the data directory has the same numbers, so the last rows
that this process has read and written must be there too. That also covers a standby that took over: it is accepted if
it has everything this process knows of."""

import os
from typing import Any

import psycopg

from driftbandit.live.errors import Damaged, StoreError, Unknown
from driftbandit.live.pgcommit import LOCK
from driftbandit.live.records import LATE
from driftbandit.live.tables import POSTGRES, VERSION, check_version

Cursor = tuple[int, str, int]  # of an event: era, transaction, number

_DATABASE = """
    SELECT (SELECT oid::text FROM pg_database WHERE datname = current_database()),
           to_regclass('driftbandit.event')::oid::text, (SELECT max(epoch) FROM driftbandit.version)"""
_SERVER = "SELECT system_identifier::text FROM pg_control_system()"
_EVENTS = """
    SELECT count(*) FROM unnest(%s::bigint[], %s::int[], %s::text[], %s::bigint[]) AS w (bandit, era, xid, seq)
    JOIN driftbandit.event e ON e.bandit = w.bandit AND e.era = w.era AND e.xid = w.xid::xid8 AND e.seq = w.seq"""
_DECISION = "SELECT count(*) FROM driftbandit.decision WHERE bandit = %s AND id = %s"
_EVENT = f"SELECT count(*) FROM driftbandit.event WHERE bandit = %s AND decision = %s AND (kind = {LATE}) = %s"


class Replaced(StoreError):
    """The database is another one than that which was opened."""


class OpenedServer:
    """What this process knows of the database it has opened."""

    def __init__(self, connection: Any) -> None:
        sql = "SELECT has_function_privilege('pg_control_system()', 'execute')"
        self._may_ask = bool(connection.execute(sql).fetchone()[0])
        self._identity = self._identify(connection)
        self._read: dict[int, Cursor] = {}  # bandit: the last event that was read
        self._decided: tuple[int, str] | None = None
        self._appended: tuple[int, str, bool] | None = None
        self._refusal = ""

    def _identify(self, connection: Any) -> tuple[Any, ...]:
        server = connection.execute(_SERVER).fetchone() if self._may_ask else ()
        return (*server, *connection.execute(_DATABASE).fetchone())

    def note_read(self, bandit: int, cursor: Cursor) -> None:
        """The last event that was read."""
        self._read[bandit] = cursor

    def note_written(self, decided: tuple[int, str] | None, appended: tuple[int, str, bool] | None) -> None:
        """The last decision and the last event that were acknowledged."""
        self._decided, self._appended = decided or self._decided, appended or self._appended

    def check(self) -> None:
        """Refuse everything once the database was seen to be another."""
        if self._refusal:
            raise Replaced(self._refusal)

    def recognise(self, connection: Any) -> None:
        """Refuse a connection to another database."""
        self.check()
        table = connection.execute("SELECT to_regclass('driftbandit.version')").fetchone()[0]
        if table is None or self._identify(connection) != self._identity:
            self._refuse("it is another database than the one that was opened")
        if not self._has_all(connection):
            self._refuse("it lacks records that this process has read or written")

    def _has_all(self, connection: Any) -> bool:
        read = [(bandit, *cursor) for bandit, cursor in list(self._read.items())]
        for sql, values, count in (
            (_EVENTS, [list(column) for column in zip(*read, strict=True)], len(read)),
            (_DECISION, self._decided, 1),
            (_EVENT, self._appended, 1),
        ):
            if values and connection.execute(sql, values).fetchone()[0] != count:
                return False
        return True

    def _refuse(self, why: str) -> None:
        self._refusal = (
            f"PostgreSQL was restored or replaced under this address: {why}. Nothing of this call was written to it; "
            "close this bandit, make sure that this is the database you want, and open it again."
        )
        raise Replaced(self._refusal)


def open_tables(connection: Any, write: bool) -> None:
    """Make the tables where there are none and this process may write, and refuse those of another version."""
    schema, table = connection.execute(
        "SELECT to_regnamespace('driftbandit') IS NOT NULL, to_regclass('driftbandit.version') IS NOT NULL"
    ).fetchone()
    if schema and not table:
        raise Damaged("The schema driftbandit of this database belongs to another program.")
    if not write and not table:
        raise Unknown("There is no journal of driftbandit in this database.")
    if write and not table:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, 1)", (LOCK,))
            # By a query, not by to_regclass, which may answer from before we waited for the lock.
            made = "SELECT count(*) FROM pg_tables WHERE schemaname = 'driftbandit' AND tablename = 'version'"
            if connection.execute(made).fetchone()[0] == 0:
                connection.execute("CREATE SCHEMA driftbandit")
                connection.execute("CREATE TABLE driftbandit.version (version int PRIMARY KEY, epoch text)")
                connection.execute("INSERT INTO driftbandit.version VALUES (%s, %s)", (VERSION, os.urandom(16).hex()))
                connection.execute(POSTGRES)
    check_version(connection.execute("SELECT max(version) FROM driftbandit.version").fetchone()[0] or 0, "The database")


def first_line(error: Exception) -> str:
    """What PostgreSQL says first."""
    return (str(error).strip().splitlines() or ["no answer"])[0].rstrip(".")


def sentence(error: Exception) -> Exception:
    """PostgreSQL's errors as one sentence each."""
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return StoreError(f"PostgreSQL does not allow it: {first_line(error)}. Give this user the right to do so.")
    if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
        return Damaged(f"The database is not a whole journal: {first_line(error)}.")
    return StoreError(f"PostgreSQL: {first_line(error)}.")
