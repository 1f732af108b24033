"""Real Dask schedulers and workers: other code on a worker, a scheduler that dies, workers that come late."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import driftbandit
import small_study
from driftbandit.errors import WorkerError
from driftbandit.lab.work import Cell, Store, chunks_by_name
from driftbandit.spec import user_code

pytest.importorskip("distributed")
pytestmark = pytest.mark.long


@pytest.fixture
def dask(tmp_path):
    """Starts schedulers and workers, and ends them."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:], "--no-dashboard"]
        log = open(tmp_path / f"{words[0]}-{len(started)}.log", "wb")  # noqa: SIM115  the process keeps it
        started.append(
            subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment}, cwd=tmp_path)
        )
        return started[-1]

    yield start
    for process in reversed(started):
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
    for process in started:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def scheduler(dask):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = dask("scheduler", "--host", "127.0.0.1", "--port", str(port))
    return process, f"tcp://127.0.0.1:{port}"


def worker(dask, address: str, **environment: str) -> None:
    dask("worker", address, "--nthreads", "1", "--no-nanny", **environment)


def test_a_worker_with_another_version_refuses_and_nothing_of_it_is_stored(tmp_path, dask, scheduler):
    """The worker's copy of the package plays other arms, as an older version may."""
    copy = tmp_path / "old" / "driftbandit"
    shutil.copytree(Path(driftbandit.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    loop = copy / "lab" / "engine" / "loop.py"
    loop.write_text(loop.read_text().replace("policy.choose(state, t, rng)", "0 * policy.choose(state, t, rng)"))
    worker(dask, scheduler[1], PYTHONPATH=str(tmp_path / "old"))
    store = Store(tmp_path / "out")
    with pytest.raises(WorkerError, match="different code") as caught:
        store.play(small_study.cells(2), f"dask:{scheduler[1]}")
    assert str(copy) in str(caught.value)
    assert not store.names()


def test_the_version_of_a_users_module_counts_too(tmp_path, dask, scheduler, monkeypatch):
    from test_own import GREEDY

    for folder, text in (("here", GREEDY), ("there", GREEDY.replace("0.9", "0.8") + "\n# other\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "greedy_of_mine.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "here"))
    policy = user_code.load("greedy_of_mine:Greedy")()
    worker(dask, scheduler[1], PYTHONPATH=str(tmp_path / "there"))
    store = Store(tmp_path / "out")
    with pytest.raises(WorkerError, match="different code"):
        store.play([Cell(policy, small_study.cells(1)[0].environment, 2)], f"dask:{scheduler[1]}")
    assert not store.names()


def test_workers_that_join_later_are_used(tmp_path):
    from distributed import Client, LocalCluster

    cells, store = small_study.cells(40, horizon=200), Store(tmp_path / "out", compiled=False)
    plan, most = chunks_by_name(cells), 0

    local = LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None)
    with local as cluster, Client(cluster) as client:

        def join() -> None:
            nonlocal most
            time.sleep(0.5)
            cluster.scale(1)
            while not store.names():
                time.sleep(0.02)
            cluster.scale(6)
            while store.missing(plan):
                most = max(most, sum(map(len, client.processing().values())))
                time.sleep(0.1)

        joining = threading.Thread(target=join, daemon=True)
        joining.start()
        store.play(cells, client)
        joining.join(60)
    assert most > 6  # six workers; with one, four chunks are under way


def test_a_killed_scheduler_is_one_sentence_and_the_same_call_continues(tmp_path, dask, scheduler):
    worker(dask, scheduler[1])
    cells, store = small_study.cells(), Store(tmp_path / "out")

    def kill() -> None:
        stop = time.monotonic() + 120
        while len(store.names()) < 2 and time.monotonic() < stop:
            time.sleep(0.02)
        scheduler[0].send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with pytest.raises(WorkerError, match="same command again"):
        store.play(cells, f"dask:{scheduler[1]}")
    killer.join(60)
    kept, every = len(store.names()), len(chunks_by_name(cells))
    assert 2 <= kept < every
    assert Store(tmp_path / "out").play(cells, "threads:1") == (kept, every - kept)
