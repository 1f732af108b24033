"""The tables of a journal in SQLite and in PostgreSQL, and what both answer with the same SQL.

Every row has a checksum, `mark`. `head` has the number of rows of a bandit and the sum of their checksums, written in
the transaction that wrote the rows. So a missing row is noticed as well as an altered one. Each writer of a
PostgreSQL journal has its own row in `head`, so that writers do not wait for each other. A snapshot has the sum of the
checksums of the events before it, so that only the events after it need to be added up.

Where rows were dropped (`retention`), `base` records after which event the journal begins, and how many rows and which
sum of checksums are gone. The snapshot of that event is no cache: it is where every fold begins. Changes are never
dropped. A bandit in `moved` does not decide here: it was moved to a target, or has yet to come from an origin."""

import contextlib
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from driftbandit.bandit.asks import DecisionState, Found, Place, read_states
from driftbandit.bandit.records import DecisionRow, Event, check_row, mark
from driftbandit.errors import DamagedJournal

VERSION = 15  # a journal with tables of another version is refused
TOGETHER = 64  # rows in one statement: below the 999 values that every SQLite takes
DECIDED = 0  # in daily counts, the kind of a decision; others are kinds of events
DECISION = ", ".join(DecisionRow._fields)
EVENT = ", ".join(Event._fields[1:])
_QUALIFIED = ", ".join(f"d.{name}" for name in DecisionRow._fields)

_OPTIONAL = {"available", "body", "context", "probability"}
_DECISION_KINDS = ("text", "bigint", "int", "smallint", "bigint", "text", "float8", "text", "bigint")
_EVENT_KINDS = ("smallint", "bigint", "text", "int", "smallint", "float8", "bigint", "text", "float8")
DECISION_TYPES = dict(zip(DecisionRow._fields, _DECISION_KINDS, strict=True), mark="bigint")
EVENT_TYPES = dict(zip(Event._fields[1:], _EVENT_KINDS, strict=True), mark="bigint")

OUTCOME = "LEFT JOIN @event o ON o.bandit = d.bandit AND o.decision = d.id AND (o.kind = 3) = false"
_STATES = f"""SELECT {_QUALIFIED}, d.mark, o.kind, o.value, l.value, o.at FROM %s CROSS JOIN @decision d {OUTCOME}
    LEFT JOIN @event l ON l.bandit = d.bandit AND l.decision = d.id AND (l.kind = 3) = true
    WHERE d.bandit = asked.column1 AND d.id = asked.column2"""
OLD_DECISIONS = f"SELECT d.seq, {_QUALIFIED}, d.mark, o.kind FROM decision d {OUTCOME}"  # of SQLite
# The id of the decision that an event @e belongs to: a part has "+" and 16 digits behind it.
OWNER = (
    "CASE WHEN substr(e.decision, length(e.decision) - 16, 1) = '+' "
    "THEN substr(e.decision, 1, length(e.decision) - 17) ELSE e.decision END"
)


class Dialect(NamedTuple):
    """How the two stores differ in SQL that both of them answer. Shared SQL has ? for a value and @ before the name of
    a table. The cursor is the place of an event in the order in which it is read."""

    schema: str
    value: str
    cursor: str
    position: str  # a cursor's values
    columns: str  # a cursor as it is read
    order: str
    start: tuple[Any, ...]  # the cursor before the first event
    most: int  # rows in one statement

    def translate(self, sql: str) -> str:
        return sql.replace("?", self.value).replace("@", self.schema)

    def cursor_values(self, cursor: Any) -> tuple[Any, ...]:
        if cursor is None:
            return self.start
        return tuple(cursor) if isinstance(cursor, list | tuple) else (cursor,)

    def read_cursor(self, values: Any) -> Any:
        return tuple(values) if len(self.start) > 1 else values[0]

    def ask(self, places: list[Place]) -> tuple[str, list[Any]]:
        """A table `asked` of these places, and its values."""
        if len(self.start) > 1:
            columns = [list(column) for column in zip(*places, strict=True)]
            return "unnest(?::bigint[], ?::text[]) AS asked (column1, column2)", columns
        return f"(VALUES {', '.join(['(?, ?)'] * len(places))}) AS asked", [part for place in places for part in place]


SQLITE = Dialect("", "?", "n", "?", "n", "n", (0,), TOGETHER)
POSTGRES = Dialect(
    "driftbandit.", "%s", "(era, xid, seq)", "(?, ?::text::xid8, ?)", "era, xid::text, seq",
    "event.era, event.xid, event.seq", (0, "0", 0), 1 << 60,
)  # fmt: skip


def _columns(types: dict[str, str]) -> str:
    """Columns in the words of PostgreSQL, which SQLite understands too."""
    return ", ".join(f"{name} {kind}{'' if name in _OPTIONAL else ' NOT NULL'}" for name, kind in types.items())


_HEAD = """events bigint NOT NULL, event_marks bigint NOT NULL, decisions bigint NOT NULL,
        decision_marks bigint NOT NULL"""
