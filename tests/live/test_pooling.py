"""Journals behind PgBouncer, which hands out its connections for a session or for a transaction."""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.audit import audit
from driftbandit.bandit.opening import writing

conninfo_to_dict = pytest.importorskip("psycopg.conninfo").conninfo_to_dict
SIZES = {"session": 40, "transaction": 3}
PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@pytest.fixture
def pooler(postgres_server, postgres):
    """Starts PgBouncer in a mode; the URL of the database behind it."""
    if PGBOUNCER is None:
        pytest.skip("apt-get install pgbouncer")
    running, info = [], conninfo_to_dict(postgres)
    with tempfile.TemporaryDirectory(prefix="driftbandit-pool-") as folder:

        def start(mode):
            with socket.socket() as sock:
                sock.bind(("127.0.0.1", 0))
                port = sock.getsockname()[1]
            place = " ".join(f"{word}={info[word]}" for word in ("host", "user"))
            (Path(folder) / "ini").write_text(
                f"[databases]\n* = {place}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
                f"unix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = {SIZES[mode]}\n"
            )
            user = postgres_server.system_user
            Path(folder).chmod(0o755)
            with (Path(folder) / "log").open("w") as log:
                command = [PGBOUNCER, *(["-u", user] if user else []), Path(folder) / "ini"]
                running.append(subprocess.Popen(command, stdout=log, stderr=log))
            until = time.monotonic() + 10
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert time.monotonic() < until, (Path(folder) / "log").read_text()
                time.sleep(0.05)
            return f"postgresql://{info['user']}@127.0.0.1:{port}/{info['dbname']}"

        yield start
        for process in running:
            process.terminate()
            process.wait(10)


WORK = """
import sys, threading
from driftbandit.bandit import Bandit
names = [f"b{n}" for n in range(20)]
def work(number):
    for n in range(60):
        with_name = names[(7 * n + number) % 20]
        bandit = opened[with_name]
        made = bandit.decide(f"{sys.argv[2]}-{number}-{n}")
        bandit.reward(made, 1.0)
opened = {name: Bandit.open(sys.argv[1], name, arms=["red", "green"]) for name in names}
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
[one.start() for one in threads]
[one.join() for one in threads]
[one.close() for one in opened.values()]
print("done")
"""


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_processes_behind_a_pooler_decide_and_hear_of_each_other(pooler, postgres, mode, monkeypatch):
    url = pooler(mode)
    if mode == "transaction":
        monkeypatch.setenv("DRIFTBANDIT_DIRECT_URL", postgres)
    both = [
        subprocess.Popen([sys.executable, "-c", WORK, url, str(n)], stdout=subprocess.PIPE, text=True) for n in range(2)
    ]
    with Bandit.open(url, "b0", arms=["red", "green"]) as bandit:
        assert [one.communicate(timeout=60)[0] for one in both] == ["done\n", "done\n"]
        until = time.monotonic() + 10  # notified, as it does not ask
        while bandit.events < 19 and time.monotonic() < until:
            time.sleep(0.01)
        assert bandit.events == 19
        opened = writing(url)
        with opened.journal.claim(1) as ours, opened.journal.claim(1) as twice:
            assert (ours, twice) == (True, False)
        opened.release()
    reports = audit(postgres)
    assert sum(report.decisions for report in reports) == 360
    assert [text for report in reports for text in report.differences] == []
