"""The tables of a journal, and what both stores answer with the same SQL: a store says how its tables are called and
how a value is written.

Every row has a checksum, `mark`. `head` has the number of rows of a bandit and the sum of their checksums, written in
the transaction that wrote the rows, so that a missing row is noticed as well as an altered one. Each writer of a
PostgreSQL journal has its own row in `head`: writers do not wait for each other. A snapshot has the sum of the
checksums of the events before it, so that only the events after it need to be added up."""

import logging
from collections.abc import Iterable
from typing import Any

from driftbandit.live.errors import Damaged
from driftbandit.live.journal import Standing
from driftbandit.live.records import CHANGE, LATE, DecisionRow, Event, mark

DECISION = ", ".join(DecisionRow._fields)
EVENT = ", ".join(Event._fields[1:])
KEPT = 3  # snapshots of a bandit
VERSION = 11  # of the tables; a journal with another number is refused

log = logging.getLogger("driftbandit.live")

SQLITE = """
    CREATE TABLE bandit (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created INTEGER NOT NULL);
    CREATE TABLE decision (
        bandit INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, slot INTEGER NOT NULL,
        how INTEGER NOT NULL, known INTEGER NOT NULL, available TEXT, chance REAL, mark INTEGER NOT NULL,
        PRIMARY KEY (bandit, seq)) WITHOUT ROWID;
    CREATE UNIQUE INDEX decision_id ON decision (bandit, id);
    CREATE TABLE event (
        bandit INTEGER NOT NULL, n INTEGER NOT NULL, kind INTEGER NOT NULL, at INTEGER NOT NULL,
        decision TEXT NOT NULL, slot INTEGER NOT NULL, how INTEGER NOT NULL, value REAL NOT NULL,
        decided INTEGER NOT NULL, body TEXT, chance REAL, mark INTEGER NOT NULL,
        PRIMARY KEY (bandit, n)) WITHOUT ROWID;
    CREATE UNIQUE INDEX event_decision ON event (bandit, decision, (kind = 3));
    CREATE TABLE head (
        bandit INTEGER PRIMARY KEY, events INTEGER NOT NULL, event_marks INTEGER NOT NULL, decisions INTEGER NOT NULL,
        decision_marks INTEGER NOT NULL);
    CREATE TRIGGER decision_counted AFTER INSERT ON decision BEGIN
        UPDATE head SET decisions = NEW.seq, decision_marks = decision_marks + NEW.mark
        WHERE bandit = NEW.bandit AND decisions = NEW.seq - 1;
        SELECT RAISE(ABORT, 'another program wrote') WHERE changes() = 0;
    END;
    CREATE TRIGGER event_counted AFTER INSERT ON event BEGIN
        UPDATE head SET events = NEW.n, event_marks = event_marks + NEW.mark
        WHERE bandit = NEW.bandit AND events = NEW.n - 1;
        SELECT RAISE(ABORT, 'another program wrote') WHERE changes() = 0;
    END;
    CREATE TABLE snapshot (
        bandit INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL, marks INTEGER NOT NULL,
        mark INTEGER NOT NULL, PRIMARY KEY (bandit, n));
    CREATE TABLE chart (
        bandit INTEGER NOT NULL, width INTEGER NOT NULL, start INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (bandit, width, start)) WITHOUT ROWID;
    CREATE TABLE meta (name TEXT PRIMARY KEY, text TEXT NOT NULL);
"""
NOTE = """INSERT INTO @meta AS there VALUES (?, ?) ON CONFLICT (name)
    DO UPDATE SET text = CASE WHEN ? THEN there.text ELSE excluded.text END"""

# The server's own ANALYZE is a transaction that readers wait for: with 100 values per column to find it samples 30,000
# rows, pauses in between, and takes seconds; with 1 it samples 300. All our queries go by an index.
POSTGRES = """
    CREATE TABLE driftbandit.bandit (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, created bigint NOT NULL);
    CREATE TABLE driftbandit.decision (
        bandit bigint NOT NULL, id text NOT NULL, at bigint NOT NULL, slot int NOT NULL, how smallint NOT NULL,
        known bigint NOT NULL, available text, chance double precision, mark bigint NOT NULL,
        PRIMARY KEY (bandit, id));
    CREATE INDEX decision_at ON driftbandit.decision (bandit, at, id);
    CREATE TABLE driftbandit.event (
        bandit bigint NOT NULL, era int NOT NULL, xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
        seq bigint GENERATED ALWAYS AS IDENTITY, kind smallint NOT NULL, at bigint NOT NULL, decision text NOT NULL,
        slot int NOT NULL, how smallint NOT NULL, value double precision NOT NULL, decided bigint NOT NULL, body text,
        chance double precision, mark bigint NOT NULL,
        PRIMARY KEY (bandit, era, xid, seq));
    CREATE UNIQUE INDEX event_decision ON driftbandit.event (bandit, decision, (kind = 3));
    CREATE TABLE driftbandit.head (
        bandit bigint NOT NULL, writer int NOT NULL, events bigint NOT NULL, event_marks bigint NOT NULL,
        decisions bigint NOT NULL, decision_marks bigint NOT NULL,
        PRIMARY KEY (bandit, writer)) WITH (fillfactor = 50);
    CREATE TABLE driftbandit.snapshot (
        bandit bigint NOT NULL, n bigint NOT NULL, at bigint NOT NULL, body text NOT NULL, marks bigint NOT NULL,
        mark bigint NOT NULL, PRIMARY KEY (bandit, n));
    CREATE TABLE driftbandit.chart (
        bandit bigint NOT NULL, width bigint NOT NULL, start bigint NOT NULL, body text NOT NULL,
        PRIMARY KEY (bandit, width, start));
    CREATE TABLE driftbandit.meta (name text PRIMARY KEY, text text NOT NULL);
""" + "".join(
    f"ALTER TABLE driftbandit.{table} {', '.join(f'ALTER {name} SET STATISTICS 1' for name in names.split())};"
    for table, names in (
        ("decision", "bandit id at slot how known available chance mark"),
        ("event", "bandit era xid seq kind at decision slot how value decided body chance mark"),
    )
) + "ALTER INDEX driftbandit.event_decision ALTER COLUMN 3 SET STATISTICS 1;"  # fmt: skip


