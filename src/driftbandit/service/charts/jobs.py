"""Work that takes longer than an answer may: audits, and journals folded with another policy. One at a time."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from driftbandit.half_life import checked_half_life, duration, spelt
from driftbandit.live.audit import audit_bandit
from driftbandit.live.opening import reading
from driftbandit.service.charts.series import series, thinned
from driftbandit.service.charts.tracing import SMALLEST, ChartTrace
from driftbandit.service.policytext import library_policy
from driftbandit.service.problems import log
from driftbandit.service.types import AuditInfo, WhatIf

_KEPT = 12  # folds that are kept, to go on when asked again
_POINTS = 300
_AGAIN = 2.0  # seconds until a fold goes on
MOST_WAITING = 20


class Jobs:
    """A thread that works through what was asked, in order."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._audits: dict[str, AuditInfo] = {}
        self._folds: OrderedDict[tuple[str, str, int | None], _Fold] = OrderedDict()
        self._lock = threading.Lock()
        self._asked: list[Callable[[Any], None]] = []
        self._wake = threading.Condition(self._lock)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftbandit-jobs", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._asked and not self._stop.is_set():
                    self._wake.wait()
                if self._stop.is_set():
                    return
                job = self._asked.pop(0)
            try:
                journal = reading(self.target)
                try:
                    job(journal)
                finally:
                    journal.close()
            except Exception as error:
                log.error("a job failed: %s", error)

    def _ask(self, job: Callable[[Any], None]) -> None:
        if len(self._asked) >= MOST_WAITING:
            raise ValueError(f"{MOST_WAITING} audits and folds are waiting already; ask again when they are done.")
        self._asked.append(job)
        self._wake.notify()

    def close(self) -> None:
        """Stop after the present step."""
        with self._wake:
            self._stop.set()
            self._wake.notify()
        self._thread.join(5.0)

    # ---- audits ------------------------------------------------------------------------------------------------------

    def audit(self, bandit: Any, begin: bool) -> AuditInfo:
        """The last audit of a bandit; `begin` asks for a new one."""
        with self._wake:
            found = self._audits.get(bandit.name, AuditInfo("never"))
            if begin and found.state != "running":
                found = self._audits[bandit.name] = AuditInfo("running")
                self._ask(lambda journal: self._audit(journal, bandit.name, bandit._number))
            return found

    def _audit(self, journal: Any, name: str, number: int) -> None:
        now = time.time_ns() // 1000
        try:
            report = audit_bandit(journal, name, number)
        except Exception as error:
            self._audits[name] = AuditInfo("failed", now, differences=[str(error)[:500]])
            return
        state = "differs" if report.differences else "proved"
        self._audits[name] = AuditInfo(
            state, now, report.decisions, report.events, report.snapshots, report.differences[:20]
        )

    # ---- what if -----------------------------------------------------------------------------------------------------

    def what_if(self, bandit: Any, policy: str | None, half_life: str | None) -> WhatIf:
        """The same journal folded with another policy or half-life ("none" for no half-life), as far as it has come."""
        config = bandit.config
        made = library_policy(policy or config.policy, len(config.arms))
        time_wanted: int | None = config.half_life if policy is None else None
        if half_life is not None:
            time_wanted = None if half_life == "none" else duration(half_life, "half_life")
        if time_wanted is not None:
            checked_half_life(time_wanted / 1e6, made)
        with self._wake:
            key = bandit.name, repr(made), time_wanted
            found = self._folds.get(key)
            if found is None:
                found = self._folds[key] = _Fold(bandit, repr(made), time_wanted)
                while len(self._folds) > _KEPT:
                    self._folds.popitem(last=False)
            self._folds.move_to_end(key)
            if not found.running and time.monotonic() - found.done_at > _AGAIN and found.failed == "":
                found.running = True
                self._ask(lambda journal: found.work(journal, self._stop))
        return found.answer()


class _Fold:
    """One journal with one other policy; goes on from where it was."""

    def __init__(self, bandit: Any, policy: str, half_life: int | None) -> None:
        self.bandit, self.policy, self.half_life = bandit, policy, half_life
        self.running, self.failed, self.done_at = False, "", -1e9
        self._progress, self._trace = 0.0, None  # type: float, ChartTrace | None
        self._answer: WhatIf | None = None

    def work(self, journal: Any, stop: threading.Event) -> None:
        """Fold what has come since the last time."""
        try:
            if self._trace is None:
                instead = self.policy, self.half_life
                self._trace = ChartTrace(journal, self.bandit._number, SMALLEST, instead, _POINTS)
            trace = self._trace
            trace.use(journal)
            goal = max(1, self.bandit._fold.n)

            def enough(fold: Any) -> bool:
                self._progress = min(1.0, fold.n / goal)
                return bool(fold.n >= goal)

            trace.advance(enough, stop.is_set)
            now = self.bandit._replica.now()
            samples = trace.now(now)
            begin = samples[0].at if samples else now
            shown = series(thinned(samples, begin, now, _POINTS), len(self.bandit.config.arms))
            self._answer = WhatIf("done", 1.0, self.policy, self._spelt(), shown)
        except Exception as error:
            self.failed = str(error)[:300] or type(error).__name__
        finally:
            self.running, self.done_at = False, time.monotonic()

    def answer(self) -> WhatIf:
        """As far as it has come."""
        if self.failed:
            return WhatIf("failed", 0.0, self.policy, self._spelt(), text=self.failed)
        return self._answer or WhatIf("running", self._progress, self.policy, self._spelt())

    def _spelt(self) -> str | None:
        return None if self.half_life is None else spelt(self.half_life)
