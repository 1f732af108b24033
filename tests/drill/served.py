"""The same faults behind HTTP: `driftbandit serve` is killed, or its PostgreSQL goes away, while clients decide and
reward. A client that hears nothing sends the same id again, as ours does."""

import contextlib
import http.client
import importlib.util
import itertools
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from driftbandit.bandit.audit import audit
from driftbandit.errors import StoreError
from tests.drill.load import ARMS, context_of, reward_of
from tests.drill.site import Finding, Site
from tests.drill.verify import losses

INSTALLED = all(importlib.util.find_spec(name) for name in ("starlette", "uvicorn", "msgspec"))
CONTEXTUAL_BANDITS = ("contexts",)
_CLIENTS = 8
_BETWEEN = 25  # calls that are acknowledged before the next fault


def code_of(checkout: str | None) -> dict[str, str] | None:
    """The environment of a process that runs the code of another checkout, or of this one."""
    return None if checkout is None else {**os.environ, "PYTHONPATH": os.path.join(checkout, "src")}


class Server:
    """A service in a separate process, which may be killed and started again; with the code of another checkout, if one
    is given."""

    def __init__(self, target: str, checkout: str | None = None) -> None:
        self.target, self.checkout, self.port = target, checkout, 0
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        words = [sys.executable, "-m", "driftbandit", "serve", self.target, "--port", "0"]
        self._process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=code_of(self.checkout)
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        found = re.search(r":(\d+)/ ", self._process.stdout.readline())
        if found is None:
            raise StoreError(f"The service did not start: {self._process.stderr.read().strip()[-500:]}")
        threading.Thread(target=self._process.stderr.read, daemon=True).start()
        self.port = int(found[1])

    def end(self, sig: int = signal.SIGTERM) -> None:
        """End it; with SIGKILL as a crash does."""
        self._process.send_signal(sig)
        self._process.wait(60.0)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Clients:
    """Threads that decide and reward over connections they keep, and remember what was acknowledged. Each has one of
    the bandits, and goes on to the next server where one does not answer."""

    def __init__(self, servers: Sequence[Server], bandits: Sequence[str] = ("drill",)) -> None:
        self.decided, self.rewarded, self.answers = dict[str, str](), set[str](), Counter[int]()
        self._servers, self.bandits = servers, bandits
        self.pause, self._last = 0.0, math.inf  # the longest time without an answer of 200; when the last one came
        self._done, self._lock = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(_CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _work(self, number: int) -> None:
        connection: list[http.client.HTTPConnection] = []
        server, name = itertools.cycle(self._servers), self.bandits[number % len(self.bandits)]
        for _ in range(number):
            next(server)
        for count in itertools.count():
            id = f"h{number}-{count}"
            context = {"context": context_of(id)} if name in CONTEXTUAL_BANDITS else {}
            answer: dict[str, Any] | None = None
            while answer is None and not self._done.is_set():
                answer = self._ask(connection, server, f"{name}/decisions", {"id": id, **context})
                if answer is not None:
                    self.decided[id] = answer["arm"]
            answer = None
            while answer is None and not self._done.is_set():
                answer = self._ask(connection, server, f"{name}/rewards", {"id": id, "reward": reward_of(id)})
                if answer is not None:
                    self.rewarded.add(id)
            if self._done.is_set():
                return

    def _ask(
        self, kept: list[http.client.HTTPConnection], server: Iterator[Server], path: str, body: Mapping[str, object]
    ) -> dict[str, Any] | None:
        """The answer, or None when there was none: then the next attempt opens a separate connection."""
        text, status = b"", 0
        try:
            if not kept:
                kept.append(http.client.HTTPConnection("127.0.0.1", next(server).port, timeout=30.0))
            kept[0].request("POST", f"/v1/bandits/{path}", json.dumps(body))
            answer = kept[0].getresponse()
            text, status = answer.read(), answer.status
        except (OSError, http.client.HTTPException):
            kept.pop().close()
        with self._lock:
            self.answers[status] += 1
            if status == 200:
                now = time.monotonic()
                self.pause, self._last = max(self.pause, now - self._last), now
        if status != 200:
            time.sleep(0.02)
            return None
        return dict(json.loads(text))

    @property
    def acknowledged(self) -> int:
        """Calls so far."""
        return len(self.decided) + len(self.rewarded)

    @property
    def counts(self) -> str:
        """The answers by status."""
        return ", ".join(f"{status or 'unheard'} {count}" for status, count in sorted(self.answers.items()))

    def stop(self) -> None:
        """Let the calls under way end."""
        self._done.set()
        for thread in self._threads:
            thread.join(60.0)


def kills(site: Site, times: int, seed: int = 1) -> list[Finding]:
    """kill -9 of the service under load, and start it again."""

    def fault(server: Server) -> None:
        server.end(signal.SIGKILL)
        server.start()

    return _under_load(site, times, fault, "service killed (-9)", "kills", seed)


def restarts(site: Site, times: int, seed: int = 1) -> list[Finding]:
    """Stop PostgreSQL as a crash does and start it again; the service stays."""

    def fault(server: Server) -> None:
        site.stop()
        time.sleep(0.05)
        site.start()

    return _under_load(site, times, fault, "PostgreSQL killed below the service", "restarts", seed)


def _under_load(
    site: Site, times: int, fault: Callable[[Server], None], what: str, word: str, seed: int
) -> list[Finding]:
    chance, target = random.Random(seed), site.journal()
    server = Server(target)
    try:
        make(server)
        clients = Clients([server])
        try:
            for _ in range(times):
                wait_for_more(clients)
                time.sleep(0.2 * chance.random())
                fault(server)
            wait_for_more(clients)
        finally:
            clients.stop()
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.end()
    found = losses(target, set(clients.decided), clients.rewarded)
    differences = [text for report in audit(target) for text in report.differences]
    strange = sorted(status for status in clients.answers if status not in (0, 200, 503))
    result = f"{found}; answers: {clients.counts}; audit: {len(differences)} differ"
    good = not any(found) and not differences and not strange
    return [Finding(what, site.kind, f"{times} {word}, {clients.acknowledged} acknowledged", result, good)]


def make(server: Server, **options: Any) -> None:
    """Make a bandit over HTTP; the one of the drills, unless options are given."""
    rules = {"half_life": "1 min", "holdback": 0.05, "baseline": "a", "wait": "1 h", "learn": "arrival", "seed": 5}
    body = json.dumps({"arms": ARMS, **(options or {"name": "drill", "policy": "ds-ts", **rules})})
    until = time.monotonic() + 60.0
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30.0)
            connection.request("POST", "/v1/bandits", body)
            status = connection.getresponse().status
            connection.close()
            if status == 201:
                return
        except OSError:
            status = 0
        if time.monotonic() > until:
            raise StoreError(f"The service did not make the bandit of the drill (status {status}).")
        time.sleep(0.05)


def wait_for_more(clients: Clients, calls: int = _BETWEEN) -> None:
    """Wait for some more calls to be acknowledged: a fault without load would prove nothing."""
    goal, until = clients.acknowledged + calls, time.monotonic() + 120.0
    while clients.acknowledged < goal:
        if time.monotonic() > until:
            raise StoreError("The service acknowledges nothing any more.")
        time.sleep(0.005)
