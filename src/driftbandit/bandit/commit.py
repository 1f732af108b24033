"""How a group of asks becomes one transaction of a few statements, whatever its size; and how SQLite writes it.
`pgcommit` has the same for PostgreSQL."""

import contextlib
import sqlite3
from collections.abc import Callable
from typing import Any

from driftbandit.bandit.asks import (
    AddCell,
    AddChange,
    AddReward,
    Ask,
    DecisionState,
    Found,
    Place,
    SetNote,
    Settle,
    Settled,
    Within,
    judge,
    match_decision,
)  # fmt: skip
from driftbandit.bandit.dropping import Dropping
from driftbandit.bandit.records import CHANGE, DEFAULT, DecisionRow, Event, log, mark, read_decision
from driftbandit.bandit.tables import DECISIONS, EVENTS, OLD_DECISIONS, SQLITE, TOGETHER, chunks, insert
from driftbandit.errors import DamagedJournal, RecordConflict, StoreError

Rows = Callable[..., list[Any]]  # the rows that a statement with these values gives
Check = Callable[[set[tuple[int, str, int]]], None]  # is given the events (bandit, id, kind) that were there already

_GONE = "This bandit was being moved to another database; send the call again with the same id."
_SNAPSHOTS = 3  # kept of a bandit
_SIMPLE = {
    AddCell: "INSERT INTO @chart VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
    SetNote: "INSERT INTO @meta AS there VALUES (?, ?) ON CONFLICT (name) "
    "DO UPDATE SET text = CASE WHEN ? THEN there.text ELSE excluded.text END",
}


