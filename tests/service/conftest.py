"""Real services: `driftbandit serve` in separate processes, on free ports, with real stores."""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from live.conftest import another_postgres, new_database, postgres, postgres_server, store

__all__ = ["another_postgres", "postgres", "postgres_server", "store"]


class Served:
    """A running service."""

    def __init__(self, command, *words, env=None):
        self.words = [sys.executable, "-m", "driftbandit", command, *map(str, words)]
        self.env = {**os.environ, **(env or {})}
        self.lines = []
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env
        )
        self.url = None
        until = time.monotonic() + 60
        for line in self.process.stdout:
            self.lines.append(line)
            found = re.search(r" at (http://\S+)/ ", line)
            if found:
                self.url = found[1]
                break
        if self.url is None:
            raise AssertionError(f"the service did not start: {''.join(self.lines)}")
        threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True).start()
        while time.monotonic() < until:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(self.url + "/livez", timeout=5, verify=False).status_code == 200:
                    return
            time.sleep(0.05)
        raise AssertionError("the service does not answer")

    def call(self, method, path, body=None, **more):
        with httpx.Client(timeout=30, verify=False) as client:  # reading the certificates takes 50 ms
            return client.request(method, self.url + path, json=body, **more)

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def wait_for(self, path, ready):
        """The JSON at a path once `ready` holds for it, or as it is after ten seconds: reports on PostgreSQL may be a
        moment behind the journal."""
        until = time.monotonic() + 10
        while not ready(found := self.get(path).json()) and time.monotonic() < until:
            time.sleep(0.05)
        return found

    def post(self, path, body=None, **more):
        return self.call("POST", path, body, **more)

    def kill(self):
        self.process.kill()
        self.process.wait(30)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
                raise AssertionError(f"the service did not end on SIGTERM: {''.join(self.lines)}") from None
        return self.process.returncode


@pytest.fixture
def serve():
    """Start services; all end with the test."""
    running = []

    def start(*words, command="serve", **more):
        port = () if "--port" in words else ("--port", 0)
        running.append(Served(command, *words, *port, **more))
        return running[-1]

    yield start
    for served in running:
        served.stop()


BANNER = {"name": "banner", "arms": ["red", "green"], "features": {"device": ["mobile", "desktop"], "basket": "number"}}
BUTTON = {"name": "button", "policy": "ds-ts", "arms": ["red", "green", "blue"], "reward_range": [0, 1]}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared_service(request, tmp_path_factory):
    """One service per module and store."""
    if request.param == "sqlite":
        db = str(tmp_path_factory.mktemp("service") / "journal.db")
    else:
        db = new_database(request.getfixturevalue("postgres_server"))
    served = Served("serve", db, "--port", 0)
    served.db = db
    yield served
    served.stop()


_numbers = itertools.count()


@pytest.fixture
def service(shared_service):
    """A service, once on SQLite, once on PostgreSQL, with a new bandit for this test: `at` is its address."""
    shared_service.name = f"button{next(_numbers)}"
    shared_service.at = f"/v1/bandits/{shared_service.name}"
    assert shared_service.post("/v1/bandits", {**BUTTON, "name": shared_service.name}).status_code == 201
    return shared_service


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """One service per module, on SQLite, with one bandit."""
    served = Served("serve", tmp_path_factory.mktemp("small") / "journal.db", "--port", 0)
    assert served.post("/v1/bandits", BUTTON).status_code == 201
    yield served
    served.stop()


@pytest.fixture
def fresh(serve, tmp_path):
    """A service for one test, on SQLite, with one bandit."""
    served = serve(tmp_path / "journal.db")
    assert served.post("/v1/bandits", BUTTON).status_code == 201
    return served
