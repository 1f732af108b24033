"""How a group of asks becomes a few statements of SQLite, whatever its size.

Python lets other threads run at every step of a statement, and a writer that steps once per row waits its turn among
them once per row. So rows are written and looked up many to a statement."""

import contextlib
import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any

from driftbandit.live.errors import Conflict, Damaged
from driftbandit.live.journal import (
    Ask,
    Configure,
    Decide,
    Draw,
    Found,
    Keep,
    Note,
    Pay,
    Settle,
    Settled,
    Standing,
    Thin,
    judge,
    same_decision,
)
from driftbandit.live.records import CHANGE, DEFAULT, LATE, DecisionRow, Event, mark
from driftbandit.live.tables import DECISION, EVENT, KEPT, NOTE, checked_decision, standing, whole_decisions

TOGETHER = 64  # rows in one statement: below the 999 values that every SQLite takes
_DECISION = ", ".join("d." + name for name in DECISION.split(", "))
_OPEN = (
    f"SELECT d.seq, {_DECISION}, d.mark, o.kind FROM decision d "
    "LEFT JOIN event o ON o.bandit = d.bandit AND o.decision = d.id AND (o.kind = 3) = 0 WHERE d.bandit = ?"
)
DECISIONS, EVENTS = f"bandit, seq, {DECISION}, mark", f"bandit, n, {EVENT}, mark"

Numbers = dict[int, list[int]]  # bandit: numbers of its last event and of its last decision


