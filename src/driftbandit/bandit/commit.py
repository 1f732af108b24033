"""How a group of asks becomes one transaction of a few statements, whatever its size. `sqlite` and `pgcommit` add how
rows are written and found."""

from bisect import bisect_right
from collections.abc import Callable
from itertools import product
from typing import Any

from driftbandit.bandit import records
from driftbandit.bandit.asks import (
    PURGE,
    UPKEEP,
    AddCell,
    AddChange,
    AddReward,
    Ask,
    DecisionState,
    Found,
    NamedDecision,
    Place,
    SetNote,
    Settle,
    Settled,
    Within,
    judge,
    match_decision,
)  # fmt: skip
from driftbandit.bandit.candidates import forget_features
from driftbandit.bandit.records import DecisionRow, Event
from driftbandit.bandit.tables import DECIDED, DECISION, EVENT, Tables
from driftbandit.errors import DamagedJournal, RecordConflict, StoreError

Rows = Callable[..., list[Any]]  # the rows that a statement with these values gives
Check = Callable[[set[tuple[int, str, int]]], None]  # is given the events (bandit, id, kind) that were there already

_GONE = "This bandit was being moved to another database; send the call again with the same id."
STORED_LATE = 3600 * 1_000_000  # microseconds by which a decision may reach the store after its own time
_SNAPSHOTS = 3  # kept of a bandit
_NEXT_CHANGE = "SELECT 1 FROM @event WHERE bandit = ? AND decision = ? AND (kind = 3) = false"
_COUNT = """INSERT INTO @daily AS d (bandit, start, slot, how, kind, n, total, squares) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (bandit, start, slot, how, kind)
    DO UPDATE SET n = d.n + excluded.n, total = d.total + excluded.total, squares = d.squares + excluded.squares"""
_SIMPLE = {
    AddCell: "INSERT INTO @chart VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
    SetNote: "INSERT INTO @meta AS there VALUES (?, ?) ON CONFLICT (name) "
    "DO UPDATE SET text = CASE WHEN ? THEN there.text ELSE excluded.text END",
}


