"""Bandits from a template: the first decision makes them."""

import asyncio
import contextlib
import json
import logging
import threading
from datetime import timedelta

import msgspec
import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.audit import audit
from driftbandit.errors import NotFound
from driftbandit.service.auth import StoredKey
from driftbandit.service.bandits import Bandits
from driftbandit.service.types import NewBandit

TEMPLATE = {"name": "button:", "arms": ["red", "green"], "policy": "ds-ts", "wait": "1 h", "floor": 0.1}


def names(service) -> list[str]:
    return service.get("/v1/bandits").json()["bandits"]


def test_the_first_decision_makes_a_bandit(serve, store) -> None:
    service = serve(store)
    assert service.post("/v1/bandits/button:de/decisions").status_code == 404
    assert service.post("/v1/templates", TEMPLATE).json()["templates"][0]["name"] == "button:"
    assert service.post("/v1/templates", {**TEMPLATE, "name": "button:x", "arms": ["a", "b", "c"]}).status_code == 200
    made = service.post("/v1/bandits/button:de/decisions").json()
    assert made["arm"] in TEMPLATE["arms"]
    assert service.post("/v1/bandits/button:de/rewards", {"id": made["id"], "reward": 1.0}).status_code == 200
    assert len(service.post("/v1/bandits/button:xy/decisions/batch", {"count": 5}).json()["decisions"]) == 5
    assert service.get("/v1/bandits/button:xy").json()["arms"] == ["a", "b", "c"]  # the longest name counts
    found = service.get("/v1/bandits/button:de").json()
    assert (found["wait"], found["floor"]) == ("1 h", 0.1)
    assert "template button:" in service.get("/v1/bandits/button:de/changes").json()["changes"][0]["who"]
    for path in ("", "/arms", "/health", "/decisions"):
        assert service.get("/v1/bandits/button:fr" + path).status_code == 404  # looking makes nothing
    assert service.post("/v1/bandits/button:fr/rewards", {"id": "x", "reward": 1.0}).status_code == 404
    assert service.post("/v1/bandits/butt/decisions").status_code == 404
    assert names(service) == ["button:de", "button:xy"]
    with Bandit.open(service.url, "button:it") as bandit:
        assert bandit.decide().arm in TEMPLATE["arms"]
    assert service.call("DELETE", "/v1/templates/button:").status_code == 200
    assert service.call("DELETE", "/v1/templates/button:").status_code == 404
    assert service.post("/v1/bandits/button:es/decisions").status_code == 404
    with pytest.raises(NotFound):
        Bandit.open(service.url, "button:es")
    service.stop()
    assert all(report.differences == [] for report in audit(store))


def test_a_bandit_made_by_a_template_is_logged_and_a_key_may_name_it_by_its_beginning(tmp_path, caplog) -> None:
    with contextlib.closing(Bandits(str(tmp_path / "j.db"))) as bandits, caplog.at_level(logging.INFO):
        bandits.set_template(msgspec.convert(TEMPLATE, NewBandit))
        bandits.create("other", "ts", ["a", "b"], "me", reward_range=(0, 1))
        for _ in range(2):
            asyncio.run(bandits.find_or_make("button:de", "shop"))
        found = [record.fields for record in caplog.records if record.message == "change"]
        assert found == [{"operation": "create", "bandit": "button:de", "key": "shop", "template": "button:"}]
        for allowed, seen in ((["button:*"], ["button:de"]), (["button"], []), (["*"], ["button:de", "other"])):
            key = StoredKey("k", "", "", ["read"], allowed, 0.0)
            assert [name for name in ("button:de", "other") if key.may("read", name)] == seen
            assert bandits.names(key)[0] == seen
            assert not key.may("admin", "button:de")


def test_bad_templates_and_names_change_nothing(serve, store) -> None:
    service = serve(store)
    for bad in (
        {"policy": "nothing"}, {"arms": []}, {"arms": ["a", "a"]}, {"name": "x" * 10_000}, {"name": ""}, {"seed": 1},
        {"floor": 2}, {"name": "a/*"}, {"wait": "soon"}, {"baseline": "white", "holdback": 0.1}, {"what": 1},
    ):  # fmt: skip
        found = service.post("/v1/templates", {**TEMPLATE, **bad})
        assert (found.status_code, found.json()["error"].count("\n")) == (422, 0), bad
    assert service.get("/v1/templates").json() == {"templates": []}
    assert service.post("/v1/templates", TEMPLATE).status_code == 200
    assert service.post(f"/v1/bandits/button:{'x' * 10_000}/decisions").status_code == 422
    assert service.post("/v1/bandits/button:%2F/decisions").status_code in (404, 422)
    assert names(service) == []