class Group:
    """One transaction for a group of asks. `last` is kept by the caller from one group to the next, and thrown away
    when one fails."""

    def __init__(self, connection: sqlite3.Connection, last: Numbers) -> None:
        self._connection, self._last = connection, last
        self.added: list[tuple[int, Event]] = []
        self._unwritten: list[tuple[Any, ...]] = []

    def write(self, asks: list[Ask]) -> list[Any]:
        """The answers, once everything is on disk."""
        if len(asks) <= TOGETHER and _decisions_of_one_bandit(asks):
            with contextlib.suppress(sqlite3.IntegrityError):  # an id is there already
                return self._insert_decisions(asks)  # one statement is a transaction by itself
        self._connection.execute("BEGIN IMMEDIATE")
        answers: list[Any] = [None] * len(asks)
        for usual, part in groupby(enumerate(asks), lambda pair: type(pair[1]) in (Decide, Pay)):
            if usual:
                self._decide_and_pay(list(part), answers)
            else:
                for place, ask in part:
                    answers[place] = self._answer(ask)
        self._flush()
        self._connection.execute("COMMIT")
        return answers

    def _decide_and_pay(self, asks: list[tuple[int, Any]], answers: list[Any]) -> None:
        """All decisions, then all rewards: each kind in its own order, a bandit at a time."""
        for kind in (Decide, Pay):
            mine = [(place, ask) for place, ask in asks if type(ask) is kind]
            for bandit in dict.fromkeys(ask.bandit for _, ask in mine):
                places = [place for place, ask in mine if ask.bandit == bandit]
                these: list[Any] = [ask for _, ask in mine if ask.bandit == bandit]
                found = self._decide(these) if kind is Decide else self._pay(bandit, these)
                for place, answer in zip(places, found, strict=True):
                    answers[place] = answer

    def _answer(self, ask: Ask) -> Any:
        match ask:
            case Settle():
                return self._settle(ask)
            case Configure(bandit, serial, at, body):
                self._flush()
                there = self._connection.execute(
                    "SELECT at, body FROM event WHERE bandit = ? AND decision = ? AND (kind = 3) = 0", (bandit, ask.id)
                ).fetchone()
                if there is None:
                    self._append(bandit, [Event(0, CHANGE, at, ask.id, slot=serial, body=body)])
                return None if there in (None, (at, body)) else Conflict("The configuration was changed meanwhile.")
            case Keep(bandit, n, at, body):
                self._flush()
                marks = self._marks(bandit, n)
                self._connection.execute(
                    "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?, ?)",
                    (bandit, n, at, body, marks, mark((n, at, body, marks))),
                )
                self._connection.execute(
                    "DELETE FROM snapshot WHERE bandit = ?1 AND n NOT IN "
                    f"(SELECT n FROM snapshot WHERE bandit = ?1 ORDER BY n DESC LIMIT {KEPT})",
                    (bandit,),
                )
                return None
            case Draw():
                self._connection.execute("INSERT INTO chart VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", ask)
                return None
            case Thin():
                self._connection.execute("DELETE FROM chart WHERE bandit = ? AND width = ? AND start < ?", ask)
                return None
            case Note():
                self._connection.execute(NOTE.replace("@", ""), ask)
                return None
        raise TypeError(f"{ask!r:.60} cannot be written.")

    def _marks(self, bandit: int, n: int) -> int:
        """The sum of the checksums of the first n events, from that of the last snapshot on."""
        last, marks = self._connection.execute(
            "SELECT n, marks FROM snapshot WHERE bandit = ? AND n < ? ORDER BY n DESC LIMIT 1", (bandit, n)
        ).fetchone() or (0, 0)
        sql = "SELECT COALESCE(sum(mark), 0) FROM event WHERE bandit = ? AND n > ? AND n <= ?"
        return int(marks) + int(self._connection.execute(sql, (bandit, last, n)).fetchone()[0])

    def _numbers(self, bandit: int) -> list[int]:
        numbers = self._last.get(bandit)
        if numbers is None:
            events, decisions, *last = self._connection.execute(
                "SELECT events, decisions, (SELECT max(n) FROM event WHERE bandit = ?1), "
                "(SELECT max(seq) FROM decision WHERE bandit = ?1) FROM head WHERE bandit = ?1", (bandit,)
            ).fetchone() or (0, 0, -1, -1)  # fmt: skip
            if [events, decisions] != [number or 0 for number in last]:
                raise Damaged(f"The journal is damaged: the last rows of bandit {bandit} are missing.")
            numbers = self._last[bandit] = [events, decisions]
        return numbers

    # ---- decisions ---------------------------------------------------------------------------------------------------

    def _decide(self, asks: list[Decide]) -> list[Any]:
        """Many to a statement; one by one if an id is there already."""
        out: list[Any] = []
        for some in _chunks(asks):
            try:
                out += self._insert_decisions(some)
            except sqlite3.IntegrityError:  # which undoes the statement and leaves the transaction open
                out += [self._decide_one(ask.bandit, ask.row) for ask in some]
        return out

    def _insert_decisions(self, asks: list[Any]) -> list[Any]:
        """All of these, which are of one bandit and at most `TOGETHER`, or an error and none."""
        bandit = asks[0].bandit
        numbers = self._numbers(bandit)
        seq = numbers[1]
        values: list[Any] = []
        for ask in asks:
            seq += 1
            row = ask.row
            values += (bandit, seq, *row, mark(row))
        self._connection.execute(insert("decision", DECISIONS, len(asks)), values)
        numbers[1] = seq
        return [ask.row for ask in asks]

    def _decide_one(self, bandit: int, row: DecisionRow) -> Any:
        stands = self._connection.execute(
            f"SELECT {DECISION}, mark FROM decision WHERE bandit = ? AND id = ?", (bandit, row.id)
        ).fetchone()
        if stands is None:
            return self._insert_decisions([Decide(bandit, row)])[0]
        try:
            return same_decision(row, checked_decision(bandit, stands))
        except Damaged as error:
            return error

    # ---- outcomes ----------------------------------------------------------------------------------------------------

    def _pay(self, bandit: int, asks: list[Pay]) -> list[Any]:
        """Judge each reward by what stands, and by what those before it in this group have added. The outcomes are
        written in the order of their decisions."""
        self._flush()
        known = standings(self._rows, bandit, list(dict.fromkeys(ask.id for ask in asks)))
        answers = []
        added: list[Event] = []
        for ask in asks:
            events, answer = judge(ask, known.get(ask.id))
            answers.append(answer)
            added += events
            for event in events:
                stands = known[ask.id]
                assert isinstance(stands, Standing)
                known[ask.id] = stands._replace(late=event.value) if event.kind == LATE else stands._replace(
                    kind=event.kind, value=event.value, came=event.at
                )  # fmt: skip
        self._append(bandit, sorted(added, key=lambda event: (event.decided, event.decision)))
        return answers

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def _append(self, bandit: int, events: list[Event]) -> None:
        if not events:
            return
        numbers = self._numbers(bandit)
        for event in events:
            numbers[0] += 1
            event = event._replace(n=numbers[0])
            self._unwritten.append((bandit, *event, mark(event)))
            self.added.append((bandit, event))

    def _flush(self) -> None:
        """Write the events gathered so far."""
        for rows in _chunks(self._unwritten):
            self._connection.execute(insert("event", EVENTS, len(rows)), [value for row in rows for value in row])
        self._unwritten = []

    def _settle(self, ask: Settle) -> Settled:
        """Times do not go back along the numbers of decisions, but for those that were stored late: so the number of
        the last one settled is all there is to remember; it is what stands in the place of a time in `after`."""
        self._flush()
        after, until = ask.after[0], ask.until
        young = "SELECT seq FROM decision WHERE bandit = ? AND seq > ? AND at > ? ORDER BY seq LIMIT 1"
        old = f"{_OPEN} AND d.seq > ? AND d.seq < ? ORDER BY d.seq LIMIT ?"
        stop = (self._rows(young, ask.bandit, after, until) or [(1 << 62,)])[0][0]
        rows = self._rows(old, ask.bandit, after, stop, ask.limit)
        done = len(rows) < ask.limit
        if not done:  # up to here, with all of the same moment
            until = max(row[2] for row in rows)
            stop = (self._rows(young, ask.bandit, after, until) or [(1 << 62,)])[0][0]
            rows = self._rows(old, ask.bandit, after, stop, -1)
        reached = rows[-1][0] if rows else after
        if done and ask.deep:
            rows += self._rows(f"{_OPEN} AND d.seq > ? AND d.at <= ? AND o.kind IS NULL", ask.bandit, stop, ask.until)
        there = "SELECT 1 FROM event WHERE bandit = ? AND decision = ? AND (kind = 3) = 0"
        passed = any(row[2] > ask.settled for row in rows) and not self._rows(there, ask.bandit, f"!{until}")
        reached_until = until if passed else None
        pending = whole_decisions(ask.bandit, (row[1:-1] for row in rows if row[-1] is None))
        events = ask.events(pending, reached_until)
        self._append(ask.bandit, events)
        return Settled(sum(event.kind == DEFAULT for event in events), (reached, ""), done, reached_until)