_SHARED = f"""
    CREATE UNIQUE INDEX event_decision ON @event (bandit, decision, (kind = 3));
    CREATE INDEX event_part ON @event (bandit, decided) WHERE kind IN (3, 6);
    CREATE TABLE @snapshot (
        bandit bigint NOT NULL, n bigint NOT NULL, at bigint NOT NULL, body text NOT NULL, marks bigint NOT NULL,
        mark bigint NOT NULL, PRIMARY KEY (bandit, n));
    CREATE TABLE @chart (
        bandit bigint NOT NULL, width bigint NOT NULL, start bigint NOT NULL, body text NOT NULL,
        PRIMARY KEY (bandit, width, start));
    CREATE TABLE @meta (name text PRIMARY KEY, text text NOT NULL);
    CREATE TABLE @base (bandit bigint PRIMARY KEY, at bigint NOT NULL, {_HEAD}, n bigint NOT NULL%s);
    CREATE TABLE @daily (
        bandit bigint NOT NULL, start bigint NOT NULL, slot int NOT NULL, how smallint NOT NULL, kind smallint NOT NULL,
        n bigint NOT NULL, total float8 NOT NULL, squares float8 NOT NULL,
        PRIMARY KEY (bandit, start, slot, how, kind));
    CREATE TABLE @moved (bandit bigint PRIMARY KEY, target text, origin text);
    CREATE TABLE @label (bandit bigint, label text, value text, name text NOT NULL, PRIMARY KEY (bandit, label));
    CREATE INDEX label_value ON @label (label, value, name);
"""
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
) + SQLITE.translate(_SHARED % "")  # fmt: skip

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
    {_SHARED % ", era int NOT NULL, xid xid8 NOT NULL, seq bigint NOT NULL"}""") + "".join(
    f"ALTER TABLE driftbandit.{table} {', '.join(f'ALTER {name} SET STATISTICS 1' for name in names)};"
    for table, names in (
        ("decision", DECISION_TYPES),
        ("event", ("bandit", "era", "xid", "seq", *EVENT_TYPES)),
    )
) + "ALTER INDEX driftbandit.event_decision ALTER COLUMN 3 SET STATISTICS 1;"  # fmt: skip


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


class Tables:
    """What is read from the tables, by a journal or within a transaction that writes."""

    dialect: Dialect

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        raise NotImplementedError

    def base(self, bandit: int) -> Base | None:
        """Where the journal of a bandit begins, if older rows were dropped."""
        for n, at, *cursor in self._rows(f"SELECT n, at, {self.dialect.columns} FROM @base WHERE bandit = ?", bandit):
            return Base(n, at, self.dialect.read_cursor(cursor))
        return None

    def states(self, places: list[Place]) -> Found:
        """These decisions with their outcomes; unknown ones are left out."""
        found: Found = {}
        for some in chunks(places, self.dialect.most):
            asked, values = self.dialect.ask(some)
            found |= read_states(self._rows(_STATES % asked, *values))
        return found

    def add_parts(self, found: Found) -> Found:
        """The same decisions with the parts of their rewards."""
        out, times = dict(found), dict[int, set[int]]()
        for (bandit, _), state in found.items():
            if not isinstance(state, DamagedJournal):
                times.setdefault(bandit, set()).add(state.row.at)
        for bandit, every in times.items():
            for decision, kind, value in self._parts(bandit, sorted(every)):
                owner, plus, _ = decision.partition("+")
                if plus and isinstance(one := out.get((bandit, owner)), DecisionState):
                    out[bandit, owner] = one.add(Event(0, kind, 0, decision, value=value))
        return out

    def _parts(self, bandit: int, times: list[int]) -> Iterator[tuple[str, int, float]]:
        """Parts, and late rewards, of decisions of these times."""
        # For "=" SQLite would not use the index.
        where = "@event WHERE bandit = ? AND kind IN (3, 6) AND decided BETWEEN"
        if not self._rows(f"SELECT 1 FROM {where} ? AND ? LIMIT 1", bandit, times[0], times[-1]):
            return
        for some in chunks(times, 500):
            asked = f"(VALUES {', '.join(['(CAST(? AS bigint))'] * len(some))}) AS asked"
            sql = f"SELECT decision, kind, value FROM {asked} CROSS JOIN {where} asked.column1 AND asked.column1"
            yield from self._rows(sql, *some, bandit)

    def sum_marks(self, bandit: int, n: int, cursor: Any) -> int | None:
        """The sum of the checksums of the first n events, the last of which has this cursor, from that of the last
        snapshot on; None where rows are missing."""
        last, marks, after = 0, 0, None
        sql = "SELECT n, marks, body FROM @snapshot WHERE bandit = ? AND n < ? ORDER BY n DESC LIMIT 1"
        for found, sums, body in self._rows(sql, bandit, n):
            with contextlib.suppress(ValueError, KeyError, TypeError):  # an altered one
                last, marks, after = found, sums, json.loads(body)["cursor"]
        place, values = f"{self.dialect.cursor} %s {self.dialect.position}", self.dialect.cursor_values
        count, added = self._rows(
            "SELECT count(*), COALESCE(sum(mark), 0) FROM @event WHERE bandit = ? "
            f"AND {place % '>'} AND {place % '<='}", bandit, *values(after), *values(cursor),
        )[0]  # fmt: skip
        return int(marks) + int(added) if last + count == n else None

    def read_event(self, bandit: int, row: tuple[Any, ...], new: Any = tuple.__new__) -> tuple[Any, Event]:
        """The cursor and the event of a row that begins with the one and ends with its checksum; faster than
        `Event(...)`."""
        width = len(self.dialect.start)
        fields = row[width:-1]
        if mark(fields) != row[-1]:
            fields = check_row("event", bandit, row[0] if width == 1 else fields[2], fields, row[-1])
        return self.dialect.read_cursor(row[:width]), new(Event, (row[0] if width == 1 else 0, *fields))


def chunks(things: list[Any], size: int = TOGETHER) -> Iterator[list[Any]]:
    """The things in order, a few at a time."""
    for first in range(0, len(things), size):
        yield things[first : first + size]


# ---- statements that write many rows ---------------------------------------------------------------------------------

DECISIONS, EVENTS = f"seq, {DECISION}, mark", f"bandit, n, {EVENT}, mark"  # of SQLite
LOCK = 0x64726266  # the class of our advisory locks


@lru_cache(maxsize=4 * TOGETHER)
def insert(table: str, fields: str, rows: int) -> str:
    """A statement that writes so many rows to SQLite."""
    row = f"({', '.join('?' * len(fields.split()))})"
    return f"INSERT INTO {table} ({fields}) VALUES {', '.join([row] * rows)}"


def _insert_arrays(
    table: str, types: dict[str, str], before: str, values: str, where: str, answer: str, more: str = ""
) -> str:
    """A statement that writes rows to PostgreSQL, but for those that are there, adds the written ones to the writer's
    row of `head` and answers with them. It takes its snapshot after its lock on the table, so it sees a move that has
    waited for that lock. A join might change the order of the rows, and `where` does not. It may need one `more` text
    with each row."""
    fields, kinds = ", ".join(types), [*types.values(), *(["text"] if more else [])]
    arrays, given = ", ".join(f"%s::{kind}[]" for kind in kinds), ", ".join([*types, *([more] if more else [])])
    return f"""
    WITH written AS (
        INSERT INTO driftbandit.{table} ({before}{fields})
        SELECT {values}{fields} FROM unnest({arrays}) AS new ({given}) WHERE {where}
        (SELECT target FROM driftbandit.moved m WHERE m.bandit = new.bandit) IS NULL
        ON CONFLICT DO NOTHING RETURNING {answer or "bandit"}, mark),
    counted AS (
        INSERT INTO driftbandit.head AS h (bandit, writer, events, event_marks, decisions, decision_marks)
        SELECT bandit, %s, {"count(*), sum(mark), 0, 0" if table == "event" else "0, 0, count(*), sum(mark)"}
        FROM written GROUP BY bandit ORDER BY bandit
        ON CONFLICT (bandit, writer) DO UPDATE
        SET {table}s = h.{table}s + excluded.{table}s, {table}_marks = h.{table}_marks + excluded.{table}_marks)
    SELECT {answer} FROM written"""


INSERT_DECISIONS = _insert_arrays("decision", DECISION_TYPES, "", "", "", "")
# But for those whose id was erased: `hidden` stands in its place.
_HIDDEN = "(SELECT d.at FROM driftbandit.decision d WHERE d.bandit = new.bandit AND d.id = new.hidden) IS NULL AND "
INSERT_NAMED = _insert_arrays("decision", DECISION_TYPES, "", "", _HIDDEN, "", "hidden")
# With the lock of all who write events, taken before the first row is made and with it the transaction's id.
_EVENT_ARRAYS = "event", {"bandit": "bigint"} | EVENT_TYPES, "era, ", "%s, "
_LOCKED = f"(SELECT pg_advisory_xact_lock_shared({LOCK}, 0) IS NOT NULL) AND "
INSERT_EVENTS = _insert_arrays(*_EVENT_ARRAYS, _LOCKED, "bandit, decision, kind")
# But for those whose decision is no longer there under this id, which was erased. And where their parts were not looked
# for, but for those that have a part, whose id has this `beginning`.
_STANDS = (
    "(SELECT d.at FROM driftbandit.decision d WHERE d.bandit = new.bandit AND d.id = "
    f"{OWNER.replace('e.', 'new.')}) IS NOT NULL AND (SELECT p.at FROM driftbandit.event p WHERE p.bandit = new.bandit "
    "AND p.kind IN (3, 6) AND p.decided = new.decided AND starts_with(p.decision, new.beginning) LIMIT 1) IS NULL AND "
)
INSERT_REWARDS = _insert_arrays(*_EVENT_ARRAYS, _LOCKED + _STANDS, "bandit, decision, kind", "beginning")


def columns(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """Rows as PostgreSQL's text for one array per column, which is several times as fast as handing over lists."""

    def write(column: tuple[Any, ...]) -> str:
        return ",".join(map(repr if set(map(type, column)) <= {int, float} else _element, column))

    return ["{" + write(column) + "}" for column in zip(*rows, strict=True)]


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)
