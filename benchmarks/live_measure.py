"""What the benchmarks of live bandits share: the disk's time, two sides measured in turns, a line of the table."""

import os
import statistics
import time

ARMS = 10


def fsync_ms(folder, count=100):
    """Append a page and fsync it, as a commit does."""
    path, times = os.path.join(folder, "fsync"), []
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    for _ in range(count):
        os.write(file, b"x" * 4096)
        began = time.perf_counter()
        os.fsync(file)
        times.append(time.perf_counter() - began)
    os.close(file)
    os.unlink(path)
    return 1e3 * statistics.median(times)


def alternating(first, second, repeats):
    """The medians of two measurements taken in turns."""
    pairs = [(first(), second()) for _ in range(repeats)]
    return [statistics.median(side) for side in zip(*pairs, strict=True)]


ROWS: list[str] = []  # of the table, as far as it was measured


def line(what, value, unit, base, base_unit, ratio, goal=None, good=True):
    """Print one row of the table, and keep it for the page."""
    held = "" if goal is None else f"{goal}, {'met' if good else '**missed**'}"
    print(f"{what:44} {value:10.1f} {unit:12} {base:10.1f} {base_unit:22} ratio {ratio:5.2f}  {held}", flush=True)
    ROWS.append(f"| {what} | {value:,.1f} {unit} | {base:,.1f} {base_unit} | {ratio:.2f} | {held} |")
