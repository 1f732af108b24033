"""A journal: its tables in SQLite and in PostgreSQL, what every store answers, and what both answer with the same SQL.

Every row has a checksum, `mark`. `head` has the number of rows of a bandit and the sum of their checksums, written in
the transaction that wrote the rows. So a missing row is noticed as well as an altered one. Each writer of a
PostgreSQL journal has its own row in `head`, so that writers do not wait for each other. A snapshot has the sum of the
checksums of the events before it, so that only the events after it need to be added up.

Where rows were dropped (`retention`), `base` records after which event the journal begins, and how many rows and which
sum of checksums are gone. The snapshot of that event is no cache: it is where every fold begins. Changes are never
dropped.

`SQLite` (in `sqlite`) and `PostgreSQL` (in `postgres`) pass one test suite, `tests/live/test_journal.py`."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from driftbandit.bandit.asks import Ask, DecisionState, Found, Place
from driftbandit.bandit.counting import DAY, Counting
from driftbandit.bandit.ids import Naming
from driftbandit.bandit.parts import OWNER, read_parts
from driftbandit.bandit.records import (
    PART,
    DecisionRow,
    Event,
    describe_altered,
    intact,
    log,
    mark,
    read_decision,
    restore_fields,
)  # fmt: skip
from driftbandit.errors import DamagedJournal

VERSION = 14  # a journal with tables of another version is refused
DECISION = ", ".join(DecisionRow._fields)
EVENT = ", ".join(Event._fields[1:])

DECISION_TYPES = dict(
    zip(
        DecisionRow._fields,
        ("text", "bigint", "int", "smallint", "bigint", "text", "float8", "text", "bigint"),
        strict=True,
    ),
    mark="bigint",
)
EVENT_TYPES = dict(
    zip(
        Event._fields[1:],
        ("smallint", "bigint", "text", "int", "smallint", "float8", "bigint", "text", "float8"),
        strict=True,
    ),
    mark="bigint",
)
_OPTIONAL = {"available", "body", "context", "probability"}

DROPPED = "Events that this process had not read yet were dropped (retention); open the bandit again."


class Dialect(NamedTuple):
    """How the two stores differ in SQL that both of them answer. Shared SQL has ? for a value and @ before the name of
    a table. The cursor is the place of an event in the order in which it is read."""

    schema: str
    value: str
    cursor: str
    position: str  # a cursor's values
    columns: str  # a cursor as it is read
    start: tuple[Any, ...]  # the cursor before the first event

    def translate(self, sql: str) -> str:
        return sql.replace("?", self.value).replace("@", self.schema)

    def cursor_values(self, cursor: Any) -> tuple[Any, ...]:
        if cursor is None:
            return self.start
        return tuple(cursor) if isinstance(cursor, list | tuple) else (cursor,)


SQLITE = Dialect("", "?", "n", "?", "n", (0,))
POSTGRES = Dialect("driftbandit.", "%s", "(era, xid, seq)", "(?, ?::text::xid8, ?)", "era, xid::text, seq", (0, "0", 0))


def _columns(types: dict[str, str]) -> str:
    """Columns in the words of PostgreSQL, which SQLite understands too."""
    return ", ".join(f"{name} {kind}{'' if name in _OPTIONAL else ' NOT NULL'}" for name, kind in types.items())


_SHARED = """
    CREATE UNIQUE INDEX event_decision ON @event (bandit, decision, (kind = 3));
    CREATE TABLE @snapshot (
        bandit bigint NOT NULL, n bigint NOT NULL, at bigint NOT NULL, body text NOT NULL, marks bigint NOT NULL,
        mark bigint NOT NULL, PRIMARY KEY (bandit, n));
    CREATE TABLE @chart (
        bandit bigint NOT NULL, width bigint NOT NULL, start bigint NOT NULL, body text NOT NULL,
        PRIMARY KEY (bandit, width, start));
    CREATE TABLE @meta (name text PRIMARY KEY, text text NOT NULL);
