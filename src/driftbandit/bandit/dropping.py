"""How a transaction drops old rows of a bandit (`retention` decides which), and erases, hands over or deletes.

First the place from which the journal begins is moved, then the rows before it are deleted in batches. A row is added
to the daily counts and to the counts in `base` in the transaction that deletes it. So a kill in between does no harm:
the next run deletes the rest. Decisions go first, since one without its outcome would be given another. A day is split
where the configuration changed, so that periods of one configuration can still be compared."""

from bisect import bisect_right
from itertools import product
from typing import Any

from driftbandit.bandit.asks import PURGE, UPKEEP, DropRows, EraseId, HandOver, MoveBase, PurgeRows
from driftbandit.bandit.candidates import forget_features
from driftbandit.bandit.ids import ARCHIVED
from driftbandit.bandit.journal import DECIDED
from driftbandit.bandit.records import CHANGE, DAY, LATE, DecisionRow, make_erased_text, mark
from driftbandit.bandit.tables import DECISION, EVENT, Tables

_NEXT_CHANGE = "SELECT 1 FROM @event WHERE bandit = ? AND decision = ? AND (kind = 3) = false"
_COUNT = """INSERT INTO @daily AS d (bandit, start, slot, how, kind, n, total, squares) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (bandit, start, slot, how, kind)
    DO UPDATE SET n = d.n + excluded.n, total = d.total + excluded.total, squares = d.squares + excluded.squares"""


