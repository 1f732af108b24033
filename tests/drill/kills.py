"""kill -9 under load: a process that decides and rewards is killed at a random moment, again and again."""

import multiprocessing
import os
import random
import time
from typing import Any

from driftbandit.bandit.audit import audit
from tests.drill.load import CONTEXTUAL, bandit_for_drills, noted, work
from tests.drill.site import Finding, Site
from tests.drill.verify import Losses, losses


def spawning() -> Any:
    """Processes from a clean one in which everything is loaded: a child is at work within milliseconds."""
    context = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
    if hasattr(os, "fork"):
        context.set_forkserver_preload(["tests.drill.load", "driftbandit.bandit.sqlite", "driftbandit.bandit.postgres"])
    return context


def kill_under_load(site: Site, kills: int, seed: int = 1, threads: int = 4, contextual: bool = False) -> list[Finding]:
    """Kill the process `kills` times; after each, compare the journal with what it had acknowledged."""
    target, chance, context = site.journal(), random.Random(seed), spawning()
    bandit_for_drills(target, **(CONTEXTUAL if contextual else {})).close()
    total = Losses(0, 0, 0, 0)
    acknowledged = 0
    for number in range(kills):
        notes = os.path.join(site.folder, f"notes{number}{'-context' * contextual}")
        words = target, f"k{number}", notes, threads, 60.0, contextual
        child = context.Process(target=work, args=words, daemon=True)
        child.start()
        until = time.monotonic() + 30.0
        while not (os.path.exists(notes) and os.path.getsize(notes)) and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.08)
        child.kill()
        child.join()
        decided, rewarded = noted(notes)
        acknowledged += len(decided) + len(rewarded)
        total = Losses(*(a + b for a, b in zip(total, losses(target, decided, rewarded), strict=True)))
    reports = audit(target)
    differences = [text for report in reports for text in report.differences]
    result = f"{total}; audit of {reports[0].decisions} decisions: {len(differences)} differ"
    good = not any(total) and not differences and acknowledged > 0
    title = "kill -9 under load" + (", contexts" if contextual else "")
    return [Finding(title, site.kind, f"{kills} kills, {acknowledged} acknowledged", result, good)]
