"""How long a log takes: reading it, `drift`, and following it with ts, dts and ds-ts; and the memory.

    python benchmarks/log_speed.py --events 1e6 --arms 10
    python benchmarks/log_speed.py --events 0 --flights build
    python benchmarks/log_speed.py --events 1e7 --arms 10

CPU seconds are of all threads together: on a machine that is otherwise idle, two cores take half of them."""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.files import save_rows
from driftbandit.logs import Log, drift
from driftbandit.logs.follow import follow
from driftbandit.logs.replay import candidates

FLIGHTS = Path(__file__).parents[1] / "examples" / "flights" / "flights.py"


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


class Table:
    """Rows of what was measured."""

    def __init__(self, about: str) -> None:
        self.head, self.rows = [about, "CPU, s", "wall, s", "peak memory, MB"], []

    def measure(self, what: str, job: Callable[[], Any], who: int = resource.RUSAGE_SELF) -> Any:
        """Do a job; seconds and memory are of this process or of its children."""
        wall, before = time.perf_counter(), resource.getrusage(who)
        out = job()
        wall, after = time.perf_counter() - wall, resource.getrusage(who)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.rows.append([what, f"{cpu:.1f}", f"{wall:.1f}", f"{after.ru_maxrss / 1024:.0f}"])
        print(" | ".join(self.rows[-1]), flush=True)
        return out


def of_a_log(table: Table, path: Path, n: int, args: argparse.Namespace) -> None:
    """Read it, ask for drift, follow it."""
    tried = candidates(["ts", f"dts @ {n / 2}", f"ds-ts @ {n / 2}"], False)
    written(path, n, args.arms)
    small = {"time": np.arange(3000.0), "arm": np.arange(3000) % args.arms, "reward": np.arange(3000) % 3 % 2}
    drift(Log(small, propensity="uniform"))
    follow(Log(small, propensity="uniform"), tried)  # compiled once
    log = table.measure(f"read and check the CSV file, {path.stat().st_size >> 20} MB", lambda: Log(str(path)))
    table.measure("drift", lambda: drift(log))
    table.measure(f"follow with {len(tried)} policies", lambda: follow(log, tried))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=float, default=1e6)
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument(
        "--flights", type=Path, metavar="FOLDER", help="the example of the flights; its figures go there"
    )
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    n = int(args.events)
    table = Table(f"{n:,} events, {args.arms} arms, {os.cpu_count()} cores" if n else f"{os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        if n:
            of_a_log(table, Path(folder) / "log.csv", n, args)
        if args.flights:
            command = [sys.executable, str(FLIGHTS), str(args.flights)]
            with (args.flights / "output.txt").open("w") as out:
                job = lambda: subprocess.run(command, check=True, stdout=out)  # noqa: E731
                table.measure("examples/flights, with figures", job, resource.RUSAGE_CHILDREN)
    if args.out:
        save_rows(table.head, table.rows, args.out)


if __name__ == "__main__":
    main()
