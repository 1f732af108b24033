"""A journal: what every store answers, and what both stores answer with the same SQL. `tables` has its tables.

`SQLite` (in `sqlite`) and `PostgreSQL` (in `postgres`) pass one test suite, `tests/live/test_journal.py`."""

import contextlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from driftbandit.bandit import records
from driftbandit.bandit.asks import Ask, DecisionState
from driftbandit.bandit.inputs import checked_labels
from driftbandit.bandit.records import DecisionRow, Event
from driftbandit.bandit.tables import DECIDED, DECISION, EVENT, OWNER, Tables
from driftbandit.errors import DamagedJournal, Moved, StoreError

DROPPED = "Events that this process had not read yet were dropped (retention); open the bandit again."
_DAILY = "SELECT start, slot, how, kind, n, total, squares FROM @daily WHERE bandit = ? AND start >= ? AND start < ?"


class Named(NamedTuple):
    """A bandit that has a name in this journal."""

    number: int
    created: int
    target: str | None = None  # where it was moved to
    origin: str | None = None  # where it is being moved from, while it has not been handed over


class Journal(Tables):
    """A store of decisions and events: what SQLite and PostgreSQL share. `commit` is called by one thread at a time;
    all threads may read."""

    target: str  # the path or URL it was opened by
    live: bool  # whether other processes may write as well
    change, change_order = "", ""  # SQL by which an index finds changes
    oldest, newest = "at, id", "at DESC, id DESC"  # orders of decisions
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

    def decisions(self, bandit: int, until: int | None = None, known: int = 0) -> Iterator[DecisionRow]:
        """All decisions in order of `known`, also those that were altered; at least those before a time that knew so
        many events."""
        return (DecisionRow(*records.restore_fields(row[:-1])) for row in self._scan("decision", bandit, until, known))

    def recent(self, bandit: int, limit: int) -> list[DecisionRow]:
        """The last decisions, newest first."""
        sql = f"SELECT {DECISION}, mark FROM @decision WHERE bandit = ? ORDER BY {self.newest} LIMIT ?"
        return [records.read_decision(row) for row in self._rows(sql, bandit, limit)]

    def standing(self, bandit: int, ids: list[str]) -> dict[str, DecisionState]:
        """These decisions with their outcomes; unknown ids are left out, altered decisions refused."""
        out = {}
        for (_, id), found in self.add_parts(self.states([(bandit, id) for id in ids])).items():
            if isinstance(found, DamagedJournal):
                raise found
            out[id] = found
        return out

    def changes(self, bandit: int) -> list[tuple[Any, Event]]:
        """The changes of configuration, in order, each with its cursor."""
        sql = f"SELECT {self.dialect.columns}, {EVENT}, mark FROM @event WHERE bandit = ? {self.change} AND kind = ?"
        rows = self._rows(f"{sql} ORDER BY {self.change_order or self.dialect.order}", bandit, records.CHANGE)
        return [self.read_event(bandit, row) for row in rows]

    def snapshots(self, bandit: int) -> list[tuple[int, str]]:
        """The snapshots, newest first: number of events, body. One that was altered is left out: older ones lead to the
        same state."""
        out = []
        for n, at, body, marks, found in self._snapshot_rows(bandit):
            if records.mark((n, at, body, marks)) == found:
                out.append((n, body))
            else:
                records.log.warning("The snapshot after %d events of bandit %d was altered and is not used.", n, bandit)
        return out

    def _snapshot_rows(self, bandit: int) -> list[Any]:
        return self._rows("SELECT n, at, body, marks, mark FROM @snapshot WHERE bandit = ? ORDER BY n DESC", bandit)

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

    # ---- names: a bandit that is moved has its name in both databases, here until it is handed over ------------------

    def bandits(self) -> dict[str, int]:
        """The bandits in this journal, and their numbers."""
        return dict(
            self._rows("SELECT name, number FROM @bandit WHERE number NOT IN (SELECT bandit FROM @moved) ORDER BY name")
        )

    def find(self, name: str) -> Named | None:
        """The bandit of this name, also one that was moved away or is on its way here."""
        sql = "SELECT number, created, target, origin FROM @bandit LEFT JOIN @moved ON bandit = number WHERE name = ?"
        return next((Named(*row) for row in self._rows(sql, name)), None)

    def number(self, name: str) -> int | None:
        """The number of the bandit with this name, or None; an error if it decides in another database."""
        found = self.find(name)
        if found is None:
            return None
        if found.target is not None:
            raise Moved(name, found.target)
        if found.origin is not None:
            raise StoreError(f"Bandit {name} is being moved to this database; try again in a moment.")
        return found.number

    def names(
        self, search: str = "", after: str = "", limit: int = 1 << 40, among: Sequence[str] = (),
        labels: Mapping[str, str] | None = None, archived: bool = False,
    ) -> list[str]:  # fmt: skip
        """Names of bandits, in order: those after a name that contain a text, in upper or lower case, and have all of
        these labels; those that are archived, or those that are not; if names are given, only those `among` them, where
        "button:*" stands for all that begin with "button:"."""
        if "\0" in search + after:  # in no name, and PostgreSQL takes no such text
            return []
        pattern = "".join("!" + letter if letter in "!%_" else letter for letter in search.lower())
        only, among_values = match_names(among)
        pairs = list(checked_labels(labels or {}).items())
        labelled = (
            "SELECT bandit AS number, name FROM @label WHERE label = ? AND value = ?"  # by an index in this order
        )
        others = f" AND number IN (SELECT number FROM ({labelled}) AS other)" * (len(pairs) - 1)
        sql = (
            f"SELECT name FROM {f'({labelled}) AS labelled' if pairs else '@bandit'} WHERE name > ? "
            f"AND lower(name) LIKE ? ESCAPE '!' AND {only}{others} AND name {'' if archived else 'NOT '}IN "
            "(SELECT text FROM @meta WHERE substr(name, 1, ?) = ?) AND number NOT IN (SELECT bandit FROM @moved) "
            "ORDER BY name LIMIT ?"
        )
        wanted = *chain(*pairs[:1]), after, f"%{pattern}%", *among_values, *chain(*pairs[1:])
        found = self._rows(sql, *wanted, len(records.ARCHIVED), records.ARCHIVED, limit)
        return [str(row[0]) for row in found]

    # ---- counting ----------------------------------------------------------------------------------------------------

    def _between(self, table: str, bandit: int, since: int, until: int) -> tuple[str, list[Any]]:
        """SQL for the rows of a stretch of time, and its values."""
        raise NotImplementedError

    def first_at(self, bandit: int) -> int | None:
        """The time of the first decision; where it was dropped, the beginning of its day."""
        daily = self._rows("SELECT min(start) FROM @daily WHERE bandit = ?", bandit)
        rows = self._rows(f"SELECT at FROM @decision WHERE bandit = ? ORDER BY {self.oldest} LIMIT 1", bandit)
        found = [int(row[0]) for row in daily + rows if row[0] is not None]
        return min(found, default=None)

    def least_known(self, bandit: int, since: int, until: int) -> int | None:
        """The fewest events that a decision of this time knew."""
        where, values = self._between("decision", bandit, since, until)
        return self._rows(f"SELECT min(known) FROM @decision WHERE {where}", *values)[0][0]  # type: ignore[no-any-return]

    def tally(
        self, bandit: int, since: int, until: int, width: int, due: tuple[int, int] | None = None
    ) -> list[tuple[Any, ...]]:
        """Counts per stretch of `width` microseconds: (stretch, slot, how, decisions, outcomes, sum of rewards).
        Outcomes count when they were written. With `due`, a wait and the time up to which all decisions are settled,
        they count when their decision was that old, and only if it is settled. What was dropped of a day counts at its
        beginning."""
        where, values = self._between("decision", bandit, since, until)
        out = self._rows(
            "SELECT (at - ?) / ?, slot, how, count(*), 0, CAST(0 AS float8) FROM @decision "
            f"WHERE {where} GROUP BY 1, 2, 3", since, width, *values,
        )  # fmt: skip
        out += [
            ((start - since) // width, slot, how, rows, 0, 0.0)
            if kind == DECIDED
            else ((start - since) // width, slot, how, 0, rows, total)
            for start, slot, how, kind, rows, total, _ in self._rows(_DAILY, bandit, since, until)
            if kind < records.LATE
        ]
        if due is None:
            where, values = self._between("event", bandit, since, until)
            return out + self._rows(
                "SELECT (at - ?) / ?, slot, how, 0, count(*), sum(value) FROM @event "
                f"WHERE {where} AND kind < {records.LATE} GROUP BY 1, 2, 3", since, width, *values,
            )  # fmt: skip
        since, until = since - due[0], min(until - due[0], due[1] + 1)
        where, values = self._between("decision", bandit, since, until)
        out += self._outcomes_of_dropped(bandit, since, until, width, due[0])
        # One look per decision, whatever the server believes about the number of rows.
        return out + self._rows(
            "SELECT (at - ?) / ?, slot, how, 0, count(value), sum(value) FROM (SELECT at, slot, how, "
            "(SELECT value FROM @event o WHERE o.bandit = d.bandit AND o.decision = d.id AND (o.kind = 3) = false) "
            f"AS value FROM @decision d WHERE {where}) AS paid WHERE value IS NOT NULL GROUP BY 1, 2, 3",
            since, width, *values,
        )  # fmt: skip

    def _outcomes_of_dropped(self, bandit: int, since: int, until: int, width: int, wait: int) -> list[Any]:
        """The same counts of outcomes that came after the journal's beginning, of decisions from before it."""
        found = self._rows("SELECT at FROM @base WHERE bandit = ?", bandit)
        if not found or not since - records.DAY < found[0][0] < until + records.DAY:
            return []
        where, values = self._between("event", bandit, found[0][0] - records.DAY, found[0][0] + wait + records.DAY)
        return self._rows(
            "SELECT (decided - ?) / ?, slot, how, 0, count(value), sum(value) FROM @event e "
            f"WHERE {where} AND kind < {records.LATE} AND decided >= ? AND decided < ? AND NOT EXISTS "
            "(SELECT 1 FROM @decision d WHERE d.bandit = e.bandit AND d.id = e.decision) GROUP BY 1, 2, 3",
            since, width, *values, since, until,
        )  # fmt: skip

    def groups(self, bandit: int, starts: list[int], until: int) -> list[tuple[int, int, int, float, float]]:
        """For each period of time (they begin at `starts`; the last ends at `until`) and each way of deciding:
        outcomes, sum and sum of squares of rewards of decisions made then, as (period, how, count, sum, squares)."""
        dropped = [
            (bisect_right(starts, start) - 1, how, rows, total, squares)
            for start, _, how, kind, rows, total, squares in self._rows(_DAILY, bandit, starts[0], until)
            if records.REWARD <= kind < records.LATE
        ]
        return dropped + self._rows(
            f"SELECT {_period(starts, 0, len(starts))}, how, count(*), sum(value), sum(value * value) FROM @event "
            f"WHERE bandit = ? AND decided >= ? AND decided < ? AND kind < {records.LATE} GROUP BY 1, 2 ORDER BY 1, 2",
            bandit, starts[0], until,
        )  # fmt: skip

    def count_decisions(self, bandit: int) -> int:
        """How many decisions were written, by `head`; those that were dropped count too."""
        return int(self._rows("SELECT COALESCE(sum(decisions), 0) FROM @head WHERE bandit = ?", bandit)[0][0])

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
        for table, name in (("decision", 0), ("event", 2)):
            for row in self._scan(table, bandit):
                if records.intact(row[:-1], row[-1]) is None:
                    wrong.append(records.describe_altered(table, row[name], bandit))
                    break
            wrong += filter(None, [self._compare_head(table, bandit)])
        for n, at, body, marks, found in self._snapshot_rows(bandit):
            if records.mark((n, at, body, marks)) != found:
                wrong.append(records.describe_altered("the snapshot after", f"{n} events", bandit))
        astray = self._rows(
            f"SELECT e.decision FROM @event e LEFT JOIN @decision d ON d.bandit = e.bandit AND d.id = {OWNER} "
            "LEFT JOIN @base b ON b.bandit = e.bandit "
            f"WHERE e.bandit = ? AND e.kind IN (1, 2, 3, {records.PART}) AND ("
            # A decision that was dropped may have a late outcome.
            f"(d.id IS NULL AND e.decided > COALESCE(b.at + {records.DAY}, -1)) "
            "OR d.slot != e.slot OR d.how != e.how OR d.at != e.decided "
            "OR e.probability != COALESCE(d.probability, 0.0) "
            f"OR e.kind != {records.PART} AND substr(d.id, 1, 1) != '=' "
            "AND COALESCE(e.body, '') != COALESCE(d.context, '')) LIMIT 3",
            bandit,
        )
        return wrong + [f"an outcome does not fit its decision {row[0]}" for row in astray]


def _period(starts: list[int], low: int, high: int) -> str:
    """SQL for the number of the period in which a decision was made, by bisection: cheap for thousands of periods."""
    if high - low == 1:
        return str(low)
    middle = (low + high) // 2
    return (
        f"CASE WHEN decided < {int(starts[middle])} THEN {_period(starts, low, middle)} "
        f"ELSE {_period(starts, middle, high)} END"
    )


def match_names(among: Sequence[str]) -> tuple[str, list[Any]]:
    """A condition on names in SQL, and its values; "button:*" stands for all names that begin with "button:"."""
    lengths = [(len(one) - 1, one[:-1]) if one.endswith("*") else (1 << 10, one) for one in among]
    return f"({' OR '.join(['substr(name, 1, ?) = ?'] * len(among)) or '1 = 1'})", list(chain.from_iterable(lengths))
