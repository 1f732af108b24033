"""A bandit's own copy of the fold, kept up to date from its journal, with its snapshots, clock and defaults.

With SQLite the writer hands over every event it has written; with PostgreSQL a follower reads what any process wrote.
Either way the events come in the one order in which all fold them."""

import contextlib
import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from driftbandit.bandit import reporting
from driftbandit.bandit.asks import Settle, Settled
from driftbandit.bandit.fold import Fold, make_player
from driftbandit.bandit.opening import arithmetic, latest, policy_maker
from driftbandit.bandit.records import Event, log
from driftbandit.errors import DamagedJournal, StoreError
from driftbandit.spec.half_life import SECOND

_SNAPSHOT_AGE = 3600 * SECOND  # between two snapshots at most, while events come in: a small bandit has few of them
_SMALL_STEP = 32  # events between two snapshots of a small bandit: folding them takes some milliseconds
_LEFT_OVER = 8  # events since the last snapshot for which closing writes another
_LOOK = 1.0  # seconds: a process that follows a journal looks several times in it
_OFTEN, _RARELY = SECOND // 20, 60 * SECOND  # least and most time between two looks for decisions that are old enough
_DEEP = 60 * SECOND  # between two looks for decisions that were stored long after their time
_LATE_SWITCH = 1000  # events after which a third value among the rewards is a surprise
_CHECKED = 50  # rewards between two looks at how they are reported
_OURS = 0.05  # seconds to wait for our own record to come back from PostgreSQL


class Clock:
    """The clock of a bandit, which never goes back: integer microseconds since 1970. Where the source has been set
    back, the latest time seen so far; a warning is given each time it happens."""

    REPORTED = SECOND  # smaller steps back give no warning

    def __init__(self, source: Callable[[], int]) -> None:
        self.source, self.last = source, 0
        self.set_back = 0  # by how much the source is behind the latest time
        self.ahead = 0  # added to the source, after it was once far ahead: `Bandit.resume_clock`

    def now(self) -> int:
        """The time, at least that of the last call."""
        seen = self.source() + self.ahead
        if seen >= self.last:
            self.last = seen
            self.set_back = 0
            return seen
        behind = self.last - seen
        if behind > self.REPORTED and self.set_back == 0:
            self.set_back = behind
            warnings.warn(
                f"The clock was set back by {behind / SECOND:.1f} s; times stay the same until it has caught up. "
                "`driftbandit live clock JOURNAL BANDIT` lets them advance at once.",
                RuntimeWarning,
                stacklevel=3,
            )
        return self.last

    def behind(self) -> int:
        """By how much the source is behind the latest time."""
        return max(0, self.last - self.source() - self.ahead)

    def at_least(self, microseconds: int) -> None:
        """Never return a time before this one, which is in the journal."""
        self.last = max(self.last, microseconds)


