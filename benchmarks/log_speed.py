"""How long a log takes: reading it, asking it for drift, following it with a whole grid of half-lives; and the memory.

    python benchmarks/log_speed.py --events 1e6 --arms 10

CPU seconds are of all threads together: on a machine that is otherwise idle, two cores take half of them."""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.logs import Log, drift
from driftbandit.logs.candidates import candidates
from driftbandit.logs.follow import follow


def written(path: Path, events: int, arms: int) -> None:
    rng = np.random.default_rng(0)
    level = rng.uniform(0.3, 0.6, (50, arms))
    with open(path, "w") as out:
        out.write("time,arm,reward,propensity\n")
        for start in range(0, events, 100_000):
            rows = np.arange(start, min(start + 100_000, events))
            arm = rng.integers(0, arms, len(rows))
            reward = rng.random(len(rows)) < level[rows * 50 // events, arm]
            out.writelines(f"{t},arm{a},{int(r)},{1 / arms}\n" for t, a, r in zip(rows, arm, reward, strict=True))


def measured(what: str, job: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    out = job()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {what} | {cpu:.1f} | {wall:.1f} | {memory:.0f} |", flush=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=float, default=1e6)
    parser.add_argument("--arms", type=int, default=10)
    args = parser.parse_args()
    n = int(args.events)
    half_lives = [n / 2.0**step for step in range(1, 13)]
    grid = ["ts", *(f"{kind} @ {h:.12g}" for kind in ("dts", "ds-ts") for h in half_lives)]
    tried = candidates(grid, False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        written(path, n, args.arms)
        small = Log(
            {"time": np.arange(3000.0), "arm": np.arange(3000) % args.arms, "reward": np.arange(3000) % 3 % 2},
            propensity="uniform",
        )
        follow(small, tried)  # compiled once
        print(f"{n:,} events, {args.arms} arms, {len(tried)} candidates\n")
        print("| what | CPU, s | wall, s | peak memory, MB |\n| --- | --- | --- | --- |")
        log = measured("read and check the CSV file", lambda: Log(str(path)))
        measured("drift", lambda: drift(log))
        measured(f"follow with {len(tried)} candidates", lambda: follow(log, tried))


if __name__ == "__main__":
    main()
