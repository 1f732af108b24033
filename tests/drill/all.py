"""Every drill, one after the other, against the stores asked for."""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from tests.drill import (
    chances,
    crowd,
    files,
    fuzz,
    kills,
    memory,
    moves,
    outages,
    power,
    power_drops,
    prunes,
    served,
    storm,
    upgrades,
)
from tests.drill.site import Finding, Site, site


class Sizes(NamedTuple):
    """How much of each."""

    kills: int
    storm: int
    outages: int
    seconds: float
    processes: int
    decisions: int
    journals: int
    unrewarded: int
    fuzzed: int
    images: int
    moved: int


SMALL = Sizes(3, 60, 2, 0.5, 2, 300, 3, 20_000, 200, 40, 5)
USUAL = Sizes(200, 20_000, 20, 10.0, 4, 5_000, 100, 100_000, 10_000, 1_000, 60)
LONG = Sizes(1_000, 100_000, 100, 60.0, 8, 20_000, 500, 1_000_000, 1_000_000, 10_000, 1_000)
STORES = ("sqlite", "postgres")
Drill = Callable[[Site], Iterable[Finding]]  # may give each finding when it has it, which is then timed by itself


def plan(sizes: Sizes, seed: int = 1, before: str | None = None) -> list[tuple[str, tuple[str, ...], Drill]]:
    """The drills by name, the stores each is for, and how to do it. `before` is a checkout of an older version."""
    only_file, only_server = ("sqlite",), ("postgres",)
    behind_http: list[tuple[str, tuple[str, ...], Drill]] = [
        ("http-kill", STORES, lambda at: served.kills(at, sizes.outages, seed)),
        ("http-restart", only_server, lambda at: served.restarts(at, sizes.outages, seed)),
    ]
    if before is not None:
        behind_http.append(("upgrade", only_server, lambda at: upgrades.upgrade(at, before)))
    without_power: list[tuple[str, tuple[str, ...], Drill]] = [
        ("power", only_file, lambda at: power.power_loss(at, sizes.images, seed)),
        ("power-drop", only_file, lambda at: power_drops.power_loss_while_dropping(at, sizes.images // 2, seed)),
    ]
    return [
        ("kill", STORES, lambda at: kills.kill_under_load(at, sizes.kills, seed)),
        ("kill-context", STORES, lambda at: kills.kill_under_load(at, sizes.kills, seed, contextual=True)),
        ("kill-drop", STORES, lambda at: prunes.kill_while_dropping(at, sizes.kills + 3, seed)),
        *([] if power.MISSING else without_power),
        ("move", only_server, lambda at: moves.kill_while_moving(at, min(20, sizes.kills), sizes.moved, seed)),
        ("storm", STORES, lambda at: storm.retry_storm(at, sizes.storm, seed)),
        ("restart", only_server, lambda at: outages.restarts(at, sizes.outages, seed)),
        ("cut", only_server, lambda at: outages.cuts(at, 5 * sizes.outages, seed)),
        ("disk", only_file, lambda at: files.full_disk(at, 4_000)),
        ("second", only_file, files.second_process),
        ("clock", STORES, lambda at: files.clock_set_back(at, sizes.decisions // 5)),
        ("crowd", only_server, lambda at: crowd.crowd(at, sizes.processes, sizes.seconds)),
        ("chances", only_file, lambda at: chances.check_probabilities(at, sizes.decisions, seed)),
        ("estimates", only_file, lambda at: chances.estimates_cover(at, sizes.journals, 200, seed)),
        ("memory", STORES, lambda at: memory.flat(at, sizes.unrewarded)),
        ("fuzz", STORES, lambda at: fuzz.fuzz(at, sizes.fuzzed, seed)),
        ("fuzz-context", STORES, lambda at: fuzz.fuzz(at, sizes.fuzzed, seed, contextual=True)),
        *(behind_http if served.INSTALLED else []),
    ]


def drill(
    stores: tuple[str, ...] = STORES, sizes: Sizes = USUAL, seed: int = 1, only: Any = None, before: str | None = None
) -> Iterator[tuple[Finding, float]]:
    """Each finding as it comes, with the seconds it took. Findings that a drill hands over together were made together,
    and each has the time of all."""
    for kind in stores:
        with site(kind) as place:
            for name, for_stores, run in plan(sizes, seed, before):
                if kind in for_stores and (not only or name in only):
                    yield from timed(partial(run, place))


def timed(run: Callable[[], Iterable[Finding]]) -> Iterator[tuple[Finding, float]]:
    """The findings of one drill, each with its seconds."""
    began = time.monotonic()
    found = run()
    if isinstance(found, list):
        seconds = time.monotonic() - began
        yield from ((finding, seconds) for finding in found)
        return
    for finding in found:
        yield finding, time.monotonic() - began
        began = time.monotonic()
