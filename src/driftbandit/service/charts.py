"""What the page draws of a bandit: counts, beliefs over time, delays and densities.

Counts, delays and densities are computed when they are requested, and kept for some seconds. Beliefs are sampled each
second by one thread for all open bandits, in bounded memory. Every ten minutes a sample goes into the journal, as a
cache, so that a restart keeps the course of the beliefs."""

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from driftbandit.bandit.asks import AddCell
from driftbandit.bandit.beliefs import ArmBeliefs, belief_densities, beliefs_of, read_bandit
from driftbandit.bandit.inputs import to_json_arm
from driftbandit.bandit.opening import bandit_number, reading
from driftbandit.bandit.records import as_datetime, as_microseconds
from driftbandit.bandit.reporting import Uplift, measure_uplift
from driftbandit.bandit.settings import names_of
from driftbandit.errors import DamagedJournal, StoreError
from driftbandit.service.background import Worker
from driftbandit.service.problems import HttpProblem, log
from driftbandit.spec.half_life import SECOND, duration

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
_FADED = 10 * SECOND  # time after which a belief that forgets by the clock is sampled again
_STORED = 10 * MINUTE  # between two samples in the journal
_NUMBERS, _ALL_NUMBERS = 600_000, 3_000_000  # numbers in the samples of one bandit, and of all
_FEWEST = 20  # samples of a bandit, however many there are
_RECENT = 1000  # decisions
_BINS = 24  # of the histogram of delays
_FRESH, _COST = 1.5, 20.0  # an answer is kept for 1.5 s, or twenty times as long as it took
_LONG = 6 * HOUR  # a time from which on counts of closed intervals are kept
_SLACK = 10 * MINUTE  # by which a record may reach the journal after its time
_QUEUE = 5.0  # seconds to wait for another request that computes the same

Truth = Callable[[str, list[int]], list[list[float]] | None]


class HistoryInfo(Struct):
    """Counts over time, one row per interval and one column per arm; times in microseconds since 1970. With `wait`, an
    outcome counts at the time when its decision is that old."""

    starts: list[int]
    width: int
    arms: list[Any]
    decisions: list[list[int]]
    outcomes: list[list[int]]
    rewards: list[list[float]]


class BeliefSeries(Struct):
    """Beliefs over time: rows are times (microseconds), columns arms; null without a belief."""

    times: list[int]
    mean: list[list[float | None]]
    spread: list[list[float | None]]
    weight: list[list[float | None]]


class Delays(Struct):
    """The delays of rewards of the last decisions: a histogram with edges in seconds, the number of decisions that are
    old enough and have no reward, and a sentence about all rewards."""

    edges: list[float]
    counts: list[int]
    none: int
    wait: float | None
    text: str


class Density(Struct):
    """The belief of each arm now, as densities over reward."""

    at: list[float]
    density: list[list[float]]


class ChartsInfo(Struct):
    """Everything the page of one bandit draws."""

    arms: list[Any]
    retired: list[int]
    fixed: int | None
    since: int
    until: int
    first: int | None
    history: HistoryInfo
    beliefs: BeliefSeries
    delays: Delays
    densities: Density | None
    truth: list[list[float]] | None = None  # in a demonstration: the true means at `beliefs.times`


class Sample(NamedTuple):
    """The beliefs at a time, after `n` events."""

    at: int
    n: int
    belief: ArmBeliefs


_decode = msgspec.json.Decoder(Sample).decode


