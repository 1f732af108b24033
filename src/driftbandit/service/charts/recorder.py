"""The charts of a bandit over time: its beliefs are sampled each second, and each minute, hour and day becomes a cell.

A cell is a cache, as a snapshot is: the journal can give it again. Cells of a minute are dropped when they are eight
days old, cells of an hour after 400 days; an hour, or a day, replaces them. A bandit has at most some 21,000 cells and
one more per day, however long it runs. One thread records all bandits. Its memory is bounded, and a cell that another
process has already written is left as it is."""

import bisect
import threading
import time
from collections import deque
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import msgspec

from driftbandit.half_life import SECOND
from driftbandit.live.errors import Damaged, StoreError
from driftbandit.live.journal import Draw, Thin
from driftbandit.live.opening import reading
from driftbandit.live.replica import settling_pause
from driftbandit.service.charts.beliefs import Believed, Sample, take_sample
from driftbandit.service.charts.jobs import ChartTrace
from driftbandit.service.problems import log

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
COARSER = {MINUTE: HOUR, HOUR: DAY}
_KEPT = {MINUTE: 8 * DAY, HOUR: 400 * DAY}  # how long a cell of this width is kept
_TICK = 1.0  # seconds
_GRACE = 5 * SECOND  # records may reach the store this long after their own time
_TURN = 0.25  # seconds of closing cells in one tick
_NUMBERS = 600_000  # numbers in the ring of one bandit
_SECONDS = 3600
_FILLED = 6000  # samples of the time before the service: four days by the minute, longer ones more coarsely


def kept_from(width: int, now: int) -> int:
    """The start of the oldest cell of this width that is kept; a boundary of the next coarser ones."""
    return (now - _KEPT[width]) // COARSER[width] * COARSER[width]


