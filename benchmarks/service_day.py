"""A day of decisions, and how long the page takes to load then.

    python benchmarks/service_day.py --rate 100 --hours 24 [--db day.db] [--out docs/service/day.md]

Writes a journal of that size by a simulated clock (rows in groups, straight through the store), lets the service read
it once for its charts, and measures every request the page makes: cold, after a restart, and warm; and, where there is
a Chromium for playwright, how long a browser takes until everything is drawn. A service that was there all the time
needs neither the long start nor the reading: it has snapshots and cells. A journal given by --db is kept, and used
again if it is there."""

import argparse
import json
import re
import shutil
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
        journal._writer.execute("PRAGMA synchronous=OFF")  # a journal to look at, not to keep
        count, step = int(rate * hours * 3600), SECOND / rate
        start = now[0]
        for first in range(0, count, GROUP):
            decides, pays = [], []  # apart: rows of one kind go into one statement
            for n in range(first, min(count, first + GROUP)):
                at = start + int(n * step)
                row = DecisionRow(f"d{n:09d}", at, (n // 50_000 + n % 7 // 6) % 5, 0, 1, None)
                decides.append(Decide(number, row))
                pays.append(Pay(number, row.id, float(n % 3 == 0), at + 1, None, 0.0))
            journal.commit(decides + pays)
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


def timed(service):
    return {path: 1000.0 * service.get(path)[0] for path in PAGE}


def browsed(service):
    """Milliseconds from the click until everything is drawn, or None without a browser."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        out = []
        for path in ("/", "/bandits/day"):
            page = browser.new_page()
            page.goto(service.url + "/livez")
            began = time.perf_counter()
            page.goto(service.url + path)
            while path != "/" and not page.evaluate("Number(document.body.dataset.drawn || 0)"):
                time.sleep(0.01)
            out.append(1000.0 * (time.perf_counter() - began))
            page.close()
        browser.close()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=100.0, help="decisions per second")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--db", help="keep the journal here")
    parser.add_argument("--out", help="write the table here")
    parser.add_argument("--quick", action="store_true", help="do not wait until the journal is read for the charts")
    args = parser.parse_args()
    lines = []

    def say(what, value):
        lines.append(f"| {what} | {value} |")
        print(f"{what}: {value}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        db = args.db or str(Path(folder) / "day.db")
        if not Path(db).exists():
            write_day(db, args.rate, args.hours)
        count = int(args.rate * args.hours * 3600)
        say("decisions, each rewarded", f"{count:,}")
        say("journal", f"{Path(db).stat().st_size / 2**20:,.0f} MB")
        service = Service(db)
        say("start (without a snapshot the whole journal is folded)", f"{service.started:.1f} s")
        began = time.perf_counter()
        cold, warm = timed(service), timed(service)
        for path in PAGE[:-1]:
            say(
                f"`{path}` while the journal is read, at first and again",
                f"{cold[path]:.0f} ms and {warm[path]:.0f} ms",
            )
        say("all of these together", f"{sum(cold[path] for path in PAGE[:-1]):.0f} ms and "
            f"{sum(warm[path] for path in PAGE[:-1]):.0f} ms")  # fmt: skip
        say("uplift, which reads everything and is shown when it comes", f"{cold[PAGE[-1]] / 1000:.1f} s")
        if args.quick:
            service.end()
            write(args.out, lines)
            return
        slowest = 0.0
        while True:
            took, body = service.get("/v1/bandits/day/charts?points=240")
            slowest = max(slowest, took)
            found = json.loads(body)
            if found["filling"] is None and sum(map(sum, found["history"]["decisions"])) == count:
                break
            time.sleep(1.0)
        say("read once for the charts, in the background", f"{time.perf_counter() - began:.0f} s")
        say("the slowest answer about charts meanwhile", f"{1000 * slowest:.0f} ms")
        time.sleep(2)
        service.end()
        service = Service(db)
        say("started again", f"{service.started:.1f} s")
        cold = timed(service)
        time.sleep(3)
        warm = timed(service)
        for path in PAGE:
            say(f"`{path}`, just started and a moment later", f"{cold[path]:.0f} ms and {warm[path]:.0f} ms")
        time.sleep(3)
        found = browsed(service)
        if found:
            say("a browser, until all bandits are shown", f"{found[0]:.0f} ms")
            say("a browser, until every chart of the bandit is drawn", f"{found[1]:.0f} ms")
        service.end()
        write(args.out, lines)


def write(out, lines):
    if out:
        Path(out).write_text("\n".join(["| | |", "|---|---|", *lines]) + "\n")


if __name__ == "__main__":
    main()
