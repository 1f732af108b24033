"""A bandit's own copy of the fold, kept up to date from its journal, with its snapshots, clock and defaults.

With SQLite the writer hands over every event it has written; with PostgreSQL a follower reads what any process wrote.
Either way the events come in the one order in which all fold them."""

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from driftbandit.half_life import SECOND
from driftbandit.live.clock import Clock
from driftbandit.live.errors import Damaged, StoreError
from driftbandit.live.fold import Fold, Maker
from driftbandit.live.journal import Journal, Keep, Settle, Settled
from driftbandit.live.opening import Opened, arithmetic, policy_maker, rereader
from driftbandit.live.records import Event
from driftbandit.live.reporting import warnings
from driftbandit.live.ticket import Ticket

log = logging.getLogger("driftbandit.live")
_SETTLED_AT_ONCE = 5000
_SNAPSHOT_AGE = 3600 * SECOND  # between two snapshots at most, while events come in: a small bandit has few of them
_LOOK = 1.0  # seconds: a process that follows a journal looks several times in it
_SWEEP, _RARELY = SECOND // 20, 60 * SECOND  # least and most time between two looks for decisions that are old enough
_DEEP = 60 * SECOND  # between two looks for decisions that were stored long after their time
_CHECKED = 50  # rewards between two looks at how they are reported
_OURS = 0.05  # seconds to wait for our own record to come back from PostgreSQL