class ChartCell(NamedTuple):
    """A minute, an hour or a day of one bandit: counts by slot, and beliefs at its end."""

    decisions: list[int]
    outcomes: list[int]
    rewards: list[float]  # sums
    last: Sample | None

    def text(self) -> str:
        """As the journal keeps it. Numbers are rounded to what a chart can show."""
        last = self.last
        if last is not None:
            last = last._replace(belief=Believed(*map(_rounded, last.belief)))
        return msgspec.json.encode(self._replace(rewards=_rounded(self.rewards), last=last)).decode()

    @classmethod
    def read(cls, text: str) -> "ChartCell | None":
        """The inverse of `text`; None for a cell of another version, which is ignored."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError:
            return None


def _rounded(values: Any) -> list[Any]:
    return [None if value is None else float(f"{value:.6g}") for value in values]


def join(cells: list[ChartCell]) -> ChartCell:
    """Several cells as one: counts are added, beliefs are the last."""
    size = max(len(cell.decisions) for cell in cells)

    def total(name: str, zero: Any) -> list[Any]:
        rows = [[*getattr(cell, name), *[zero] * (size - len(getattr(cell, name)))] for cell in cells]
        return [sum(column) for column in zip(*rows, strict=True)]

    return ChartCell(total("decisions", 0), total("outcomes", 0), total("rewards", 0.0), cells[-1].last)


class Track:
    """The recording of one bandit."""

    def __init__(self, bandit: Any, journal: Any, write: bool) -> None:
        self.bandit, self.journal, self.write = bandit, journal, write
        arms = max(1, len(bandit.config.arms))
        self.ring: deque[Sample] = deque(maxlen=max(60, min(_SECONDS, _NUMBERS // (3 * arms))))
        self.memory: dict[tuple[int, int], ChartCell] = {}  # cells that cannot be read from the journal yet, or ever
        self.filled: list[Sample] = []  # beliefs before the service started
        self.filling: float | None = None
        self._filled_until = 0
        self._looked = 0  # the last tick
        self.first = journal.first_at(bandit._number)
        self.closed: dict[int, int] = {}  # by width: until when there are cells
        self.lacks = bandit._fold.n > max(1, self._begin())

    def _begin(self) -> int:
        """Find until when there are cells; returns how many events had been folded by then."""
        if self.first is None:
            return 0
        place = folded = 0
        for width in (DAY, HOUR, MINUTE):  # finer ones may have been dropped
            last = self.journal.last_chart(self.bandit._number, width)
            cell = None if last is None else ChartCell.read(last[1])
            folded = max(folded, 0 if cell is None or cell.last is None else cell.last.n)
            place = max(place, self.first // width * width if last is None else last[0] + width)
            self.closed[width] = place
        return folded

    def tick(self, now: int) -> None:
        """Sample, and close what has ended."""
        bandit = self.bandit
        if (
            not self.ring
            or bandit._fold.n != self.ring[-1].n
            or (bandit._fold.player.half_life is not None and now - self.ring[-1].at > 10 * SECOND)
        ):
            if self.ring and self.ring[-1].at < self._looked and bandit._fold.player.half_life is None:
                self.ring.append(self.ring[-1]._replace(at=self._looked))  # it had not changed until then
            with bandit._lock:
                self.ring.append(take_sample(bandit._fold, now))
        self._looked = now
        if self.first is None:
            self.first = self.journal.first_at(bandit._number)
            if self.first is None:
                return
            self._begin()
        self.close_cells(now)

    def close_cells(self, now: int) -> None:
        """Write the cells that have ended, and drop those that coarser ones replace. A long time is caught up with over
        several ticks, an hour at a time, so that a page waits for one hour at most."""
        until = now - settling_pause(self.bandit.config.wait)
        until = until if self.filling is None else min(until, self._filled_until)  # beliefs are known up to there
        began = time.monotonic()
        while self._close_minutes(until) and time.monotonic() - began < _TURN:
            pass
        for width in (MINUTE, HOUR):
            if self._close_coarser(width):
                self._thin(width, now)

    def _close_minutes(self, until: int) -> bool:
        """Up to an hour of minutes; returns whether there were any."""
        begin = self.closed[MINUTE]
        end = min((until - _GRACE) // MINUTE * MINUTE, begin + HOUR)
        if end <= begin:
            return False
        slots = len(self.bandit.config.arms)
        counts: dict[int, list[list[Any]]] = {}
        for place, slot, _, decided, outcomes, rewards in self.bandit._tally(self.journal, begin, end, MINUTE):
            row = counts.setdefault(place, [[0] * slots, [0] * slots, [0.0] * slots])
            row[0][slot] += decided
            row[1][slot] += outcomes
            row[2][slot] += rewards
        for place in sorted(counts):
            start = begin + place * MINUTE
            made, came, total = counts[place]
            self._keep(MINUTE, start, ChartCell(made, came, total, self._known(start + MINUTE)))
        self.closed[MINUTE] = end
        if self.filling is None and self.filled and self.filled[-1].at < end:
            self.filled = []
        return True

    def _known(self, at: int) -> Sample | None:
        """The last sample at or before a time."""
        for found in reversed(self.ring):
            if found.at <= at:
                return found
        place = bisect.bisect_right(self.filled, at, key=lambda found: found.at)
        return self.filled[place - 1] if place else None

    def _close_coarser(self, width: int) -> bool:
        """Join cells of this width to coarser ones where all of them exist; returns whether any were."""
        coarse = COARSER[width]
        begin, end = self.closed[coarse], self.closed[width] // coarse * coarse
        for start in range(begin, end, coarse):
            cells = [cell for _, cell in self.cells(width, start, start + coarse)]
            if cells:
                self._keep(coarse, start, join(cells))
        self.closed[coarse] = max(begin, end)
        return begin < end

    def _thin(self, width: int, now: int) -> None:
        before = min(kept_from(width, now), self.closed[COARSER[width]])
        if self.write:
            self.bandit._writer.submit([Thin(self.bandit._number, width, before)])
        for key in [key for key in self.memory if key[0] == width and key[1] < before]:
            del self.memory[key]

    def pieces(self, begin: int, end: int, unit: int, now: int) -> list[tuple[int, int, int]]:
        """The cells that cover this time, oldest first: (width, from, to), where width 0 means the rows themselves.
        They are `unit` wide, coarser where those were dropped, and finer in the current one."""
        if not self.closed:
            return [(0, begin, end)]
        day = self.closed[DAY] if unit == DAY else min(self.closed[DAY], kept_from(HOUR, now))
        hour = self.closed[HOUR] if unit >= HOUR else min(self.closed[HOUR], kept_from(MINUTE, now))
        ends = [min(end, place) for place in accumulate((begin, day, hour, self.closed[MINUTE], end), max)]
        found = zip((DAY, HOUR, MINUTE, 0), pairwise(ends), strict=True)
        return [(width, low, high) for width, (low, high) in found if low < high]

    def _keep(self, width: int, start: int, cell: ChartCell) -> None:
        if self.write:
            self.bandit._writer.submit([Draw(self.bandit._number, width, start, cell.text())])
        self.memory[width, start] = cell
        if self.write and len(self.memory) > 600:
            for key in list(self.memory)[:300]:
                del self.memory[key]

    def cells(self, width: int, since: int, until: int) -> list[tuple[int, ChartCell]]:
        """The cells that begin in this time."""
        found = {
            start: ChartCell.read(body) for start, body in self.journal.charts(self.bandit._number, width, since, until)
        }
        found |= {
            start: cell for (w, start), cell in list(self.memory.items()) if w == width and since <= start < until
        }
        return sorted((start, cell) for start, cell in found.items() if cell is not None)

    def fill(self, stop: threading.Event) -> None:
        """Fold an older journal once, for the beliefs before the service started."""
        self.filling, goal = 0.0, max(1, self.bandit._fold.n)
        journal = reading(self.journal.target)  # a second connection: pages do not wait for it
        try:
            trace = ChartTrace(journal, self.bandit._number, MINUTE, most=_FILLED)

            def enough(fold: Any) -> bool:
                self.filling, self.filled, self._filled_until = min(1.0, fold.n / goal), trace.samples, fold.last_at
                return bool(fold.n >= goal)

            trace.advance(enough, stop.is_set)
        finally:
            self.filling = None
            journal.close()


class Recorder:
    """The thread that records all open bandits."""

    def __init__(self, bandits: Any) -> None:
        self.bandits = bandits
        self.tracks: dict[str, Track] = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="driftbandit-recorder", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def track(self, bandit: Any) -> Track:
        """The recording of a bandit, which starts now if there is none."""
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
                except (StoreError, Damaged) as error:  # the store is unavailable: the next tick tries again
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