"""
_HEAD = """events bigint NOT NULL, event_marks bigint NOT NULL, decisions bigint NOT NULL,
        decision_marks bigint NOT NULL"""
# A bandit in `moved` does not decide here: it was moved to a target, or has yet to come from an origin.
# What was added after the version was given its number: each is made where it is missing.
_ADDED = f"""
    CREATE TABLE IF NOT EXISTS @base (
        bandit bigint PRIMARY KEY, at bigint NOT NULL, {_HEAD}, n bigint NOT NULL%s);
    CREATE TABLE IF NOT EXISTS @daily (
        bandit bigint NOT NULL, start bigint NOT NULL, slot int NOT NULL, how smallint NOT NULL, kind smallint NOT NULL,
        n bigint NOT NULL, total float8 NOT NULL, squares float8 NOT NULL,
        PRIMARY KEY (bandit, start, slot, how, kind));
    CREATE TABLE IF NOT EXISTS @moved (bandit bigint PRIMARY KEY, target text, origin text);
    CREATE TABLE IF NOT EXISTS @label (
        bandit bigint, label text, value text, name text NOT NULL, PRIMARY KEY (bandit, label));
    CREATE INDEX IF NOT EXISTS label_value ON @label (label, value, name);
"""
_INDEX = "CREATE INDEX IF NOT EXISTS event_part ON @event (bandit, decided) WHERE kind IN (3, 6)"
SQLITE_ADDED, SQLITE_INDEX = SQLITE.translate(_ADDED % ""), SQLITE.translate(_INDEX)
POSTGRES_ADDED = POSTGRES.translate(_ADDED % ", era int NOT NULL, xid xid8 NOT NULL, seq bigint NOT NULL" + _INDEX)
SQLITE_TABLES = f"""
    CREATE TABLE bandit (number INTEGER PRIMARY KEY, name text NOT NULL UNIQUE, created bigint NOT NULL);
    CREATE TABLE decision (
        seq bigint NOT NULL, {_columns(DECISION_TYPES)}, PRIMARY KEY (bandit, seq)) WITHOUT ROWID;
    CREATE UNIQUE INDEX decision_id ON decision (bandit, id);
    CREATE TABLE event (
        bandit bigint NOT NULL, n bigint NOT NULL, {_columns(EVENT_TYPES)}, PRIMARY KEY (bandit, n)) WITHOUT ROWID;
    CREATE TABLE head (bandit INTEGER PRIMARY KEY, {_HEAD});