def check_version(version: int, target: str) -> None:
    """Refuse tables of another version."""
    if version != VERSION:
        raise Damaged(
            f"{target} has tables of version {version}, and this driftbandit reads version {VERSION} only; open it "
            "with the driftbandit that wrote it."
        )


def altered(table: str, name: Any, bandit: int) -> Damaged:
    """A row whose checksum differs."""
    return Damaged(
        f"The journal is damaged: {table} {name} of bandit {bandit} was altered (its checksum differs); "
        "`driftbandit audit` shows what can still be proved."
    )


def checked_decision(bandit: int, row: tuple[Any, ...]) -> DecisionRow:
    """The decision of a row that ends with its checksum."""
    if mark(row[:-1]) != row[-1]:
        raise altered("decision", row[0], bandit)
    return DecisionRow(*row[:-1])


def whole_decisions(bandit: int, rows: Iterable[tuple[Any, ...]]) -> list[DecisionRow]:
    """Those of these decisions that were not altered; each of the others leaves a line in the log."""
    out = []
    for row in rows:
        try:
            out.append(checked_decision(bandit, row))
        except Damaged as error:
            log.error("%s", error)
    return out


def standing(bandit: int, row: tuple[Any, ...]) -> Standing | Damaged:
    """What is known of a decision: its row, its checksum, and the four columns of its outcome."""
    try:
        return Standing(checked_decision(bandit, row[:-4]), *row[-4:])
    except Damaged as error:
        return error


