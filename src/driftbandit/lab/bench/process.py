"""What only a process of its own can show: the time to the first result, cold and warm, and the most memory used."""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from driftbandit.lab.bench import workload
from driftbandit.lab.bench.workload import Scale
from driftbandit.lab.cache import cache_root

_FIRST = """
import json, os, resource, sys
from driftbandit.lab.bench.workload import environment, tuned
from driftbandit.lab.simulate import simulate
name, n_arms, horizon, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
simulate(tuned(name, horizon, n_arms), environment(n_arms, horizon), runs=runs, workers=1, checkpoints=10)
used = resource.getrusage(resource.RUSAGE_SELF)
peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
if os.path.exists("/proc/self/status"):  # ru_maxrss begins with what the parent held when it made this process
    with open("/proc/self/status") as lines:
        peak = next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), peak)
print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "peak": peak}))
"""
_STARTS = (("ds-ts", 64, "64 runs in lockstep"), ("ds-ts", 1, "one run"), ("sw-ts", 1, "one run"))
# Policies whose entry in `driftbandit list policies` gives a cost without the horizon, one of each kind of state.
FLAT = ("ds-ts", "sw-ts", "d-ucb", "cusum-ucb", "m-ucb", "exp3s", "sw-lb-sda")


def _run(name: str, n_arms: int, horizon: int, runs: int, cache: str) -> dict[str, float]:
    environment = {**os.environ, "DRIFTBANDIT_CACHE": cache}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    began = time.perf_counter()
    words = [sys.executable, "-c", _FIRST, name, str(n_arms), str(horizon), str(runs)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"A process of its own failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]:.200}")
    out: dict[str, float] = json.loads(done.stdout)
    out["wall"] = time.perf_counter() - began
    return out


def starts(scale: Scale) -> list[dict[str, Any]]:
    """From starting Python to the result of one short experiment, with an empty and with a filled cache."""
    rows = []
    for name, runs, way in _STARTS[: len(_STARTS) if scale.policies == () else 1]:
        with tempfile.TemporaryDirectory(prefix="driftbandit-bench-") as cache:
            cold = _run(name, 5, 1000, runs, cache)
            warm = min((_run(name, 5, 1000, runs, cache) for _ in range(scale.repeats)), key=lambda one: one["wall"])
        rows.append(
            {
                "policy": name,
                "way": way,
                "cold_s": cold["wall"],
                "cold_cpu_s": cold["cpu"],
                "warm_s": warm["wall"],
                "warm_cpu_s": warm["cpu"],
            }
        )
    return rows


def memory(scale: Scale) -> list[dict[str, Any]]:
    """The most memory a process used for one run of a short and of a hundred times longer horizon."""
    rows, cache = [], str(cache_root())  # filled by now: compiling would need memory of its own
    for name in FLAT:
        if name in workload.names(scale):
            short, long = (_run(name, 10, horizon, 1, cache)["peak"] for horizon in (scale.far // 100, scale.far))
            rows.append({"policy": name, "horizon": scale.far, "short_mb": short / 1e6, "long_mb": long / 1e6})
    return rows
