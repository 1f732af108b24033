"""/readyz tells whether decisions can be written: not when the disk is full, and again when there is room."""

import asyncio
import contextlib
import time

import httpx
import pytest

from driftbandit.service.app import build
from driftbandit.service.bandits import Bandits
from driftbandit.service.service import Service
from tests.drill.files import small_disk


def test_a_full_disk_is_not_ready_and_room_makes_it_ready_again(serve):
    with small_disk(8) as (folder, real):
        if not real:
            pytest.skip("a small disk can only be made by root")
        served = serve("--db", f"{folder}/journal.db")
        served.post("/v1/bandits", {"name": "button", "policy": "ts", "arms": ["x", "y"]})
        assert served.get("/readyz").status_code == 200
        with contextlib.suppress(OSError), open(f"{folder}/ballast", "wb", buffering=0) as ballast:
            while True:
                ballast.write(b"x" * 4096)
        until = time.monotonic() + 20
        while served.get("/readyz").status_code == 200:  # the log that is written ahead may have a little room left
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


def test_sqlites_own_limit_is_a_full_disk_too(tmp_path):
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
                service.jobs.close()

        assert asyncio.run(ask()) == [503] * 3
        connection.execute("PRAGMA max_page_count=1073741823")
        assert asyncio.run(ask()) == [200] * 3
        assert bandits.commits == 1  # three questions within a second are one write
        assert bandits.journal.charts(0, 0, 0, 1 << 62) == []
    finally:
        bandits.close()
