"""kill -9 in the middle of moving bandits to another database, while other processes decide and reward."""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from driftbandit.bandit import Bandit, StoreError
from driftbandit.bandit.audit import audit
from driftbandit.bandit.moving import move
from driftbandit.bandit.opening import reading, writing
from driftbandit.bandit.records import DEFAULT, REWARD
from driftbandit.errors import Moved
from driftbandit.policies.discounted_ts import DiscountedTS
from tests.drill.kills import spawning
from tests.drill.load import ARMS, CONTEXTUAL, context_of, noted, reward_of
from tests.drill.site import Finding, Site

_WORKERS, _THREADS = 2, 2


def _contextual(name: str) -> bool:
    return name.endswith("5")


def make(target: str, names: list[str]) -> None:
    """Bandits of which each tenth has features."""
    for name in names:
        options = CONTEXTUAL if _contextual(name) else {"policy": DiscountedTS(), "half_life": "1 min"}
        shared = {"wait": "1 h", "learn": "arrival", "holdback": 0.05, "baseline": "a"}
        with Bandit.open(target, name, arms=ARMS, **options, **shared) as bandit:
            bandit.decide(context=context_of(name) if _contextual(name) else None)


def work(places: list[str], names: list[str], prefix: str, notes: str, stop: str) -> None:
    """Decide and reward at random bandits until a file says stop. A call that is refused since its bandit was moved is
    sent to the other place, and one that could not be answered again, with the same id."""
    file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def loop(number: int) -> None:
        chance, homes, opened = random.Random(f"{prefix}{number}"), Counter[str](), dict[str, Any]()

        def call(name: str, what: Callable[[Any], Any]) -> None:
            while True:
                try:
                    if name not in opened:
                        opened[name] = Bandit.open(places[homes[name]], name)
                    what(opened[name])
                    return
                except Moved:
                    homes[name] = 1
                    opened.pop(name).close() if name in opened else None
                except StoreError:
                    time.sleep(0.02)

        n = 0
        while not os.path.exists(stop):
            name, n = chance.choice(names), n + 1
            id = f"{name}.{prefix}-{number}-{n}"
            context = context_of(id) if _contextual(name) else None
            call(name, lambda bandit, id=id, context=context: bandit.decide(id, context=context))
            os.write(file, f"d {id}\n".encode())
            if n % 10:
                call(name, lambda bandit, id=id: bandit.reward(id, reward_of(id)))
                os.write(file, f"r {id}\n".encode())

    running = [threading.Thread(target=loop, args=(number,)) for number in range(_THREADS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    os.close(file)


def carry(source: str, target: str, notes: str) -> None:
    """Move all bandits."""
    Path(notes).touch()
    seconds = sorted(one.seconds for one in move(source, target, ["bandit*"]) if one.moved)
    Path(notes).write_text("done " + " ".join(f"{each:.3f}" for each in seconds))


def owners(places: list[str], names: list[str]) -> Counter[int]:
    """How many bandits decide in so many of the places."""
    counts: Counter[str] = Counter()
    for place in places:
        journal = reading(place)
        for name in names:
            found = journal.find(name)
            counts[name] += found is not None and found.target is None and found.origin is None
        journal.close()
    return Counter(counts.values())


def kill_while_moving(site: Site, kills: int, bandits: int, seed: int = 1) -> list[Finding]:
    """Kill a process that moves bandits `kills` times, while others decide; then let it end, and look for everything
    that was acknowledged in the target."""
    places, chance, context = [site.journal(), site.journal()], random.Random(seed), spawning()
    names = [f"bandit{number}" for number in range(bandits)]
    make(places[0], names)
    writing(places[1]).release()
    stop, paths = os.path.join(site.folder, f"stop{bandits}"), []
    workers = []
    for number in range(_WORKERS):
        paths.append(os.path.join(site.folder, f"moving{bandits}-{number}"))
        workers.append(context.Process(target=work, args=(places, names, f"w{number}", paths[-1], stop), daemon=True))
        workers[-1].start()
    time.sleep(1.0)
    took, interrupted, doubly = 0.15 * bandits / kills, 0, 0
    for number in range(kills + 1):
        notes = os.path.join(site.folder, f"carry{bandits}-{number}")
        child = context.Process(target=carry, args=(*places, notes), daemon=True)
        child.start()
        while not os.path.exists(notes) and child.is_alive():
            time.sleep(0.001)
        child.join(None if number == kills else chance.random() * 2.0 * took)
        if child.is_alive():
            child.kill()
            child.join()
            interrupted += 1
        doubly += owners(places, names)[2]
    seconds = [float(word) for word in Path(notes).read_text().split()[1:]]
    time.sleep(1.0)
    Path(stop).touch()
    for worker in workers:
        worker.join(60)
    decided, rewarded = (set[str]().union(*found) for found in zip(*map(noted, paths), strict=True))
    lost, doubled, elsewhere = _compare(places, names, decided, rewarded)
    reports = audit(places[1])
    differ = sum(len(report.differences) for report in reports)
    still = bandits - owners(places[1:], names)[1]
    half, most = (seconds[len(seconds) // 2], seconds[-1]) if seconds else (0.0, 0.0)
    middle = f", undecided for {half:.3f} s in the median, {most:.3f} s at most"
    result = f"{lost} lost, {doubled} doubled, {doubly + elsewhere} at two owners, {differ} differ{middle}"
    good = not (lost or doubled or doubly or elsewhere or differ or still) and interrupted > 0 and len(decided) > 0
    tried = (
        f"{bandits} bandits, {kills} kills, {interrupted} in the middle, {len(decided) + len(rewarded)} acknowledged"
    )
    return [Finding("kill -9 while moving", site.kind, tried, result, good)]


def _compare(places: list[str], names: list[str], decided: set[str], rewarded: set[str]) -> tuple[int, int, int]:
    """What was acknowledged and is not in the target; outcomes that are there twice; rows of the source that the target
    does not have, which were written after the move."""
    there, outcomes, elsewhere = set[str](), Counter[str](), 0
    first, second = map(reading, places)
    for name in names:
        ids = {row.id: row.slot for row in second.decisions(second.find(name).number)}
        there |= ids.keys()
        events = [event for _, event in second.events(second.find(name).number)]
        outcomes.update(event.decision for event in events if event.kind in (REWARD, DEFAULT))
        number = first.find(name).number
        elsewhere += sum(ids.get(row.id) != row.slot for row in first.decisions(number))
        known = {(event.kind, event.decision) for event in events}
        elsewhere += sum((event.kind, event.decision) not in known for _, event in first.events(number))
    first.close()
    second.close()
    doubled = sum(count - 1 for count in outcomes.values()) + sum(id not in there for id in outcomes)
    return len(decided - there) + len(rewarded - outcomes.keys()), doubled, elsewhere
