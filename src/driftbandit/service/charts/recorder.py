"""Watches the bandits of a service: samples what they believe each second, and writes a cell each minute and hour.

One thread for all of them. What it keeps in memory is bounded; what it writes, any process may have written before."""

import logging
import threading
import time
from collections import deque
from typing import Any

from driftbandit.half_life import SECOND
from driftbandit.live.errors import Damaged, StoreError
from driftbandit.live.journal import Draw
from driftbandit.service.charts.beliefs import Believed
from driftbandit.service.charts.cells import HOUR, MINUTE, Cell, joined
from driftbandit.service.charts.tracing import Sample, Trace, sample

log = logging.getLogger("driftbandit.service")
_TICK = 1.0  # seconds
_GRACE = 5 * SECOND  # records may reach the store this long after their own time
_AT_ONCE = 6 * HOUR  # of minutes closed in one go
_NUMBERS = 600_000  # numbers in the ring of one bandit
_SECONDS = 3600


class Track:
    """What is remembered of one bandit beside its cells."""

    def __init__(self, bandit: Any, journal: Any, write: bool) -> None:
        self.bandit, self.journal, self.write = bandit, journal, write
        arms = max(1, len(bandit.config.arms))
        self.ring: deque[Sample] = deque(maxlen=max(60, min(_SECONDS, _NUMBERS // (3 * arms))))
        self.memory: dict[tuple[int, int], Cell] = {}  # cells that cannot be written: of a journal we only read
        self.filled: dict[int, Sample] = {}  # minute: what was believed at its end, of the time before the service
        self.filling: float | None = None
        last = journal.last_chart(bandit._number, MINUTE)
        hour = journal.last_chart(bandit._number, HOUR)
        cell = None if last is None else Cell.read(last[1])
        first = journal.first_at(bandit._number)
        self.first = first
        self.next_minute = last[0] + MINUTE if last is not None else None if first is None else first // MINUTE * MINUTE
        self.next_hour = hour[0] + HOUR if hour is not None else None if first is None else first // HOUR * HOUR
        self.lacks = bandit._fold.n > max(1, 0 if cell is None else cell.n)

    def tick(self, now: int) -> None:
        """Sample, and close what has ended."""
        bandit = self.bandit
        if (
            not self.ring
            or bandit._fold.n != self.ring[-1].n
            or (bandit._fold.fades and now - self.ring[-1].at > 10 * SECOND)
        ):
            with bandit._lock:
                self.ring.append(sample(bandit._fold, now))
        if self.first is None:
            self.first = self.journal.first_at(bandit._number)
            if self.first is None:
                return
            self.next_minute, self.next_hour = self.first // MINUTE * MINUTE, self.first // HOUR * HOUR
        if self.filling is None:
            self._close_minutes(now)
            self._close_hours(now)

    def _close_minutes(self, now: int) -> None:
        assert self.next_minute is not None
        end = min((now - _GRACE) // MINUTE * MINUTE, self.next_minute + _AT_ONCE)
        if end <= self.next_minute:
            return
        slots = len(self.bandit.config.arms)
        counts: dict[int, list[list[Any]]] = {}
        for place, slot, _, decided, outcomes, rewards in self.journal.tally(
            self.bandit._number, self.next_minute, end, MINUTE
        ):
            row = counts.setdefault(place, [[0] * slots, [0] * slots, [0.0] * slots])
            row[0][slot] += decided
            row[1][slot] += outcomes
            row[2][slot] += rewards
        for place in sorted(counts):
            start = self.next_minute + place * MINUTE
            made, came, total = counts[place]
            known = self._known(start + MINUTE)
            blank: list[float | None] = [None] * slots
            belief, alarms, n = (
                (known.belief, known.alarms, known.n) if known else (Believed(blank, blank, blank), None, 0)
            )
            self._keep(MINUTE, start, Cell(made, came, total, belief.mean, belief.spread, belief.weight, alarms, n))
        self.next_minute = end

    def _known(self, at: int) -> Sample | None:
        """What was believed at a time."""
        for found in reversed(self.ring):
            if found.at <= at:
                return found
        return self.filled.get(at)

    def _close_hours(self, now: int) -> None:
        assert self.next_hour is not None
        assert self.next_minute is not None
        while self.next_hour + HOUR <= self.next_minute:
            cells = [cell for _, cell in self.cells(MINUTE, self.next_hour, self.next_hour + HOUR)]
            if cells:
                self._keep(HOUR, self.next_hour, joined(cells))
            self.next_hour += HOUR

    def _keep(self, width: int, start: int, cell: Cell) -> None:
        if self.write:
            self.bandit._writer.submit([Draw(self.bandit._number, width, start, cell.text())])
        self.memory[width, start] = (
            cell  # a write takes a moment to be seen; of a journal we only read it is all there is
        )
        if self.write and len(self.memory) > 600:
            for key in list(self.memory)[:300]:
                del self.memory[key]

    def cells(self, width: int, since: int, until: int) -> list[tuple[int, Cell]]:
        """The cells that begin in this time."""
        found = {
            start: Cell.read(body) for start, body in self.journal.charts(self.bandit._number, width, since, until)
        }
        found |= {
            start: cell for (w, start), cell in list(self.memory.items()) if w == width and since <= start < until
        }
        return sorted((start, cell) for start, cell in found.items() if cell is not None)

    def fill(self, stop: threading.Event) -> None:
        """Fold an older journal once, for what was believed before the service began to watch."""
        self.filling, goal = 0.0, max(1, self.bandit._fold.n)
        try:
            trace = Trace(self.journal, self.bandit._number, MINUTE)

            def enough(fold: Any) -> bool:
                self.filling = min(1.0, fold.n / goal)
                return bool(fold.n >= goal)

            trace.advance(enough, stop.is_set)
            self.filled = {found.at: found for found in trace.samples}
        finally:
            self.filling = None


class Recorder:
    """The thread that ticks."""

    def __init__(self, bandits: Any) -> None:
        self.bandits = bandits
        self.tracks: dict[str, Track] = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="driftbandit-recorder", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def track(self, bandit: Any) -> Track:
        """What is remembered of a bandit; from now on if nothing yet."""
        with self._lock:
            found = self.tracks.get(bandit.name)
            if found is None or found.bandit is not bandit:
                found = self.tracks[bandit.name] = Track(bandit, self.bandits.journal, not self.bandits.read_only)
                if found.lacks:
                    found.filling = 0.0
                    threading.Thread(
                        target=found.fill, args=(self._stop,), name="driftbandit-fill", daemon=True
                    ).start()
            return found

    def _run(self) -> None:
        while not self._stop.wait(_TICK):
            began = time.monotonic()
            for bandit in self.bandits.held.values():
                try:
                    if self.bandits.read_only:
                        with bandit._lock:
                            bandit.refresh()
                    self.track(bandit).tick(bandit._replica.now())
                except (StoreError, Damaged) as error:  # the store is away: readiness says so, and we look again
                    log.warning("charts of %s: %s", bandit.name, error)
                except Exception:
                    log.exception("charts of %s", bandit.name)
                if self._stop.is_set():
                    return
            self._stop.wait(min(5.0, 4.0 * (time.monotonic() - began)))  # at most a fifth of one core

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)
