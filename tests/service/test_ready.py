"""/readyz reports whether decisions can be written: not when the disk is full, and again when there is space."""

import asyncio
import contextlib
import threading
import time
from datetime import timedelta
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit
from driftbandit.bandit.opening import writing
from driftbandit.service.app import Service, build
from driftbandit.service.bandits import Bandits
from driftbandit.spec.half_life import SECOND
from tests.drill.files import small_disk


class ShowAllState(NamedTuple):
    pulls: Any


class ShowAll(NamedTuple):
    """A policy of the user's."""

    def init(self, n_arms):
        return ShowAllState(np.zeros(n_arms))

    def choose(self, state, t, rng):
        return t % len(state.pulls)

    def learn(self, state, t, arm, reward):
        pass


def test_a_full_disk_is_not_ready_and_space_makes_it_ready_again(serve):
    with small_disk(8) as (folder, real):
        if not real:
            pytest.skip("a small disk can only be made by root")
        served = serve(f"{folder}/journal.db")
        served.post("/v1/bandits", {"name": "button", "policy": "ts", "reward_range": [0, 1], "arms": ["x", "y"]})
        assert served.get("/readyz").status_code == 200
        with contextlib.suppress(OSError), open(f"{folder}/ballast", "wb", buffering=0) as ballast:
            while True:
                ballast.write(b"x" * 4096)
        until = time.monotonic() + 20
        while served.get("/readyz").status_code == 200:  # the log that is written ahead may have a little space left
            served.post("/v1/bandits/button/decisions/batch", {"count": 500})
            assert time.monotonic() < until
        answer = served.get("/readyz")
        assert answer.status_code == 503
        assert "cannot be written" in answer.json()["error"]
        assert served.get("/livez").status_code == 200
        assert served.post("/v1/bandits/button/decisions/batch", {"count": 500}).status_code == 503
        with open(f"{folder}/ballast", "wb"):
            pass
        time.sleep(1.1)  # the answer stands for a second
        assert served.get("/readyz").status_code == 200
        assert served.post("/v1/bandits/button/decisions").status_code == 200
        served.stop()


def test_the_size_limit_of_sqlite_counts_as_a_full_disk(tmp_path):
    bandits = Bandits(str(tmp_path / "journal.db"))
    try:
        connection = bandits._opened.journal._writer
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

        async def ask():
            service = Service(bandits)
            try:
                transport = httpx.ASGITransport(app=build(service))
                async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                    return [(await client.get("/readyz")).status_code for _ in range(3)]
            finally:
                service.charts.close()

        assert asyncio.run(ask()) == [503] * 3
        connection.execute("PRAGMA max_page_count=1073741823")
        assert asyncio.run(ask()) == [200] * 3
        assert bandits.queue()[1] == 1  # three questions within a second are one write
    finally:
        bandits.close()


def test_a_restart_with_nothing_wrong_is_ready(serve, store):
    """However old the events are that are read at the start."""
    with Bandit.open(
        store, "button", arms=["red", "green"], clock=lambda: time.time_ns() // 1000 - 3600 * SECOND
    ) as old:
        for _ in range(20):
            old.reward(old.decide(), 1.0)
    served = serve(store)
    assert served.get("/readyz").status_code == 200
    assert served.get("/v1/bandits/button").status_code == 200  # opens it
    for _ in range(2):
        assert served.get("/readyz").text == "ready\n"
        assert served.get("/v1/bandits/button/health").json()["lag_seconds"] == 0.0
        time.sleep(0.4)
    assert served.get("/").status_code == 200
    assert "behind" not in served.get("/").text


def test_a_process_that_does_not_see_what_others_write_is_not_ready(postgres):
    """The thread that follows the journal is held up, as by a lock or a network that swallows packets."""
    with Bandit.open(postgres, "button", arms=["red", "green"]) as bandit:
        decision = bandit.decide()
        assert bandit.health()["lag"] == timedelta(0)
        with bandit._replica._reading:
            bandit.reward(decision, 1.0)
            time.sleep(1.5)
            assert bandit.health()["lag"] > timedelta(seconds=1)
        until = time.monotonic() + 10
        while bandit.health()["lag"] > timedelta(0):
            assert time.monotonic() < until
            time.sleep(0.05)


