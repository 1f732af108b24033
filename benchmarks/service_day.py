"""A day of decisions, and how long the page takes to load then.

    python benchmarks/service_day.py --rate 100 --hours 24 [--db day.db] [--out docs/service/day.md]

Writes a journal of that size by a simulated clock (rows in groups, straight through the store), measures what counting
takes (with --counts nothing else), and every request that the page makes, at first and again; and, where there is a
Chromium for playwright, how long a browser takes until everything is drawn. A journal given by --db is kept, and used
again if it is there."""

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit
from driftbandit.bandit.asks import AddReward
from driftbandit.bandit.opening import reading
from driftbandit.bandit.records import DecisionRow

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
                row = DecisionRow(f"d{n:09d}", at, (n // 50_000 + n % 7 // 6) % 5, 0, 1, None, bandit=number)
                decides.append(row)
                pays.append(AddReward(number, row.id, float(n % 3 == 0), at + 1, bandit.stored))
            journal.commit(decides + pays)
        now[0] = start + int(hours * 3600 * SECOND)
    return count


def counted(db, hours):
    """(range, decisions, CPU seconds to count them by interval and arm) for the whole time, an hour and 15 minutes."""
    with contextlib.closing(reading(db)) as journal:
        number = journal.number("day")
        first = journal.first_at(number)
        last = first + int(hours * 3600 * SECOND)
        for what, begin in (("all", first), ("1 h", last - 3600 * SECOND), ("15 min", last - 900 * SECOND)):
            began = time.process_time()
            rows = journal.tally(number, begin, last, (last - begin) // 240)
            yield what, sum(row[3] for row in rows), time.process_time() - began


class Service:
    """The service on this journal."""

    def __init__(self, db):
        command = [sys.executable, "-m", "driftbandit", "serve", db, "--port", "0"]
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


PAGE = {
    "all bandits": "/",
    "the page of one": "/bandits/day",
    "its charts of 15 minutes": "/v1/bandits/day/charts?since={}",
    "its arms": "/v1/bandits/day/arms",
    "its last decisions": "/v1/bandits/day/decisions?limit=15",
    "its changes": "/v1/bandits/day/changes",
    "its charts of the whole day": "/v1/bandits/day/charts",
    "its uplift": "/v1/bandits/day/uplift",
}


def timed(service):
    since = (time.time_ns() // 1000 // (60 * SECOND) - 15) * 60 * SECOND
    return {what: 1000.0 * service.get(path.format(since))[0] for what, path in PAGE.items()}


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
    parser.add_argument("--counts", action="store_true", help="only measure what counting takes")
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
        for what, decisions, seconds in counted(db, args.hours):
            say(f"counting {what}, {decisions:,} decisions", f"{seconds:.2f} s of CPU time")
        if args.counts:
            write(args.out, lines)
            return
        service = Service(db)
        say("start (without a snapshot the whole journal is folded)", f"{service.started:.1f} s")
        cold, warm = timed(service), timed(service)
        for what in PAGE:
            say(f"{what}, at first and again", f"{cold[what]:,.0f} ms and {warm[what]:,.0f} ms")
        found = browsed(service)
        if found:
            say("a browser, until all bandits are shown", f"{found[0]:.0f} ms")
            say("a browser, until every chart of the bandit is drawn", f"{found[1]:.0f} ms")
        service.end()
        write(args.out, lines)


def write(out, lines):
    if out:
        Path(out).write_text("\n".join(["# A day, as printed", "", "| | |", "|---|---|", *lines]) + "\n")


if __name__ == "__main__":
    main()
