"""How the time grows: with the horizon, the number of arms, the window, and workers."""

import time
from typing import Any

from driftbandit.lab.bench import ours, workload
from driftbandit.lab.bench.clock import slope
from driftbandit.lab.bench.workload import Scale
from driftbandit.lab.simulate import simulate

_HORIZON = ("ds-ts", "sw-ts", "d-ucb", "m-ucb", "sw-lb-sda", "glr-klucb", "pa-cts", "global-cts", "adswitch", "meta")
_ARMS = ("ds-ts", "ds-ts-many", "sw-ts", "d-ucb", "cusum-ucb", "exp3s", "sw-lb-sda")
_WINDOW = ("sw-ts", "sw-ucb", "m-ucb", "sw-lb-sda")


def rows(scale: Scale) -> list[dict[str, Any]]:
    """One row a sweep: sizes, nanoseconds a round, and the exponent of a power law through them.

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
            sizes = [10, 30, 100, 300]
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
    times = [ours.measured(policy, n_arms, horizon, 1, scale.repeats).cpu for policy, n_arms, horizon in cells]
    return {
        "against": what,
        "policy": name,
        "sizes": sizes,
        "ns": [1e9 * seconds for seconds in times],
        "exponent": slope([float(size) for size in sizes], times),
    }


def workers(scale: Scale) -> dict[str, Any]:
    """DS-TS and SW-TS with one worker and with two, in turns: wall time, and the CPU time of all threads together."""
    out: dict[str, Any] = {}
    for name in ("ds-ts", "sw-ts"):
        if name not in workload.names(scale):
            continue
        policy, world = workload.tuned(name, scale.horizon, 10), workload.environment(10, scale.horizon)
        runs = 128 if name == "ds-ts" else 32
        best = {1: (float("inf"), float("inf")), 2: (float("inf"), float("inf"))}
        simulate(policy, world, runs=runs if name == "ds-ts" else 1, workers=1, checkpoints=1)
        for _ in range(scale.repeats):
            for count in best:
                wall, cpu = time.perf_counter(), time.process_time()
                simulate(policy, world, runs=runs, workers=count, checkpoints=1)
                spent = time.perf_counter() - wall, time.process_time() - cpu
                best[count] = min(best[count][0], spent[0]), min(best[count][1], spent[1])
        out[name] = {
            "one_wall_s": best[1][0],
            "two_wall_s": best[2][0],
            "speedup": best[1][0] / best[2][0],
            "one_cpu_s": best[1][1],
            "two_cpu_s": best[2][1],
        }
    return out
