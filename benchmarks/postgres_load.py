"""What a load costs the service, PostgreSQL and the generator; part of `service_load.py`."""

import os
import resource
import statistics
import threading
import time
from collections import Counter
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_STATS = """SELECT (SELECT sum(xact_commit) FROM pg_stat_database), wal_bytes,
                   (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal') FROM pg_stat_wal"""
_WAITS = """SELECT CASE WHEN state <> 'active' THEN 'waits for the service'
                        WHEN wait_event IS NULL THEN 'computes' ELSE wait_event_type || ':' || wait_event END
            FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
            AND query ~ 'driftbandit' AND query !~ 'LISTEN'"""


def tree(root):
    """CPU seconds of a process and of each that descends from it, by pid."""
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has just ended
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = (int(fields[11]) + int(fields[12])) / _TICK
    family = {root}
    while len(family) < len(family := family | {pid for pid, parent in parents.items() if parent in family}):
        pass
    return {pid: used[pid] for pid in family if pid in used}


def machine():
    """Seconds of all cores: busy, and altogether."""
    fields = [int(word) / _TICK for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


class Usage:
    """From `with` to its end: CPU time, commits, log written ahead, and what PostgreSQL's backends were doing."""

    def __init__(self, servers, databases):
        self._servers, self._databases = servers, databases
        self._waits, self._done = Counter(), threading.Event()

    def _now(self):
        import psycopg

        service = [tree(server.process.pid) for server in self._servers]
        stores = [tree(database.get_pid()) for database in self._databases]
        stats = []
        for database in self._databases:
            with psycopg.connect(database.get_uri()) as connection:
                stats.append([int(value) for value in connection.execute(_STATS).fetchone()])
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        return service, stores, [sum(column) for column in zip(*stats, strict=True)], own.ru_utime + own.ru_stime

    def _watch(self):
        import psycopg

        with psycopg.connect(self._databases[0].get_uri(), autocommit=True) as connection:
            while not self._done.wait(0.05):
                self._waits.update(row[0] for row in connection.execute(_WAITS))

    def __enter__(self):
        self._before, self._machine, self._began = self._now(), machine(), time.perf_counter()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._done.set()
        self._thread.join()
        took, busy, after = time.perf_counter() - self._began, machine(), self._now()

        def spent(before, now):
            return [[used - was.get(pid, 0.0) for pid, used in each.items()]
                    for was, each in zip(before, now, strict=True)]  # fmt: skip

        processes = [cpu for each in spent(self._before[0], after[0]) for cpu in each if cpu > 0.02 * took]
        stats = [now - was for was, now in zip(self._before[2], after[2], strict=True)]
        total = sum(self._waits.values()) or 1
        self.found = {
            "seconds": took,
            "processes": [cpu / took for cpu in processes],
            "service": sum(processes) / took,
            "postgres": sum(map(sum, spent(self._before[1], after[1]))) / took,
            "generator": (after[3] - self._before[3]) / took,
            "machine": (busy[0] - self._machine[0]) / took,
            "cores": (busy[1] - self._machine[1]) / took,
            "commits": stats[0] / took,
            "wal_bytes": stats[1] / took,
            "flushes": stats[2] / took,
            "waits": {what: count / total for what, count in self._waits.most_common(6)},
        }


def per_request(run):
    """The same for each request: microseconds of CPU time, commits, bytes."""
    rate = run["rate"]
    out = {kind: 1e6 * run[kind] / rate for kind in ("service", "postgres", "generator")}
    return out | {kind: run[kind] / rate for kind in ("commits", "wal_bytes", "flushes")}


def describe(run):
    """One line about a run."""
    each = per_request(run)
    shares = ", ".join(f"{100 * share:.0f}% {what}" for what, share in run["waits"].items())
    others = run["machine"] - run["service"] - run["postgres"] - run["generator"]
    processes = ", ".join(f"{cpu:.2f}" for cpu in run["processes"])
    return "; ".join((
        f"{run['workers']} processes, {run['databases']} databases, {run['bandits']} bandits: {run['rate']:,.0f} "
        "durable requests per second",
        f"cores: service {run['service']:.2f} ({processes}), PostgreSQL {run['postgres']:.2f}, generator "
        f"{run['generator']:.2f}, others {others:.2f} of {run['cores']:.1f}",
        f"{each['service']:.0f} + {each['postgres']:.0f} µs per request",
        f"{run['commits']:.0f} commits and {run['flushes']:.0f} flushes per second",
        f"{each['wal_bytes']:,.0f} bytes of log per request", f"a backend: {shares}",
    ))  # fmt: skip


def median_run(runs):
    """Of several runs, the median of each number, and the whole of the one in the middle for the rest."""
    middle = sorted(runs, key=lambda run: run["rate"])[len(runs) // 2]
    return {key: statistics.median(run[key] for run in runs) if isinstance(value, float) else value
            for key, value in middle.items()}  # fmt: skip
