"""Many bandits in one service: few are open at a time, and lists are paged."""

import asyncio
import contextlib
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from driftbandit.bandit.audit import audit
from driftbandit.bandit.retention import to_prune
from driftbandit.service import bandits as service_bandits
from driftbandit.service.background import Pruner
from driftbandit.service.bandits import Bandits, WatchedBandits
from driftbandit.service.charts import Charts

ARMS = ["red", "green"]


@pytest.fixture
def few_open(store, monkeypatch):
    monkeypatch.setattr(service_bandits, "_IN_USE", 0.0)
    made = Bandits(store, max_open=3)
    for n in range(10):
        made.create(f"b{n}", "ds-ts", ARMS, "test", seed=n)
    yield made
    made.close()


def test_the_bandits_used_last_are_open(few_open) -> None:
    assert sorted(few_open.held) == ["b7", "b8", "b9"]
    few_open.get("b7")
    few_open.get("b0")
    assert sorted(few_open.held) == ["b0", "b7", "b9"]


def test_a_bandit_in_use_is_not_closed(few_open, monkeypatch) -> None:
    monkeypatch.setattr(service_bandits, "_IN_USE", 60.0)
    held = few_open.get("b9")
    for n in range(10):
        few_open.get(f"b{n}")
    assert few_open.get("b9") is held
    assert len(few_open.held) == 10


@pytest.mark.parametrize("opens", ["get", "create"])
def test_a_bandit_that_opens_slowly_does_not_delay_others(few_open, monkeypatch, opens) -> None:
    begun, go, whole = threading.Event(), threading.Event(), Bandits._open

    def slowly(self, name):
        if name == "b0":
            begun.set()
            assert go.wait(20)
        return whole(self, name)

    monkeypatch.setattr(Bandits, "_open", slowly)
    with ThreadPoolExecutor(8) as pool:
        slow = [pool.submit(few_open.get, "b0") for _ in range(3)]
        try:
            assert begun.wait(20)
            more = ("ds-ts", ARMS, "test") if opens == "create" else ()
            for name in ("b1", "b7", "b9", *(["new"] if more else [])):
                pool.submit(getattr(few_open, opens), name, *more).result(20)
            assert not any(one.done() for one in slow)
            assert "b9" in few_open.held
        finally:
            go.set()
        assert len({id(one.result(20)) for one in slow}) == 1  # it was opened once


def test_idle_bandits_are_closed_after_their_decisions_are_settled(few_open) -> None:
    few_open.get("b7").change(wait="1 h", default=0.0)
    few_open.close_idle(60.0)
    assert len(few_open.held) == 3
    for bandit in few_open.held.values():
        bandit.used -= 100.0
    few_open.get("b9")
    few_open.close_idle(60.0)
    assert sorted(few_open.held) == ["b7", "b9"]
    assert few_open.get("b8").decide().arm in ARMS


def test_only_bandits_with_a_retention_are_pruned_and_none_is_closed_for_them(few_open, monkeypatch) -> None:
    for name in ("b0", "b1", "b8"):
        few_open.get(name).change(retention="2 d")
    few_open.get("b1").change(retention=None)
    few_open.get("b7")
    few_open.get("b9")
    assert to_prune(few_open.journal) == ["b0", "b8"]
    held, opened, whole = few_open.held, [], Bandits._open
    monkeypatch.setattr(Bandits, "_open", lambda self, name: (opened.append(name), whole(self, name))[1])
    for name in to_prune(few_open.journal):
        Pruner(few_open).visit(name)
    assert few_open.held == held
    assert opened == [name for name in ("b0", "b8") if name not in held]


def test_closing_and_opening_lose_nothing(few_open, store) -> None:
    async def play() -> dict[str, int]:
        rng, counts = random.Random(1), dict.fromkeys((f"b{n}" for n in range(10)), 0)

        async def once(name: str) -> None:
            decision = await (await few_open.find(name)).adecide()
            await asyncio.sleep(0.0)
            await (await few_open.find(name)).areward(decision.id, 1.0)
            counts[name] += 1

        for _ in range(60):
            await asyncio.gather(*(once(rng.choice(list(counts))) for _ in range(2)))
        return counts

    for name, count in asyncio.run(play()).items():
        few_open.get(name).refresh()
        assert few_open.get(name).health()["rewards"] == count
    assert all(report.differences == [] for report in audit(store))


def test_a_page_that_watches_shares_one_connection(few_open, store) -> None:
    watched = WatchedBandits(store, max_open=3)
    try:
        assert [watched.get(f"b{n}").arms for n in range(10)] == [ARMS] * 10
        assert len(watched.held) == 3
        asyncio.run(watched.check(5.0))
    finally:
        watched.close()


