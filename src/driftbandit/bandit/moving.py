"""Moving bandits to another database while they decide.

A bandit belongs to one database at every moment. It is made in the target as one that is on its way, which no process
can open. Its rows are copied, and rows added meanwhile are copied again and again. Then one transaction of the source
hands it over: it locks the tables for a moment, so that every earlier write has been committed and every later one is
refused. The last rows are copied, the audit recomputes the copy's decisions, and one transaction of the target lets
processes open it. A mover that is killed at any point is run again and goes on.

Numbers of bandits and places of events differ between databases, so checksums are computed anew, from rows that fit
their old ones. Arms, states and propensities follow from the copied rows, and are the same bits."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from driftbandit.bandit.asks import PURGE, Within, upkeep_notes
from driftbandit.bandit.audit import audit_bandit
from driftbandit.bandit.journal import Named, match_names
from driftbandit.bandit.opening import Opened, is_url, latest, policy_maker, reading, writing
from driftbandit.bandit.records import Event, check_name, make_erased_text, mark, read_decision
from driftbandit.bandit.replica import Replica
from driftbandit.bandit.tables import DECISION, INSERT_DECISIONS, INSERT_EVENTS, columns
from driftbandit.errors import DamagedJournal, Moved, NotFound, RecordConflict, StoreError

_WRITER = 1  # of the rows of `head` in the target: no lease has this number
_TOGETHER = 5_000  # rows in one transaction
_LATE = 5_000_000  # microseconds by which a decision may usually reach the source after its own time
_SMALL = 2_000  # rows of a bandit that is proved in so short a time that it may wait for it
_PATIENCE = 30.0  # seconds for other transactions to end

_ARRIVE = """WITH made AS (INSERT INTO @bandit (name, created) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING number)
    INSERT INTO @moved SELECT number, NULL, %s FROM made"""
_BASE = """
    WITH made AS (
        INSERT INTO @base (bandit, at, n, events, event_marks, decisions, decision_marks, era, xid, seq)
        SELECT %s, %s, %s, %s, %s, %s, %s, era, xid, seq FROM @event WHERE bandit = %s
        ORDER BY event.era DESC, event.xid DESC, event.seq DESC LIMIT 1 ON CONFLICT DO NOTHING RETURNING *)
    INSERT INTO @head AS h SELECT bandit, %s, events, event_marks, decisions, decision_marks FROM made
    ON CONFLICT (bandit, writer) DO UPDATE SET events = h.events + excluded.events,
    event_marks = h.event_marks + excluded.event_marks, decisions = excluded.decisions,
    decision_marks = excluded.decision_marks"""
_WRITTEN = "SELECT COALESCE(sum(events), 0), COALESCE(sum(decisions), 0) FROM @head WHERE bandit = ?"
_ERASED = "SELECT count(*) FROM @decision WHERE bandit = ? AND substr(id, 1, 1) = '='"


class Move(NamedTuple):
    """What was done about one bandit."""

    bandit: str
    decisions: int
    events: int
    seconds: float  # for which no process could decide
    moved: bool = True  # False: it was moved before


def move(
    source: Any, target: Any, names: Sequence[str], *, address: str = "", policies: Mapping[str, type] | None = None
) -> Iterator[Move]:
    """Move bandits of a journal to a PostgreSQL database, one after the other; "button:*" stands for all whose names
    begin with "button:". `address` is sent to callers that still use the source, such as https://b.example.org;
    without it, the database."""
    if not is_url(target):
        raise ValueError("Bandits can be moved to a PostgreSQL database, postgresql://..., and to nothing else.")
    if not names:
        raise ValueError('Expected the names of bandits to move, such as button or "button:*".')
    reading(source).close()  # an error if it does not exist
    with ExitStack() as stack:
        here = writing(source)
        stack.callback(here.release)
        there = writing(target)
        stack.callback(there.release)
        if _identify(here.journal) == _identify(there.journal):
            raise ValueError("The source and the target are the same database; nothing was moved.")
        listed = [one for name in names for one in _matching(here.journal, name)]
        for name in dict.fromkeys(listed):
            yield _Mover(here, there, name, address or _describe(target), policies).run()


def write_map(path: str, name: str, upstream: str) -> None:
    """Add a bandit to a file that nginx's `map` includes: a pattern, since a plain text would match in upper case and
    in lower case."""
    line = f'"~^{name.replace(".", chr(92) + ".")}$" {upstream};'
    lines = Path(path).read_text().splitlines() if os.path.exists(path) else []
    key = line.split(" ", maxsplit=1)[0]
    Path(path + ".new").write_text("\n".join([*(one for one in lines if not one.startswith(key + " ")), line, ""]))
    os.replace(path + ".new", path)


def _identify(journal: Any) -> str:
    rows = journal._rows("SELECT max(epoch) FROM @version") if journal.live else [(journal.target,)]
    return str(rows[0][0])


def _describe(url: str) -> str:
    parts = urlsplit(url)
    return f"postgresql://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _matching(journal: Any, name: str) -> list[str]:
    """The bandits that a name stands for, also those whose move was begun."""
    if not name.endswith("*"):
        return [check_name(name)]
    condition, values = match_names([name])
    found = [str(row[0]) for row in journal._rows(f"SELECT name FROM @bandit WHERE {condition} ORDER BY name", *values)]
    if not found:
        raise NotFound(f"There is no bandit {name!r:.60} here.")
    return found


class _Mover:
    """The move of one bandit."""

    def __init__(self, here: Opened, there: Opened, name: str, home: str, policies: Any) -> None:
        self._here, self._there, self._name, self._home = here, there, name, home
        self._source: Any = here.journal
        self._target: Any = there.journal
        self._classes = dict(policies or {})
        self._number = self._copy = -1  # of the bandit in the source and in the target
        self._cursor: Any = None  # of the last event copied
        self._hidden = 0  # how many ids were erased when copying began
        self._since = 0  # the time of the last decision copied
        self._known: int | None = None  # decisions that knew fewer events have been proved
        self._fold: Any = None  # of the copy

    def run(self) -> Move:
        mine, other = self._source.find(self._name), self._target.find(self._name)
        if mine is None:
            raise NotFound(f"There is no bandit {self._name!r:.60} here.")
        if mine.target is not None and (other is None or other.origin is None):
            if other is None or other.target is not None:
                raise Moved(self._name, mine.target)
            return Move(self._name, *self._written(self._target, other.number)[::-1], 0.0, False)
        if mine.origin is not None:
            raise StoreError(f"Bandit {self._name} is being moved to this database; finish that first.")
        if other is not None and other.origin is None and other.target is None:
            raise RecordConflict(f"The target already has a bandit {self._name}; nothing of it was moved.")
        if not self._source.live and any(one.name == self._name for one in self._here.bandits if not one._closed):
            raise StoreError(f"Bandit {self._name} is open in this process; close it, since its journal is a file.")
        self._number = mine.number
        with self._source.claim(mine.number) as ours:
            if not ours or self._source.note(PURGE + self._name):
                raise StoreError(f"Another process moves bandit {self._name} or drops rows of it; try again later.")
            try:
                return self._move(mine, other)
            except DamagedJournal:
                self._purge(self._copy)
                self._ask(self._here, self._number, "hand_over", None)
                raise

    def _move(self, mine: Named, other: Named | None) -> Move:
        latest(self._source, self._number, policy_maker(self._classes))  # an error if its policy cannot be made here
        self._arrive(mine, other)
        began = time.monotonic()
        if mine.target is None:
            rows = self._copy_rows()
            if rows >= _SMALL:
                self._keep_snapshot()
                self._copy_rows()
                self._prove()
            self._copy_rows()
            began = time.monotonic()
            self._ask(self._here, self._number, "hand_over", self._home)
        if self._count_erased() != self._hidden:  # an id was erased after its decision had been copied
            self._purge(self._copy)
            self._arrive(mine, None)
        self._copy_last()
        self._keep_snapshot()
        self._prove()
        self._open()
        events, decisions = self._written(self._target, self._copy)
        return Move(self._name, decisions, events, time.monotonic() - began)

    # ---- the beginning -----------------------------------------------------------------------------------------------

    def _arrive(self, mine: Named, other: Named | None) -> None:
        """Make the bandit in the target, or go on with what an earlier run has made."""
        source, base = self._source, self._source.base(self._number)
        changes = source.changes(self._number)
        times = tuple(event.at for _, event in changes)
        while base and any(self._ask(self._here, self._number, "drop_rows", times)):
            pass
        self._hidden = self._count_erased()
        origin = f"{_identify(source)} {self._number} {base.n if base else 0} {self._hidden}"
        if other is not None and other.origin != origin:
            if other.origin is not None and other.origin.rsplit(" ", 2)[0] != origin.rsplit(" ", 2)[0]:
                raise RecordConflict(f"Another bandit {self._name} is being moved to the target; nothing was moved.")
            self._purge(other.number)  # moved away earlier; or rows were dropped or ids erased since it was made
        self._target.copy([(_ARRIVE, (self._name, mine.created, origin))])
        found = self._target.find(self._name)
        if found is None or found.origin != origin:
            raise RecordConflict(f"The target already has a bandit {self._name}; nothing of it was moved.")
        self._copy, self._cursor, self._since, self._known = found.number, None, 0, None
        if base is not None:
            self._copy_base(base, [event for cursor, event in changes if _order(cursor) <= _order(base.cursor)])
        done = self._written(self._target, self._copy)[0] - (base.n if base else 0)
        for cursor, _ in islice(source.events(self._number), done):
            self._cursor = cursor

    def _copy_base(self, base: Any, changes: list[Event]) -> None:
        """Where the journal begins whose old rows were dropped: the changes before, and the state then."""
        sql = "SELECT events, event_marks, decisions, decision_marks FROM @base WHERE bandit = ?"
        counts = self._source._rows(sql, self._number)[0]
        daily = self._source._rows("SELECT * FROM @daily WHERE bandit = ?", self._number)
        if self._target.base(self._copy) is None:
            place = self._copy, base.at, base.n, *counts, self._copy, _WRITER
            self._target.copy([self._insert_events(changes), (_BASE, place), *self._inserts("daily", daily)])
        body = dict(self._source.snapshots(self._number)).get(base.n)
        if body is None:
            raise DamagedJournal(f"The journal is damaged: the state with which {self._name} begins cannot be read.")
        data = {**json.loads(body), "cursor": self._target.base(self._copy).cursor}
        at = next(row[1] for row in self._source._snapshot_rows(self._number) if row[0] == base.n)
        marks = counts[1] + sum(mark(event[1:]) for event in changes)
        values = base.n, at, json.dumps(data, allow_nan=False, sort_keys=True), marks
        self._target.copy(self._inserts("snapshot", [(0, *values, mark(values))]))

    # ---- copying -----------------------------------------------------------------------------------------------------

    def _copy_rows(self, since: int | None = None) -> int:
        """Copy what the target does not have, decisions first: the events that they knew are there then."""
        count, place = 0, (max(0, self._since - _LATE) if since is None else since, "")
        sql = f"SELECT {DECISION}, mark FROM @decision WHERE bandit = ? AND (at, id) > (?, ?) ORDER BY at, id LIMIT ?"
        while rows := [read_decision(row) for row in self._source._rows(sql, self._number, *place, _TOGETHER)]:
            place = rows[-1].at, rows[-1].id
            there = "SELECT id FROM @decision WHERE bandit = ? AND id = ANY(?)"
            known = {row[0] for row in self._target._rows(there, self._copy, [row.id for row in rows])}
            fresh = [row._replace(bandit=self._copy) for row in rows if row.id not in known]
            if fresh:
                if self._known is not None:
                    self._known = min(self._known, *(row.known for row in fresh))
                texts = (make_erased_text(row) if row.id[0] == "=" else row.context for row in fresh)
                values = [(*row._replace(context=text), mark(row)) for row, text in zip(fresh, texts, strict=True)]
                self._target.copy([(INSERT_DECISIONS, [*columns(values), _WRITER])])
            count, self._since = count + len(fresh), max(self._since, place[0])
        events = self._source.events(self._number, self._cursor)
        while some := list(islice(events, _TOGETHER)):
            self._target.copy([self._insert_events([event for _, event in some])])
            count, self._cursor = count + len(some), some[-1][0]
        return count

    def _copy_last(self) -> None:
        """Copy until nothing is missing, now that nothing is added."""
        until, since = time.monotonic() + _PATIENCE, None
        wanted = self._written(self._source, self._number)
        while True:
            self._copy_rows(since)
            if self._written(self._target, self._copy) == wanted:
                return
            if time.monotonic() > until:
                raise DamagedJournal(f"Bandit {self._name} was not moved, since its last rows could not be read.")
            since = 0  # a decision that was stored long after its time
            time.sleep(0.005)

    def _insert_events(self, events: Sequence[Event]) -> tuple[str, list[Any]]:
        rows = []
        for event in events:
            fields = event[1:]
            kept = (*fields[:-2], make_erased_text(fields), fields[-1]) if event.decision[0] == "=" else fields
            rows.append((self._copy, *kept, mark(fields)))
        return INSERT_EVENTS, [self._target._era, *columns(rows), _WRITER]

    def _inserts(self, table: str, rows: Sequence[Any]) -> list[tuple[str, Any]]:
        """Statements that insert rows into a table whose first column is the bandit."""
        return [(f"INSERT INTO @{table} VALUES (%s{', %s' * (len(row) - 1)}) ON CONFLICT DO NOTHING",
                 (self._copy, *row[1:])) for row in rows]  # fmt: skip

    # ---- the end -----------------------------------------------------------------------------------------------------

    def _keep_snapshot(self) -> None:
        """Fold the copy, and keep its state, with which the first process that opens it begins."""
        until, events = time.monotonic() + _PATIENCE, self._written(self._target, self._copy)[0]
        replica = Replica(self._target, None, self._copy, self._classes)
        self._fold = replica.fold
        while True:
            replica.catch_up()
            if self._fold.n == events:
                break
            if time.monotonic() > until:
                raise StoreError("Another transaction in the target does not end; run this again when it has.")
            time.sleep(0.005)
        if self._fold.n:
            self._there.writer.submit([self._fold.snapshot(self._copy, replica.cursor)]).wait()

    def _prove(self) -> None:
        found = audit_bandit(self._target, self._name, self._copy, self._classes, self._known)
        if found.differences:
            raise DamagedJournal(
                f"Bandit {self._name} was not moved, since its copy cannot be proved: {found.differences[0]}."
            )
        self._known = self._fold.n

    def _open(self) -> None:
        """Let processes open the bandit in the target."""
        found = {table: self._source._rows(f"SELECT * FROM @{table} WHERE bandit = ?", self._number)
                 for table in ("chart", "label")}  # fmt: skip
        rows = [insert for table, some in found.items() for insert in self._inserts(table, some)]
        config = self._fold.config
        notes = [] if config is None else upkeep_notes(self._name, config._replace(archived=None), config)
        texts = [("INSERT INTO @meta VALUES (%s, %s) ON CONFLICT DO NOTHING", note[:2]) for note in notes]
        opened = ("DELETE FROM @moved WHERE bandit = %s", (self._copy,))
        self._target.copy([*rows, *texts, opened])

    # ---- both databases ----------------------------------------------------------------------------------------------

    def _written(self, journal: Any, number: int) -> tuple[int, int]:
        """How many events and decisions were ever written."""
        events, decisions = journal._rows(_WRITTEN, number)[0]
        return int(events), int(decisions)

    def _count_erased(self) -> int:
        """How many ids were erased in the source."""
        return int(self._source._rows(_ERASED, self._number)[0][0])

    def _purge(self, number: int) -> None:
        while number >= 0 and self._ask(self._there, number, "purge", self._name):
            pass

    @staticmethod
    def _ask(opened: Opened, number: int, method: str, *given: Any) -> Any:
        return opened.writer.submit([Within(number, method, given)]).wait()[0]


def _order(cursor: Any) -> tuple[int, ...]:
    """A cursor as numbers."""
    return tuple(map(int, cursor)) if isinstance(cursor, list | tuple) else (int(cursor),)
