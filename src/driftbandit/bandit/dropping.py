"""How a transaction drops old rows of a bandit (`retention` decides which), and erases, hands over or deletes.

First the place from which the journal begins is moved, then the rows before it are deleted in batches. A row is added
to the daily counts and to the counts in `base` in the transaction that deletes it. So a kill in between does no harm:
the next run deletes the rest. Decisions go first, since one without its outcome would be given another. A day is split
where the configuration changed, so that periods of one configuration can still be compared."""

from bisect import bisect_right
from itertools import product
from typing import Any

from driftbandit.bandit.asks import PURGE, UPKEEP
from driftbandit.bandit.candidates import forget_features
from driftbandit.bandit.journal import DECIDED
from driftbandit.bandit.records import ARCHIVED, CHANGE, DAY, LATE, DecisionRow, make_erased_text, mark
from driftbandit.bandit.tables import DECISION, EVENT, Tables

_NEXT_CHANGE = "SELECT 1 FROM @event WHERE bandit = ? AND decision = ? AND (kind = 3) = false"
_COUNT = """INSERT INTO @daily AS d (bandit, start, slot, how, kind, n, total, squares) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (bandit, start, slot, how, kind)
    DO UPDATE SET n = d.n + excluded.n, total = d.total + excluded.total, squares = d.squares + excluded.squares"""


class Dropping(Tables):
    """The part of a `Commit` that drops rows."""

    def _run(self, sql: str, *values: Any) -> None:
        raise NotImplementedError

    def _alone_with_base(self, bandit: int) -> list[Any]:
        """The row (n, at) of `base`, which no other transaction changes meanwhile."""
        return self._rows("SELECT n, at FROM @base WHERE bandit = ?", bandit)

    def _old_decisions(self, bandit: int, limit: int, n: int, at: int) -> tuple[list[Any], str, list[Any]]:
        """Some decisions before the base: rows that begin with (time, slot, how, mark), and which they are, in SQL."""
        raise NotImplementedError

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
        self._run("INSERT INTO @snapshot VALUES (?, ?, ?, ?, ?, ?)", bandit, *values, mark(values))
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
                counted = [(at, slot, how, DECIDED, 0.0, mark) for at, slot, how, mark in rows]
                self._count("decision", bandit, changes, counted)
                self._run(f"DELETE FROM @decision WHERE {where}", *values)
                return len(rows), 0
            before = f"bandit = ? AND kind != {CHANGE} AND {self.dialect.cursor} <="
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

    def _lock_rows(self) -> None:
        """Wait until no other transaction has decisions or events that are not committed, and let none begin."""

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
        for beginning in (UPKEEP, ARCHIVED, PURGE):
            self._run("DELETE FROM @meta WHERE name = ?", beginning + name)
        return False

    def _count(self, table: str, bandit: int, changes: tuple[int, ...], rows: list[tuple[Any, ...]]) -> None:
        """Add rows (time, slot, how, kind, value, mark) to the counts of their days and to those of the base."""
        found: dict[tuple[int, ...], list[float]] = {}
        for at, slot, how, kind, value, _ in rows:
            changed = bisect_right(changes, at)
            start = max(at - at % DAY, changes[changed - 1] if changed else 0)
            sums = found.setdefault((start, slot, how, kind), [0, 0.0, 0.0])
            sums[0] += 1
            if kind <= LATE:
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
            text = make_erased_text(row._replace(id=hidden, available=available, context=context))
            sql = "UPDATE @decision SET id = ?, available = ?, context = ? WHERE bandit = ? AND id = ?"
            self._run(sql, hidden, available, text, bandit, id)
            ids |= {part for part, _, _ in self._parts(bandit, [row.at]) if part.startswith(f"{id}+")}
        where = "WHERE bandit = ? AND decision = ? AND (kind = 3) = ?"
        for one, late in product(ids, (False, True)):
            for fields in self._rows(f"SELECT {EVENT} FROM @event {where}", bandit, one, late):
                name = hidden + one[len(id) :]
                text = make_erased_text((*fields[:2], name, *fields[3:]))
                self._run(f"UPDATE @event SET decision = ?, body = ? {where}", name, text, bandit, one, late)
        return bool(found)
