"""PostgreSQL goes away: stopped and started again, and connections cut at any moment, while a process works."""

import os
import random
import threading
import time
from collections.abc import Callable

from driftbandit.bandit.audit import audit
from tests.drill.load import bandit_for_drills, noted, work
from tests.drill.proxy import Proxy
from tests.drill.site import Finding, Site
from tests.drill.verify import losses


def restarts(site: Site, times: int, seed: int = 1) -> list[Finding]:
    """Stop the server as a crash does, and start it again, under load."""

    def fault() -> None:
        site.stop()
        time.sleep(0.05)
        site.start()

    return _under_load(site, site.journal(), times, fault, "PostgreSQL killed and started", "restarts", seed, 0.3)


def cuts(site: Site, times: int, seed: int = 1) -> list[Finding]:
    """Cut all connections, under load."""
    direct = site.journal()
    database = direct.split("@/")[1].split("?")[0]
    proxy = Proxy(os.path.join(site.server.pgdata, ".s.PGSQL.5432"))
    through = f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}?sslmode=disable&gssencmode=disable"
    try:
        return _under_load(site, through, times, proxy.cut, "connections cut", "cuts", seed, 0.05)
    finally:
        proxy.close()


def _under_load(
    site: Site, target: str, times: int, fault: Callable[[], object], what: str, word: str, seed: int, pause: float
) -> list[Finding]:
    chance = random.Random(seed)
    bandit_for_drills(target).close()
    notes = os.path.join(site.folder, f"notes-{word}")
    stop_after = 3600.0
    done = threading.Event()
    worker = threading.Thread(target=_until, args=(target, notes, done, stop_after), daemon=True)
    worker.start()
    for _ in range(times):
        time.sleep(pause * (0.5 + chance.random()))
        fault()
    time.sleep(0.3)
    done.set()
    worker.join(timeout=120.0)
    decided, rewarded = noted(notes)
    found = losses(target, decided, rewarded)
    differences = [text for report in audit(target) for text in report.differences]
    result = f"{found}; audit: {len(differences)} differ"
    good = not any(found) and not differences and len(decided) > 0
    return [Finding(what, site.kind, f"{times} {word}, {len(decided) + len(rewarded)} acknowledged", result, good)]


def _until(target: str, notes: str, done: threading.Event, longest: float) -> None:
    """Pieces of work until a request to stop: a piece may end in an outage, and the next begins after it."""
    until, number = time.monotonic() + longest, 0
    while not done.is_set() and time.monotonic() < until:
        number += 1
        try:
            work(target, f"o{number}", notes, 4, 1.0)
        except OSError:
            time.sleep(0.1)