class Commit(Tables):
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

    def _append(self, events: list[tuple[int, Event]], check: Check, parts: bool | None = None) -> None:
        """Write events, except those that are there already, and hand these to `check`. Of rewards, `parts` is whether
        their parts were looked for."""
        raise NotImplementedError

    def _exclude_others(self) -> None:
        """Keep other processes from settling the same bandits meanwhile, and from rewarding where rewards are added."""

    def _unsettled(self, ask: Settle) -> tuple[list[Any], bool, int | None]:
        """Decisions without an outcome, with their checksums; whether that was all; until when all are settled."""
        raise NotImplementedError

    def _alone_with_base(self, bandit: int) -> list[Any]:
        """The row (n, at) of `base`, which no other transaction changes meanwhile."""
        return self._rows("SELECT n, at FROM @base WHERE bandit = ?", bandit)

    def _old_decisions(self, bandit: int, limit: int, n: int, at: int) -> tuple[list[Any], str, list[Any]]:
        """Some decisions before the base: rows that begin with (time, slot, how, mark), and which they are, in SQL."""
        raise NotImplementedError

    def _lock_rows(self) -> None:
        """Wait until no other transaction has decisions or events that are not committed, and let none begin."""

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        return list(self._connection.execute(self.dialect.translate(sql), values).fetchall())

    def _run(self, sql: str, *values: Any) -> None:
        self._connection.execute(self.dialect.translate(sql), values)

    def send(self) -> None:
        """Write everything, within a transaction of the caller's: decisions first, then their rewards."""
        self._exclude_others()
        kinds: dict[type, dict[int, Any]] = {}
        for place, ask in self._asks.items():
            kinds.setdefault(DecisionRow if isinstance(ask, DecisionRow) else type(ask), {})[place] = ask
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
        """Some ids were used before, and perhaps erased: answer with the decisions that stand."""
        hidden = {place: row.hidden for place, row in rows.items() if isinstance(row, NamedDecision)}
        ids = {(row.bandit, id) for place, row in rows.items() for id in (row.id, hidden.get(place, row.id))}
        found = self.states(sorted(ids))
        for place, row in rows.items():
            state = found.get((row.bandit, hidden.get(place, ""))) or found.get((row.bandit, row.id))
            self.answers[place] = StoreError(_GONE) if state is None else match_decision(row, state)

    def _add_rewards(self, asks: dict[int, AddReward]) -> None:
        """Judge each reward by what stands, and by those before it in this group. Outcomes are written in the order of
        their decisions, in which all processes wait for each other and do not deadlock. A decision whose
        outcome another process wrote first is judged once more."""
        known: Found = {}
        if self.trusts:
            known = {(ask.bandit, ask.id): DecisionState(ask.row) for ask in asks.values() if ask.row is not None}
        looked = [ask for ask in asks.values() if ask.row is None or not self.trusts]
        unknown = {(ask.bandit, id) for ask in looked for id in (ask.id, ask.hidden) if id is not None}
        known |= self.states(sorted(unknown)) if unknown else {}
        for place, ask in asks.items():
            if ask.hidden is not None and (ask.bandit, ask.hidden) in known:
                asks[place] = ask._replace(id=ask.hidden)
        parts = any(ask.config.adds for ask in asks.values())
        if parts:
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
                if (ask.bandit, ask.id) in lost:  # perhaps to a part, which this process did not look for
                    self.again[place] = ask._replace(row=None, config=ask.config._replace(adds=True))

        added.sort(key=lambda pair: (pair[0], pair[1].decided, pair[1].decision))
        self._append(added, check, parts)

    def _settle(self, place: int, ask: Settle) -> None:
        rows, done, until = self._unsettled(ask)
        pending: Found = {}
        for row in rows:
            try:
                pending[ask.bandit, row[0]] = DecisionState(records.read_decision(row))
            except DamagedJournal as error:
                records.log.error("%s", error)
        events = ask.events(list(self.add_parts(pending).values()), until)  # type: ignore[arg-type]

        def check(there: set[tuple[int, str, int]]) -> None:
            defaults = sum(event.kind == records.DEFAULT for event in events)
            written = defaults - sum(kind == records.DEFAULT for *_, kind in there)
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
             "body = excluded.body, marks = excluded.marks, mark = excluded.mark", (*values, records.mark(values))),
            ("DELETE FROM @snapshot WHERE bandit = ? AND n < (SELECT min(n) FROM "
             "(SELECT n FROM @snapshot WHERE bandit = ? ORDER BY n DESC LIMIT ?) AS newest) "
             "AND n NOT IN (SELECT n FROM @base WHERE bandit = ?)", (bandit, _SNAPSHOTS, bandit)),
        ):  # fmt: skip
            self._run(sql, bandit, *row)

    # ---- dropping rows: `retention` decides which -----------------------------------------------------------------
    #
    # First the place from which the journal begins is moved, then the rows before it are deleted in batches. A row is
    # added to the daily counts and to the counts in `base` in the transaction that deletes it. So a kill in between
    # does no harm: the next run deletes the rest. Decisions go first, since one without its outcome would be given
    # another. A day is split where the configuration changed, so that periods of one configuration can still be
    # compared.

    def move_base(
        self, bandit: int, before: int, changes: int, n: int, at: int, body: str, marks: int, cursor: Any, until: int
    ) -> bool:
        """Let the journal begin after n events that came before a midnight, `until`: the last of them at this time and
        with this cursor, their checksums adding up to `marks`, and the fold after them as text. False where the journal
        no longer begins after `before` events, or more than so many changes were made."""
        there = [n for n, _ in self._alone_with_base(bandit)] or [0]
        if there != [before] or self._rows(_NEXT_CHANGE, bandit, f"#{changes + 1}"):
            return False
        values = n, at, body, marks
        self._run("DELETE FROM @snapshot WHERE bandit = ? AND n <= ?", bandit, n)
        self._run("INSERT INTO @snapshot VALUES (?, ?, ?, ?, ?, ?)", bandit, *values, records.mark(values))
        row = {"at": until, "n": n}
        if isinstance(cursor, tuple):
            row |= dict(zip(("era", "xid", "seq"), cursor, strict=True))
        given = ", ".join("?::text::xid8" if name == "xid" else "?" for name in row)
        self._run(
            f"INSERT INTO @base (bandit, events, event_marks, decisions, decision_marks, {', '.join(row)}) "
            f"VALUES (?, 0, 0, 0, 0, {given}) ON CONFLICT (bandit) "
            f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in row)}", bandit, *row.values(),
        )  # fmt: skip
        return True

    def drop_rows(self, bandit: int, changes: tuple[int, ...], limit: int = 1000) -> tuple[int, int]:
        """Delete some rows before the base: the numbers of decisions and of events, both 0 when all is done. Daily
        counts are split at the times of all changes."""
        for n, at in self._alone_with_base(bandit):
            rows, where, values = self._old_decisions(bandit, limit, n, at)
            if rows:
                counted = [(at, slot, how, DECIDED, 0.0, checksum) for at, slot, how, checksum in rows]
                self._count("decision", bandit, changes, counted)
                self._run(f"DELETE FROM @decision WHERE {where}", *values)
                return len(rows), 0
            before = f"bandit = ? AND kind != {records.CHANGE} AND {self.dialect.cursor} <="
            rows = self._rows(
                f"SELECT decided, slot, how, kind, value, mark, {self.dialect.columns} FROM @event WHERE {before} "
                f"(SELECT {self.dialect.cursor.strip('()')} FROM @base WHERE bandit = ?) "
                f"ORDER BY {self.dialect.order} LIMIT ?", bandit, bandit, limit,
            )  # fmt: skip
            if rows:
                self._count("event", bandit, changes, [row[:6] for row in rows])
                sql = f"DELETE FROM @event WHERE {before} {self.dialect.position}"
                self._run(sql, bandit, *rows[-1][6:])
                return 0, len(rows)
        return 0, 0

    def hand_over(self, bandit: int, target: str | None) -> None:
        """Refuse from now on whatever is to be written about a bandit, since it was moved to a target; or, with None,
        no longer refuse it. A later writer sees that the bandit has moved; an earlier one has committed."""
        if target is None:
            self._run("DELETE FROM @moved WHERE bandit = ?", bandit)
            return
        self._lock_rows()
        self._run("INSERT INTO @moved VALUES (?, ?, NULL) ON CONFLICT DO NOTHING", bandit, target)

    def purge(self, bandit: int, name: str, limit: int = 2000) -> bool:
        """Delete some rows of a bandit; after the last of them, everything else about it. Whether there is more."""
        for table, key in (("decision", "id"), ("event", self.dialect.cursor.strip("()"))):
            if self._rows(f"SELECT 1 FROM @{table} WHERE bandit = ? LIMIT 1", bandit):
                some = f"SELECT {key} FROM @{table} WHERE bandit = ? LIMIT ?"
                self._run(f"DELETE FROM @{table} WHERE bandit = ? AND ({key}) IN ({some})", bandit, bandit, limit)
                return True
        for table in ("snapshot", "chart", "label", "base", "daily", "head"):
            self._run(f"DELETE FROM @{table} WHERE bandit = ?", bandit)
        self._run("DELETE FROM @moved WHERE bandit = ? AND target IS NULL", bandit)
        self._run("DELETE FROM @bandit WHERE number = ?", bandit)
        for beginning in (UPKEEP, records.ARCHIVED, PURGE):
            self._run("DELETE FROM @meta WHERE name = ?", beginning + name)
        return False

    def _count(self, table: str, bandit: int, changes: tuple[int, ...], rows: list[tuple[Any, ...]]) -> None:
        """Add rows (time, slot, how, kind, value, mark) to the counts of their days and to those of the base."""
        found: dict[tuple[int, ...], list[float]] = {}
        for at, slot, how, kind, value, _ in rows:
            changed = bisect_right(changes, at)
            start = max(at - at % records.DAY, changes[changed - 1] if changed else 0)
            sums = found.setdefault((start, slot, how, kind), [0, 0.0, 0.0])
            sums[0] += 1
            if kind <= records.LATE:
                sums[1] += value
                sums[2] += value * value
        for key, sums in sorted(found.items()):
            self._run(_COUNT, bandit, *key, *sums)
        self._run(
            f"UPDATE @base SET {table}s = {table}s + ?, {table}_marks = {table}_marks + ? WHERE bandit = ?",
            len(rows), sum(row[-1] for row in rows), bandit,
        )  # fmt: skip

    def erase(self, bandit: int, id: str, hidden: str) -> bool:
        """Replace an id in its decision and in the outcomes; whether it was there. The row keeps its place, arm, time
        and checksum; of its context the names of candidates stay. What was learned from a context stays in the record
        of the outcome, since every later state depends on it. A row that was erased has its new checksum in front of
        the text that it keeps: `records.intact`."""
        sql, ids = f"SELECT {DECISION} FROM @decision WHERE bandit = ? AND id = ?", {id}
        found = self._rows(sql, bandit, id)
        for row in (DecisionRow(*fields) for fields in found):
            available, context = forget_features(row.available, row.context)
            text = records.make_erased_text(row._replace(id=hidden, available=available, context=context))
            sql = "UPDATE @decision SET id = ?, available = ?, context = ? WHERE bandit = ? AND id = ?"
            self._run(sql, hidden, available, text, bandit, id)
            ids |= {part for part, _, _ in self._parts(bandit, [row.at]) if part.startswith(f"{id}+")}
        where = "WHERE bandit = ? AND decision = ? AND (kind = 3) = ?"
        for one, late in product(ids, (False, True)):
            for fields in self._rows(f"SELECT {EVENT} FROM @event {where}", bandit, one, late):
                name = hidden + one[len(id) :]
                text = records.make_erased_text((*fields[:2], name, *fields[3:]))
                self._run(f"UPDATE @event SET decision = ?, body = ? {where}", name, text, bandit, one, late)
        return bool(found)