class Dropping(Tables):
    """The part of a `Commit` that drops rows."""

    answers: dict[int, Any]

    def _run(self, sql: str, *values: Any) -> None:
        raise NotImplementedError

    def _alone_with_base(self, bandit: int) -> list[Any]:
        """The row (n, at) of `base`, which no other transaction changes meanwhile."""
        return self._rows("SELECT n, at FROM @base WHERE bandit = ?", bandit)

    def _old_decisions(self, ask: DropRows, n: int, at: int) -> tuple[list[Any], str, list[Any]]:
        """Decisions before the base: rows that begin with (time, slot, how, mark); which they are, in SQL; values."""
        raise NotImplementedError

    def _move_base(self, place: int, ask: MoveBase) -> None:
        """Answered with False where the base was moved or the configuration changed meanwhile."""
        there = [n for n, _ in self._alone_with_base(ask.bandit)] or [0]
        changed = self._rows(_NEXT_CHANGE, ask.bandit, f"#{ask.changes + 1}")
        self.answers[place] = there == [ask.before] and not changed
        if not self.answers[place]:
            return
        values = ask.n, ask.at, ask.body, ask.marks
        self._run("DELETE FROM @snapshot WHERE bandit = ? AND n <= ?", ask.bandit, ask.n)
        self._run("INSERT INTO @snapshot VALUES (?, ?, ?, ?, ?, ?)", ask.bandit, *values, mark(values))
        row = {"at": ask.until, "n": ask.n}
        if isinstance(ask.cursor, tuple):
            row |= dict(zip(("era", "xid", "seq"), ask.cursor, strict=True))
        given = ", ".join("?::text::xid8" if name == "xid" else "?" for name in row)
        self._run(
            f"INSERT INTO @base (bandit, events, event_marks, decisions, decision_marks, {', '.join(row)}) "
            f"VALUES (?, 0, 0, 0, 0, {given}) ON CONFLICT (bandit) "
            f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in row)}", ask.bandit, *row.values(),
        )  # fmt: skip

    def _drop(self, place: int, ask: DropRows) -> None:
        """Delete some rows before the base, and answer how many decisions and events."""
        self.answers[place] = 0, 0
        for n, at in self._alone_with_base(ask.bandit):
            rows, where, values = self._old_decisions(ask, n, at)
            if rows:
                self._count("decision", ask, [(at, slot, how, DECIDED, 0.0, mark) for at, slot, how, mark in rows])
                self._run(f"DELETE FROM @decision WHERE {where}", *values)
                self.answers[place] = len(rows), 0
                return
            before = f"bandit = ? AND kind != {CHANGE} AND {self.dialect.cursor} <="
            rows = self._rows(
                f"SELECT decided, slot, how, kind, value, mark, {self.dialect.columns} FROM @event WHERE {before} "
                f"(SELECT {self.dialect.cursor.strip('()')} FROM @base WHERE bandit = ?) "
                f"ORDER BY {self.dialect.order} LIMIT ?", ask.bandit, ask.bandit, ask.limit,
            )  # fmt: skip
            if rows:
                self._count("event", ask, [row[:6] for row in rows])
                sql = f"DELETE FROM @event WHERE {before} {self.dialect.position}"
                self._run(sql, ask.bandit, *rows[-1][6:])
                self.answers[place] = 0, len(rows)

    def _lock_rows(self) -> None:
        """Wait until no other transaction has decisions or events that are not committed, and let none begin."""

    def _hand_over(self, place: int, ask: HandOver) -> None:
        """A later writer sees that the bandit has moved; an earlier one has committed."""
        self.answers[place] = None
        if ask.target is None:
            self._run("DELETE FROM @moved WHERE bandit = ?", ask.bandit)
            return
        self._lock_rows()
        self._run("INSERT INTO @moved VALUES (?, ?, NULL) ON CONFLICT DO NOTHING", ask.bandit, ask.target)

    def _purge(self, place: int, ask: PurgeRows) -> None:
        """Delete some rows of a bandit, and everything else about it after the last row."""
        self.answers[place] = True
        for table, key in (("decision", "id"), ("event", self.dialect.cursor.strip("()"))):
            if self._rows(f"SELECT 1 FROM @{table} WHERE bandit = ? LIMIT 1", ask.bandit):
                some = f"SELECT {key} FROM @{table} WHERE bandit = ? LIMIT ?"
                self._run(
                    f"DELETE FROM @{table} WHERE bandit = ? AND ({key}) IN ({some})", *2 * [ask.bandit], ask.limit
                )
                return
        self.answers[place] = False
        for table in ("snapshot", "chart", "label", "base", "daily", "head"):
            self._run(f"DELETE FROM @{table} WHERE bandit = ?", ask.bandit)
        self._run("DELETE FROM @moved WHERE bandit = ? AND target IS NULL", ask.bandit)
        self._run("DELETE FROM @bandit WHERE number = ?", ask.bandit)
        for beginning in (UPKEEP, ARCHIVED, PURGE):
            self._run("DELETE FROM @meta WHERE name = ?", beginning + ask.name)

    def _count(self, table: str, ask: DropRows, rows: list[tuple[Any, ...]]) -> None:
        """Add rows (time, slot, how, kind, value, mark) to the counts of their days and to those of the base."""
        found: dict[tuple[int, ...], list[float]] = {}
        for at, slot, how, kind, value, _ in rows:
            changed = bisect_right(ask.changes, at)
            start = max(at - at % DAY, ask.changes[changed - 1] if changed else 0)
            sums = found.setdefault((start, slot, how, kind), [0, 0.0, 0.0])
            sums[0] += 1
            if kind <= LATE:
                sums[1] += value
                sums[2] += value * value
        for key, sums in sorted(found.items()):
            self._run(_COUNT, ask.bandit, *key, *sums)
        self._run(
            f"UPDATE @base SET {table}s = {table}s + ?, {table}_marks = {table}_marks + ? WHERE bandit = ?",
            len(rows), sum(row[-1] for row in rows), ask.bandit,
        )  # fmt: skip

    def _erase(self, place: int, ask: EraseId) -> None:
        """Replace the id in the decision and in its outcomes. The row keeps its place, arm, time and checksum; of its
        context the names of candidates stay. What was learned from a context stays in the record of the outcome, since
        every later state depends on it. A row that was erased has its new checksum in front of the text that it
        keeps: `records.intact`."""
        sql, ids = f"SELECT {DECISION} FROM @decision WHERE bandit = ? AND id = ?", {ask.id}
        found = self._rows(sql, ask.bandit, ask.id)
        for row in (DecisionRow(*fields) for fields in found):
            available, context = forget_features(row.available, row.context)
            text = make_erased_text(row._replace(id=ask.hidden, available=available, context=context))
            sql = "UPDATE @decision SET id = ?, available = ?, context = ? WHERE bandit = ? AND id = ?"
            self._run(sql, ask.hidden, available, text, ask.bandit, ask.id)
            ids |= {id for id, _, _ in self._parts(ask.bandit, [row.at]) if id.startswith(f"{ask.id}+")}
        where = "WHERE bandit = ? AND decision = ? AND (kind = 3) = ?"
        for id, late in product(ids, (False, True)):
            for fields in self._rows(f"SELECT {EVENT} FROM @event {where}", ask.bandit, id, late):
                hidden = ask.hidden + id[len(ask.id) :]
                text = make_erased_text((*fields[:2], hidden, *fields[3:]))
                self._run(f"UPDATE @event SET decision = ?, body = ? {where}", hidden, text, ask.bandit, id, late)
        self.answers[place] = bool(found)
