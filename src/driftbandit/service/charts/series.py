"""The data of the page: counts, beliefs, marks, delays and densities of any time range, from cells where there are any
and from the rows of the journal for the last half hour."""

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from driftbandit.agent.inputs import to_json_arm
from driftbandit.half_life import SECOND, duration
from driftbandit.live import settings
from driftbandit.live.opening import reading
from driftbandit.live.uplift import Uplift, measured
from driftbandit.service.charts.beliefs import Sample, as_series, densities, thin
from driftbandit.service.charts.recorder import DAY, HOUR, MINUTE, Recorder, Track
from driftbandit.service.problems import HttpProblem
from driftbandit.service.types import BeliefSeries, ChartsInfo, Delays, Density, HistoryInfo, Mark

_RAW = 30 * MINUTE  # counted from the rows themselves
_RAW_OF_OLD = 6 * HOUR  # where only hours are left
_DELAYS = 1000  # decisions
_QUEUE = 0.5  # seconds to wait for another request that reads everything
_FRESH = 1.5  # seconds for which an answer is cached

Truth = Callable[[str, list[int]], list[list[float]] | None]


class Charts:
    """The charts of the bandits of a service."""

    def __init__(self, bandits: Any, truth: Truth | None = None) -> None:
        self.bandits, self.truth = bandits, truth
        self.recorder = Recorder(bandits)
        self._kept: dict[Any, tuple[float, Any]] = {}
        self._slow: Any = None  # a connection for requests that read everything
        self._slow_lock = threading.Lock()

    def _once(self, key: Any, make: Callable[[], Any], seconds: float = _FRESH) -> Any:
        """An answer that may be some seconds old."""
        found = self._kept.get(key)
        if found is None or time.monotonic() - found[0] > seconds:
            found = time.monotonic(), make()
            self._remember(key, found)
        return found[1]

    def _remember(self, key: Any, found: tuple[float, Any]) -> None:
        if len(self._kept) > 2000:
            self._kept.clear()
        self._kept[key] = found

    def draw(self, bandit: Any, since: int | None, until: int | None, points: int) -> ChartsInfo:
        """Everything the page draws about a time range."""
        track = self.recorder.track(bandit)
        now = bandit._replica.now()
        first = track.first if track.first is not None else self.bandits.journal.first_at(bandit._number)
        end = now + 1 if until is None else until
        begin = since if since is not None else (end - MINUTE if first is None else first)
        begin = min(begin, end - SECOND)
        config = bandit.config
        history = self.counts(bandit, track, begin, end, points)
        beliefs, samples = self.beliefs(track, begin, end, points, len(config.arms))
        shown = densities(bandit.policy, bandit.state, config)
        return ChartsInfo(
            [to_json_arm(name) for name in settings.names_of(config)], list(config.retired), config.fixed, begin, end,
            first, history, beliefs, self._marks(bandit, samples, begin, end), self.delays(bandit),
            None if shown is None else Density(*shown),
            None if self.truth is None else self.truth(bandit.name, beliefs.times), track.filling,
        )  # fmt: skip

    # ---- counts ------------------------------------------------------------------------------------------------------

    def counts(self, bandit: Any, track: Track, begin: int, end: int, points: int) -> HistoryInfo:
        """Decisions, outcomes and rewards by interval and arm."""
        slots = len(bandit.config.arms)
        width = max(1, -(-(end - begin) // points))
        now = bandit._replica.now()
        parts = track.pieces(begin, end, _unit(width), now)
        behind = track.filling is not None or now - track.closed.get(MINUTE, now) > 2 * _RAW
        if behind and parts and parts[-1][0] == 0:  # an older journal is being read
            parts[-1] = 0, max(parts[-1][1], end - _RAW), end
        coarsest = parts[0][0] if parts else 0
        if end - begin <= (_RAW if coarsest <= MINUTE else _RAW_OF_OLD):
            parts = [(0, begin, end)]
        elif coarsest:
            width = -(-width // coarsest) * coarsest
            begin = begin // coarsest * coarsest
            parts[0] = coarsest, begin, parts[0][2]
        size = max(1, -(-(end - begin) // width))
        made, came = ([[0] * slots for _ in range(size)] for _ in range(2))
        total = [[0.0] * slots for _ in range(size)]
        for unit, low, high in parts:
            if unit:
                for start, cell in track.cells(unit, low, high):
                    row = min(size - 1, (start - begin) // width)
                    for slot in range(min(slots, len(cell.decisions))):
                        made[row][slot] += cell.decisions[slot]
                        came[row][slot] += cell.outcomes[slot]
                        total[row][slot] += cell.rewards[slot]
                continue
            for place, slot, _, decided, outcomes, rewards in bandit._tally(self.bandits.journal, low, high, width):
                row = min(size - 1, (low - begin + place * width) // width)
                made[row][slot] += decided
                came[row][slot] += outcomes
                total[row][slot] += rewards
        names = [to_json_arm(name) for name in settings.names_of(bandit.config)]
        return HistoryInfo([begin + width * row for row in range(size)], width, names, made, came, total)

    def shares(self, bandit: Any) -> list[float] | None:
        """Each arm's share in the decisions of the last five minutes; None if there were none."""

        def make() -> list[float] | None:
            now = bandit._replica.now() + 1
            out = [0] * len(bandit.config.arms)
            for _, slot, _, made, _, _ in self.bandits.journal.tally(
                bandit._number, now - 5 * MINUTE, now, 5 * MINUTE + 1
            ):
                out[slot] += made
            return [count / sum(out) for count in out] if sum(out) else None

        return self._once(("shares", bandit.name), make, 5.0)  # type: ignore[no-any-return]

    # ---- beliefs -----------------------------------------------------------------------------------------------------

    def beliefs(self, track: Track, begin: int, end: int, points: int, slots: int) -> tuple[BeliefSeries, list[Sample]]:
        """Beliefs over time: of the last hour by the second, before by the minute, the hour or the day."""
        ring = [found for found in list(track.ring) if begin <= found.at <= end]
        split = track.ring[0].at if track.ring else end
        old: list[Sample] = []
        if begin < split:
            unit = _unit((end - begin) // points)
            for width, low, high in track.pieces(begin - unit, min(split, end), unit, track.bandit._replica.now()):
                for start, cell in track.cells(width, low, high) if width else ():
                    last = cell.last
                    if start + width <= end and last is not None and any(x is not None for x in last.belief.mean):
                        old.append(last._replace(at=min(start + width, split)))
        samples = thin([*old, *ring], begin, end, points)
        until = min(end, track.bandit._replica.now())
        if samples and samples[-1].at < until:  # unchanged until then
            samples.append(samples[-1]._replace(at=until))
        return as_series(samples, slots), [*old, *ring]

    # ---- what happened -----------------------------------------------------------------------------------------------

    def _marks(self, bandit: Any, samples: list[Sample], begin: int, end: int) -> list[Mark]:
        marks = [
            Mark(row["at"], "change", f"{row['what']} by {row['who'] or 'unknown'}") for row in self.changes(bandit)
        ]
        before = None
        for found in samples:
            if found.alarms is not None and before is not None and found.alarms > before:
                marks.append(Mark(found.at, "alarm", "the policy found a change"))
            before = found.alarms
        return sorted((mark for mark in marks if begin <= mark.at <= end), key=lambda mark: mark.at)[-500:]

    def changes(self, bandit: Any) -> list[dict[str, Any]]:
        """Every change of configuration. Finding them reads all events, so it is done once per change."""
        return self._once(("changes", bandit.name, bandit._fold.changes), bandit.changes, 3600.0)  # type: ignore[no-any-return]

    def uplift(self, bandit: Any, since: str | None, confidence: float) -> Uplift:
        """The uplift of the policy. It reads all events, over a separate connection; the answer is cached for twenty
        times as long as it took."""
        key = "uplift", bandit.name, since, confidence
        found = self._kept.get(key)
        if found is None or time.monotonic() > found[0]:
            start = 0 if since is None else bandit._replica.now() - duration(since, "since")
            if not self._slow_lock.acquire(timeout=_QUEUE):
                raise HttpProblem(503, "busy", "Another request reads the whole journal; try again.", retry=True)
            try:
                began = time.monotonic()
                if self._slow is None:
                    self._slow = reading(self.bandits.target)
                answer = measured(self._slow, bandit._number, start, confidence, bandit._old_enough())
            finally:
                self._slow_lock.release()
            took = time.monotonic() - began
            found = time.monotonic() + min(600.0, max(1.0, 20.0 * took)), answer
            self._remember(key, found)
        return found[1]

    def close(self) -> None:
        """Stop the recorder and close the connection for long requests."""
        self.recorder.close()
        if self._slow is not None:
            self._slow.close()

    def recent(self, bandit: Any) -> list[Any]:
        """The last decisions with their outcomes."""

        def make() -> list[Any]:
            rows = self.bandits.journal.recent(bandit._number, _DELAYS)
            found = self.bandits.journal.standing(bandit._number, [row.id for row in rows])
            return [found[row.id] for row in rows if row.id in found]

        return self._once(("recent", bandit.name), make)  # type: ignore[no-any-return]

    def delays(self, bandit: Any) -> Delays:
        """How long rewards took, of the last decisions."""
        found = self.recent(bandit)
        wait = None if bandit.config.wait is None else bandit.config.wait / SECOND
        times = [max((s.came - s.row.at) / SECOND, 1e-4) for s in found if s.kind == 1 and s.came is not None]
        none = sum(1 for s in found if s.kind != 1 and s.row.at < bandit._old_enough())
        said = bandit._fold.reported.delays
        text = "" if said is None else f"{said}."
        if not times:
            return Delays([], [], none, wait, text)
        low, high = math.log(min(times)), math.log(max(max(times), (wait or 0.0), 1.01 * min(times)))
        count = 24
        edges = [math.exp(low + (high - low) * i / count) for i in range(count + 1)]
        counts = [0] * count
        for value in times:
            counts[min(count - 1, max(0, int((math.log(value) - low) / max(high - low, 1e-9) * count)))] += 1
        return Delays(edges, counts, none, wait, text)


def _unit(width: int) -> int:
    """The widest cells that are fine enough for points so far apart."""
    return DAY if width >= DAY else HOUR if width >= HOUR else MINUTE
