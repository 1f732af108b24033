"""The same numbers from threads, processes, Dask and Ray, also when a worker dies in the middle."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import small_study
from driftbandit.cli import _main as cli
from driftbandit.lab import executors
from driftbandit.lab.work import Cell, Store


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The hash from one thread."""
    return small_study.played(tmp_path_factory.mktemp("one"), workers=1)[0]


def test_the_hash_is_the_same_from_two_threads_and_from_anybodys_executor(tmp_path, expected):
    assert small_study.played(tmp_path / "two", "threads:2")[0] == expected
    with ThreadPoolExecutor(2) as pool:
        assert small_study.played(tmp_path / "any", pool)[0] == expected


def test_the_hash_is_the_same_from_two_processes(tmp_path, expected):
    assert small_study.played(tmp_path, 2)[0] == expected


@pytest.mark.long
def test_a_killed_process_is_replaced_and_the_hash_is_the_same(tmp_path, expected):
    store = Store(tmp_path)
    killed = []

    def kill_soon():
        while len(store.names()) < 3:
            time.sleep(0.01)
        victim = multiprocessing.active_children()[0].pid
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    threading.Thread(target=kill_soon, daemon=True).start()
    store.play(small_study.cells(), 2)
    assert len(killed) == 1
    assert small_study.digest(store, small_study.cells()) == expected


@pytest.mark.long
def test_the_hash_is_the_same_from_a_dask_cluster_also_when_a_worker_is_killed(tmp_path, expected):
    pytest.importorskip("distributed")
    from distributed import Client, LocalCluster

    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=2, host="127.0.0.1", **options) as cluster, Client(cluster) as client:
        assert small_study.played(tmp_path / "client", client)[0] == expected
        store = Store(tmp_path / "killed")
        killed = []

        def kill_soon():
            while len(store.names()) < 3:
                time.sleep(0.01)
            victim = client.run(os.getpid)[next(iter(client.nthreads()))]
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

        watcher = threading.Thread(target=kill_soon)
        watcher.start()
        store.play(small_study.cells(), client)
        watcher.join(60)
        assert len(killed) == 1
        assert small_study.digest(store, small_study.cells()) == expected
        assert small_study.played(tmp_path / "address", f"dask:{cluster.scheduler_address}")[0] == expected


@pytest.mark.long
def test_the_hash_is_the_same_from_a_local_ray(tmp_path, expected):
    pytest.importorskip("ray")
    assert small_study.played(tmp_path, "ray:2")[0] == expected
    with executors.open_pool("ray:1") as pool:
        assert pool.executor.submit(os.nice, 0).result() == os.nice(0)  # workers do not wait for everything else


@pytest.mark.long
def test_a_users_own_policy_reaches_workers_that_do_not_have_its_file(tmp_path, monkeypatch):
    """Spawned processes are sent the text of the file, which is gone before they start."""
    from driftbandit.spec import user_code
    from test_own import GREEDY

    (tmp_path / "mine.py").write_text(GREEDY)
    monkeypatch.chdir(tmp_path)
    policy, environment = user_code.load_policy("mine.py:Greedy"), small_study.cells(1)[0].environment
    cells = [Cell(policy, environment, 4, seed) for seed in range(3)]
    (tmp_path / "mine.py").unlink()
    stores = [Store(tmp_path / name) for name in ("threads", "processes")]
    for store, executor in zip(stores, ("threads", 2), strict=True):
        store.play(cells, executor)
    assert small_study.digest(stores[0], cells) == small_study.digest(stores[1], cells)


def test_an_executor_broken_for_good_is_an_error_not_a_loop(tmp_path):
    with ProcessPoolExecutor(1) as pool:
        pool.shutdown()
        with pytest.raises(RuntimeError):
            small_study.played(tmp_path, pool, count=1)


@pytest.mark.parametrize("wrong", ["dusk", "threads:0", "processes:x"])
def test_an_unknown_executor_is_refused_before_any_work(wrong):
    with pytest.raises(ValueError, match=r"needs a whole number|There is no executor"), executors.open_pool(wrong):
        pass


def test_a_scheduler_that_does_not_answer_is_one_sentence(tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed")
    import distributed

    def no_client(address, timeout):
        raise OSError("Timed out")

    monkeypatch.setattr(distributed, "Client", no_client)
    words = [
        "run",
        "ts",
        "--env",
        "abrupt(horizon=50, phases=2)",
        "--runs",
        "2",
        "--executor",
        "dask:tcp://127.0.0.1:1",
    ]
    assert cli.main(words) == 2
    assert "No Dask scheduler answers at 'tcp://127.0.0.1:1'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["run", "ts"], ["field", "--quick"], ["reproduce", "fig3a"]], ids=lambda w: w[0])
def test_a_missing_library_is_one_sentence_before_anything_is_written(tmp_path, capsys, monkeypatch, words):
    found = executors.importlib.util.find_spec
    monkeypatch.setattr(
        executors.importlib.util, "find_spec", lambda name: None if name == "distributed" else found(name)
    )
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cli.main([*words, "--runs", "2", "--executor", "dask"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "",
        "driftbandit: --executor dask needs distributed: pip install '.[dask]'.\n",
    )
    assert not list(tmp_path.iterdir())
