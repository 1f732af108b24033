"""kill -9 in the middle of dropping old rows: a bandit that drops them stays the twin of one that keeps everything."""

import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from driftbandit.bandit.audit import audit
from driftbandit.bandit.opening import reading
from driftbandit.bandit.records import DAY
from tests.drill.kills import spawning
from tests.drill.load import bandit_for_drills, reward_of
from tests.drill.site import Finding, Site

_START = 1_700_006_400_000_000  # a midnight
_TIMES = 6  # of day at which decisions are made
_TOGETHER = 50  # decisions at each


class _Clock:
    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def _opened(target: str, clock: _Clock) -> Any:
    return bandit_for_drills(target, clock=clock, retention="2 d", half_life="1 d", learn="wait")


def live_a_day(target: str, day: int) -> list[str]:
    """Decide and reward at some times of a day; the arms."""
    clock, arms = _Clock(0), []
    with _opened(target, clock) as bandit:
        for part in range(_TIMES):
            clock.now = _START + day * DAY + part * DAY // _TIMES
            bandit.refresh()
            ids = [f"{day}-{part}-{n}" for n in range(_TOGETHER)]
            arms += [decision.arm for decision in bandit.decide_many(ids)]
            clock.now += 1_000_000
            bandit.reward_many([(id, reward_of(id)) for id in ids[::2]])
    return arms


def drop(target: str, day: int, exports: str, notes: str) -> None:
    """Drop what is older than two days at the end of a day."""
    with _opened(target, _Clock(_START + (day + 1) * DAY - 1)) as bandit:
        Path(notes).touch()
        bandit.prune(exports)
        Path(notes).write_text("done")


def known(target: str, day: int) -> tuple[str, dict[str, Any]]:
    """The state and the counts at the end of a day."""
    with _opened(target, _Clock(_START + (day + 1) * DAY - 1)) as bandit:
        bandit.refresh()
        health = bandit.health()
        return bandit.fingerprint(), {name: health[name] for name in ("decisions", "rewards", "defaults", "events")}


def kill_while_dropping(site: Site, kills: int, seed: int = 1) -> list[Finding]:
    """Kill a process that drops rows `kills` times, each time after another day; compare with a twin that drops none,
    and look for each decision in the journal and in the exported files."""
    import pyarrow.parquet as parquet

    target, chance, context = site.journal(), random.Random(seed), spawning()
    twin, exports = os.path.join(site.folder, f"twin-{site.kind}.db"), os.path.join(site.folder, f"old-{site.kind}")
    took, interrupted, wrong = 0.2, 0, 0
    for day in range(kills):
        wrong += live_a_day(target, day) != live_a_day(twin, day)
        notes = os.path.join(site.folder, f"dropping{day}")
        child = context.Process(target=drop, args=(target, day, exports, notes), daemon=True)
        child.start()
        while not os.path.exists(notes) and child.is_alive():
            time.sleep(0.001)
        began = time.monotonic()
        child.join(chance.random() * took)
        if child.is_alive():
            child.kill()
            child.join()
        if Path(notes).read_text() == "done":
            took = 0.5 * (took + time.monotonic() - began)
        else:
            interrupted, took = interrupted + 1, 1.1 * took
        journal = reading(target)
        wrong += sum(len(journal.check(number)) for number in journal.bandits().values())
        journal.close()
    drop(target, kills - 1, exports, os.path.join(site.folder, "last"))
    wrong += known(target, kills - 1) != known(twin, kills - 1)
    wrong += sum(len(report.differences) for report in audit(target))
    files = sorted(Path(exports).rglob("*.parquet"))
    found = Counter(
        id for path in files for id in parquet.read_table(path, columns=["decision"])["decision"].to_pylist()
    )
    journal = reading(target)
    left = [row.id for row in journal.decisions(journal.bandits()["drill"])]
    journal.close()
    found.update(left)
    total = kills * _TIMES * _TOGETHER
    lost, doubled = total - len(found), sum(found.values()) - len(found)
    good = not (lost or doubled or wrong) and len(left) < total and interrupted > 0
    result = f"{lost} lost, {doubled} doubled, {wrong} differences; {len(left)} of {total} decisions left"
    return [Finding("kill -9 while dropping", site.kind, f"{kills} kills, {interrupted} in the middle", result, good)]
