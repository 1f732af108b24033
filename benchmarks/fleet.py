"""Many bandits in one service: start, memory, cold and warm decisions, lag, disk, and faults while it is busy.

    python benchmarks/fleet.py [--bandits 100000] [--used 1000] [--store sqlite|postgres] [--out docs/service/fleet.md]

On PostgreSQL two `driftbandit serve` processes run behind nginx with `deploy/nginx.conf`; on SQLite there is one.
Times are of one request at a time, sent to a process directly. Then eight clients decide and reward, through nginx
where there is one, while a process is killed with -9 and started again, and PostgreSQL is stopped and started. They
repeat a call with the same id until it is answered. At the end the journal is compared with what was acknowledged, and
the bandits that were used are audited. --out replaces the section of the store in the page."""

import argparse
import os
import platform
import random
import re
import statistics
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from fleet_parts import EVENTS, Clients, Database, Nginx, Readiness, Served, make_bandits, make_full

from driftbandit.bandit.audit import audit_bandit
from driftbandit.bandit.opening import reading
from driftbandit.bandit.records import DEFAULT, REWARD

FULL, ACTIVE, DOWN = 40, 200, 3.0  # bandits with 1,000 events, bandits active while lag is measured, seconds
PAGE = """# Many bandits, as printed

`benchmarks/fleet.py` wrote these tables: [many bandits](../how-to/fleet.md) in one store, with all processes,
PostgreSQL, nginx and the clients on one machine. In the tables of `/readyz` an entry such as "ready (20×, 0.1 to 2 s)"
counts the answers that followed each other, with the seconds since the period began. A process gives the same answer
for a second.
"""
TITLES = {"postgres": "PostgreSQL, two processes behind nginx", "sqlite": "SQLite, one process"}


def quantiles(times):
    times = sorted(times)
    p99 = times[min(len(times) - 1, int(0.99 * len(times)))]
    return f"{statistics.median(times):.1f} ms, {p99:.1f} ms ({len(times)})"


def decide_all(service, names, decided):
    made = [(name, *service.post(f"/v1/bandits/{name}/decisions")) for name in names]
    decided |= {(name, decision["id"]) for name, decision, _ in made}
    return {name: decision["id"] for name, decision, _ in made}, [took for *_, took in made]


def reward_all(service, ids, rewarded):
    times = []
    for name, id in ids.items():
        times.append(service.post(f"/v1/bandits/{name}/rewards", {"id": id, "reward": 1.0})[1])
        rewarded.add((name, id))
    return times


