"""How long it takes to open a long journal, and how much memory: half decisions, half rewards, in one SQLite file.

    python benchmarks/live_open.py [--records 10000000] [--file long.db]

The rows are written straight into the tables. Then the journal is opened by one process after the other: the first has
no snapshot to go on from and folds everything (interpreted, or compiled where the `lab` extra is there), keeping
snapshots as it goes; the next begin at the last snapshot. A file that is there already is used again."""

import argparse
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

from driftbandit import Bandit, DiscountedTS
from driftbandit.bandit.records import REWARD, DecisionRow, Event, mark
from driftbandit.bandit.tables import DECISIONS, EVENTS, insert

ARMS, BLOCK, SECOND = 10, 10_000, 1_000_000
START = 1_700_000_000 * SECOND

OPEN = """
import resource, sys, time, warnings
from driftbandit import Bandit
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began, cpu = time.perf_counter(), time.process_time()
bandit = Bandit.open(sys.argv[1], "b", compiled=sys.argv[2] == "compiled")
took, cpu = time.perf_counter() - began, time.process_time() - cpu
bandit.decide()
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(f"{sys.argv[3]:44} {took:8.2f} s  {cpu:8.2f} s of processor  {more / 1024:7.1f} MB more  {bandit._fold.n} events")
bandit.close()
"""


def fill(path, records):
    """A journal of so many records, without snapshots."""
    Bandit.open(path, "b", DiscountedTS(), ARMS, half_life="1 h").close()
    connection = sqlite3.connect(path, isolation_level=None)
    chance, events = random.Random(1), records // 2
    done = connection.execute("SELECT max(n) FROM event").fetchone()[0]
    connection.execute("PRAGMA synchronous=OFF")
    for first in range(done - 1, events, BLOCK):
        decisions, outcomes = [], []
        for n in range(first, min(first + BLOCK, events)):
            at, slot = START + 1000 * n, chance.randrange(ARMS)
            row = DecisionRow(f"{n:012x}{chance.getrandbits(80):020x}", at, slot, 0, max(1, n - 100), None, bandit=1)
            event = Event(n + 2, REWARD, at + 100_000, row.id, slot, 0, float(chance.random() < 0.5), at)
            decisions.append((n + 1, *row, mark(row)))
            outcomes.append((1, *event, mark(event[1:])))
        connection.execute("BEGIN")
        connection.executemany(insert("decision", DECISIONS, 1), decisions)
        connection.executemany(insert("event", EVENTS, 1), outcomes)
        connection.execute("COMMIT")
        if first // BLOCK % 50 == 0:
            print(f"  {2 * first} records", file=sys.stderr, flush=True)
    connection.close()


def opened(path, how, what):
    """Open it in a separate process, and measure it."""
    subprocess.run([sys.executable, "-c", OPEN, path, how, what], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="driftbandit-open-") as folder:
        path = args.file or os.path.join(folder, "long.db")
        fill(path, args.records)
        print(
            f"{args.records} records, {os.path.getsize(path) / 1e9:.2f} GB, SQLite {sqlite3.sqlite_version}", flush=True
        )
        for how in ("interpreted", "compiled"):
            with sqlite3.connect(path) as connection:
                connection.execute("DELETE FROM snapshot")
            opened(path, how, f"no snapshot, {how}")
        opened(path, "interpreted", "from the last snapshot")


if __name__ == "__main__":
    main()
