"""The journal in one SQLite file: one process writes, any number read.

WAL and synchronous=FULL: a commit is on the disk when it returns. Two connections that write to one WAL at the same
moment can corrupt it in SQLite versions before 3.51.3, which most Pythons have; here one connection writes and alone
moves the WAL into the file, and a lock beside the file keeps other processes from writing."""

import contextlib
import itertools
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from driftbandit.live import migrations
from driftbandit.live.clock import system_time
from driftbandit.live.errors import Conflict, Damaged, StoreError, Unknown
from driftbandit.live.filelock import FileLock
from driftbandit.live.journal import (
    Ask,
    Configure,
    Decide,
    Draw,
    Keep,
    Pay,
    Settle,
    Settled,
    Standing,
    judge,
    same_decision,
)
from driftbandit.live.records import CHANGE, DEFAULT, LATE, DecisionRow, Event, mark

APPLICATION = 0x64726266  # "drbf": written into the file's header, where SQLite keeps a place for it
KEPT = 3  # snapshots of a bandit
_CHUNK = 20_000  # rows read at a time, so that memory stays small and the WAL can be emptied meanwhile

_DECISION = "id, at, slot, how, known, available"
_EVENT = "n, kind, at, decision, slot, how, value, decided, body"
_INSERT_DECISION = "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_STANDING = f"""
    SELECT {", ".join("d." + name for name in _DECISION.split(", "))}, o.kind, o.value, l.value, o.at
    FROM decision d
    LEFT JOIN event o ON o.bandit = d.bandit AND o.decision = d.id AND (o.kind = 3) = 0
    LEFT JOIN event l ON l.bandit = d.bandit AND l.decision = d.id AND (l.kind = 3) = 1
    WHERE d.bandit = ? AND d.id = ?"""


class SQLite:
    """A journal in a file."""

    live = False

    def __init__(self, path: str, write: bool = True) -> None:
        self.target = path
        self._lock = FileLock(path + ".lock") if write else None
        if self._lock is not None:
            self._lock.take(path)
        try:
            with _sentence(path):
                if write:
                    self._writer = _connect(path)
                    self._open(self._writer, write=True)
                self._reader = _connect(path, read_only=True)
                self._reader.execute("PRAGMA wal_autocheckpoint=0")
                if not write:
                    self._open(self._reader, write=False)
        except BaseException:
            self.close()
            raise
        self._reading = threading.Lock()
        self._unwritten: dict[str, list[Any]] = {}  # events of the transaction under way, by decision
        self._last: dict[int, list[int]] = {}  # bandit: numbers of its last event and its last decision

    def _open(self, connection: sqlite3.Connection, write: bool) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION and (tables or version or application or not write):
            raise Damaged(f"{self.target} is not a journal of driftbandit but another program's SQLite file.")

        if write:  # only now: it would alter another program's file
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")

        def run(statements: str, number: int) -> None:
            connection.executescript(
                f"BEGIN IMMEDIATE; {statements} PRAGMA application_id={APPLICATION}; PRAGMA user_version={number}; "
                "COMMIT;"
            )

        migrations.migrate("sqlite", version, run if write else _nothing, self.target)

    # ---- writing -----------------------------------------------------------------------------------------------------

    def create(self, name: str, at: int) -> int:
        """The number of the bandit with this name, which is made if there is none."""
        with _sentence(self.target):
            self._writer.execute("INSERT INTO bandit (name, created) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, at))
            self._writer.commit()
            return int(self._writer.execute("SELECT number FROM bandit WHERE name = ?", (name,)).fetchone()[0])

    def commit(self, asks: list[Ask]) -> tuple[list[Any], list[tuple[int, Event]]]:
        """Write all asks in one transaction."""
        added: list[tuple[int, Event]] = []
        with _sentence(self.target):
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                answers: list[Any] = []
                while len(answers) < len(asks):
                    run = list(itertools.takewhile(lambda ask: type(ask) is Decide, asks[len(answers) :]))
                    answers += self._decide_all(run) if run else [self._answer(asks[len(answers)], added)]
                self._flush()
                self._writer.execute("COMMIT")
            except BaseException:
                self._last.clear()
                self._unwritten.clear()
                with contextlib.suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise
        return answers, added

    def _answer(self, ask: Ask, added: list[tuple[int, Event]]) -> Any:
        match ask:
            case Decide(bandit, row):
                return self._decide(bandit, row)
            case Pay():
                if ask.id in self._unwritten:
                    self._flush()
                found = self._writer.execute(_STANDING, (ask.bandit, ask.id)).fetchone()
                events, answer = judge(ask, _standing(found) if found else None)
                self._append(ask.bandit, events, added)
                return answer
            case Settle():
                return self._settle(ask, added)
            case Configure(bandit, serial, at, body):
                self._flush()
                there = self._writer.execute(
                    "SELECT at, body FROM event WHERE bandit = ? AND decision = ? AND (kind = 3) = 0", (bandit, ask.id)
                ).fetchone()
                if there is None:
                    self._append(bandit, [Event(0, CHANGE, at, ask.id, slot=serial, body=body)], added)
                return None if there in (None, (at, body)) else Conflict("The configuration was changed meanwhile.")
            case Keep(bandit, n, at, body):
                self._writer.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?)", (bandit, n, at, body))
                self._writer.execute(
                    "DELETE FROM snapshot WHERE bandit = ?1 AND n NOT IN "
                    f"(SELECT n FROM snapshot WHERE bandit = ?1 ORDER BY n DESC LIMIT {KEPT})",
                    (bandit,),
                )
                return None
            case Draw():
                self._writer.execute("INSERT INTO chart VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", ask)
                return None

    def _numbers(self, bandit: int) -> list[int]:
        numbers = self._last.get(bandit)
        if numbers is None:
            numbers = self._last[bandit] = [
                self._writer.execute(f"SELECT max({name}) FROM {table} WHERE bandit = ?", (bandit,)).fetchone()[0] or 0
                for table, name in (("event", "n"), ("decision", "seq"))
            ]
        return numbers

    def _decide_all(self, asks: list[Any]) -> list[Any]:
        """Decisions of one bandit in one statement, which is several times as fast; one by one if an id is there
        already."""
        bandit = asks[0].bandit
        if len(asks) > 1 and all(ask.bandit == bandit for ask in asks):
            numbers = self._numbers(bandit)
            first = numbers[1] + 1
            rows = [(bandit, first + n, *ask.row, mark(ask.row)) for n, ask in enumerate(asks)]
            self._writer.execute("SAVEPOINT decisions")
            done = self._writer.executemany(_INSERT_DECISION, rows)
            if done.rowcount == len(rows):
                self._writer.execute("RELEASE decisions")
                numbers[1] += len(rows)
                return [ask.row for ask in asks]
            self._writer.execute("ROLLBACK TO decisions")
            self._writer.execute("RELEASE decisions")
        return [self._decide(ask.bandit, ask.row) for ask in asks]

    def _decide(self, bandit: int, row: DecisionRow) -> Any:
        numbers = self._numbers(bandit)
        done = self._writer.execute(_INSERT_DECISION, (bandit, numbers[1] + 1, *row, mark(row)))
        if done.rowcount:
            numbers[1] += 1
            return row
        stands = self._writer.execute(
            f"SELECT {_DECISION} FROM decision WHERE bandit = ? AND id = ?", (bandit, row.id)
        ).fetchone()
        return same_decision(row, DecisionRow(*stands))

    def _append(self, bandit: int, events: list[Event], added: list[tuple[int, Event]]) -> None:
        if not events:
            return
        numbers = self._numbers(bandit)
        for event in events:
            numbers[0] += 1
            event = event._replace(n=numbers[0])
            self._unwritten.setdefault(event.decision, []).append((bandit, *event, mark(event[1:])))
            added.append((bandit, event))

    def _flush(self) -> None:
        """Write the events gathered so far, all in one statement."""
        if self._unwritten:
            rows = [row for rows in self._unwritten.values() for row in rows]
            self._writer.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            self._unwritten.clear()

    def _settle(self, ask: Settle, added: list[tuple[int, Event]]) -> Settled:
        """Times do not go back along the numbers of decisions, so the number of the last one settled is all there is
        to remember; it is what stands in the place of a time in `after`."""
        self._flush()
        rows = self._writer.execute(
            f"SELECT d.seq, {', '.join('d.' + name for name in _DECISION.split(', '))}, o.kind FROM decision d "
            "LEFT JOIN event o ON o.bandit = d.bandit AND o.decision = d.id AND (o.kind = 3) = 0 "
            "WHERE d.bandit = ? AND d.seq > ? AND d.at <= ? ORDER BY d.seq LIMIT ?",
            (ask.bandit, ask.after[0], ask.until, ask.limit),
        ).fetchall()
        events = [
            Event(0, DEFAULT, ask.at, row.id, row.slot, row.how, ask.default, row.at)
            for row, kind in ((DecisionRow(*found[1:-1]), found[-1]) for found in rows)
            if kind is None
        ]
        self._append(ask.bandit, events, added)
        return Settled(len(events), (rows[-1][0], "") if rows else ask.after, len(rows) < ask.limit)

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with _sentence(self.target), self._reading:
            return self._reader.execute(sql, values).fetchall()

    def bandits(self) -> dict[str, int]:
        """The bandits in this journal, and their numbers."""
        return dict(self._rows("SELECT name, number FROM bandit ORDER BY name"))

    def events(self, bandit: int, after: Any = None, limit: int | None = None) -> Iterator[tuple[Any, Event]]:
        """The events after number `after`."""
        last, left = after or 0, limit
        sql = f"SELECT {_EVENT} FROM event WHERE bandit = ? AND n > ? ORDER BY n LIMIT ?"
        while left is None or left > 0:
            rows = self._rows(sql, bandit, last, _CHUNK if left is None else min(left, _CHUNK))
            for row in rows:
                yield row[0], Event(*row)
            if not rows:
                return
            last = rows[-1][0]
            left = None if left is None else left - len(rows)

    def decisions(self, bandit: int, by_time: bool = False) -> Iterator[DecisionRow]:
        """All decisions in the order they were written, which is that of time and of `known` as well."""
        last = 0
        sql = f"SELECT seq, {_DECISION} FROM decision WHERE bandit = ? AND seq > ? ORDER BY seq LIMIT {_CHUNK}"
        while rows := self._rows(sql, bandit, last):
            for row in rows:
                yield DecisionRow(*row[1:])
            last = rows[-1][0]

    def recent(self, bandit: int, limit: int) -> list[DecisionRow]:
        """The last decisions, newest first."""
        sql = f"SELECT {_DECISION} FROM decision WHERE bandit = ? ORDER BY seq DESC LIMIT ?"
        return [DecisionRow(*row) for row in self._rows(sql, bandit, limit)]

    def standing(self, bandit: int, ids: list[str]) -> dict[str, Standing]:
        """What is known of these decisions."""
        found = (self._rows(_STANDING, bandit, id) for id in ids)
        return {rows[0][0]: _standing(rows[0]) for rows in found if rows}

    def changes(self, bandit: int) -> list[tuple[Any, Event]]:
        """The changes of configuration, in order. Their ids begin with "#", by which the index finds them among
        millions of rewards; +n keeps SQLite from walking those in order instead."""
        named = "decision >= '#' AND decision < '$'"
        sql = f"SELECT {_EVENT} FROM event WHERE bandit = ? AND {named} AND kind = {CHANGE} ORDER BY +n"
        return [(row[0], Event(*row)) for row in self._rows(sql, bandit)]

    def first_at(self, bandit: int) -> int | None:
        """The time of the first decision."""
        rows = self._rows("SELECT at FROM decision WHERE bandit = ? AND seq = 1", bandit)
        return rows[0][0] if rows else None

    def snapshots(self, bandit: int) -> list[tuple[int, str]]:
        """The snapshots kept, newest first."""
        return self._rows("SELECT n, body FROM snapshot WHERE bandit = ? ORDER BY n DESC", bandit)

    def charts(self, bandit: int, width: int, since: int, until: int) -> list[tuple[int, str]]:
        """The cells of this width that begin in this time, oldest first."""
        sql = "SELECT start, body FROM chart WHERE bandit = ? AND width = ? AND start >= ? AND start < ? ORDER BY start"
        return self._rows(sql, bandit, width, since, until)

    def last_chart(self, bandit: int, width: int) -> tuple[int, str] | None:
        """The newest cell of this width."""
        sql = "SELECT start, body FROM chart WHERE bandit = ? AND width = ? ORDER BY start DESC LIMIT 1"
        return next(iter(self._rows(sql, bandit, width)), None)

    def tally(self, bandit: int, since: int, until: int, width: int) -> list[tuple[Any, ...]]:
        """Counts per stretch of time."""
        low, high = self._place("decision", "seq", bandit, since), self._place("decision", "seq", bandit, until)
        out = self._rows(
            "SELECT (at - ?) / ?, slot, how, count(*), 0, 0.0 FROM decision WHERE bandit = ? AND seq >= ? AND seq < ? "
            "GROUP BY 1, 2, 3", since, width, bandit, low, high,
        )  # fmt: skip
        low, high = self._place("event", "n", bandit, since), self._place("event", "n", bandit, until)
        return out + self._rows(
            "SELECT (at - ?) / ?, slot, how, 0, count(*), sum(value) FROM event WHERE bandit = ? AND n >= ? AND n < ? "
            f"AND kind < {LATE} GROUP BY 1, 2, 3", since, width, bandit, low, high,
        )  # fmt: skip

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

    def groups(self, bandit: int, since: int, until: int) -> list[tuple[int, int, float, float]]:
        """Outcomes by way of deciding."""
        return self._rows(
            "SELECT how, count(*), sum(value), sum(value * value) FROM event WHERE bandit = ? AND decided >= ? "
            f"AND decided < ? AND kind < {LATE} GROUP BY how ORDER BY how", bandit, since, until,
        )  # fmt: skip

    def counts(self, bandit: int) -> dict[str, int]:
        """How many decisions and how many events of each kind there are."""
        kinds = dict(self._rows("SELECT kind, count(*) FROM event WHERE bandit = ? GROUP BY kind", bandit))
        decisions = self._rows("SELECT count(*) FROM decision WHERE bandit = ?", bandit)[0][0]
        return {"decisions": decisions, **{str(kind): count for kind, count in kinds.items()}}

    def check(self) -> list[str]:
        """SQLite's own look at the file, and every row against its checksum."""
        try:
            found = [str(row[0]) for row in self._rows("PRAGMA integrity_check(10)")]
        except Damaged as error:
            return [str(error)]
        wrong = [f"SQLite finds the file damaged: {text}" for text in found if text != "ok"]
        for number in self.bandits().values():
            for table, fields, key in (("decision", _DECISION, "seq"), ("event", _EVENT, "n")):
                last, skip = 0, 0 if table == "decision" else 1
                sql = f"SELECT mark, {key}, {fields} FROM {table} WHERE bandit = ? AND {key} > ? ORDER BY {key} LIMIT ?"
                while rows := self._rows(sql, number, last, _CHUNK):
                    for row in rows:
                        if row[0] != mark(row[2 + skip :]):
                            wrong.append(f"{table} {row[1]} of bandit {number} was altered: its checksum differs")
                            break
                        if row[1] != last + 1:
                            wrong.append(f"{table} {last + 1} of bandit {number} is missing")
                            break
                        last = row[1]
                    else:
                        continue
                    break
        astray = self._rows(
            "SELECT e.decision FROM event e LEFT JOIN decision d ON d.bandit = e.bandit AND d.id = e.decision "
            f"WHERE e.kind < {CHANGE} AND (d.id IS NULL OR d.slot != e.slot OR d.how != e.how OR d.at != e.decided) "
            "LIMIT 3"
        )
        return wrong + [f"an outcome does not fit its decision {row[0]}" for row in astray]

    def now(self) -> int:
        """The system's clock."""
        return system_time()

    def forget(self) -> None:
        """In a forked child: leave the connections and the lock to the parent."""
        if self._lock is not None:
            self._lock.forget()

    def close(self) -> None:
        """Let go of the file."""
        for name in ("_reader", "_writer"):
            if hasattr(self, name):
                getattr(self, name).close()
        if self._lock is not None:
            self._lock.give()


def _standing(found: Any) -> Standing:
    return Standing(DecisionRow(*found[:6]), *found[6:])


def _connect(path: str, read_only: bool = False) -> sqlite3.Connection:
    if read_only and not os.path.exists(path):
        raise Unknown(f"There is no journal {path}.")
    where = Path(os.path.abspath(path)).as_uri() + ("?mode=ro" if read_only else "")
    return sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=False, timeout=10.0)


def _nothing(statements: str, number: int) -> None:
    raise Damaged(f"This journal has tables of version {number - 1}; open it for writing once to bring it forward.")


@contextlib.contextmanager
def _sentence(path: str) -> Iterator[None]:
    """SQLite's errors as one sentence each."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "not a database" in text or "malformed" in text or "no such table" in text or "unsupported file" in text:
            raise Damaged(f"{path} is not a journal, or it is damaged: {text}.") from None
        if "full" in text:
            raise StoreError(f"The disk of {path} is full; nothing of this call was written.") from None
        raise StoreError(f"SQLite cannot use {path}: {text}. Nothing of this call was written.") from None
