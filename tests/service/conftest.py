"""A real service per test: `driftbandit serve` in a process of its own, on a free port, with a real store."""

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

from live.conftest import new_database, postgres, postgres_server, store

__all__ = ["postgres", "postgres_server", "store"]


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
                if httpx.get(self.url + "/livez", timeout=5).status_code == 200:
                    return
            time.sleep(0.05)
        raise AssertionError("the service does not answer")

    def call(self, method, path, body=None, **more):
        with httpx.Client(timeout=30) as client:
            return client.request(method, self.url + path, json=body, **more)

    def get(self, path, **more):
        return self.call("GET", path, **more)

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


BUTTON = {"name": "button", "policy": "ds-ts", "arms": ["red", "green", "blue"]}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def house(request, tmp_path_factory):
    """One service per module and store."""
    if request.param == "sqlite":
        db = str(tmp_path_factory.mktemp("house") / "journal.db")
    else:
        db = new_database(request.getfixturevalue("postgres_server"))
    served = Served("serve", "--db", db, "--port", 0)
    served.db = db
    yield served
    served.stop()


_numbers = itertools.count()


@pytest.fixture
def service(house):
    """A service, once on SQLite, once on PostgreSQL, with a new bandit for this test: `at` is its address."""
    house.name = f"button{next(_numbers)}"
    house.at = f"/v1/bandits/{house.name}"
    assert house.post("/v1/bandits", {**BUTTON, "name": house.name}).status_code == 201
    return house


@pytest.fixture
def small(serve, tmp_path):
    """A service of its own, on SQLite, with one bandit."""
    served = serve("--db", tmp_path / "journal.db")
    assert served.post("/v1/bandits", BUTTON).status_code == 201
    return served
