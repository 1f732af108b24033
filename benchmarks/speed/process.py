"""What only a separate process can show: the time to the first result, cold and warm, and the most memory used."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.speed import workload
from benchmarks.speed.workload import Scale
from driftbandit.lab.files import cache_root
from driftbandit.spec.parse import policies

_CPU = """
import json, resource
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"cpu": used.ru_utime + used.ru_stime}))
"""
_FIRST = """
import sys
from benchmarks.speed.workload import environment, tuned
from driftbandit.lab.engine.simulate import simulate
name, n_arms, horizon, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
simulate(tuned(name, horizon, n_arms), environment(n_arms, horizon), runs=runs, workers=1, checkpoints=10)
"""
# Every run is played by a child that begins as a copy of one process which has imported everything and run nothing, so
# the peaks of two children differ by what the runs took, and Python is started once for all.
_PEAKS = """
import json, os, resource, sys
from driftbandit.lab.engine import code_cache
from benchmarks.speed.workload import environment, tuned
from driftbandit.lab.engine.simulate import simulate
for name, n_arms, horizon in json.load(sys.stdin):
    child = os.fork()
    if child:
        if os.waitpid(child, 0)[1]:
            sys.exit(f"the run of {name} over {horizon} rounds failed")
        continue
    simulate(tuned(name, horizon, n_arms), environment(n_arms, horizon), runs=1, workers=1, checkpoints=10)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if os.path.exists("/proc/self/status"):  # ru_maxrss begins with what the parent held when it made this process
        with open("/proc/self/status") as lines:
            peak = next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), peak)
    print(json.dumps(peak), flush=True)
    os._exit(0)
"""
_STARTS = (("ds-ts", 64, "64 runs in lockstep"), ("ds-ts", 1, "one run"), ("sw-ts", 1, "one run"))
# What every start pays before anything of ours is loaded or compiled, and in what order.
_IMPORTS = ("pass", "import numpy", "import driftbandit", "import numba", "import driftbandit.lab.engine.code_cache")
MEMORY_ARMS = 10
_MEMORY_SECONDS = 0.5  # for the longer of the two runs
# One number per round kept would show as 3 MB over the least of these rounds, and 1 MB counts as growth.
_LEAST_FAR = 400_000
GROWN_MB = 1.0


def _run(code: str, words: list[str], cache: str, given: str = "") -> tuple[str, float]:
    """What a separate Python process printed, and its wall time."""
    environment = {**os.environ, "DRIFTBANDIT_CACHE": cache}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, input=given, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise OSError(f"A separate process failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]:.200}")
    return done.stdout, time.perf_counter() - began


def _first(name: str, runs: int, cache: str) -> dict[str, float]:
    text, wall = _run(_FIRST + _CPU, [name, "5", "1000", str(runs)], cache)
    return {"cpu": json.loads(text)["cpu"], "wall": wall}


def starts(scale: Scale) -> list[dict[str, Any]]:
    """From starting Python to the result of one short experiment, with an empty and with a filled cache."""
    rows = []
    for name, runs, way in _STARTS[: len(_STARTS) if scale.policies == () else 1]:
        with tempfile.TemporaryDirectory(prefix="driftbandit-bench-") as cache:
            cold = _first(name, runs, cache)
            warm = min((_first(name, runs, cache) for _ in range(scale.repeats)), key=lambda one: one["wall"])
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


def imports(scale: Scale) -> list[dict[str, Any]]:
    """What a warm start is made of: Python only, and Python with one import, each in a separate process."""
    rows, cache = [], str(cache_root())
    for statement in _IMPORTS:
        found = [_run(f"{statement}\n{_CPU}", [], cache) for _ in range(scale.repeats)]
        cpu = min(json.loads(text)["cpu"] for text, _ in found)
        rows.append({"statement": statement, "wall_s": min(wall for _, wall in found), "cpu_s": cpu})
    return rows


def flat(scale: Scale) -> list[str]:
    """The policies whose cost, as `driftbandit list policies` shows it, does not name the horizon."""
    costs = {cls.short: cls.cost for cls in policies().values()}  # type: ignore[attr-defined]
    return [name for name in workload.names(scale) if not re.search(r"\bhorizon\b|\bT\b", costs[name])]


def memory(scale: Scale, ns: dict[str, float] | None = None) -> list[dict[str, Any]]:
    """The most memory a process used for one run of a short and of a hundred times longer horizon, tuned for each as a
    user would: a window then grows like the root of the horizon, which is kilobytes here, while a policy that is given
    the horizon and makes room for it shows. Policies of microseconds per round (`ns`) get a shorter pair."""
    jobs = []
    for name in flat(scale):
        affordable = int(1e9 * _MEMORY_SECONDS / (ns or {}).get(name, 1.0))
        far = min(scale.far, max(_LEAST_FAR, affordable)) // 100 * 100
        jobs += [(name, MEMORY_ARMS, horizon) for horizon in (far // 100, far)]
    # The cache is filled by now. Were it not, compiling would use memory in the first run and the difference would not
    # be small either way; so less memory than before is no sign of a flat policy.
    text, _ = _run(_PEAKS, [], str(cache_root()), json.dumps(jobs))
    peaks = [int(line) / 1e6 for line in text.splitlines()]
    return [
        {"policy": name, "horizon": far, "short_mb": short, "long_mb": long, "flat": abs(long - short) < GROWN_MB}
        for (name, _, far), short, long in zip(jobs[1::2], peaks[::2], peaks[1::2], strict=True)
    ]
