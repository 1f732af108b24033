"""What is acknowledged stays: a graceful end, kill -9 under load, a full queue, a store that goes away."""

import contextlib
import signal
import threading
import time

import httpx
import pytest

from driftbandit.bandit.audit import audit

AT = "/v1/bandits/button"
NEW = {"name": "button", "policy": "ds-ts", "arms": ["red", "green"]}


class Load:
    """Threads that decide and reward, and remember what was acknowledged."""

    def __init__(self, url, threads=8):
        self.url, self.acked, self.paid, self.answers = url, set(), set(), []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self, number):
        count = 0
        with httpx.Client(base_url=self.url, timeout=20) as client:
            while not self._stop.is_set():
                count += 1
                id = f"{number}-{count}-{time.time_ns()}"
                with contextlib.suppress(httpx.TransportError):
                    made = client.post(f"{AT}/decisions", json={"id": id})
                    self.answers.append(made.status_code)
                    if made.status_code == 200:
                        self.acked.add(id)
                        paid = client.post(f"{AT}/rewards", json={"id": id, "reward": 1})
                        self.answers.append(paid.status_code)
                        if paid.status_code == 200:
                            self.paid.add(id)

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(30)


def lost(db, load):
    """Acknowledged decisions and rewards that the journal does not have, and whether it proves itself."""
    from driftbandit.bandit.opening import reading

    journal = reading(db)
    try:
        number = journal.bandits()["button"]
        rows = {row.id for row in journal.decisions(number)}
        paid = [event.decision for _, event in journal.events(number) if event.kind == 1]
    finally:
        journal.close()
    assert len(paid) == len(set(paid))  # none doubled
    assert audit(db)[0].differences == []
    return load.acked - rows, load.paid - set(paid)


def test_sigterm_answers_what_was_taken_and_loses_nothing(serve, tmp_path):
    db = tmp_path / "journal.db"
    served = serve(db)
    served.post("/v1/bandits", NEW)
    load = Load(served.url)
    while len(load.paid) < 60:
        time.sleep(0.02)
    began = time.monotonic()
    code = served.stop()
    took = time.monotonic() - began
    load.stop()
    assert code in (0, -signal.SIGTERM)
    assert took < 15
    assert set(load.answers) == {200}
    assert lost(db, load) == (set(), set())


@pytest.mark.long
def test_kill_9_under_load_loses_nothing_acknowledged(serve, tmp_path):
    db = tmp_path / "journal.db"
    served = serve(db)
    served.post("/v1/bandits", NEW)
    for _ in range(3):
        load = Load(served.url)
        while len(load.paid) < 60:
            time.sleep(0.02)
        served.kill()
        load.stop()
        assert lost(db, load) == (set(), set())
        served.start()


@pytest.mark.long
def test_above_the_limit_answers_are_503_with_retry_after_and_acked_is_stored(serve, tmp_path):
    db = tmp_path / "journal.db"
    served = serve(db, "--most", 2)
    served.post("/v1/bandits", NEW)
    load = Load(served.url, 16)
    while len(load.paid) < 60 or 503 not in load.answers:
        time.sleep(0.02)
    load.stop()
    assert set(load.answers) == {200, 503}
    assert lost(db, load) == (set(), set())
    busy = None
    with httpx.Client(base_url=served.url) as client:
        load = Load(served.url, 16)
        for _ in range(500):
            busy = client.post(f"{AT}/decisions")
            if busy.status_code == 503:
                break
        load.stop()
    assert busy.headers["retry-after"] == "1"
    assert busy.json()["kind"] == "busy"


def test_a_store_that_goes_away_makes_it_not_ready_and_it_recovers(serve, postgres_server, postgres):
    import psycopg

    served = serve(postgres)
    served.post("/v1/bandits", NEW)
    name = psycopg.conninfo.conninfo_to_dict(postgres)["dbname"]
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        began = time.monotonic()
        while served.get("/readyz").status_code == 200:
            assert time.monotonic() - began < 10
        assert served.get("/livez").status_code == 200
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    for _ in range(100):
        if served.get("/readyz").status_code == 200:
            break
        time.sleep(0.1)
    assert served.post(f"{AT}/decisions").status_code == 200
    assert audit(postgres)[0].differences == []
