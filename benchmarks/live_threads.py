"""Durable decisions of one thread and of 64, against bare INSERTs of the same rows; part of `live.py`.

Python's threads share one interpreter: a thread that waits for the disk has to be woken, and to be given the
interpreter, before its caller hears anything. How much of the time that takes is shown by a floor: as many threads that
choose nothing and only hand a number to the thread that writes the bare INSERTs."""

import itertools
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from collections import deque

from live_measure import ARMS, alternating, fsync_ms, line

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit
from driftbandit.bandit.records import DecisionRow, make_ids, mark
from driftbandit.bandit.tables import DECISIONS, insert

_number = itertools.count()


def threads(folder, repeats, crew=64, each=100):
    """Durable decisions per second of 64 threads, and hand-overs per second of as many, each against bare INSERTs of as
    many rows in groups of the same size."""
    rounds = []
    for _ in range(repeats):
        rate, group = ours(folder, crew, each)
        least, gathered = floor(folder, crew, each)
        bases = [bare(folder, round(size), round(crew * each / size)) for size in (group, gathered)]
        rounds.append((rate, group, bases[0], rate / bases[0], least, gathered, bases[1], least / bases[1]))
    rate, group, base, ratio, least, gathered, other, reached = map(statistics.median, zip(*rounds, strict=True))
    line(f"durable decisions, {crew} threads", rate, "a second", base, f"INSERTs, groups of {group:.0f}", ratio,
         ">= 0.7", ratio >= 0.7)  # fmt: skip
    line(f"floor: {crew} threads hand over a number", least, "a second", other, f"INSERTs, groups of {gathered:.0f}",
         reached)  # fmt: skip
    line(f"durable decisions, {crew} threads", rate, "a second", least, "the floor", rate / least)


def together(crew, work):
    """Seconds that so many threads take, from the moment at which all are there."""
    gate = threading.Barrier(crew + 1)

    def begin():
        gate.wait()
        work()

    members = [threading.Thread(target=begin) for _ in range(crew)]
    for member in members:
        member.start()
    gate.wait()
    began = time.perf_counter()
    for member in members:
        member.join()
    return time.perf_counter() - began


def ours(folder, crew, each):
    """Decisions per second, and how many went into one commit."""
    with Bandit.open(os.path.join(folder, f"t{next(_number)}.db"), "b", DiscountedTS(), ARMS) as bandit:
        commits = bandit.health()["commits"]

        def work():
            for _ in range(each):
                bandit.decide()

        seconds = together(crew, work)
        return crew * each / seconds, crew * each / (bandit.health()["commits"] - commits)


def floor(folder, crew, each):
    """Hand-overs per second, and how many went into one commit. Those who wait for one commit wake each other in turn:
    of the ways tried (all at once by the writer, all by the first) the quickest."""
    connection, rows = table(folder, crew * each)
    waiting, groups, bell = deque(), 0, threading.Semaphore(0)

    class Place:
        def __init__(self):
            self.lock, self.next = threading.Lock(), None
            self.lock.acquire()

    def work():
        for _ in range(each):
            place = Place()
            waiting.append(place)
            if len(waiting) == 1:
                bell.release()
            place.lock.acquire()
            if place.next is not None:
                place.next.lock.release()

    def write():
        nonlocal groups
        first = 0
        while first < len(rows):
            bell.acquire()
            while waiting:
                places = [waiting.popleft() for _ in range(min(len(waiting), crew))]
                insert_rows(connection, rows[first : first + len(places)])
                first, groups = first + len(places), groups + 1
                for one, other in itertools.pairwise(places):
                    one.next = other
                places[0].lock.release()

    writer = threading.Thread(target=write)
    writer.start()
    seconds = together(crew, work)
    writer.join()
    connection.close()
    return len(rows) / seconds, len(rows) / groups


def bare(folder, group, groups):
    """INSERTs per second: the same table, the same rows, one connection, one thread, nothing else."""
    connection, rows = table(folder, group * groups)
    began = time.perf_counter()
    for first in range(0, len(rows), group):
        insert_rows(connection, rows[first : first + group])
    rate = len(rows) / (time.perf_counter() - began)
    connection.close()
    return rate


def table(folder, count):
    """An empty journal to write to, and rows for it, whose ids are made as a bandit makes them."""
    path = os.path.join(folder, f"bare{next(_number)}.db")
    Bandit.open(path, "b", DiscountedTS(), ARMS).close()
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=300)
    connection.execute("PRAGMA synchronous=FULL")
    ids = (id for _ in itertools.count() for id in make_ids(256))
    rows = [DecisionRow(next(ids), 1_700_000_000_000_000 + n, n % ARMS, 0, 1, None, bandit=1) for n in range(count)]
    return connection, [(n, *row, mark(row)) for n, row in enumerate(rows, 1)]


def insert_rows(connection, rows):
    connection.execute(insert("decision", DECISIONS, len(rows)), [value for row in rows for value in row])


def single(folder, repeats):
    """Milliseconds of one durable decision in one thread, against one bare INSERT and against one fsync."""

    def lone(count=150):
        with Bandit.open(os.path.join(folder, f"s{next(_number)}.db"), "b", DiscountedTS(), ARMS) as bandit:
            began = time.perf_counter()
            for _ in range(count):
                bandit.decide()
            return 1e3 * (time.perf_counter() - began) / count

    ms, insert = alternating(lone, lambda: 1e3 / bare(folder, 1, 150), repeats)
    line("durable decision, one thread", ms, "ms", insert, "ms bare INSERT", ms / insert, "<= 1.3", ms <= 1.3 * insert)
    ms, sync = alternating(lone, lambda: fsync_ms(folder, 150), repeats)
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
