"""What chunks, the store and the kinds of workers cost.

    python benchmarks/overhead.py [--seconds 60] [threads 2 dask:2 ray:2]

1. Planning 10,000 cells × 20 runs, resuming them with nothing to do, and the memory of the driver meanwhile.
2. A job of about the seconds asked for, once as bare simulations in threads and once as a batch: the difference is what
   cutting, hashing and storing cost.
3. The same batch on each executor: until its first chunk is back, and in all."""

import argparse
import os
import resource
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from driftbandit import DiscountedTS
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import Simulation
from driftbandit.lab.work import Cell, Store, chunks_by_name, compute


def megabytes():
    """Resident memory of this process now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def planning():
    environment = Abrupt(n_arms=5, horizon=1000, phases=2)
    cells = [
        Cell(DiscountedTS(gamma=0.5 + 0.4999 * n / 10_000), environment, runs=20, checkpoints=20) for n in range(10_000)
    ]
    chunks_by_name(cells[:1])  # reads the sources once, as every process does
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        store, plan = Store(folder), chunks_by_name(cells)
        todo = len(store.missing(plan))
        print(f"planned {len(cells)} cells ({todo} chunks) in {time.perf_counter() - started:.2f} s")
        done = Simulation(np.arange(50, 1001, 50), np.ones((20, 20)), 0.0)
        for name in plan:
            store.put(name, done)
        before = megabytes()
        started = time.perf_counter()
        again = Store(folder)
        again.play(cells)
        print(f"resumed with nothing to do in {time.perf_counter() - started:.2f} s", end="; ")
        sums = [float(again.result(cell).regret[:, -1].mean()) for cell in cells]
        print(f"with all results read and summed up in {time.perf_counter() - started:.2f} s")
        print(f"memory of the driver: {before:.0f} MB before, {megabytes():.0f} MB after ({len(sums)} results read)")


def driver_memory():
    """Tiny chunks, so that the driver sees many of them."""
    environment = Abrupt(n_arms=3, horizon=200, phases=2)
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        cells = [Cell(DiscountedTS(gamma=0.9), environment, 20, seed) for seed in range(1500)]
        Store(folder).play([Cell(DiscountedTS(gamma=0.9), environment, 20, 10**6)])
        Store(folder).play(cells, workers=2, progress=lambda share: seen.append(megabytes()))
    tenth = len(seen) // 10
    print(
        f"memory while 1500 chunks are played: {np.mean(seen[:tenth]):.0f} MB at first, "
        f"{np.mean(seen[-tenth:]):.0f} MB at last"
    )


def job(seconds):
    """Cells of about a second a chunk, as many as make the seconds."""
    environment = Abrupt(n_arms=5, horizon=100_000, phases=10)
    probe = Cell(DiscountedTS(), environment, runs=96).chunks()[0]
    compute(probe)
    started = time.perf_counter()
    compute(probe)
    one = time.perf_counter() - started
    count = max(4, round(seconds * (os.cpu_count() or 1) / one))
    return [Cell(DiscountedTS(gamma=0.9 + 0.09 * n / count), environment, runs=96) for n in range(count)]


def bare(cells):
    started, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compute, [chunk for cell in cells for chunk in cell.chunks()]))
    return time.perf_counter() - started, time.process_time() - cpu


def batched(cells, executor):
    first = []
    with tempfile.TemporaryDirectory() as folder:
        started, cpu = time.perf_counter(), time.process_time()
        store = Store(folder)
        store.play(cells, executor, progress=lambda share: first.append(time.perf_counter() - started))
        for cell in cells:
            store.result(cell)
        return first[0], time.perf_counter() - started, time.process_time() - cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executors", nargs="*", default=["threads", "2", "dask:2", "ray:2"])
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    planning()
    driver_memory()
    cells = job(args.seconds)
    chunks = sum(len(cell.chunks()) for cell in cells)
    # Three times each way, alternating, the least of each: a machine is rarely quite still. Seconds of processor time
    # are less disturbed by others on the machine than seconds on the clock.
    plain, stored = [], []
    for _ in range(3):
        plain.append(bare(cells))
        stored.append(batched(cells, None)[1:])
    (wall, cpu), (wall_stored, cpu_stored) = (tuple(map(min, zip(*times, strict=True))) for times in (plain, stored))
    print(
        f"{chunks} chunks in threads, on the clock: bare {wall:.1f} s, as a batch {wall_stored:.1f} s, "
        f"{wall_stored / wall - 1:+.1%}"
    )
    print(
        f"{chunks} chunks in threads, processor time: bare {cpu:.1f} s, as a batch {cpu_stored:.1f} s, "
        f"{cpu_stored / cpu - 1:+.1%}"
    )
    for executor in args.executors:
        first, total, _ = batched(cells, executor)
        print(
            f"{executor}: first chunk after {first:.1f} s, all after {total:.1f} s "
            f"({total - wall:+.1f} s over bare threads)"
        )


if __name__ == "__main__":
    main()