def standings(rows: Any, bandit: int, ids: list[str]) -> Found:
    """What is known of these decisions."""
    found: Found = {}
    for some in _chunks(ids):
        for row in rows(_standing(len(some)), bandit, *some):
            found[row[0]] = standing(bandit, row)
    return found


def _decisions_of_one_bandit(asks: list[Ask]) -> bool:
    first = asks[0]
    return type(first) is Decide and all(type(ask) is Decide and ask.bandit == first.bandit for ask in asks)


def _chunks(things: list[Any]) -> Iterator[list[Any]]:
    for first in range(0, len(things), TOGETHER):
        yield things[first : first + TOGETHER]


@lru_cache(maxsize=4 * TOGETHER)
def insert(table: str, fields: str, rows: int) -> str:
    """A statement that writes so many rows."""
    row = f"({', '.join('?' * len(fields.split()))})"
    return f"INSERT INTO {table} ({fields}) VALUES {', '.join([row] * rows)}"


@lru_cache(maxsize=2 * TOGETHER)
def _standing(ids: int) -> str:
    return f"""
        SELECT {_DECISION}, d.mark, o.kind, o.value, l.value, o.at FROM decision d INDEXED BY decision_id
        LEFT JOIN event o ON o.bandit = d.bandit AND o.decision = d.id AND (o.kind = 3) = 0
        LEFT JOIN event l ON l.bandit = d.bandit AND l.decision = d.id AND (l.kind = 3) = 1
        WHERE d.bandit = ? AND d.id IN ({", ".join("?" * ids)})"""
