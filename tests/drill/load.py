"""A process that decides and rewards as fast as it can and notes what was acknowledged, until it is killed."""

import os
import threading
import time
import zlib
from typing import Any

from driftbandit.bandit import Bandit, StoreError
from driftbandit.bandit.opening import is_url
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.drift import DriftLinTS

ARMS = ["a", "b", "c", "d"]


CONTEXTUAL: dict[str, Any] = {
    "policy": DriftLinTS(),
    "half_life": None,
    "features": {"device": ["mobile", "desktop"], "basket": "number", "hour": "hour of day"},
}


def bandit_for_drills(target: str, **options: Any) -> Bandit:
    """The bandit that all drills use: a floor, a holdback, a wait that no decision reaches, and many snapshots. With
    the options CONTEXTUAL, it decides in contexts."""
    given = {
        "half_life": "1 min",
        "holdback": 0.05,
        "baseline": "a",
        "wait": "1 h",
        "learn": "arrival",
        "seed": 5,
        "snapshot_every": 500,
    }
    return Bandit.open(target, "drill", arms=ARMS, **{"policy": DiscountedTS(), **given, **options})


def reward_of(id: str) -> float:
    """The reward that belongs to an id: it is the same whichever process sends it."""
    return zlib.crc32(id.encode()) % 5 / 4.0


def context_of(id: str) -> dict[str, Any]:
    """The context that belongs to an id; now and then with a value missing or a level not declared."""
    number = zlib.crc32(id.encode()[::-1])
    device = ("mobile", "desktop", None, "tv")[number % 7 % 4]
    return {"device": device} if number % 5 == 0 else {"device": device, "basket": number % 100 / 10.0}


def work(target: str, prefix: str, notes: str, threads: int, seconds: float, contextual: bool = False) -> None:
    """Decide and reward with several threads for some time. An id is noted before a call and marked after its answer:
    what is marked must be there, and what is not even noted must not."""
    file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    until = time.monotonic() + seconds

    def loop(number: int) -> None:
        n = 0
        while time.monotonic() < until:
            id = f"{prefix}-{number}-{n}"
            n += 1
            try:
                bandit.decide(id, context=context_of(id) if contextual else None)
                os.write(file, f"d {id}\n".encode())
                if n % 10:
                    bandit.reward(id, reward_of(id))
                    os.write(file, f"r {id}\n".encode())
            except StoreError:
                if not is_url(target):
                    raise
                time.sleep(0.05)

    with bandit_for_drills(target, **(CONTEXTUAL if contextual else {})) as bandit:
        running = [threading.Thread(target=loop, args=(number,)) for number in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    os.close(file)


def noted(notes: str) -> tuple[set[str], set[str]]:
    """The decisions and rewards that were acknowledged; a last line cut by a kill says nothing."""
    if not os.path.exists(notes):
        return set(), set()
    with open(notes, "rb") as file:
        lines = [line for line in file.read().split(b"\n")[:-1] if line]
    decided = {line[2:].decode() for line in lines if line[:2] == b"d "}
    return decided, {line[2:].decode() for line in lines if line[:2] == b"r "}