class Replica:
    """The fold of one bandit in one process."""

    def __init__(
        self, journal: Any, writer: Any, number: int, classes: dict[str, type], snapshot_every: int = 0,
        clock: Callable[[], int] | None = None, compiled: bool = False, fold: Fold | None = None,
    ) -> None:  # fmt: skip
        """`journal` is a `Journal`, or the `Memory` of a bandit without one. Without a writer it is only read, and with
        snapshot_every=0 no snapshots are made."""
        self.journal, self.writer, self.number = journal, writer, number
        self.lock = threading.RLock()
        self.snapshot_every = snapshot_every
        self.clock = Clock(clock or self.journal.now)
        self.classes, self._make = classes, policy_maker(classes)  # the user's policies; `change` may add some
        self.next_look = self._next_deep = 0  # for decisions that are old enough
        self._real_time = clock is None
        self._logged = 0  # warnings about how rewards are reported
        self._plays: tuple[str, str] | None = None  # the policy, and the one that it played, at the last look
        self.next_check = _CHECKED  # events after which to look next at how rewards are reported
        self._owner: Any = None
        self._closed = False
        self._stuck = ""  # why no further event can be folded
        self.stopped = False  # whether it is closed or stuck
        self._reading = threading.Lock()
        self.arithmetic_checked = False  # whether the journal is known to have the arithmetic of this process
        self.note = ""  # a finding on opening, for `health`
        self.cursor: Any  # how far the fold has read
        self.fold, self.cursor = (
            latest(self.journal, number, self._make, compiled=compiled) if fold is None else (fold, fold.n)
        )
        self._snapshot_at, self._kept = self.fold.last_at, self.fold.n
        self._follow_clock()
        made = [] if writer is None else self.journal.recent(number, 1)
        self.clock.at_least(max([self.fold.last_at, *(row.at for row in made)]))

    def compile(self) -> bool:
        """`View.compile`. All is compiled before: decisions go on meanwhile, and wait only for a copy."""
        before = self.fold.player
        if not hasattr(before, "prepare"):
            made: Any = make_player(
                before.policy, before.n_arms, before.key, before.half_life, before.time, True, None,
                before.n_features, before.joint,
            )  # fmt: skip
            made.prepare()
            with self.lock:
                if self.stopped or self.fold.player is not before or before.n_arms != made.n_arms:
                    return False
                made.load(before.dump())
                self.fold.player = made
        return True

    def arithmetic(self, policy: str | None = None) -> str:
        """The version of a policy's arithmetic in this process; without a text, of the policy that decides."""
        return arithmetic(self.fold.player.policy if policy is None else self._make(policy))

    def _follow_clock(self) -> None:
        self.clock.ahead = self.fold.config.ahead if self.fold.config is not None else 0

    def start(self, owner: Any) -> None:
        """Read what the snapshot does not hold, and listen to what comes."""
        self._owner = owner
        if not self.journal.live:
            with self.lock:
                self.writer.listeners.setdefault(self.number, []).append(self._absorb)
        if self._real_time:  # a simulation's clock moves only between its own calls
            self.writer.idle.append(self.sweep)
        if self.snapshot_every:  # in memory all is folded
            self._read()
        if self.journal.live:
            self.journal.follow(self)

    # ---- folding -----------------------------------------------------------------------------------------------------

    def _read(self) -> int:
        """Fold whatever the journal holds beyond the cursor."""
        with self._reading:  # decisions go on while the journal is read
            if self._stuck:
                return 0
            before = self.fold.n
            try:
                self._fold_in_parts(self.journal.events(self.number, self.cursor))
            except DamagedJournal as error:
                raise self.stop(error) from error
            return self.fold.n - before

    def take(self, after: Any, news: Any) -> None:
        """Fold the events that a follower has read after a cursor, or stop at the damage that it has found. If another
        thread has read meanwhile, it has folded them."""
        with self._reading, contextlib.suppress(Exception):  # the next call reports it
            if self.stopped or self.cursor != after:
                return
            if isinstance(news, DamagedJournal):
                self.stop(news)
            else:
                self._fold_in_parts(news)

    def _fold_in_parts(self, events: Iterable[tuple[Any, Event]]) -> None:
        """Fold events with their cursors, and stop at each that is to have a snapshot."""
        batch: list[Event] = []
        cursor, due = self.cursor, self._until_snapshot()
        for cursor, event in events:
            batch.append(event)
            if len(batch) >= due:
                self._fold(batch, cursor)
                batch, due = [], self._until_snapshot()
        self._fold(batch, cursor)

    def _absorb(self, events: list[Event]) -> None:
        """Fold the events just written. It is written, even if folding it fails: the next call reports it."""
        with self.lock, contextlib.suppress(Exception):
            news = [(event.n, event) for event in events if event.n > self.fold.n]
            if self.stopped or not news:
                return
            if news[0][0] != self.fold.n + 1:
                self.stop(DamagedJournal(f"Event {self.fold.n + 1} is missing."))
            else:
                self._fold_in_parts(news)

    def _fold(self, events: list[Event], cursor: Any) -> None:
        if not events:
            return
        with self.lock:
            fold, changes = self.fold, self.fold.changes
            try:
                fold.apply(events)
            except Exception as error:
                raise self.stop(error) from error
            self.cursor = cursor
            if fold.changes != changes:
                self._follow_clock()
                if self.arithmetic_checked and fold.config.arithmetic != self.arithmetic():
                    text = f"the journal is decided by {fold.config.arithmetic} from here on, and this process has "
                    raise self.stop(ValueError(text + self.arithmetic()))
            self.clock.at_least(fold.last_at)
            if self.writer is not None:
                self.check_reporting()
            self._snapshot_at = self._snapshot_at or events[0].at
            if self.snapshot_every and not self._closed:  # by the count of events, or every hour
                due = fold.n % snapshot_step(fold.n, self.snapshot_every) == 0
                if due or fold.last_at - self._snapshot_at >= _SNAPSHOT_AGE:
                    self._submit_snapshot()

    def _until_snapshot(self) -> int:
        """The events until a snapshot may be due."""
        n = self.fold.n
        step = snapshot_step(n, self.snapshot_every) if self.snapshot_every else 20_000
        return min(20_000, step - n % step)

    def _submit_snapshot(self, least: int = 1) -> None:
        """Have a snapshot written if so many events have come since the last, and as many as wait: what waits is part
        of a snapshot."""
        fold = self.fold
        if fold.n - self._kept >= max(least, len(fold.waiting)):
            self._kept, self._snapshot_at = fold.n, fold.last_at
            with contextlib.suppress(StoreError):  # a cache: the next one will do
                self.writer.submit([fold.snapshot(self.number, self.cursor)])

    def check_reporting(self) -> None:
        """One line in the log where a third value among the rewards has changed the policy that plays. And now and
        then, where the way of reporting rewards is likely to mislead the policy."""
        fold = self.fold
        before, self._plays = self._plays, (fold.config.policy, reporting.policy_played(fold))
        if before not in (None, self._plays) and before[0] == self._plays[0]:
            level = logging.WARNING if fold.n > _LATE_SWITCH else logging.INFO
            text = "bandit %s: rewards have a third value after %d events; it plays %s from now on"
            log.log(level, text, self._owner.name or "in memory", fold.n, self._plays[1])
        if fold.n < self.next_check:
            return
        self.next_check = fold.n + max(_CHECKED, fold.n // 4)
        with contextlib.suppress(StoreError):
            decisions = self.journal.count_decisions(self.number)
            with self.lock:  # a state that another thread is changing may look impossible
                found = reporting.warnings(fold, decisions)
            for text in found[self._logged :]:
                log.warning("bandit %s: %s", self._owner.name, text)
            self._logged = max(self._logged, len(found))

    def stop(self, error: Exception) -> Exception:
        """An event cannot be folded, as where this process does not have its policy. It may be half in the state, so
        nothing is decided from that any more."""
        text = " ".join(str(error).split()).rstrip(".")
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        self._stuck = (
            f"This bandit cannot learn event {self.fold.n} of its journal, so it decides no more ({kind}{text:.200}); "
            "fix the cause and open it again."
        )
        self.stopped = True
        self._cause = error if isinstance(error, ValueError) else StoreError(self._stuck)
        return self._cause

    @property
    def lag(self) -> float:
        """How many seconds the fold is behind the journal now: since it last had everything. 0 after a recent look,
        where the writer hands over new events, and for a bandit that cannot go on, which each call reports."""
        follows = self.journal.live and self.writer is not None and not self._stuck
        seconds = self.journal.lag(self.number) if follows else 0.0
        return seconds if seconds > _LOOK else 0.0

    def now(self) -> int:
        """The store's time, never going back."""
        return self.clock.now()

    def catch_up(self, changes: int = 0) -> None:
        """Fold what the journal holds by now, and wait for this change of configuration to be part of it."""
        until = time.monotonic() + 60.0
        while True:
            if self.journal.live or self.writer is None:
                self._read()
            self.whole_or_raise()
            if self.fold.changes >= changes:
                return
            if time.monotonic() > until:
                raise StoreError("The change is written, and this process has not seen it come back within a minute.")
            time.sleep(0.002)

    # ---- settling: with `wait`, decisions that are old enough get their default --------------------------------------

    def may_settle(self) -> bool:
        """Whether the next decision is likely to settle something first."""
        with self.lock:
            config = self.fold.config
            return config is not None and config.wait is not None and self.now() >= self.next_look

    def _settle(self, now: bool = False) -> Settle | None:
        """The request to the store if it is time to look (`now`: in any case). All processes see how far any has
        come."""
        fold, wait = self.fold, None if self.fold.config is None else self.fold.config.wait
        if wait is None or self.stopped:
            return None
        at = self.now()
        if not now:
            if at < self.next_look:
                return None
            pause = max(_OFTEN, min(wait // 100, _RARELY))
            left = fold.settled + wait + pause - at
            self.next_look = at + (left if 0 < left < pause else pause)
            if left > 0:
                return None
        deep = now or at >= self._next_deep
        if deep:
            self._next_deep = at + _DEEP
        return Settle(self.number, fold.settled, at - wait - 1, at, fold.config.default, deep)

    def sweep(self) -> None:
        """Have decisions settled that are old enough, if it is time to look, without waiting for it; also called while
        no other call comes in."""
        with self.lock:
            ask = self._settle()
            if ask is not None:
                self.writer.submit([ask])

    def settle_first(self, commit: Callable[[list[Any]], list[Any]]) -> None:
        """Before a decision: settle old decisions, and learn their outcomes. Where the store fails, the decision will
        too."""
        with self.lock:
            ask = self._settle()
        if ask is None:
            return
        with contextlib.suppress(StoreError):
            settled: Settled = commit([ask])[0]
            if not settled.done:
                self.next_look = 0
            until = time.monotonic() + _OURS
            while self.journal.live and settled.until is not None and self.fold.settled < settled.until:
                if self._read() == 0:
                    if time.monotonic() > until:
                        return
                    time.sleep(0.001)

    def settle_all(self) -> int:
        """Settle every decision that is old enough, and return how many defaults were written."""
        total: int = 0
        while True:
            with self.lock:
                self.open_or_raise()
                ask = self._settle(now=True)
                if ask is None:
                    return total
                call = self.writer.submit([ask])
            settled: Settled = call.wait()[0]
            total += settled.written
            if settled.done:
                return total
            self.catch_up()

    # ---- the end -----------------------------------------------------------------------------------------------------

    def open_or_raise(self) -> None:
        """Refuse to go on when closed, or when written events could not be folded."""
        if self.stopped:
            raise StoreError(self._stuck or "This bandit is closed; open it again.")

    def whole_or_raise(self) -> None:
        """Refuse to decide before all written events are folded."""
        if self._stuck:
            raise self._cause if self.writer is None else StoreError(self._stuck)

    def end(self, why: str) -> None:
        """Refuse everything from now on."""
        self._stuck, self.stopped = why, True

    def disown(self, why: str) -> None:
        """In a forked child: refuse everything from now on."""
        self.lock, self._reading = threading.RLock(), threading.Lock()
        self.end(why)

    def close(self) -> None:
        """Let go of the journal, after all requests have been written. A snapshot makes the next opening fast."""
        with self.lock:
            if self.snapshot_every and not self.stopped:
                self._submit_snapshot(_LEFT_OVER)
            self._closed = self.stopped = True
            heard = self.writer.listeners
            heard[self.number] = [call for call in heard.get(self.number, ()) if call != self._absorb]
            if not heard[self.number]:
                del heard[self.number]
            if self.sweep in self.writer.idle:
                self.writer.idle.remove(self.sweep)
        if self.journal.live:
            self.journal.unfollow(self)


def snapshot_step(n: int, most: int) -> int:
    """The events between two snapshots around event n: few while a bandit is small, then a sixteenth of n, up to
    `most`. All processes keep the same snapshots."""
    return min(most, max(_SMALL_STEP, 1 << max(0, n.bit_length() - 5)))