class Replica:
    """The fold of one bandit in one process."""

    def __init__(
        self,
        opened: Opened,
        number: int,
        make: Maker,
        snapshot_every: int,
        clock: Callable[[], int] | None,
        compiled: bool = False,
    ) -> None:
        self.opened, self.number = opened, number
        self.journal, self.writer = opened.journal, opened.writer
        self.lock = threading.RLock()
        self.snapshot_every = snapshot_every
        self.clock = Clock(clock or self.journal.now)
        self._make, self._extra = make, dict[str, Any]()
        self._next_sweep = self._next_deep = 0
        self._sweeping: Ticket | None = None
        self._real_time = clock is None
        self._kept = 0  # events of the last snapshot
        self._logged = 0  # warnings about how rewards are reported
        self._next_check = _CHECKED
        self._owner: Any = None
        self._closed = False
        self._stuck = ""  # why no further event can be folded
        self._heard: Any = None
        self._reading = threading.Lock()
        self.settled = False  # whether the journal is known to have the arithmetic of this process
        self.note = ""  # what was noticed on opening, for `health`
        self.delay = 0.0  # seconds from the call that made an event to its being folded here
        self._whole = self.journal.now()  # when the fold last held everything that the journal had
        # the fold, how far it has read, and up to which decision all have an outcome
        self.fold, self._cursor, self._after = latest(self.journal, number, self._made, compiled=compiled)
        self._snapshot_at = self.fold.last_at
        self._follow_clock()
        self.clock.at_least(max([self.fold.last_at, *(row.at for row in self.journal.recent(number, 1))]))

    def _made(self, text: str) -> Any:
        return policy_maker(self._extra)(text) if self._extra else self._make(text)

    def arithmetic(self, policy: str | None = None) -> str:
        """The version of a policy's arithmetic in this process; without a text, of the policy that decides."""
        return arithmetic(self.fold.player.policy if policy is None else self._made(policy))

    def _follow_clock(self) -> None:
        self.clock.ahead = self.fold.config.ahead if self.fold.config is not None else 0

    def learn_classes(self, classes: dict[str, type]) -> None:
        """The user's own policies that a change is about to name."""
        self._extra |= classes

    def start(self, owner: Any) -> None:
        """Read what the snapshot does not hold, and listen to what comes."""
        self._owner = owner
        self.opened.bandits.add(owner)
        if not self.journal.live:
            with self.lock:
                self._heard = self._absorb
                self.writer.listeners.setdefault(self.number, []).append(self._heard)
        if self._real_time:  # a simulation's clock moves only between its own calls
            self.writer.idle.append(self._when_idle)
        self._read()
        if self.journal.live:
            self.journal.follow(self.number, self._read)  # type: ignore[attr-defined]

    def _read(self) -> int:
        """Fold whatever the journal holds beyond the cursor."""
        with self._reading:  # decisions go on while the journal is read
            if self._stuck:
                return 0
            before, looked = self.fold.n, self.journal.now()
            batch: list[Event] = []
            cursor = self._cursor
            try:
                for cursor, event in self.journal.events(self.number, self._cursor):
                    batch.append(event)
                    if len(batch) >= 20_000 or (self.fold.n + len(batch)) % self.snapshot_every == 0:
                        self._fold(batch, cursor)
                        batch = []
            except Damaged as error:
                raise self._stop(error) from error
            self._fold(batch, cursor)
            if not getattr(self.journal, "pending", False):
                self._whole = looked
            return self.fold.n - before

    def _absorb(self, events: list[Event]) -> None:
        """Fold what the writer has just written. It is written, whatever comes of folding it: the next call tells."""
        with self.lock, contextlib.suppress(Exception):
            for event in events:
                if self._closed or self._stuck:
                    return
                if event.n > self.fold.n + 1:
                    self._stop(Damaged(f"Event {self.fold.n + 1} is missing."))
                elif event.n == self.fold.n + 1:
                    self._fold([event], event.n)

    def _fold(self, events: list[Event], cursor: Any) -> None:
        if not events:
            return
        with self.lock:
            changes = self.fold.changes
            try:
                self.fold.apply(events)
            except Exception as error:
                raise self._stop(error) from error
            self._cursor = cursor
            if self.fold.changes != changes:
                self._follow_clock()
                if self.settled and self.fold.config.arithmetic != self.arithmetic():
                    raise self._stop(
                        ValueError(
                            f"the journal is decided by {self.fold.config.arithmetic} from here on, and this process "
                            f"has {self.arithmetic()}"
                        )
                    )
            self.delay = (self.journal.now() + self.clock.ahead - events[0].at) / SECOND
            self.clock.at_least(self.fold.last_at)
            if self.fold.reported.rewards >= self._next_check:
                self._check_reporting()
            self._snapshot_at = self._snapshot_at or events[0].at
            old = self.fold.last_at - self._snapshot_at >= _SNAPSHOT_AGE
            # What waits is part of a snapshot, so one is taken only when as many events have come since the last.
            enough = self.fold.n - self._kept >= len(self.fold.waiting)
            if (self.fold.n % self.snapshot_every == 0 or old) and enough and not self._closed:
                self._kept, self._snapshot_at = self.fold.n, self.fold.last_at
                with contextlib.suppress(StoreError):  # a cache: the next one will do
                    self.writer.submit([self.snapshot()])

    def _check_reporting(self) -> None:
        """One line in the log where rewards are reported in a way that is likely to mislead the policy."""
        fold = self.fold
        self._next_check = fold.reported.rewards + max(_CHECKED, fold.reported.rewards // 4)
        with contextlib.suppress(StoreError):
            found = warnings(fold.config, fold.reported, self.journal.counts(self.number)["decisions"])
            for text in found[self._logged :]:
                log.warning("bandit %s: %s", self._owner.name, text)
            self._logged = max(self._logged, len(found))

    def _stop(self, error: Exception) -> Exception:
        """An event cannot be folded: one that another process made with a policy that this one does not have, or one at
        which a policy of the user's fails. It may be half in the state, so nothing is decided from that any more."""
        text = " ".join(str(error).split()).rstrip(".")
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        self._stuck = (
            f"This bandit cannot learn event {self.fold.n} of its journal, so it decides no more ({kind}{text:.200}); "
            "mend what is wrong and open it again."
        )
        return error if isinstance(error, ValueError) else StoreError(self._stuck)

    def snapshot(self) -> Keep:
        """The fold as it is, to be kept."""
        body = {"cursor": self._cursor, "after": self._after, "fold": json.loads(self.fold.dump())}
        return Keep(self.number, self.fold.n, self.fold.last_at, json.dumps(body, sort_keys=True), self._cursor)

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def lag(self) -> float:
        """How many seconds the fold is behind the journal now: since it last held everything. 0 after a recent look,
        where the writer hands over what it has written, and for a bandit that cannot go on, which each call reports."""
        follows = self.journal.live and not self._stuck
        seconds = (self.journal.now() - self._whole) / SECOND if follows else 0.0
        return seconds if seconds > _LOOK else 0.0

    def now(self) -> int:
        """The store's time, never going back."""
        return self.clock.now()

    def catch_up(self, changes: int = 0) -> None:
        """Fold what the journal holds by now, and wait for this change of configuration to be part of it."""
        until = time.monotonic() + 60.0
        while True:
            if self.journal.live:
                self._read()
            self.whole_or_raise()
            if self.fold.changes >= changes:
                return
            if time.monotonic() > until:
                raise StoreError("The change is written, and this process has not seen it come back within a minute.")
            time.sleep(0.002)

    def _due(self, at: int) -> bool:
        """Whether to look for decisions that are old enough by now. All processes see how far any has come."""
        wait = self.fold.config.wait
        if wait is None or at < self._next_sweep:
            return False
        pause = settling_pause(wait)
        left = self.fold.settled + wait + pause - at
        self._next_sweep = at + (left if 0 < left < pause else pause)
        return left <= 0

    def may_settle(self) -> bool:
        """Whether the next decision is likely to settle something first."""
        with self.lock:
            config = self.fold.config
            return config is not None and config.wait is not None and self.now() >= self._next_sweep

    def _settle(self, at: int) -> Settle:
        config, deep = self.fold.config, at >= self._next_deep
        assert config.wait is not None
        if deep:
            self._next_deep = at + _DEEP
        until, settled = at - config.wait - 1, self.fold.settled
        return Settle(self.number, self._after, until, at, config.default, _SETTLED_AT_ONCE, settled, deep)

    def _swept(self, settled: Settled) -> None:
        """Note how far a look came; if it was stopped by its limit, the next comes at once."""
        self._after = max(self._after, settled.after)
        if not settled.done:
            self._next_sweep = 0

    def sweep(self, at: int) -> None:
        """Now and then, have decisions settled that are old enough, without waiting for it."""
        if self._sweeping is not None and self._sweeping.settled:
            ticket, self._sweeping = self._sweeping, None
            if ticket.error is None:
                self._swept(ticket.answers[0])
        if self._sweeping is None and self._due(at):
            self._sweeping = self.writer.submit([self._settle(at)])

    def settle_first(self, commit: Callable[[list[Any]], list[Any]]) -> None:
        """Before a decision: settle what is old enough, and learn it. Where the store fails, the decision will too."""
        with self.lock:
            if self._closed or self._stuck or self.fold.config is None or not self._due(at := self.now()):
                return
            ask = self._settle(at)
        with contextlib.suppress(StoreError):
            settled: Settled = commit([ask])[0]
            with self.lock:
                self._swept(settled)
            until = time.monotonic() + _OURS
            while self.journal.live and settled.until is not None and self.fold.settled < settled.until:
                if self._read() == 0:
                    if time.monotonic() > until:
                        return
                    time.sleep(0.001)

    def _when_idle(self) -> None:
        """Settle what is old enough where nobody calls."""
        with self.lock, contextlib.suppress(StoreError):
            if not (self._closed or self._stuck or self.fold.config is None):
                self.sweep(self.now())

    def settle_all(self) -> int:
        """Settle every decision that is old enough, and say how many defaults were written."""
        total: int = 0
        while True:
            with self.lock:
                self.open_or_raise()
                if self.fold.config.wait is None:
                    return total
                self._next_deep = 0
                ticket = self.writer.submit([self._settle(self.now())])
            settled: Settled = ticket.wait()[0]
            total += settled.written
            with self.lock:
                self._swept(settled)
            if settled.done:
                return total

    def open_or_raise(self) -> None:
        """Refuse to go on when closed, or when what is known is less than what is written."""
        if self._closed:
            raise StoreError("This bandit is closed; open it again.")
        self.whole_or_raise()

    def whole_or_raise(self) -> None:
        """Refuse to decide from less than is written."""
        if self._stuck:
            raise StoreError(self._stuck)

    def disown(self, why: str) -> None:
        """In a forked child: refuse everything from now on."""
        self.lock, self._reading = threading.RLock(), threading.Lock()
        self._stuck = why

    def close(self) -> None:
        """Let go of the journal, after all that was asked has been written."""
        with self.lock:
            self._closed = True
            listeners = self.writer.listeners.get(self.number, [])
            if self._heard in listeners:
                listeners.remove(self._heard)
            if self._when_idle in self.writer.idle:
                self.writer.idle.remove(self._when_idle)
        if self.journal.live:
            self.journal.unfollow(self.number, self._read)  # type: ignore[attr-defined]
        self.opened.release()


def settling_pause(wait: int | None) -> int:
    """The time between two looks for decisions that are `wait` old."""
    return 0 if wait is None else max(_SWEEP, min(wait // 100, _RARELY))


def latest(
    journal: Journal, number: int, make: Maker, most: int | None = None, compiled: bool = False
) -> tuple[Fold, Any, tuple[int, str]]:
    """The fold of the newest snapshot (of at most `most` events) that can be read, the cursor to go on from, and how
    far decisions were settled. A snapshot is a cache: an older one, or none, leads to the same state."""
    reread = rereader(journal, number)
    for n, body in journal.snapshots(number):
        if most is not None and n > most:
            continue
        try:
            data = json.loads(body)
            fold = Fold.load(json.dumps(data["fold"]), make, reread, compiled)
            if fold.config.arithmetic != arithmetic(fold.player.policy):
                continue
            at, name = data["after"]
            found = fold, _tupled(data["cursor"]), (int(at), str(name))
        except (Damaged, ValueError, KeyError, TypeError):
            continue
        journal.verify(number, n, found[1])
        return found
    journal.verify(number)
    return Fold(make, reread, compiled), None, (0, "")


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
