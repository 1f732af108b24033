"""Several processes on one PostgreSQL: when all is quiet every replica holds the same bits, and every decision of every
process can be proved."""

import os
from typing import Any

from driftbandit.bandit.audit import audit
from tests.drill.kills import spawning
from tests.drill.load import bandit_for_drills, noted, work
from tests.drill.site import Finding, Site
from tests.drill.verify import losses


def _member(target: str, prefix: str, notes: str, seconds: float, gate: Any, answers: Any) -> None:
    with bandit_for_drills(target) as bandit:  # open all the while: this is the replica that is compared
        work(target, prefix, notes, 2, seconds)
        gate.wait(120.0)
        bandit.refresh()
        answers.put(bandit.fingerprint())
        gate.wait(120.0)


def crowd(site: Site, processes: int, seconds: float) -> list[Finding]:
    """All work for some seconds, then compare."""
    target, context = site.journal(), spawning()
    bandit_for_drills(target).close()
    gate, answers = context.Barrier(processes), context.Queue()
    notes = [os.path.join(site.folder, f"crowd{number}") for number in range(processes)]
    workers = [
        context.Process(target=_member, args=(target, f"p{number}", path, seconds, gate, answers), daemon=True)
        for number, path in enumerate(notes)
    ]
    for worker in workers:
        worker.start()
    prints = [answers.get(timeout=240.0) for _ in workers]
    for worker in workers:
        worker.join(timeout=60.0)
    decided, rewarded = (set().union(*parts) for parts in zip(*map(noted, notes), strict=True))
    found = losses(target, decided, rewarded)
    reports = audit(target)
    differences = [text for report in reports for text in report.differences]
    different = len(set(prints)) - 1
    proof = f"audit of {reports[0].decisions} decisions: {len(differences)} differ"
    result = f"{found}; {different} replicas differ; {proof}"
    good = not any(found) and different == 0 and not differences and len(rewarded) > 0
    tried = f"{processes} processes, {len(decided) + len(rewarded)} acknowledged"
    return [Finding("many processes", site.kind, tried, result, good)]