def measure_lag(one, other, names, decided, rewarded):
    """From the answer of a reward in one process until the fold of the other has it, while other bandits are active."""
    decide_all(one, names, decided)
    decide_all(other, names, decided)
    done = threading.Event()

    def load():
        while not done.is_set():
            ids, _ = decide_all(one, [random.choice(names[ACTIVE // 4 :])], decided)
            reward_all(one, ids, rewarded)

    thread = threading.Thread(target=load)
    thread.start()
    times = []
    for name in names[: ACTIVE // 4] * 4:
        health = f"/v1/bandits/{name}/health"
        before = other.client.get(health).json()["events"]
        ids, _ = decide_all(one, [name], decided)
        reward_all(one, ids, rewarded)
        began = time.perf_counter()
        while other.client.get(health).json()["events"] == before:
            pass
        times.append(1e3 * (time.perf_counter() - began))
    done.set()
    thread.join()
    return times


def put_under_load(database, services, address, readiness, names, decided, rewarded):
    """The faults, while clients decide and reward."""
    clients = Clients(address, names, decided, rewarded)
    clients.more()
    services[0].kill()
    readiness.enter("process 1 killed with -9")
    time.sleep(DOWN)
    services[0].start()
    readiness.enter("process 1 ready again")
    clients.more()
    time.sleep(DOWN)
    if database.server is not None:
        database.stop()
        readiness.enter("PostgreSQL stopped (immediate)")
        time.sleep(2 * DOWN)
        database.start()
        readiness.enter("PostgreSQL started")
        clients.more()
        time.sleep(2 * DOWN)
    clients.stop()
    return clients


def check(target, decided, rewarded, sample):
    """Acknowledged decisions and rewards that the journal lacks, and what it has twice; the audits of a sample."""
    journal, counts, reports = reading(target), Counter(), []
    wanted = {name: (set(), set()) for name, _ in decided}
    for place, acknowledged in enumerate((decided, rewarded)):
        for name, id in acknowledged:
            wanted[name][place].add(id)
    for name, (decisions, rewards) in wanted.items():
        number = journal.number(name)
        rows = Counter(row.id for row in journal.decisions(number))
        outcomes = Counter(event.decision for _, event in journal.events(number) if event.kind in (REWARD, DEFAULT))
        counts["lost"] += len(decisions - rows.keys()) + len(rewards - outcomes.keys())
        counts["doubled"] += rows.total() - len(rows) + outcomes.total() - len(outcomes)
        if name in sample:
            reports.append(audit_bandit(journal, name, number))
    journal.close()
    return counts, reports


def run(database, folder, args):
    """The rows of the table, and the lines below it."""
    rows = []

    def note(what, value):
        rows.append(f"| {what} | {value} |")
        print(f"{what}: {value}", flush=True)

    two = database.server is not None
    began, empty = time.perf_counter(), database.size()
    make_bandits(database, args.bandits, args.policy)
    note("bandits", f"{args.bandits:,}, made in {time.perf_counter() - began:.0f} s")
    note("disk per new bandit", f"{(database.size() - empty) / args.bandits:,.0f} bytes")
    make_full(database.target, FULL, args.policy)
    before = database.size()
    services = [Served(database.target, folder) for _ in range(1 + two)]
    one, other = services[0], services[-1]
    each = [", ".join(form(service) for service in services) for form in (
        lambda service: f"{service.live:.2f} s", lambda service: f"{service.ready:.2f} s",
        lambda service: f"{service.memory():.0f} MB")]  # fmt: skip
    note("from the start of a process to the first answer of /livez", each[0])
    note("from the start of a process to /readyz", each[1])
    note("memory of a process after the start", each[2])
    nginx = Nginx(services, folder) if two else None
    addresses = {f"process {n}": f"http://127.0.0.1:{service.port}" for n, service in enumerate(services, 1)}
    readiness = Readiness(addresses | ({"through nginx": nginx.url} if nginx else {}))
    decided, rewarded = set(), set()
    chosen = random.Random(1).sample([f"b{n:06}" for n in range(args.bandits)], args.used)
    try:
        _, times = decide_all(one, [f"full{n}" for n in range(FULL)], decided)
        note(f"cold decision at {EVENTS:,} events: p50, p99 (number)", quantiles(times))
        ids, times = decide_all(one, chosen, decided)
        note("cold decision of a new bandit: p50, p99", quantiles(times))
        again, times = decide_all(one, chosen, decided)
        note("warm decision: p50, p99", quantiles(times))
        times = reward_all(other, ids, rewarded)
        note(f"reward{' through the other process, cold there' if two else ''}: p50, p99", quantiles(times))
        times = reward_all(other, again, rewarded)
        note(f"reward{' through the other process, warm' if two else ', once more'}: p50, p99", quantiles(times))
        if two:
            times = measure_lag(one, other, chosen[:ACTIVE], decided, rewarded)
            note(f"lag between the processes, {ACTIVE} bandits active: p50, p99", quantiles(times))
        address = nginx.url if nginx else addresses["process 1"]
        clients = put_under_load(database, services, address, readiness, chosen, decided, rewarded)
    finally:
        readiness.stop()
        for service in services:
            service.stop()
        if nginx is not None:
            nginx.stop()
    answers = ", ".join(f"{status} {count:,}" for status, count in clients.answers.most_common())
    note("with faults: answers of the eight clients", answers)
    note("with faults: the longest time until a call was acknowledged", f"{clients.longest:.1f} s")
    note("largest memory of a process", ", ".join(f"{service.peak:.0f} MB" for service in services))
    counts, reports = check(database.target, decided, rewarded, set(chosen))
    note("acknowledged decisions, rewards", f"{len(decided):,}, {len(rewarded):,}")
    note("**lost, doubled**", f"**{counts['lost']}, {counts['doubled']}**")
    proved = sum(not report.differences and not report.unproved for report in reports)
    note("**bandits audited, proved**", f"**{len(reports):,}, {proved:,}**")
    grown = (database.size() - before) / max(1, len(rewarded))
    note("disk per decision with its reward, all in new bandits, snapshots and charts included", f"{grown:,.0f} bytes")
    return ["| | |", "|---|---|", *rows, "", *readiness.table()]


def write_section(out, store, lines):
    """Replace one section of the page."""
    text = out.read_text(encoding="utf-8") if out.exists() else PAGE
    found = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)*)", text, re.MULTILINE))
    found[TITLES[store]] = "\n" + "\n".join(lines) + "\n"
    sections = [f"## {title}\n\n{found[title].strip()}\n" for title in TITLES.values() if title in found]
    out.write_text("\n".join([PAGE, *sections]), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bandits", type=int, default=100_000)
    parser.add_argument("--used", type=int, default=1000)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--policy", default="drift-auto")
    parser.add_argument("--out", type=Path, metavar="PAGE", help="a page whose section is replaced")
    args = parser.parse_args()
    if not ACTIVE <= args.used <= args.bandits:
        parser.error(f"--used must be from {ACTIVE} to --bandits; got {args.used}.")
    command = f"python benchmarks/fleet.py --store {args.store} --bandits {args.bandits} --used {args.used}"
    head = (
        f"`{command}` on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before, Python "
        f"{platform.python_version()}, policy `{args.policy}`:"
    )
    print(head, flush=True)
    with tempfile.TemporaryDirectory(prefix="driftbandit-fleet-") as folder:
        database = Database(args.store, folder)
        try:
            lines = run(database, folder, args)
        finally:
            database.close()
    print("\n".join(lines))
    if args.out is not None:
        write_section(args.out, args.store, [head, "", *lines])


if __name__ == "__main__":
    main()