class Commit(Dropping):
    """One transaction for a group of asks, by their places in the group. The two stores add how rows are written and
    found."""

    alone: bool  # whether no other process writes
    trusts = False  # whether a reward of a known decision is written before looking for the decision

    def __init__(self, connection: Any, asks: dict[int, Ask]) -> None:
        self._connection, self._asks = connection, asks
        self.answers: dict[int, Any] = {}
        self.again: dict[int, Ask] = {}  # to be sent once more, in another transaction

    def _decide(self, rows: dict[int, DecisionRow]) -> None:
        raise NotImplementedError

    def _append(self, events: list[tuple[int, Event]], check: Check) -> None:
        """Write events, except those that are there already, and hand these to `check`."""
        raise NotImplementedError

    def _exclude_others(self) -> None:
        """Keep other processes from settling the same bandits meanwhile, and from rewarding where rewards are added."""

    def _unsettled(self, ask: Settle) -> tuple[list[Any], bool, int | None]:
        """Decisions without an outcome, with their checksums; whether that was all; until when all are settled."""
        raise NotImplementedError

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        return list(self._connection.execute(self.dialect.translate(sql), values).fetchall())

    def _run(self, sql: str, *values: Any) -> None:
        self._connection.execute(self.dialect.translate(sql), values)

    def send(self) -> None:
        """Write everything, within a transaction of the caller's: decisions first, then their rewards."""
        self._exclude_others()
        kinds: dict[type, dict[int, Any]] = {}
        for place, ask in self._asks.items():
            kinds.setdefault(type(ask), {})[place] = ask
        if DecisionRow in kinds:
            self._decide(kinds[DecisionRow])
        if AddReward in kinds:
            self._add_rewards(kinds[AddReward])
        for place, ask in kinds.get(Settle, {}).items():
            self._settle(place, ask)
        for place, ask in kinds.get(AddChange, {}).items():
            self._change(place, ask)
        for place, ask in kinds.get(Within, {}).items():
            self.answers[place] = getattr(self, ask.method)(ask.bandit, *ask.given)
        for kind, sql in _SIMPLE.items():
            for place, ask in kinds.get(kind, {}).items():
                self._connection.execute(self.dialect.translate(sql), ask)
                self.answers[place] = None

    def _answer_decisions(self, rows: dict[int, DecisionRow]) -> None:
        """Some ids were used before: answer with the decisions that stand."""
        found = self.states(sorted({(row.bandit, row.id) for row in rows.values()}))
        for place, row in rows.items():
            state = found.get((row.bandit, row.id))
            self.answers[place] = StoreError(_GONE) if state is None else match_decision(row, state)

    def _add_rewards(self, asks: dict[int, AddReward]) -> None:
        """Judge each reward by what stands, and by those before it in this group. Outcomes are written in the order of
        their decisions, in which all processes wait for each other and do not deadlock. A decision whose
        outcome another process wrote first is judged once more."""
        known: Found = {}
        if self.trusts:
            known = {(ask.bandit, ask.id): DecisionState(ask.row) for ask in asks.values() if ask.row is not None}
        unknown = {(ask.bandit, ask.id) for ask in asks.values() if ask.row is None or not self.trusts}
        unknown |= {(ask.bandit, ask.hidden) for ask in asks.values() if ask.hidden is not None}
        known |= self.states(sorted(unknown)) if unknown else {}
        for place, ask in asks.items():
            if ask.hidden is not None and (ask.bandit, ask.hidden) in known:
                asks[place] = ask._replace(id=ask.hidden)
        if any(ask.adds for ask in asks.values()):
            known = self.add_parts(known)
        added: list[tuple[int, Event]] = []
        postponed: set[Place] = set()
        for place, ask in asks.items():
            where = ask.bandit, ask.id
            if where in postponed:
                self.again[place] = ask._replace(row=None)
                continue
            events, self.answers[place] = judge(ask, known.get(where))
            if len(events) > 1 and not self.alone:  # the late reward only if the default before it was written
                postponed.add(where)
                self.again[place] = ask._replace(row=None)
                events = events[:1]
            for event in events:
                added.append((ask.bandit, event))
                known[where] = known[where].add(event)  # type: ignore[union-attr]

        def check(there: set[tuple[int, str, int]]) -> None:
            lost = {(bandit, id.partition("+")[0]) for bandit, id, _ in there}
            for place, ask in asks.items() if lost else ():
                if (ask.bandit, ask.id) in lost:
                    self.again[place] = ask._replace(row=None)

        added.sort(key=lambda pair: (pair[0], pair[1].decided, pair[1].decision))
        self._append(added, check)

    def _settle(self, place: int, ask: Settle) -> None:
        rows, done, until = self._unsettled(ask)
        pending: Found = {}
        for row in rows:
            try:
                pending[ask.bandit, row[0]] = DecisionState(read_decision(row))
            except DamagedJournal as error:
                log.error("%s", error)
        events = ask.events(list(self.add_parts(pending).values()), until)  # type: ignore[arg-type]

        def check(there: set[tuple[int, str, int]]) -> None:
            written = sum(event.kind == DEFAULT for event in events) - sum(kind == DEFAULT for *_, kind in there)
            self.answers[place] = Settled(written, done, until)

        self._append([(ask.bandit, event) for event in events], check)

    def _change(self, place: int, ask: AddChange) -> None:
        event = ask.event()
        if ask.relearns and self._rows("SELECT 1 FROM @base WHERE bandit = ?", ask.bandit):
            self.answers[place] = ValueError(
                "Old events of this bandit were dropped (retention), so they cannot be learned again; "
                "change(..., from_now=True) starts a new policy with nothing learned, a new half-life with the "
                "current beliefs, new features with those about the others."
            )
            return

        def check(there: set[tuple[int, str, int]]) -> None:
            self.answers[place] = None
            if there:
                sql = "SELECT at, body FROM @event WHERE bandit = ? AND decision = ? AND (kind = 3) = false"
                if self._rows(sql, ask.bandit, event.decision) != [(ask.at, ask.body)]:
                    self.answers[place] = RecordConflict("The configuration was changed meanwhile.")

        self._append([(ask.bandit, event)], check)
        if ask.labels is not None:  # only where the change was written
            where = (
                "EXISTS (SELECT 1 FROM @event WHERE bandit = ? AND decision = ? AND (kind = 3) = false AND body = ?)"
            )
            change = ask.bandit, event.decision, ask.body
            self._run(f"DELETE FROM @label WHERE bandit = ? AND {where}", ask.bandit, *change)
            for label in ask.labels.items():
                sql = f"INSERT INTO @label SELECT number, ?, ?, name FROM @bandit WHERE number = ? AND {where}"
                self._run(sql, *label, ask.bandit, *change)

    def add_snapshot(self, bandit: int, n: int, at: int, body: str, cursor: Any) -> None:
        """Write a snapshot of the fold after n events, the last of which has this cursor, with the sum of the checksums
        of all of them, from that of the last snapshot on."""
        marks = self.sum_marks(bandit, n, cursor)
        if marks is None:  # rows are missing, which the next opening reports
            return
        values = n, at, body, marks
        for sql, row in (
            ("INSERT INTO @snapshot VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (bandit, n) DO UPDATE SET at = excluded.at, "
             "body = excluded.body, marks = excluded.marks, mark = excluded.mark", (*values, mark(values))),
            ("DELETE FROM @snapshot WHERE bandit = ? AND n < (SELECT min(n) FROM "
             "(SELECT n FROM @snapshot WHERE bandit = ? ORDER BY n DESC LIMIT ?) AS newest) "
             "AND n NOT IN (SELECT n FROM @base WHERE bandit = ?)", (bandit, _SNAPSHOTS, bandit)),
        ):  # fmt: skip
            self._run(sql, bandit, *row)


# ---- SQLite ----------------------------------------------------------------------------------------------------------

STORED_LATE = 3600 * 1_000_000  # microseconds by which a decision may reach the store after its own time
_YOUNG = "SELECT seq FROM decision WHERE bandit = ? AND seq > ? AND at > ? ORDER BY seq LIMIT 1"
_OLD = OLD_DECISIONS + " WHERE d.bandit = ? AND d.seq > ? AND d.seq < ? ORDER BY d.seq LIMIT ?"

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
        self._connection.execute(insert("decision", DECISIONS, len(rows)), values)
        for bandit, seq in last.items():
            self._last[bandit][1] = seq

    def _append(self, events: list[tuple[int, Event]], check: Check) -> None:
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
            self._connection.execute(insert("event", EVENTS, len(some)), [value for row in some for value in row])
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
