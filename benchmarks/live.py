"""The cost of a live bandit, as ratios to the least that could be done, each pair measured in one run.

    python benchmarks/live.py [--repeats 5] [--only decide threads ...] [--out docs/live/speed.md]

Every ratio is shown next to its goal. The disk's own time comes first: a durable call cannot be quicker than one fsync.
Medians of `--repeats`, alternating between the two sides so that a busy machine slows both."""

import argparse
import os
import random
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from live_measure import ARMS, ROWS, alternating, fsync_ms, line
from live_postgres import postgres
from live_threads import single, threads

from driftbandit import DiscountedTS, DriftTS
from driftbandit.bandit import Bandit
from driftbandit.bandit.export import export as export_journal
from driftbandit.bandit.fold import Fold
from driftbandit.bandit.opening import policy_maker
from driftbandit.bandit.records import CHANGE, REWARD, Change, Event
from driftbandit.bandit.settings import first_config


def decide(folder, repeats):
    """Thread time of one decision that does not wait for the disk, against `decide` in memory."""
    memory = Bandit(ARMS, DiscountedTS(), seed=1)
    with Bandit.open(os.path.join(folder, "d.db"), "b", DiscountedTS(), ARMS, durability="none") as bandit:

        def timed(call, count=5000):
            began = time.thread_time()
            for _ in range(count):
                call()
            return 1e6 * (time.thread_time() - began) / count

        timed(memory.decide), timed(bandit.decide)
        ours, theirs = alternating(lambda: timed(bandit.decide), lambda: timed(memory.decide), repeats)
        line("decide, durability none", ours, "us", theirs, "us in memory", ours / theirs, "<= 3", ours <= 3 * theirs)

        def batch():
            return timed(lambda: bandit.decide_many(100), 50) / 100

        batch()
        ours, theirs = alternating(batch, lambda: timed(memory.decide), repeats)
        line("decide_many(100), a decision", ours, "us", theirs, "us in memory", ours / theirs, "<= 3",
             ours <= 3 * theirs)  # fmt: skip


def fold(folder, repeats, count=200_000):
    """Events folded per second: interpreted, compiled, and from the file."""
    for half_life in (None, "1 h"):
        config = first_config(DiscountedTS(), ARMS, 7, "hash", {"half_life": half_life})
        events = [Event(1, CHANGE, 0, "#1", 1, body=Change("create", "", False, config).text())]
        chance = random.Random(1)
        events += [
            Event(n, REWARD, n * 1000, f"d{n}", chance.randrange(ARMS), 0, float(chance.random() < 0.5), n * 1000 - 500)
            for n in range(2, count)
        ]

        def plain(events=events):
            made = Fold(policy_maker())
            began = time.process_time()
            made.apply(events)
            return count / (time.process_time() - began)

        name = "with a half-life" if half_life else "counting rewards"
        rate = statistics.median(plain() for _ in range(repeats))
        line(
            f"fold interpreted, {name}", rate / 1e3, "k a second", 150, "k wanted", rate / 150e3, ">= 1", rate >= 150e3
        )
        try:
            import numba  # noqa: F401
        except ImportError:
            print("fold compiled: needs the lab extra")
            continue
        made = Fold(policy_maker(), compiled=True)
        made.apply(events[:1])
        made.apply(events[1:5000])

        def fast(made=made, events=events):
            began = time.process_time()
            made.apply(events[1:])
            return count / (time.process_time() - began)

        rate = statistics.median(fast() for _ in range(repeats))
        line(f"fold compiled, from events, {name}", rate / 1e3, "k a second", 2000, "k wanted", rate / 2e6, ">= 1",
             rate >= 2e6)  # fmt: skip
    path = os.path.join(folder, "fold.db")
    with Bandit.open(path, "b", DiscountedTS(), ARMS, half_life="1 h", snapshot_every=10**9) as bandit:
        for _ in range(60):
            made = bandit.decide_many(1000)
            bandit.reward_many([(decision.id, 1.0) for decision in made])

    def opened():
        began = time.process_time()
        Bandit.open(path, "b", snapshot_every=10**9).close()
        return 60_000 / (time.process_time() - began)

    rate = statistics.median(opened() for _ in range(repeats))
    line("restart from the file, interpreted", rate / 1e3, "k a second", 150, "k wanted", rate / 150e3, ">= 1",
         rate >= 150e3)  # fmt: skip


def export(folder, repeats, decisions=2000):
    """Processor time to export a decision with the probability of its arm, against without: each decision rewarded
    before the next, so that all were made from different views, and 20 decisions that share one."""
    for policy in (DiscountedTS(), DriftTS()):
        for together in (1, 20):
            path, random_numbers = os.path.join(folder, f"{type(policy).__name__}{together}.db"), random.Random(1)
            with Bandit.open(path, "b", policy, ARMS, reward_range=(0, 1), seed=1) as bandit:
                for first in range(0, decisions, together):
                    made = bandit.decide_many([f"d{n}" for n in range(first, first + together)])
                    means = [0.1 + 0.8 * ((arm + 3 * (first // 800)) % ARMS) / ARMS for arm in range(ARMS)]
                    bandit.reward_many([(one.id, float(random_numbers.random() < means[one.arm])) for one in made])

            def timed(propensity, path=path):
                began = time.process_time()
                export_journal(path, os.path.join(folder, "log.jsonl"), "b", propensity)
                return 1e3 * (time.process_time() - began) / decisions

            ours, theirs = alternating(lambda: timed("arm"), lambda: timed("none"), repeats)
            name = f"export {policy.short}, {together} decision{'s' * (together > 1)} per view"
            line(name, ours, "ms each", theirs, "ms without probabilities", ours / theirs)


PARTS = {"decide": decide, "threads": threads, "single": single, "fold": fold, "export": export, "postgres": postgres}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="driftbandit-bench-", ignore_cleanup_errors=True) as folder:
        machine = (
            f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, SQLite {sqlite3.sqlite_version}, "
            f"fsync of the disk {fsync_ms(folder):.2f} ms; medians of {args.repeats}"
        )
        print(machine)
        for name in args.only:
            PARTS[name](folder, args.repeats)
    if args.out:
        head = ["# The cost of a live bandit", "", f"Made by `python benchmarks/live.py`: {machine}.", ""]
        head += ["| what | measured | compared with | ratio | goal |", "|---|--:|--:|--:|---|"]
        args.out.write_text("\n".join([*head, *ROWS]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
