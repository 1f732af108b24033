"""Decisions that are never rewarded: memory must not grow with them, whether they wait forever or get the default."""

import resource
import sys
import time
from collections.abc import Iterator

from driftbandit.bandit import Bandit
from driftbandit.bandit.records import system_time
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.spec.half_life import duration
from tests.drill.kills import spawning
from tests.drill.site import Finding, Site

_STEP = 60_000_000  # microseconds from one call to the next: after 60 calls the first decisions have waited an hour
_AT_ONCE = 200  # decisions in a call
_ROOM = 24.0  # megabytes that caches of the store may take


def _decide(target: str, decisions: int, wait: str | None, answers: object) -> None:
    """In a separate process: the largest memory after a tenth of the decisions, and after all; and how many defaults
    were due and written. The clock moves on by a minute with each call, so that defaults fall due all the time."""
    now = [system_time()]
    with Bandit.open(
        target, "drill", DiscountedTS(), 10, wait=wait, durability="none", clock=lambda: now[0], seed=1
    ) as bandit:
        seen: list[float] = []
        calls: list[int] = []
        for part in (decisions // 10, decisions - decisions // 10):
            for _ in range(part // _AT_ONCE):
                bandit.decide_many([f"m{len(calls)}-{n}" for n in range(_AT_ONCE)])
                calls.append(now[0])
                now[0] += _STEP
            unit = 1e6 if sys.platform == "darwin" else 1024.0
            seen.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
        bandit.settle()
        due = 0 if wait is None else sum(_AT_ONCE for at in calls if now[0] - at > duration(wait, "wait"))
        until = time.monotonic() + 10.0  # on PostgreSQL this process reads what it has written a moment later
        while bandit.health()["defaults"] < due and time.monotonic() < until:
            bandit.refresh()
        answers.put((*seen, due, bandit.health()["defaults"]))  # type: ignore[attr-defined]


def flat(site: Site, decisions: int) -> Iterator[Finding]:
    """With and without `wait`."""
    for wait in (None, "1 h"):
        context = spawning()
        answers = context.Queue()
        child = context.Process(target=_decide, args=(site.journal(), decisions, wait, answers))
        child.start()
        before, after, due, written = answers.get(timeout=3600.0)
        child.join()
        result = f"{before:.0f} MB after a tenth, {after:.0f} MB after all"
        what, good = "never rewarded", after - before < _ROOM
        if wait:
            what, result = f"{what}, wait {wait}", f"{result}; {written} defaults of {due} due"
            good = good and written == due > 0
        yield Finding(what, site.kind, f"{decisions} decisions", result, good)
