"""A day of decisions, and how long the page takes to load then.

python benchmarks/service_day.py --rate 100 --hours 24

Writes a journal of that size by a simulated clock (rows in groups, straight through the store), lets the service read
it once for its charts, and measures every request the page makes: cold, after a restart, and warm."""

import argparse
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from driftbandit import DiscountedTS
from driftbandit.live import Bandit
from driftbandit.live.journal import Decide, Pay
from driftbandit.live.records import DecisionRow

SECOND = 1_000_000
GROUP = 4000


def write_day(db, rate, hours):
    """Decisions at a steady rate, each rewarded a second later."""
    now = [time.time_ns() // 1000 - int(hours * 3600 * SECOND)]
    with Bandit.open(db, "day", DiscountedTS(), arms=5, half_life="1 h", seed=1, clock=lambda: now[0]) as bandit:
        number, journal = bandit._number, bandit._journal
        count, step = int(rate * hours * 3600), SECOND / rate
        start = now[0]
        for first in range(0, count, GROUP):
            asks = []
            for n in range(first, min(count, first + GROUP)):
                at = start + int(n * step)
                row = DecisionRow(f"d{n:09d}", at, (n // 50_000 + n % 7 // 6) % 5, 0, 1, None)
                asks += [Decide(number, row), Pay(number, row.id, float(n % 3 == 0), at + 1, None, 0.0)]
            journal.commit(asks)
        now[0] = start + int(hours * 3600 * SECOND)
    return count


class Service:
    """The service on this journal."""

    def __init__(self, db):
        command = [sys.executable, "-m", "driftbandit", "serve", "--db", db, "--port", "0"]
        began = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"at (http://\S+)/ ", self.process.stdout.readline())[1]
        while True:
            try:
                self.get("/livez")
                break
            except OSError:
                time.sleep(0.05)
        self.started = time.perf_counter() - began

    def get(self, path):
        began = time.perf_counter()
        with urllib.request.urlopen(self.url + path, timeout=600) as answer:
            body = answer.read()
        return time.perf_counter() - began, body

    def end(self):
        self.process.terminate()
        self.process.wait(60)


PAGE = ("/", "/bandits/day", "/v1/bandits/day/charts?points=200", "/v1/bandits/day/arms",
        "/v1/bandits/day/decisions?limit=15", "/v1/bandits/day/changes", "/v1/bandits/day/uplift")  # fmt: skip


def show(title, service):
    times = {path: service.get(path)[0] for path in PAGE}
    print(title, "; ".join(f"{path} {1000 * seconds:.0f} ms" for path, seconds in times.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--hours", type=float, default=24.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = str(Path(folder) / "day.db")
        began = time.perf_counter()
        count = write_day(db, args.rate, args.hours)
        size = Path(db).stat().st_size / 2**20
        print(
            f"{count} decisions and rewards written in {time.perf_counter() - began:.0f} s, {size:.0f} MB", flush=True
        )
        service = Service(db)
        print(f"first start {service.started:.1f} s", flush=True)
        began = time.perf_counter()
        while b'"filling":null' not in service.get("/v1/bandits/day/charts?points=10")[1]:
            time.sleep(1.0)
        print(f"read once for the charts: {time.perf_counter() - began:.0f} s", flush=True)
        time.sleep(15)  # cells are written
        service.end()
        service = Service(db)
        print(f"started again in {service.started:.1f} s", flush=True)
        show("cold:", service)
        time.sleep(3)
        show("warm:", service)
        service.end()


if __name__ == "__main__":
    main()