""" + "".join(
    f"""
    CREATE TRIGGER {table}_counted AFTER INSERT ON {table} BEGIN
        UPDATE head SET {table}s = NEW.{number}, {table}_marks = {table}_marks + NEW.mark
        WHERE bandit = NEW.bandit AND {table}s = NEW.{number} - 1;
        SELECT RAISE(ABORT, 'another program wrote') WHERE changes() = 0;
    END;"""
    for table, number in (("decision", "seq"), ("event", "n"))
) + SQLITE.translate(_SHARED)  # fmt: skip

# The server's own ANALYZE is a transaction that readers wait for. With 100 values per column to find it samples 30,000
# rows, pauses in between, and takes seconds; with 1 it samples 300. All our queries go by an index.
POSTGRES_TABLES = POSTGRES.translate(f"""
    CREATE TABLE @bandit (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, created bigint NOT NULL);
    CREATE TABLE @decision ({_columns(DECISION_TYPES)}, PRIMARY KEY (bandit, id));
    CREATE INDEX decision_at ON @decision (bandit, at, id);
    CREATE TABLE @event (
        bandit bigint NOT NULL, era int NOT NULL, xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
        seq bigint GENERATED ALWAYS AS IDENTITY, {_columns(EVENT_TYPES)}, PRIMARY KEY (bandit, era, xid, seq));
    CREATE TABLE @head (
        bandit bigint NOT NULL, writer int NOT NULL, {_HEAD}, PRIMARY KEY (bandit, writer)) WITH (fillfactor = 50);
    {_SHARED}""") + "".join(
    f"ALTER TABLE driftbandit.{table} {', '.join(f'ALTER {name} SET STATISTICS 1' for name in names)};"
    for table, names in (
        ("decision", DECISION_TYPES),
        ("event", ("bandit", "era", "xid", "seq", *EVENT_TYPES)),
    )
) + "ALTER INDEX driftbandit.event_decision ALTER COLUMN 3 SET STATISTICS 1;"  # fmt: skip


def sum_marks(rows: Callable[..., list[Any]], dialect: Dialect, bandit: int, n: int, cursor: Any) -> int | None:
    """The sum of the checksums of the first n events, the last of which has this cursor, from that of the last snapshot
    on; None where rows are missing."""
    last, marks, after = 0, 0, None
    sql = "SELECT n, marks, body FROM @snapshot WHERE bandit = ? AND n < ? ORDER BY n DESC LIMIT 1"
    for found, sums, body in rows(sql, bandit, n):
        with contextlib.suppress(ValueError, KeyError, TypeError):  # an altered one
            last, marks, after = found, sums, json.loads(body)["cursor"]
    count, added = rows(
        "SELECT count(*), COALESCE(sum(mark), 0) FROM @event WHERE bandit = ? "
        f"AND {dialect.cursor} > {dialect.position} AND {dialect.cursor} <= {dialect.position}",
        bandit, *dialect.cursor_values(after), *dialect.cursor_values(cursor),
    )[0]  # fmt: skip
    return int(marks) + int(added) if last + count == n else None


def check_version(version: int, target: str) -> None:
    """Refuse tables of another version."""
    if version != VERSION:
        raise DamagedJournal(
            f"{target} has tables of version {version}, and this driftbandit reads version {VERSION} only; open it "
            "with the driftbandit that wrote it."
        )


class Base(NamedTuple):
    """Where a journal begins whose older rows were dropped."""

    n: int  # events before it
    at: int  # they came before this time, a midnight
    cursor: Any  # of the last of them


class Journal(Counting, Naming):
    """A store of decisions and events: what SQLite and PostgreSQL share. `commit` is called by one thread at a time;
    all threads may read."""

    target: str  # the path or URL it was opened by
    live: bool  # whether other processes may write as well
    dialect: Dialect
    event_fields: str  # the fields of an event that its checksum covers
    chunk = 5_000  # rows read at a time, so that memory stays small

    # ---- what a store adds -------------------------------------------------------------------------------------------

    def create(self, name: str, at: int) -> int:
        """The number of the bandit with this name, which is made if it does not exist."""
        raise NotImplementedError

    def commit(self, asks: list[Ask]) -> tuple[list[Any], list[tuple[int, Event]]]:
        """Write all asks in one transaction. Returns for each its answer or its error; and, where one process writes,
        the events written, by bandit, in order."""
        raise NotImplementedError

    def now(self) -> int:
        """The store's time in microseconds."""
        raise NotImplementedError

    def forget(self) -> None:
        """In a forked child: leave the connections to the parent."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections."""
        raise NotImplementedError

    def _next_events(self, bandit: int, after: Any, limit: int) -> list[tuple[Any, Event]]:
        raise NotImplementedError

    def _states(self, places: list[Place]) -> Found:
        raise NotImplementedError

    def _scan(self, table: str, bandit: int, until: int | None = None, known: int = 0) -> Iterator[tuple[Any, ...]]:
        """All rows of a table with their checksums, a few at a time: decisions in order of `known`; at least those
        before a time that knew so many events."""
        raise NotImplementedError

    def claim(self, bandit: int) -> contextlib.AbstractContextManager[bool]:
        """Whether no other process drops rows of this bandit meanwhile."""
        raise NotImplementedError

    # ---- reading -----------------------------------------------------------------------------------------------------

    def events(self, bandit: int, after: Any = None, limit: int | None = None) -> Iterator[tuple[Any, Event]]:
        """The events after a cursor in the order all readers agree on, each with its cursor; None is where the journal
        begins."""
        if after is None and (base := self.base(bandit)) is not None:
            after = base.cursor
        while limit is None or limit > 0:
            size = self.chunk if limit is None else min(limit, self.chunk)
            found = self._next_events(bandit, after, size)
            yield from found
            if len(found) < size:
                return
            after = found[-1][0]
            limit = None if limit is None else limit - size

    def base(self, bandit: int) -> Base | None:
        """Where the journal of a bandit begins, if older rows were dropped."""
        for n, at, *cursor in self._rows(f"SELECT n, at, {self.dialect.columns} FROM @base WHERE bandit = ?", bandit):
            return Base(n, at, tuple(cursor) if len(cursor) > 1 else cursor[0])
        return None

    def _check_dropped(self, bandit: int, n: int) -> None:
        """Say so if event n is gone because it was dropped."""
        base = self.base(bandit)
        if base is not None and n <= base.n:
            raise DamagedJournal(DROPPED)

    def decisions(self, bandit: int, until: int | None = None, known: int = 0) -> Iterator[DecisionRow]:
        """All decisions in order of `known`, also those that were altered; at least those before a time that knew so
        many events."""
        return (DecisionRow(*restore_fields(row[:-1])) for row in self._scan("decision", bandit, until, known))

    def recent(self, bandit: int, limit: int) -> list[DecisionRow]:
        """The last decisions, newest first."""
        sql = f"SELECT {DECISION}, mark FROM @decision WHERE bandit = ? ORDER BY {self.newest} LIMIT ?"
        return [read_decision(row) for row in self._rows(sql, bandit, limit)]

    def standing(self, bandit: int, ids: list[str]) -> dict[str, DecisionState]:
        """These decisions with their outcomes; unknown ids are left out, altered decisions refused."""
        out = {}
        for (_, id), found in read_parts(self._rows, self._states([(bandit, id) for id in ids])).items():
            if isinstance(found, DamagedJournal):
                raise found
            out[id] = found
        return out

    def changes(self, bandit: int) -> list[tuple[Any, Event]]:
        """The changes of configuration, in order, each with its cursor."""
        raise NotImplementedError

    def snapshots(self, bandit: int) -> list[tuple[int, str]]:
        """The snapshots, newest first: number of events, body. One that was altered is left out: older ones lead to the
        same state."""
        out = []
        for n, at, body, marks, found in self._snapshot_rows(bandit):
            if mark((n, at, body, marks)) == found:
                out.append((n, body))
            else:
                log.warning("The snapshot after %d events of bandit %d was altered and is not used.", n, bandit)
        return out

    def _snapshot_rows(self, bandit: int) -> list[Any]:
        return self._rows("SELECT n, at, body, marks, mark FROM @snapshot WHERE bandit = ? ORDER BY n DESC", bandit)

    def sum_marks(self, bandit: int, n: int, cursor: Any) -> int | None:
        """The sum of the checksums of the first n events; None where rows are missing."""
        return sum_marks(self._rows, self.dialect, bandit, n, cursor)

    def charts(self, bandit: int, width: int, since: int, until: int) -> list[tuple[int, str]]:
        """The cells of this width that begin in this time, oldest first: start, body."""
        sql = "SELECT start, body FROM @chart WHERE bandit = ? AND width = ? AND start >= ? AND start < ?"
        return self._rows(sql + " ORDER BY start", bandit, width, since, until)

    def note(self, name: str) -> str | None:
        """The text kept under a name, or None."""
        rows = self._rows("SELECT text FROM @meta WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def notes(self, prefix: str) -> list[str]:
        """The texts kept under names that begin with a prefix, in the order of the names."""
        sql = "SELECT text FROM @meta WHERE substr(name, 1, ?) = ? ORDER BY name"
        return [str(row[0]) for row in self._rows(sql, len(prefix), prefix)]

    # ---- checking ----------------------------------------------------------------------------------------------------

    def verify(self, bandit: int, n: int = 0, cursor: Any = None) -> None:
        """Refuse a journal in which rows are missing or were added: the events after the snapshot of n events, which
        ends at the cursor, must have the number and the sum of checksums that `head` has."""
        before = 0
        if n:
            before = self._rows("SELECT marks FROM @snapshot WHERE bandit = ? AND n = ?", bandit, n)[0][0]
        problem = self._compare_head("event", bandit, n, before, cursor)
        if problem:
            raise DamagedJournal(f"The journal is damaged: {problem}.")

    def _compare_head(self, table: str, bandit: int, n: int = 0, before: int = 0, cursor: Any = None) -> str:
        """Whether rows of a bandit are missing, in words; the first n, whose checksums sum to `before`, are not
        counted."""
        where, values = "", ()
        if n:
            where = f" AND {self.dialect.cursor} > {self.dialect.position}"
            values = self.dialect.cursor_values(cursor)
        row = self._rows(  # one statement: both sides of one moment
            f"SELECT (SELECT count(*) FROM @{table} WHERE bandit = ?{where}), "
            f"(SELECT COALESCE(sum(mark), 0) FROM @{table} WHERE bandit = ?{where}), "
            f"(SELECT {table}s FROM @base WHERE bandit = ?), (SELECT {table}_marks FROM @base WHERE bandit = ?), "
            f"COALESCE(sum({table}s), 0), COALESCE(sum({table}_marks), 0) FROM @head WHERE bandit = ?",
            bandit, *values, bandit, *values, bandit, bandit, bandit,
        )[0]  # fmt: skip
        count, marks, dropped, their_marks, written, sums = (int(value or 0) for value in row)
        if not n:
            count, marks = count + dropped, marks + their_marks
        if count + n != written:
            what = "are missing" if count + n < written else "were added"
            return f"rows {what}: bandit {bandit} has {count + n} {table}s, and {written} were written"
        return "" if marks + before == sums else f"one of the {written} {table}s of bandit {bandit} was altered"

    def check_file(self) -> list[str]:
        """Everything that is wrong with the store as a whole, in words; a database checks itself."""
        return []

    def check(self, bandit: int, rows: bool = True) -> list[str]:
        """Everything that is wrong with the stored rows of a bandit, in words; or, without reading all rows, with their
        number and the sum of their checksums."""
        wrong = []
        if not rows:
            return [text for table in ("decision", "event") if (text := self._compare_head(table, bandit))]
        for table, name in (("decision", 0), ("event", self.event_fields.split(", ").index("decision"))):
            for row in self._scan(table, bandit):
                if intact(row[:-1], row[-1]) is None:
                    wrong.append(describe_altered(table, row[name], bandit))
                    break
            wrong += filter(None, [self._compare_head(table, bandit)])
        for n, at, body, marks, found in self._snapshot_rows(bandit):
            if mark((n, at, body, marks)) != found:
                wrong.append(describe_altered("the snapshot after", f"{n} events", bandit))
        astray = self._rows(
            f"SELECT e.decision FROM @event e LEFT JOIN @decision d ON d.bandit = e.bandit AND d.id = {OWNER} "
            f"LEFT JOIN @base b ON b.bandit = e.bandit WHERE e.bandit = ? AND e.kind IN (1, 2, 3, {PART}) AND ("
            f"(d.id IS NULL AND e.decided > COALESCE(b.at + {DAY}, -1)) "  # a dropped one may have a late outcome
            "OR d.slot != e.slot OR d.how != e.how OR d.at != e.decided "
            "OR e.probability != COALESCE(d.probability, 0.0) "
            f"OR e.kind != {PART} AND substr(d.id, 1, 1) != '=' "
            "AND COALESCE(e.body, '') != COALESCE(d.context, '')) LIMIT 3",
            bandit,
        )
        return wrong + [f"an outcome does not fit its decision {row[0]}" for row in astray]
