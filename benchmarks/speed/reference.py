"""The yardsticks: plain NumPy for every policy, and plain C for DS-TS."""

import ctypes
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed import numpy_loops, workload
from benchmarks.speed.clock import measure
from benchmarks.speed.workload import PHASES, Scale

FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")
_LANES = 32
_SECONDS = 0.2  # CPU time after which a NumPy loop stops: 36 policies, four numbers of arms, twice, in a minute


def numpy_seconds(name: str, n_arms: int, scale: Scale) -> float:
    """CPU time a round of the NumPy loop, with the parameters ours has: over the first fifth of the rounds, or as many
    as fit into a fifth of a second. Loops that look back on their whole record become slower with every round, so for
    them the figure is kinder to NumPy than a full run would be."""
    policy, rounds = workload.tuned(name, scale.horizon, n_arms), max(100, scale.horizon // 5)
    table = workload.tables(n_arms, scale.horizon, 1)[0]

    def once() -> float:
        began = time.thread_time()
        played = numpy_loops.play(name, policy, table, scale.horizon, 0, rounds, _SECONDS)
        return float(time.thread_time() - began) / int(played.rounds)

    return min(once() for _ in range(min(scale.repeats, 2)))


def c_rows(scale: Scale, folder: Path | None = None) -> list[dict[str, Any]] | str:
    """DS-TS in C, one run at a time and 32 in lockstep, or why there is no figure."""
    source, compiler = folder or Path(__file__).parent, shutil.which("cc")
    if compiler is None:
        return "there is no C compiler `cc` here"
    with tempfile.TemporaryDirectory(prefix="driftbandit-bench-") as place:
        library = Path(place) / "ds_ts.so"
        done = subprocess.run(
            [compiler, *FLAGS, "-o", str(library), str(source / "ds_ts.c"), "-lm"], capture_output=True, text=True
        )
        if done.returncode != 0:
            return f"cc failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]:.200}"
        loaded = ctypes.CDLL(str(library))
        return [row for n_arms in scale.arms for row in _c_pair(loaded, n_arms, scale)]


def _c_pair(library: Any, n_arms: int, scale: Scale) -> list[dict[str, Any]]:
    policy, runs, rows = workload.tuned("ds-ts", scale.horizon, n_arms), 2 * _LANES, []
    alone = np.ascontiguousarray(workload.tables(n_arms, scale.horizon, runs))
    # Lanes innermost: group, phase, arm, lane.
    beside = np.ascontiguousarray(alone.reshape(2, _LANES, PHASES, n_arms).transpose(0, 2, 3, 1))
    few = max(1, runs // 8)
    for way, table, count, played in (("single", alone, few, few), ("lanes", beside, 2, runs)):
        function = getattr(library, way)
        function.restype = ctypes.c_double
        function.argtypes = [ctypes.c_void_p, *[ctypes.c_int] * 4, *[ctypes.c_double] * 2, ctypes.c_uint64]
        words = (table.ctypes.data, count, PHASES, n_arms, scale.horizon, policy.gamma, policy.tau_max, 1)
        regret = function(*words)
        timing = measure(lambda: function(*words), scale.repeats).each(played * scale.horizon)  # noqa: B023  called at once
        rows.append({"n_arms": n_arms, "lockstep": way == "lanes", "ns": 1e9 * timing.cpu, "regret": regret})
    return rows