def test_charts_keep_nothing_of_closed_bandits(few_open, monkeypatch) -> None:
    charts = Charts(few_open)
    for name in ("b7", "b8", "b9"):
        charts.sample(few_open.get(name))
        charts.changes(few_open.get(name))
        charts.recent(few_open.get(name))
    few_open.get("b0")
    charts._forget_closed(few_open.held)
    assert sorted(charts._samples) == ["b8", "b9"]
    assert {key[1] for key in charts._cache} == {"b8", "b9"}


def test_samples_of_all_bandits_together_are_bounded(few_open, monkeypatch) -> None:
    monkeypatch.setattr("driftbandit.service.charts._ALL_NUMBERS", 600)
    charts = Charts(few_open)
    for _ in range(60):
        for name in ("b7", "b8", "b9"):
            bandit = few_open.get(name)
            bandit.reward(bandit.decide().id, 1.0)
            bandit.refresh()
            charts.sample(bandit)
    assert all(len(samples) <= 34 for samples in charts._samples.values())


def test_a_service_answers_at_once(serve, store) -> None:
    made = Bandits(store)
    for n in range(50):
        made.create(f"b{n:02}", "ds-ts", ARMS, "test")
    made.close()
    service = serve(store, "--max-open", 5)
    assert service.get("/readyz").status_code == 200
    for n in range(50):
        began = time.monotonic()
        assert service.post(f"/v1/bandits/b{n:02}/decisions").status_code == 200
        assert time.monotonic() - began < 5.0
    assert service.get("/readyz").status_code == 200


def test_lists_are_paged_and_searched(serve, store, tmp_path, capsys) -> None:
    from driftbandit.bandit import Bandit
    from driftbandit.service.auth import Keys

    made = Bandits(store)
    names = sorted([f"shop_{n:02}" for n in range(30)] + ["Shop-x", "other", "shopx"])
    for name in names:
        made.create(name, "ds-ts", ARMS, "test")
    assert made.journal.names("SHOP_") == [f"shop_{n:02}" for n in range(30)]  # _ stands for itself
    assert made.journal.names("%") == []
    made.close()
    keys = Keys(tmp_path / "keys.json")
    every, few = (keys.add(name, ["read"], bandits) for name, bandits in (("every", ["*"]), ("few", ["other", "none"])))
    service = serve(store, "--keys", tmp_path / "keys.json")

    def page(key=every, **query):
        found = service.call("GET", "/v1/bandits", params=query, headers={"authorization": f"Bearer {key}"})
        return found.json() if found.status_code == 200 else found.status_code

    assert sorted(page()["bandits"]) == names
    assert page()["next"] is None
    seen, after = [], ""
    while after is not None:
        found = page(limit=7, after=after)
        seen += found["bandits"]
        after = found["next"]
    assert sorted(seen) == names
    assert page(search="op_0", limit=3) == {"bandits": ["shop_00", "shop_01", "shop_02"], "next": "shop_02"}
    assert page(search="nothing") == {"bandits": [], "next": None}
    assert page(few) == {"bandits": ["other"], "next": None}
    assert [page(limit=0), page(limit=10_001), page(after="x" * 10_000), page(what=1)] == [422] * 4
    assert sorted(Bandit.names(service.url, search="shop_1", key=every)) == [f"shop_1{n}" for n in range(10)]
    text = service.get("/?q=shop_1", headers={"authorization": f"Bearer {every}"}).text
    assert "shop_19" in text
    assert "shop_20" not in text


