"""Decisions that are never rewarded: memory must not grow with them."""

import resource
import sys

from driftbandit.live import Bandit
from driftbandit.live.drill.kills import spawning
from driftbandit.live.drill.site import Finding, Site
from driftbandit.policies.discounted_ts import DiscountedTS

_ROOM = 24.0  # megabytes that caches of the store may take


def _decide(target: str, decisions: int, wait: str | None, answers: object) -> None:
    """In a process of its own: the largest memory after a tenth of the decisions, and after all."""
    with Bandit.open(target, "drill", DiscountedTS(), 10, wait=wait, durability="none") as bandit:
        seen: list[float] = []
        for part in (decisions // 10, decisions - decisions // 10):
            for _ in range(part // 1000):
                bandit.decide_many([f"m{len(seen)}-{_}-{n}" for n in range(1000)])
            unit = 1e6 if sys.platform == "darwin" else 1024.0
            seen.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
    answers.put(seen)  # type: ignore[attr-defined]


def flat(site: Site, decisions: int) -> list[Finding]:
    """With and without `wait`."""
    out = []
    for wait in (None, "1 h"):
        context = spawning()
        answers = context.Queue()
        child = context.Process(target=_decide, args=(site.journal(), decisions, wait, answers))
        child.start()
        before, after = answers.get(timeout=3600.0)
        child.join()
        result = f"{before:.0f} MB after a tenth, {after:.0f} MB after all"
        what = "never rewarded" + (f", wait {wait}" if wait else "")
        out.append(Finding(what, site.kind, f"{decisions} decisions", result, after - before < _ROOM))
    return out
