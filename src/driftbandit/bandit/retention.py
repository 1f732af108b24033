"""Dropping rows older than a bandit's `retention`, day by day.

A journal begins after its last event before some midnight. Everything that its events have led to until then is kept as
a snapshot, from which every fold begins; decisions that knew fewer events, and the events themselves, are dropped. So
later states, later decisions and the audit of what remains are as before, bit for bit.
The order is: the day's decisions are proved, as in an audit, and exported; one transaction moves the beginning; others
delete the rows before it, a few at a time. A process that is killed in between leaves rows before the beginning, which
no reader uses and the next run deletes.

The last day with events, and everything after the last decision's state, stays however old it is. A change that made a
new policy learn all events again needs them: dropping waits until that change is itself old enough."""

import time
from collections import deque
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.bandit.asks import PURGE, UPKEEP, SetNote, Within
from driftbandit.bandit.audit import Known, Walk, compare_decision
from driftbandit.bandit.export import all_features, in_order, log_rows, sync_folder, write_whole
from driftbandit.bandit.records import CHANGE, DAY, Change, as_datetime
from driftbandit.errors import DamagedJournal, StoreError

_STORED_LATE = 3600 * 1_000_000  # microseconds by which a decision may reach the store after its own time
_REST = 4.0  # times as long as a deletion took, during which others write


class Pruned(NamedTuple):
    """What was dropped."""

    decisions: int = 0
    events: int = 0
    until: int | None = None  # microseconds since 1970: the journal begins with this day; None if all of it is there
    files: tuple[str, ...] = ()  # exported
    note: str = ""  # why not more was dropped, if anything else than its age kept it
    deleted: bool = False  # whether the whole bandit was deleted, since it had been archived for a day


class _End(NamedTuple):
    """The last event to be dropped, and how many changes there are up to it."""

    n: int
    cursor: Any
    at: int
    changes: int


def to_prune(journal: Any) -> list[str]:
    """The bandits of which rows are to be dropped, or were: those with a retention, and those that are archived."""
    out = []
    for name in journal.notes(UPKEEP):
        number = journal.number(name)
        changes = [] if number is None else journal.changes(number)
        config = Change.read(changes[-1][1].body).config if changes else None
        if config and (config.retention or config.archived or journal.base(number)):
            out.append(name)
    return out


def prune(replica: Any, name: str, exports: Any = None) -> Pruned:
    """Drop rows older than the retention of a bandit, if that is set, and those left over by an earlier run."""
    folder = None if exports is None else Path(exports) / name
    if folder is not None:
        _make_folder(folder)
    with replica.journal.claim(replica.number) as ours:
        if not ours:
            return Pruned(note="another process is dropping rows of this bandit")
        archived = replica.fold.config.archived
        if archived is None or replica.now() - archived < DAY:
            return _Pruning(replica, folder).run()
        if folder is None:
            return Pruned(note="it was archived, and is deleted when there is a folder for exports")
        path = folder / "archived.parquet"
        rows = in_order(log_rows(replica.journal, replica.number, "arm", replica.classes))
        count = write_whole(path, rows, all_features(replica.journal, replica.number))
        replica.writer.submit([SetNote(PURGE + name, name, first=False)]).wait()
        replica.end(f"Bandit {name} was archived, and is deleted now.")
        purge(replica.journal, replica.writer, name)
        return Pruned(count, replica.fold.n, files=(str(path),), deleted=True)


def purge(journal: Any, writer: Any, name: str) -> None:
    """Delete a bandit whose deletion has begun, if it still exists."""
    number = journal.number(name)
    while number is not None and writer.submit([Within(number, "purge", (name,))]).wait()[0]:
        time.sleep(0.01)