def test_a_service_filters_by_label_and_lists_what_is_archived(serve, store) -> None:
    from driftbandit.bandit import Bandit

    service = serve(store)
    for name, labels in (("a", {"country": "de", "page": "home"}), ("b", {"country": "de"}), ("c", None)):
        assert service.post("/v1/bandits", {"name": name, "arms": ARMS, "labels": labels}).status_code == 201
    assert service.get("/v1/bandits/a").json()["labels"] == {"country": "de", "page": "home"}

    def listed(*pairs):
        found = service.call("GET", "/v1/bandits", params=list(pairs))
        return found.json()["bandits"] if found.status_code == 200 else found.status_code

    german = ("label", "country:de")
    assert (listed(german), listed(german, ("label", "page:home"))) == (["a", "b"], ["a"])
    assert (listed(german, ("search", "b")), listed(("label", "country:fr"))) == (["b"], [])
    assert [listed(("label", bad)) for bad in ("country", ":de", "x" * 70 + ":a")] == [422] * 3
    assert listed(german, ("label", "country:fr")) == listed(german, ("search", "b"), ("search", "c")) == 422
    assert listed(german, *[("label", f"l{n}:x") for n in range(16)]) == 422
    assert service.call("PATCH", "/v1/bandits/b", {"labels": {"x:y": "z"}}).status_code == 422
    text = service.get("/?q=page%3Dhome").text
    assert ('href="/bandits/a"' in text, 'href="/bandits/b"' in text) == (True, False)
    assert "No bandit has" in service.get("/?q=country%3D").text
    assert "country=de, page=home" in service.get("/bandits/a").text
    with Bandit.open(service.url, "b") as bandit:
        assert bandit.config.labels == {"country": "de"}
        bandit.change(labels={"country": "fr"})
        assert list(Bandit.names(service.url, labels={"country": "fr"})) == ["b"]
        bandit.archive()
    assert (listed(), listed(("archived", "true")), listed(("archived", "what"))) == (["a", "c"], ["b"], 422)
    assert list(Bandit.names(service.url, archived=True, labels={"country": "fr"})) == ["b"]
    assert list(Bandit.names(service.url, labels={"country": "fr"})) == []


def test_the_page_leads_to_the_next_bandits(few_open, monkeypatch) -> None:
    from starlette.testclient import TestClient

    from driftbandit.service.app import Service, build

    monkeypatch.setattr("driftbandit.service.pages._SHOWN", 4)
    client = TestClient(build(Service(few_open)), base_url="http://127.0.0.1:8000")
    first = client.get("/").text
    assert "b3" in first
    assert "b4" not in first
    assert 'href="/?q=&amp;after=b3"' in first
    last = client.get("/?q=b&after=b7").text
    assert "b9" in last
    assert "more bandits" not in last
    for n in range(6):
        few_open.get(f"b{n}").archive()
    found = client.get("/?archived=true").text
    assert ("b3" in found, "b4" in found, "b9" in found) == (True, False, False)
    assert 'href="/?q=&amp;after=b3&amp;archived=true"' in found
    last = client.get("/?q=&after=b3&archived=true").text
    assert ("b5" in last, "b6" in last, "more bandits" in last) == (True, False, False)


def test_metrics_do_not_grow_with_the_bandits(few_open, monkeypatch) -> None:
    from starlette.testclient import TestClient

    from driftbandit.service.app import Service, build

    monkeypatch.setattr("driftbandit.service.status._MOST", 2)
    client = TestClient(build(Service(few_open)), base_url="http://127.0.0.1:8000")
    for n in range(10):
        for _ in range(1 + (n in (3, 5))):
            assert client.post(f"/v1/bandits/b{n}/decisions").status_code == 200
    text = client.get("/metrics").text
    named = {line.split('"')[1] for line in text.splitlines() if line.startswith("driftbandit_decisions_total{")}
    assert named == {"b3", "b5"}
    assert "driftbandit_all_decisions_total 12.0" in text
    assert "driftbandit_open_bandits 3.0" in text


def test_one_bandit_does_not_end_the_metrics_of_the_others(tmp_path, monkeypatch, caplog) -> None:
    """One has candidates, whose probabilities depend on those of a request. Another raises an error."""
    from starlette.testclient import TestClient

    from driftbandit.service.app import Service, build

    with contextlib.closing(Bandits(tmp_path / "journal.db")) as bandits:
        client = TestClient(build(Service(bandits)), base_url="http://127.0.0.1:8000")
        offers = {"candidates": True, "features": {"x": "number"}}
        for name, made in (("offers", offers), ("broken", {"arms": ARMS}), ("whole", {"arms": ARMS})):
            assert client.post("/v1/bandits", json={"name": name, **made}).status_code == 201
        body = {"candidates": {"a": {"x": 1.0}, "b": {"x": 2.0}}}
        assert client.post("/v1/bandits/offers/decisions", json=body).status_code == 200

        def fail(draws: int) -> None:
            raise ValueError("this bandit is broken")

        monkeypatch.setattr(bandits.held["broken"], "probabilities", fail)
        answer = client.get("/metrics")
    assert answer.status_code == 200
    assert set(re.findall(r'^driftbandit_arm_probability\{.*bandit="(\w+)"', answer.text, re.MULTILINE)) == {"whole"}
    for name in ("offers", "broken", "whole"):
        assert f'driftbandit_lag_seconds{{bandit="{name}"}}' in answer.text
    assert "metrics of bandit broken: this bandit is broken" in caplog.text