class Charts(Worker):
    """The charts of the bandits of a service."""

    def __init__(self, bandits: Any, truth: Truth | None = None) -> None:
        super().__init__(bandits)
        self._truth = truth
        self._samples: dict[str, deque[Sample]] = {}
        self._stored: dict[str, int] = {}  # by bandit: when a sample last went into the journal
        self._cache: dict[Any, tuple[float, Any]] = {}  # answers, and until when they are given
        self._changes: dict[str, tuple[Any, list[dict[str, Any]]]] = {}  # and the configuration they lead to
        self._locks: dict[Any, threading.Lock] = {}
        self._closed: dict[tuple[str, int], dict[int, Any]] = {}  # by bandit and width: counts that no longer change

    def close(self) -> None:
        """End, and wait for it: the last sample may be on its way into the journal."""
        super().close()
        if self._thread.is_alive():
            self._thread.join(10.0)

    # ---- beliefs over time -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        self._bandits.close_idle()
        began, held = time.monotonic(), self._bandits.held
        self._forget_closed(held)
        for bandit in held.values():
            if self._stop.is_set():
                return
            try:
                if self._bandits.read_only:
                    bandit.refresh()
                self.sample(bandit)
            except (StoreError, DamagedJournal) as error:  # the store is unavailable: the next tick tries again
                log.warning("charts of %s: %s", bandit.name, error)
            except Exception:
                log.exception("charts of %s", bandit.name)
        self._stop.wait(min(5.0, 4.0 * (time.monotonic() - began)))  # at most a fifth of one core

    def _forget_closed(self, held: dict[str, Any]) -> None:
        """Keep nothing of bandits that are no longer open."""
        for kept in (self._samples, self._stored, self._changes):
            for name in [name for name in kept if name not in held]:
                kept.pop(name, None)
        for keys, place in ((self._cache, 1), (self._locks, 1), (self._closed, 0)):
            for key in [key for key in list(keys) if key[place] not in held]:
                keys.pop(key, None)

    def sample(self, bandit: Any) -> None:
        """Take a sample. Beliefs that have not changed since the last two are noted by moving the last one."""
        now, n, config = bandit.now(), bandit.events, bandit.stored
        share = min(_NUMBERS, _ALL_NUMBERS // max(1, len(self._samples)))
        samples = self._samples.setdefault(bandit.name, deque())
        while len(samples) > max(_FEWEST, min(3600, share // (3 * len(config.arms)))):
            samples.popleft()
        last = samples[-1] if samples else None
        if last is not None and last.n == n and (config.half_life is None or now - last.at < _FADED):
            if config.half_life is None and len(samples) > 1 and samples[-2].n == n:
                samples[-1] = last._replace(at=now)
            elif config.half_life is None:
                samples.append(last._replace(at=now))
            return
        found = Sample(now, n, beliefs_of(bandit))
        samples.append(found)
        if now - self._stored.get(bandit.name, 0) >= _STORED and not self._bandits.read_only:
            self._stored[bandit.name] = now
            number, start = self._bandits.journal.number(bandit.name), now // _STORED * _STORED
            self._bandits.write([AddCell(number, _STORED, start, msgspec.json.encode(found).decode())])

    def beliefs(self, bandit: Any, begin: int, end: int, points: int) -> BeliefSeries:
        """At most about `points` samples of a time, and the last one again at its end, where nothing has changed since.
        Arms that were added later have null."""
        recent, journal = list(self._samples.get(bandit.name, ())), self._bandits.journal
        split = min(end, recent[0].at if recent else end)
        stored = journal.charts(journal.number(bandit.name), _STORED, begin - _STORED, split)
        samples = [found for _, text in stored if begin <= (found := _decode(text)).at < split]
        samples += [found for found in recent if begin <= found.at <= end]
        width = max(1, (end - begin) // points)
        shown = list({found.at // width: found for found in samples}.values())
        shown = [found for found in shown if any(mean is not None for mean in found.belief.mean)]
        until, slots = min(end, bandit.now()), len(bandit.stored.arms)
        if shown and shown[-1].at < until:
            shown.append(shown[-1]._replace(at=until))

        def rows(name: str) -> list[list[float | None]]:
            return [(getattr(found.belief, name) + [None] * slots)[:slots] for found in shown]

        return BeliefSeries([found.at for found in shown], rows("mean"), rows("spread"), rows("weight"))

    # ---- computed when requested -------------------------------------------------------------------------------------

    def cached(self, kind: str, bandit: Any, make: Callable[[], Any], key: Any = None, seconds: float = _FRESH) -> Any:
        """An answer that may be some seconds old, or twenty times as old as it took to compute. While one request
        computes it, others get the old one."""
        key = kind, bandit.name, key
        found = self._cache.get(key)
        if found is not None and time.monotonic() < found[0]:
            return found[1]
        lock = self._locks.setdefault((kind, bandit.name), threading.Lock())
        if not lock.acquire(timeout=_QUEUE):
            if found is not None:
                return found[1]
            raise HttpProblem(503, "busy", "Another request is reading the journal; try again.", retry=True)
        try:
            began = time.monotonic()
            answer = make()
            now = time.monotonic()
            if len(self._cache) > 2000:
                self._cache.clear()
            self._cache[key] = now + max(seconds, min(600.0, _COST * (now - began))), answer
            return answer
        finally:
            lock.release()

    def draw(self, bandit: Any, since: int | None, until: int | None, points: int) -> ChartsInfo:
        """Everything the page draws about a time."""
        config, journal = bandit.stored, self._bandits.journal
        first = journal.first_at(journal.number(bandit.name))
        end = bandit.now() + 1 if until is None else until
        begin = since if since is not None else (end - MINUTE if first is None else first)
        begin = min(begin, end - SECOND)
        key = since, until, points
        count = self.counts if end - begin < _LONG else self._counts_of_closed
        history = self.cached("counts", bandit, lambda: count(bandit, begin, end, points), key)
        beliefs = self.beliefs(bandit, begin, end, points)
        densities = belief_densities(*read_bandit(bandit))
        return ChartsInfo(
            history.arms, list(config.retired), config.fixed, begin, end, first, history, beliefs,
            self._delays(bandit), None if densities is None else Density(*densities),
            None if self._truth is None else self._truth(bandit.name, beliefs.times),
        )  # fmt: skip

    def counts(self, bandit: Any, begin: int | None, end: int | None, points: int) -> HistoryInfo:
        """Decisions, outcomes and rewards by interval and arm, counted by the store."""
        span = [None if at is None else as_datetime(at) for at in (begin, end)]
        found = bandit.history(span[0], span[1], points)
        starts, width = [as_microseconds(at) for at in found.starts], found.width // timedelta(microseconds=1)
        return HistoryInfo(starts, width, [to_json_arm(arm) for arm in found.arms], *found[3:])

    def _counts_of_closed(self, bandit: Any, begin: int, end: int, points: int) -> HistoryInfo:
        """The same over a long time. Intervals are whole minutes, and those that can no longer change are counted once:
        a day of a busy bandit has millions of rows."""
        width = MINUTE * (
            1 + (end - begin) // (MINUTE * max(1, points - 2))
        )  # at most `points` after rounding both ends
        first, last = begin // width * width, -(-end // width) * width
        known = self._closed.setdefault((bandit.name, width), {})
        start = next(at for at in range(first, last + width, width) if at not in known)
        after = self.counts(bandit, start, last, (last - start) // width) if start < last else None
        if len(self._closed) > 100 or len(known) > 10_000:
            self._closed.clear()
        rows = [known[at] for at in range(first, start, width)]
        slots = len(bandit.stored.arms)
        if after is not None:
            fresh = list(zip(after.decisions, after.outcomes, after.rewards, strict=True))
            closed = bandit.now() - (bandit.stored.wait or 0) - _SLACK
            known |= {at: row for at, row in zip(after.starts, fresh, strict=True) if at + width <= closed}
            rows += fresh
        rows = [tuple((part + [0] * slots)[:slots] for part in row) for row in rows]  # arms may have been added since
        arms = [to_json_arm(arm) for arm in names_of(bandit.stored)]
        return HistoryInfo([*range(first, last, width)], width, arms, *map(list, zip(*rows, strict=True)))

    def changes(self, bandit: Any) -> list[dict[str, Any]]:
        """Every change of configuration, read again after a change."""
        config, (seen, found) = bandit.stored, self._changes.get(bandit.name, (None, []))
        if config is not seen:
            found = bandit.changes()
            self._changes[bandit.name] = config, found
        return found

    def uplift(self, bandit: Any, since: str | None, confidence: float) -> Uplift:
        """The uplift of the policy. It reads all events, over a separate connection."""
        start = 0 if since is None else bandit.now() - duration(since, "since")

        def make() -> Uplift:
            with closing(reading(self._bandits.target)) as journal:
                until = 1 << 62 if bandit.stored.wait is None else bandit.settled + 1
                return measure_uplift(journal, bandit_number(journal, bandit.name), start, confidence, until)

        return self.cached("uplift", bandit, make, (since, confidence))  # type: ignore[no-any-return]

    def recent(self, bandit: Any) -> list[Any]:
        """The last decisions with their outcomes, newest first."""
        return self.cached("recent", bandit, lambda: bandit.recent(_RECENT))  # type: ignore[no-any-return]

    def _delays(self, bandit: Any) -> Delays:
        """How long rewards took, of the last decisions."""
        found, wait = self.recent(bandit), bandit.stored.wait
        times = [max((o.came - o.decision.at).total_seconds(), 1e-4) for o in found if o.kind == "reward"]
        none = sum(o.kind != "reward" and (wait is None or o.kind is not None) for o in found)
        limit, text = None if wait is None else wait / SECOND, bandit.delays
        if not times:
            return Delays([], [], none, limit, text)
        low, high = math.log(min(times)), math.log(max(max(times), (limit or 0.0), 1.01 * min(times)))
        step = (high - low) / _BINS
        bins = Counter(min(_BINS - 1, int((math.log(value) - low) / step)) for value in times)
        edges = [math.exp(low + step * place) for place in range(_BINS + 1)]
        return Delays(edges, [bins[place] for place in range(_BINS)], none, limit, text)