class _Pruning:
    """One run."""

    def __init__(self, replica: Any, folder: Path | None) -> None:
        self._replica, self._folder = replica, folder
        self._journal, self._number = replica.journal, replica.number
        self._files: list[str] = []
        self._decisions = self._events = 0  # dropped
        changes = [(event.at, Change.read(event.body)) for _, event in self._journal.changes(self._number)]
        self._changes = tuple(at for at, _ in changes)
        self._relearned = 0  # the last change that needs all events before it, and its time
        self._relearned_at = 0
        for serial, ((_, before), (at, after)) in enumerate(pairwise(changes), 2):
            if not after.from_now and before.config.learns_otherwise(after.config):
                self._relearned, self._relearned_at = serial, at

    def run(self) -> Pruned:
        """Drop day after day."""
        self._delete()
        note, retention = "", self._replica.fold.config.retention
        if retention is not None:
            self._replica.settle_all()
            self._replica.catch_up()
            limit = self._replica.now() - retention
            while not note and (first := self._next_midnight()) is not None and first <= limit:
                midnight = max(first, _end_of_day(self._relearned_at))
                if midnight > limit:
                    note = "the last change of policy, half-life or features has learned from all events before it"
                else:
                    note = self._drop_until(midnight)
        base = self._journal.base(self._number)
        begin = None if base is None else base.at
        return Pruned(self._decisions, self._events, begin, tuple(self._files), note)

    def _next_midnight(self) -> int | None:
        """The end of the first day that has not been dropped."""
        base = self._journal.base(self._number)
        for _, event in self._journal.events(self._number, None, 1):
            return _end_of_day(max(event.at, 0 if base is None else base.at))
        return None

    def _find_end(self, walk: Walk, midnight: int) -> _End | None:
        """The last event before a midnight that all later decisions used; None if nothing is to be dropped."""
        newest, later = self._journal.recent(self._number, 1), midnight + _STORED_LATE
        most = [row.known for row in newest] + [self._journal.least_known(self._number, later, later + DAY)]
        most = [known for known in most if known is not None]
        end = _End(walk.fold.n, walk.cursor, walk.fold.last_at, walk.fold.changes)
        for cursor, event in self._journal.events(self._number, walk.cursor):
            if end.n == min(most, default=0) or (event.at >= midnight and end.changes >= self._relearned):
                return end if end.n > walk.begin and end.changes >= self._relearned else None
            end = _End(end.n + 1, cursor, max(end.at, event.at), end.changes + (event.kind == CHANGE))
        return None

    def _drop_until(self, midnight: int) -> str:
        """Drop what came before a midnight; or why that cannot be done, in words."""
        replica, walk = self._replica, Walk(self._journal, self._number, self._replica.classes)
        end = self._find_end(walk, midnight)
        if end is None:
            return "the last events, and those that a later decision did not know, stay"
        latest = self._prove(walk, end, midnight)
        if replica.fold.config.wait is not None and latest > replica.fold.settled:
            return "a decision of that time waits for its outcome"
        walk.advance(end.n)
        body = walk.fold.write(walk.cursor)
        marks = self._journal.sum_marks(self._number, end.n, end.cursor)
        if marks is None or walk.cursor != end.cursor:
            raise DamagedJournal("The journal is damaged: events are missing; nothing of this day was dropped.")
        place = walk.begin, len(self._changes), end.n, end.at, body, marks, end.cursor, midnight
        if not self._commit("move_base", *place):
            return "the bandit was changed meanwhile; the next run goes on"
        self._delete()
        return ""

    def _prove(self, walk: Walk, end: _End, midnight: int) -> int:
        """Recompute every decision that knew fewer events, and export them; the time of the last of them."""
        latest = 0

        def proved() -> Iterator[Known]:
            nonlocal latest
            for known in walk.decisions(end.n, midnight + _STORED_LATE):
                difference = compare_decision(known) if walk.comparable and not known.incomplete else ""
                if difference or walk.differences:
                    what = f"decision {known.row.id} {difference}" if difference else walk.differences[0]
                    raise DamagedJournal(f"Nothing of this day was dropped, since it cannot be proved: {what}.")
                latest = max(latest, known.row.at)
                yield known

        if self._folder is None:
            deque(proved(), maxlen=0)
            return latest
        base = self._journal.base(self._number)
        day = 0 if base is None else base.at // DAY

        def day_of(row: dict[str, Any]) -> int:  # moments before or after midnight, not in a file of another run
            nonlocal day
            day = max(day, min(row["time"], midnight - 1) // DAY)
            return int(day)

        rows = in_order(log_rows(self._journal, self._number, "arm", self._replica.classes, proved()))
        features = all_features(self._journal, self._number)
        for _, some in groupby(rows, day_of):
            path = self._folder / f"{as_datetime(day * DAY):%Y-%m-%d}.parquet"
            write_whole(path, some, features)
            self._files.append(str(path))
        return latest

    def _delete(self) -> None:
        """Delete rows before the beginning, a few at a time."""
        while True:
            began = time.monotonic()
            decisions, events = self._commit("drop_rows", self._changes)
            if not decisions + events:
                return
            self._decisions += decisions
            self._events += events
            time.sleep(min(0.5, _REST * (time.monotonic() - began)))

    def _commit(self, method: str, *given: Any) -> Any:
        with self._replica.lock:
            call = self._replica.writer.submit([Within(self._number, method, given)])
        return call.wait()[0]


def _end_of_day(at: int) -> int:
    return at - at % DAY + DAY


def _make_folder(folder: Path) -> None:
    try:
        import pyarrow  # noqa: F401

        new = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for path in new:
            sync_folder(path.parent)
    except ImportError:
        raise StoreError("Exports need pyarrow: pip install '.[lab]' installs it.") from None
    except OSError as error:
        raise StoreError(f"{folder} cannot be made: {error.strerror}.") from None