def test_a_journal_that_another_program_overwrites_is_not_ready(tmp_path):
    path = tmp_path / "journal.db"
    Bandits(str(path)).close()  # all of it is in the file now
    bandits = Bandits(str(path))
    try:
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (path.stat().st_size - 4096))

        async def ask():
            service = Service(bandits)
            try:
                transport = httpx.ASGITransport(app=build(service))
                async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                    return await client.get("/readyz")
            finally:
                service.charts.close()

        answer = asyncio.run(ask())
        assert answer.status_code == 503
        assert answer.json()["kind"] == "store"
        assert str(tmp_path) not in answer.text  # no key is needed for it
    finally:
        bandits.close()


def test_a_bandit_that_cannot_read_its_journal_any_further_makes_the_service_not_ready(serve, postgres):
    """Another program changes the policy to one that the service does not have."""
    with Bandit.open(postgres, "button", DiscountedTS(), arms=["red", "green"]) as bandit:
        served = serve(postgres)
        assert served.post("/v1/bandits/button/decisions").status_code == 200
        assert served.get("/readyz").status_code == 200
        bandit.change(policy=ShowAll())
        until = time.monotonic() + 10
        while (answer := served.get("/readyz")).status_code == 200:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert answer.json()["kind"] == "damaged"
        assert "button" not in answer.text  # no key is needed for it
        assert "damaged" in served.get("/").text
        until = time.monotonic() + 5
        while "ShowAll" not in "".join(served.lines):  # the log names the bandit and the reason
            assert time.monotonic() < until
            time.sleep(0.05)


def test_sessions_and_readiness_leave_no_cell_of_a_chart(store):
    bandits = Bandits(store)
    try:
        assert bandits.secret() == bandits.secret()
        asyncio.run(bandits.check(5.0))
        asyncio.run(bandits.check(5.0))
        assert len(bandits.secret()) == 32
        assert bandits.journal._rows("SELECT * FROM @chart") == []
        assert len(bandits.journal._rows("SELECT * FROM @meta")) == 2
    finally:
        bandits.close()


def many_bandits(path, count, used):
    """A journal with this many names, of which some have a bandit that decides."""
    opened = writing(path)
    try:
        for number in range(count):
            if number in used:
                with Bandit.open(path, f"bandit-{number}", arms=["red", "green"]) as bandit:
                    bandit.reward(bandit.decide(), 1.0)
            else:
                opened.journal.create(f"bandit-{number}", 0)
    finally:
        opened.release()


def test_a_service_with_many_bandits_opens_those_that_are_used(tmp_path):
    many_bandits(tmp_path / "journal.db", 200, {*range(5), 117, *range(195, 200)})
    bandits = Bandits(str(tmp_path / "journal.db"))
    service = Service(bandits)
    try:
        service.charts.start()
        time.sleep(1.2)  # it has sampled once
        assert bandits.held == {}
        assert len(bandits.journal.names()) == 200
        assert bandits.get("bandit-117").decide().arm in ("red", "green")
        assert list(bandits.held) == ["bandit-117"]
        took = []
        for names in (range(5), range(195, 200)):  # opening takes as long however many are open or listed
            began = time.perf_counter()
            for number in names:
                bandits.get(f"bandit-{number}")
            took.append(time.perf_counter() - began)
        assert took[1] < 5 * took[0] + 0.5
    finally:
        asyncio.run(service.close())


def test_bandits_are_made_while_another_decides(tmp_path):
    bandits = Bandits(str(tmp_path / "journal.db"))
    try:
        busy, _ = bandits.create("busy", "ts", ["x", "y"], "test")
        made, failed = threading.Event(), []

        def decide():
            while not made.is_set():
                try:
                    busy.decide_many(5)
                except Exception as error:
                    failed.append(error)
                    return

        thread = threading.Thread(target=decide)
        thread.start()
        try:
            for number in range(40):
                bandits.create(f"bandit-{number}", "ts", ["x", "y"], "test")
        finally:
            made.set()
            thread.join()
        assert failed == []
    finally:
        bandits.close()