def test_the_command_line_sets_lists_and_removes_templates_of_a_service(serve, store, capsys) -> None:
    from driftbandit.cli._main import main

    service = serve(store)

    def run(*words) -> list:
        assert main(["live", "template", service.url, *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert run() == []
    (made,) = run("button:", "--arms", "red", "green", "--floor", "0.1", "--label", "country=de")
    assert (made["name"], made["floor"], made["labels"]) == ("button:", 0.1, {"country": "de"})
    assert service.post("/v1/bandits/button:de/decisions").status_code == 200
    assert service.get("/v1/bandits?label=country:de").json()["bandits"] == ["button:de"]
    assert run("button:", "--remove") == []
    assert service.post("/v1/bandits/button:fr/decisions").status_code == 404


@pytest.mark.parametrize("through", ["service", "journal"])
def test_python_sets_lists_and_removes_templates(serve, tmp_path, through) -> None:
    from driftbandit import DiscountedTS
    from driftbandit.service.templates import remove_template, set_template, templates

    place = str(tmp_path / "journal.db")
    target = serve(place).url if through == "service" else place
    if through == "journal":
        with pytest.raises(NotFound, match="no journal"):
            templates(target)
    options = {"policy": DiscountedTS(), "half_life": timedelta(hours=6), "holdback": 0.1, "baseline": (1, "a")}
    (made,) = set_template(target, "button:", [(1, "a"), "green"], **options)
    assert [one["name"] for one in templates(target)] == ["button:"]
    assert made["half_life"] == "6 h"
    for bad in ({"floor": 2}, {"what": 1}, {"arms": []}):
        with pytest.raises(ValueError, match=r"floor|what|arm"):
            set_template(target, "other:", **{"arms": ["a", "b"], **bad})
    service = serve(place) if through == "journal" else None
    with Bandit.open(service.url if service else target, "button:de") as bandit:
        assert bandit.decide().arm in [(1, "a"), "green"]
        assert bandit.config.baseline == (1, "a")
    if service:
        service.stop()
    assert remove_template(target, "button:") == templates(target) == []
    with pytest.raises(NotFound):
        remove_template(target, "button:")


def test_templates_are_read_once_a_second(store, monkeypatch) -> None:
    with contextlib.closing(Bandits(store)) as one, contextlib.closing(Bandits(store)) as other:
        assert one.templates() == other.templates() == []
        reads, whole = [], one.journal.notes
        monkeypatch.setattr(other.journal, "notes", lambda prefix: (reads.append(prefix), whole(prefix))[1])
        one.set_template(msgspec.convert(TEMPLATE, NewBandit))
        assert [found.name for found in one.templates()] == ["button:"]  # at once in the process that set it
        assert [other.templates() for _ in range(20)] == [[]] * 20
        assert reads == []
        other._templates = other._templates[0] - 1.0, []
        assert [len(other.templates()) for _ in range(20)] == [1] * 20
        assert len(reads) == 1
        one.remove_template("button:")
        assert one.templates() == []


def test_two_services_make_one_bandit(serve, postgres) -> None:
    services = [serve(postgres) for _ in range(2)]
    assert services[0].post("/v1/templates", TEMPLATE).status_code == 200
    answers = []
    for n in range(5):
        threads = [
            threading.Thread(target=lambda s=s, n=n: answers.append(s.post(f"/v1/bandits/button:{n}/decisions")))
            for s in services * 3
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [answer.status_code for answer in answers] == [200] * 30
    assert sum(services[0].get(f"/v1/bandits/button:{n}/health").json()["decisions"] for n in range(5)) == 30
    for service in services:
        service.stop()
    assert all(report.differences == [] for report in audit(postgres))


def test_only_a_key_that_allows_it_sets_templates(serve, tmp_path) -> None:
    from driftbandit.service.auth import Keys

    keys = Keys(tmp_path / "keys.json")
    headers = [
        {"authorization": f"Bearer {keys.add(name, scopes, bandits)}"}
        for name, scopes, bandits in (("boss", ["admin", "read"], ["*"]), ("shop", ["decide", "reward"], ["*"]))
    ]
    service = serve(tmp_path / "j.db", "--keys", tmp_path / "keys.json")
    assert [service.post("/v1/templates", TEMPLATE, headers=one).status_code for one in headers] == [200, 403]
    found = [service.post("/v1/bandits/button:a/decisions", headers=one).status_code for one in headers]
    assert found == [403, 200]