class Tables:
    """Reading that does not depend on the store."""

    SCHEMA = ""  # what stands before the name of a table
    VALUE = "?"  # what stands for a value
    _failing = ""  # the last error, while commits fail

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        raise NotImplementedError

    def _find(self, sql: str, *values: Any) -> list[Any]:
        """The rows of a question with ? for values and @ before the names of tables."""
        return self._rows(sql.replace("?", self.VALUE).replace("@", self.SCHEMA), *values)

    def _log_failure(self, error: Exception) -> None:
        """Write a line to the log when commits begin to fail, as on a full disk."""
        if str(error) != self._failing:
            self._failing = str(error)
            log.error("%s", error)

    def _log_success(self) -> None:
        """Another line when they work again."""
        self._failing = ""
        log.warning("The journal can be written again.")

    def bandits(self) -> dict[str, int]:
        """The bandits in this journal, and their numbers."""
        return dict(self._find("SELECT name, number FROM @bandit ORDER BY name"))

    def number(self, name: str) -> int | None:
        """The number of the bandit with this name, or None."""
        rows = self._find("SELECT number FROM @bandit WHERE name = ?", name)
        return int(rows[0][0]) if rows else None

    def bandit_count(self) -> int:
        """How many bandits there are."""
        return int(self._find("SELECT count(*) FROM @bandit")[0][0])

    def snapshots(self, bandit: int) -> list[tuple[int, str]]:
        """The snapshots kept, newest first. One that was altered is left out: older ones lead to the same state."""
        out = []
        for n, at, body, marks, found in self._snapshot_rows(bandit):
            if mark((n, at, body, marks)) == found:
                out.append((n, body))
            else:
                log.warning("The snapshot after %d events of bandit %d was altered and is not used.", n, bandit)
        return out

    def _snapshot_rows(self, bandit: int) -> list[Any]:
        return self._find("SELECT n, at, body, marks, mark FROM @snapshot WHERE bandit = ? ORDER BY n DESC", bandit)

    def _after(self, cursor: Any) -> tuple[str, list[Any]]:
        """SQL for the events after a cursor, and its values."""
        raise NotImplementedError

    def verify(self, bandit: int, n: int = 0, cursor: Any = None) -> None:
        """Refuse a journal in which rows are missing or were added: the events after the snapshot of n events, which
        ends at the cursor, must have the number and the sum of checksums that `head` has."""
        before = 0
        if n:
            before = self._find("SELECT marks FROM @snapshot WHERE bandit = ? AND n = ?", bandit, n)[0][0]
        events, marks, last, sums = self._counted("event", bandit, *self._after(cursor))
        if (events + n, marks + before) != (last, sums):
            raise Damaged(f"The journal is damaged: {_miscounted('event', bandit, events + n, last)}.")

    def _counted(self, table: str, bandit: int, where: str = "", values: Any = ()) -> tuple[int, int, int, int]:
        """Number and sum of checksums of the rows of a bandit, and what `head` has: of one moment."""
        row = self._find(
            f"SELECT (SELECT count(*) FROM @{table} WHERE bandit = ?{where}), "
            f"(SELECT COALESCE(sum(mark), 0) FROM @{table} WHERE bandit = ?{where}), "
            f"COALESCE(sum({table}s), 0), COALESCE(sum({table}_marks), 0) FROM @head WHERE bandit = ?",
            bandit, *values, bandit, *values, bandit,
        )[0]  # fmt: skip
        return int(row[0]), int(row[1]), int(row[2]), int(row[3])

    def _missing(self) -> list[str]:
        """Tables whose rows are not those that were written, and altered snapshots, in words."""
        wrong = []
        for number in self.bandits().values():
            for table in ("decision", "event"):
                count, marks, last, sums = self._counted(table, number)
                if (count, marks) != (last, sums):
                    wrong.append(_miscounted(table, number, count, last))
            for n, at, body, marks, found in self._snapshot_rows(number):
                if mark((n, at, body, marks)) != found:
                    wrong.append(f"the snapshot after {n} events of bandit {number} was altered: its checksum differs")
        return wrong

    def charts(self, bandit: int, width: int, since: int, until: int) -> list[tuple[int, str]]:
        """The cells of this width that begin in this time, oldest first."""
        sql = "SELECT start, body FROM @chart WHERE bandit = ? AND width = ? AND start >= ? AND start < ?"
        return self._find(sql + " ORDER BY start", bandit, width, since, until)

    def last_chart(self, bandit: int, width: int) -> tuple[int, str] | None:
        """The newest cell of this width."""
        sql = "SELECT start, body FROM @chart WHERE bandit = ? AND width = ? ORDER BY start DESC LIMIT 1"
        return next(iter(self._find(sql, bandit, width)), None)

    def note(self, name: str) -> str | None:
        """The text kept under a name, or None."""
        rows = self._find("SELECT text FROM @meta WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def groups(self, bandit: int, starts: list[int], until: int) -> list[tuple[int, int, int, float, float]]:
        """Outcomes by period and way of deciding."""
        return self._find(
            f"SELECT {_period(starts, 0, len(starts))}, how, count(*), sum(value), sum(value * value) FROM @event "
            f"WHERE bandit = ? AND decided >= ? AND decided < ? AND kind < {LATE} GROUP BY 1, 2 ORDER BY 1, 2",
            bandit, starts[0], until,
        )  # fmt: skip

    def counts(self, bandit: int) -> dict[str, int]:
        """How many decisions and how many events of each kind there are."""
        kinds = self._find("SELECT kind, count(*) FROM @event WHERE bandit = ? GROUP BY kind", bandit)
        decisions = self._find("SELECT count(*) FROM @decision WHERE bandit = ?", bandit)[0][0]
        return {"decisions": decisions, **{str(kind): count for kind, count in kinds}}

    def _recent(self, bandit: int, limit: int, newest_first: str) -> list[DecisionRow]:
        sql = f"SELECT {DECISION}, mark FROM @decision WHERE bandit = ? ORDER BY {newest_first} LIMIT ?"
        return [checked_decision(bandit, row) for row in self._find(sql, bandit, limit)]

    def _astray(self) -> list[str]:
        """Outcomes that do not fit their decision, in words."""
        found = self._find(
            "SELECT e.decision FROM @event e LEFT JOIN @decision d ON d.bandit = e.bandit AND d.id = e.decision "
            f"WHERE e.kind < {CHANGE} AND (d.id IS NULL OR d.slot != e.slot OR d.how != e.how OR d.at != e.decided "
            "OR e.chance != COALESCE(d.chance, 0.0)) LIMIT 3"
        )
        return [f"an outcome does not fit its decision {row[0]}" for row in found]


def _period(starts: list[int], low: int, high: int) -> str:
    """SQL for the number of the period in which a decision was made, by bisection: cheap for thousands of periods."""
    if high - low == 1:
        return str(low)
    middle = (low + high) // 2
    return (
        f"CASE WHEN decided < {int(starts[middle])} THEN {_period(starts, low, middle)} "
        f"ELSE {_period(starts, middle, high)} END"
    )


def _miscounted(table: str, bandit: int, found: int, written: int) -> str:
    if found == written:
        return f"one of the {found} {table}s of bandit {bandit} was altered"
    return f"bandit {bandit} has {found} {table}s, and {written} were written"
