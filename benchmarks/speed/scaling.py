"""How the time grows: with the horizon, the number of arms, the window, and workers."""

import hashlib
import math
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.speed import ours, workload
from benchmarks.speed.clock import measure, slope
from benchmarks.speed.workload import Scale
from driftbandit.lab.engine.simulate import LANES, simulate

_HORIZON = ("ds-ts", "sw-ts", "d-ucb", "m-ucb", "sw-lb-sda", "glr-klucb", "pa-cts", "global-cts", "adswitch")
_ARMS = ("ds-ts", "sw-ts", "d-ucb", "cusum-ucb", "exp3s", "sw-lb-sda")
_WINDOW = ("sw-ts", "sw-ucb", "m-ucb", "sw-lb-sda")
_WORKERS = ("ds-ts", "sw-ts", "cusum-ucb")  # two that play in lockstep, one that plays run by run
_LONGEST = 25.0  # seconds after which no further turn begins, where there are many cores to try


def rows(scale: Scale) -> list[dict[str, Any]]:
    """One row per sweep: sizes, nanoseconds per round, and the exponent of a power law through them.

    Flat in the horizon means exponent 0; parameters are tuned for each horizon, as a user would."""
    known, out, top = workload.names(scale), [], scale.horizon
    for name in _HORIZON:
        if name in known:
            sizes = [top // 4, top, 4 * top]
            out.append(
                _sweep("horizon", name, sizes, [(workload.tuned(name, size, 10), 10, size) for size in sizes], scale)
            )
    for name in _ARMS:
        if name in known:
            sizes = list(scale.many_arms)
            out.append(
                _sweep("arms", name, sizes, [(workload.tuned(name, top, size), size, top) for size in sizes], scale)
            )
    for name in _WINDOW:
        if name in known:
            sizes = [64, 512, 4096]
            base = workload.tuned(name, top, 10)
            out.append(_sweep("window", name, sizes, [(base._replace(window=size), 10, top) for size in sizes], scale))
    return out


def _sweep(what: str, name: str, sizes: list[int], cells: list[Any], scale: Scale) -> dict[str, Any]:
    times = [float("inf")] * len(cells)
    for _ in range(scale.repeats + 2):  # in turns, so that a neighbour on the machine slows all sizes alike
        for place, (policy, n_arms, horizon) in enumerate(cells):
            times[place] = min(times[place], ours.measured(policy, n_arms, horizon, 1, 1).cpu)
    return {
        "against": what,
        "policy": name,
        "sizes": sizes,
        "ns": [1e9 * seconds for seconds in times],
        "exponent": slope([float(size) for size in sizes], times),
    }


def counts(cores: int) -> list[int]:
    """The numbers of workers to try: powers of two, and all cores.

    >>> counts(2), counts(6), counts(1)
    ([1, 2], [1, 2, 4, 6], [1, 2])
    """
    powers = [1 << power for power in range(cores.bit_length()) if 1 << power <= cores]
    return sorted({1, 2, *powers, cores})


def workers(scale: Scale) -> dict[str, Any]:
    """The same runs with one worker and with more, in turns: wall time, CPU time of all threads, the speed-up, and the
    exponent of wall time against workers (-1 is ideal).

    Beside each stands what the machine itself gives at that moment: one long call of a hash function in as many
    threads, with no Python in between. Where that gains little, the cores were not free."""
    out: dict[str, Any] = {}
    # Short runs would measure how environments are made, one after the other, before any worker begins.
    horizon = max(scale.horizon, 100_000) if scale.worker_seconds else scale.horizon
    tried = counts(os.cpu_count() or 1)
    for name in _WORKERS:
        if name in workload.names(scale):
            policy, environment = workload.tuned(name, horizon, 10), workload.environment(10, horizon)

            def play(count: int, runs: int, policy: Any = policy, environment: Any = environment) -> None:
                simulate(policy, environment, runs=runs, workers=count, checkpoints=1)

            group = LANES if getattr(policy, "lockstep", False) else 1
            play(1, group)  # compiles
            # Whole groups for every worker, so that none waits for the last one.
            share = math.lcm(*tried) * group
            once = max(measure(lambda play=play, share=share: play(1, share), 1).cpu, 1e-9)  # type: ignore[misc]
            runs = share * max(1, math.ceil(scale.worker_seconds / once))
            out[name] = {"runs": runs, **_gains(play, runs, tried, scale)}
    return out


def _gains(play: Callable[[int, int], None], runs: int, tried: list[int], scale: Scale) -> dict[str, Any]:
    hashes = max(1000, int(2e6 * scale.worker_seconds))  # about half as long
    walls: list[list[float]] = []  # a row a turn, a column a number of workers
    bare: list[list[float]] = []
    cpu = dict.fromkeys(tried, float("inf"))
    began = time.perf_counter()
    for turn in range(2 * scale.repeats - 1):  # more than elsewhere: several cores at once are seldom free
        if turn and time.perf_counter() - began > _LONGEST:
            break
        walls.append([])
        bare.append([])
        for count in tried:
            spent = time.process_time()
            walls[-1].append(_wall(play, count, runs))
            cpu[count] = min(cpu[count], time.process_time() - spent)
            bare[-1].append(_wall(_hash, count, hashes))
    least = [min(column) for column in zip(*walls, strict=True)]
    return {
        "workers": tried,
        "wall_s": least,
        "cpu_s": list(cpu.values()),
        "speedup": _usual_gain(walls),
        "machine": _usual_gain(bare),
        "exponent": slope([float(count) for count in tried], [1.0 / gain for gain in _usual_gain(walls)]),
    }


def _usual_gain(turns: list[list[float]]) -> list[float]:
    """How many times faster than one worker: the median over turns. The least times would not do: one core is often
    free for a whole turn, two seldom are, and the best of the one would be held against the usual of the other."""
    return [statistics.median(row[0] / row[place] for row in turns) for place in range(len(turns[0]))]


def _hash(count: int, rounds: int) -> None:
    """So many rounds of hashing, divided among threads: one call each, which holds no interpreter lock."""
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda _: hashlib.pbkdf2_hmac("sha256", b"", b"", max(1, rounds // count)), range(count)))


def _wall(function: Callable[[int, int], None], count: int, work: int) -> float:
    began = time.perf_counter()
    function(count, work)
    return time.perf_counter() - began
