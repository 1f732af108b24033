"""Work that takes longer than a request: audits, and journals folded again with another policy. One at a time."""

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from typing import Any

from driftbandit.half_life import SECOND, checked_half_life, duration, spelt
from driftbandit.live.audit import audit_bandit
from driftbandit.live.fold import Fold
from driftbandit.live.opening import policy_maker, reading, rereader
from driftbandit.live.records import CHANGE, Change
from driftbandit.service.bandits import library_policy
from driftbandit.service.charts.beliefs import Sample, as_series, take_sample, thin
from driftbandit.service.problems import log
from driftbandit.service.types import AuditInfo, WhatIf

_STEP = 400  # events between two pauses, in which requests are answered
_PAUSE = 0.004  # seconds
_KEPT = 12  # folds that are kept and can be continued
_POINTS = 300
_AGAIN = 2.0  # seconds until a fold is continued
MOST_WAITING = 20


class ChartTrace:
    """A journal folded from its beginning, sampled at the end of every interval of `width` that has events. With
    `instead`, another policy and half-life learn the same events."""

    def __init__(self, journal: Any, number: int, width: int, instead: tuple[str, int | None] | None = None,
                 most: int | None = None) -> None:  # fmt: skip
        self._journal, self._number = journal, number
        self._instead = instead
        self.fold = Fold(policy_maker(), rereader(journal, number))
        self.width, self.most = width, most
        self.samples: list[Sample] = []
        self._cursor: Any = None
        self._stretch: int | None = None

    def use(self, journal: Any) -> None:
        """Read from this journal from now on."""
        self._journal = journal
        self.fold._reread = rereader(journal, self._number)

    def advance(
        self, until: Callable[[Fold], bool] = lambda fold: False, stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Fold new events, with pauses for requests, until one of the two returns true."""
        while not until(self.fold) and not stop():
            found = list(islice(self._journal.events(self._number, self._cursor, _STEP), _STEP))
            for cursor, event in found:
                stretch = event.at // self.width
                if self._stretch is not None and stretch > self._stretch and self.fold.config is not None:
                    self._take(self._stretch)
                self._stretch = stretch if self._stretch is None else max(stretch, self._stretch)
                self._cursor = cursor
                self._apply(event)
            if not found:
                return
            time.sleep(_PAUSE)

    def _apply(self, event: Any) -> None:
        """Fold an event; a change keeps the other policy."""
        if self._instead is not None and event.kind == CHANGE:
            change = Change.read(event.body)
            config = change.config._replace(policy=self._instead[0], half_life=self._instead[1])
            event = event._replace(body=change._replace(config=config).text())
        self.fold.apply([event])

    def _take(self, stretch: int) -> None:
        self.samples.append(take_sample(self.fold, (stretch + 1) * self.width))
        if self.most is not None and len(self.samples) > 2 * self.most:  # twice as wide, half as many
            self.width *= 2
            self.samples = self.samples[1::2]
            self._stretch = None if self._stretch is None else self._stretch // 2

    def now(self, at: int) -> list[Sample]:
        """All samples, and one now."""
        return [*self.samples, take_sample(self.fold, at)] if self.fold.config is not None else list(self.samples)


class Jobs:
    """A thread that works through the requests in order."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._audits: dict[str, AuditInfo] = {}
        self._folds: OrderedDict[tuple[str, str, int | None], _WhatIf] = OrderedDict()
        self._lock = threading.Lock()
        self._queue: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandit-jobs", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (job := self._queue.get()) is not None and not self._stop.is_set():
            job()

    def _check_space(self) -> None:
        if self._queue.qsize() >= MOST_WAITING:
            raise ValueError(f"{MOST_WAITING} audits and folds are waiting already; try again when they are done.")

    def close(self) -> None:
        """Stop after the current step."""
        self._stop.set()
        self._queue.put(None)
        self._thread.join(5.0)

    def audit(self, bandit: Any, begin: bool) -> AuditInfo:
        """The last audit of a bandit; `begin` starts a new one."""
        with self._lock:
            found = self._audits.get(bandit.name, AuditInfo("never"))
            if begin and found.state != "running":
                self._check_space()
                found = self._audits[bandit.name] = AuditInfo("running")
                self._queue.put(lambda: self._audit(bandit.name, bandit._number))
            return found

    def _audit(self, name: str, number: int) -> None:
        now = time.time_ns() // 1000
        try:
            with closing(reading(self.target)) as journal:
                report = audit_bandit(journal, name, number)
            state = "differs" if report.differences else "proved in part" if report.unproved else "proved"
            done = AuditInfo(
                state, now, report.decisions, report.events, report.snapshots, report.differences[:20],
                list(report.unproved[:20]),
            )  # fmt: skip
        except Exception as error:
            log.error("the audit of %s failed: %s", name, error)
            done = AuditInfo("failed", now, differences=[str(error)[:500]])
        self._audits[name] = done

    def what_if(self, bandit: Any, policy: str | None, half_life: str | None) -> WhatIf:
        """The same journal folded with another policy or half-life ("none" for no half-life), as far as it is done."""
        config = bandit.config
        made = library_policy(policy or config.policy, len(config.arms))
        wanted: int | None = config.half_life if policy is None else None
        if half_life is not None:
            wanted = None if half_life == "none" else duration(half_life, "half_life")
        if wanted is not None:
            checked_half_life(wanted / 1e6, made)
        key = bandit.name, repr(made), wanted
        with self._lock:
            found = self._folds.get(key) or _WhatIf(bandit, repr(made), wanted)
            if not found.running and time.monotonic() - found.done_at > _AGAIN and found.failed == "":
                self._check_space()
                found.running = True
                self._queue.put(lambda: found.work(self.target, self._stop))
            self._folds[key] = found
            self._folds.move_to_end(key)
            while len(self._folds) > _KEPT:
                self._folds.popitem(last=False)
        return found.answer()


class _WhatIf:
    """One journal with one other policy; a later request continues it."""

    def __init__(self, bandit: Any, policy: str, half_life: int | None) -> None:
        self.bandit, self.policy, self.half_life = bandit, policy, half_life
        self.running, self.failed, self.done_at = False, "", -1e9
        self._progress, self._trace = 0.0, None  # type: float, ChartTrace | None
        self._answer: WhatIf | None = None

    def work(self, target: str, stop: threading.Event) -> None:
        """Fold the events since the last time."""
        goal = max(1, self.bandit._fold.n)

        def enough(fold: Any) -> bool:
            self._progress = min(1.0, fold.n / goal)
            return bool(fold.n >= goal)

        try:
            with closing(reading(target)) as journal:
                if self._trace is None:
                    instead = self.policy, self.half_life
                    self._trace = ChartTrace(journal, self.bandit._number, SECOND, instead, _POINTS)
                self._trace.use(journal)
                self._trace.advance(enough, stop.is_set)
            now = self.bandit._replica.now()
            samples = self._trace.now(now)
            begin = samples[0].at if samples else now
            shown = as_series(thin(samples, begin, now, _POINTS), len(self.bandit.config.arms))
            self._answer = WhatIf("done", 1.0, self.policy, self._spelt(), shown)
        except Exception as error:
            self.failed = str(error)[:300] or type(error).__name__
        finally:
            self.running, self.done_at = False, time.monotonic()

    def answer(self) -> WhatIf:
        """The result, or how far it is."""
        if self.failed:
            return WhatIf("failed", 0.0, self.policy, self._spelt(), text=self.failed)
        return self._answer or WhatIf("running", self._progress, self.policy, self._spelt())

    def _spelt(self) -> str | None:
        return None if self.half_life is None else spelt(self.half_life)
