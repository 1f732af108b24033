"""The client: the names of the embedded bandit, its answers, and nothing done twice when a connection is cut."""

import asyncio
import json
import threading
import time
from datetime import timedelta

import pytest

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit, NotFound, RecordConflict, StoreError
from driftbandit.bandit.remote import RemoteBandit
from driftbandit.cli._main import main
from driftbandit.errors import AccessDenied
from driftbandit.policies import Delayed
from driftbandit.service.auth import Keys


def program(target):
    """What a user writes; only the target differs."""
    with Bandit.open(
        target, "shop", DiscountedTS(), arms=["red", "green"], half_life=timedelta(hours=6), seed=5
    ) as bandit:
        out = []
        for number in range(30):
            decision = bandit.decide(f"d{number}")
            out.append(
                (decision.id, decision.arm, decision.how, bandit.reward(decision.id, float(decision.arm == "red")))
            )
        out += [bandit.decide_many(["x", "y"])[1].id, bandit.reward_many({"x": 1.0, "y": 0.5, "missing": 1.0})[:2]]
        bandit.add_arm("gold")
        bandit.fix("gold")
        out.append(bandit.decide("fixed").arm)
        bandit.release()
        bandit.retire_arm("gold")
        bandit.change(half_life="3 h")
        out += [
            bandit.arms,
            [row["what"] for row in bandit.changes()],
            bandit.outcome("d3").reward,
            len(bandit.recent(5)),
        ]
        out += [sum(map(sum, bandit.history(points=4).decisions)), bandit.health()["rewards"], bandit.uplift().n_policy]
        return out


def test_without_a_policy_a_new_bandit_plays_the_one_without_knobs(small):
    with Bandit.open(small.url, "plain", arms=["red", "green"]) as bandit:
        assert type(bandit.config.policy).__name__ == "DriftAuto"
        assert bandit.decide().arm in ("red", "green")


def test_a_program_moves_from_embedded_to_served_by_changing_one_line(small, tmp_path):
    """Same seed, same ids: the same arms. Forgetting goes by the clock, so the weights differ by a hair, and a
    probability may; the arms of 30 decisions do not unless one falls within that hair (it never did)."""
    embedded, served = program(str(tmp_path / "embedded.db")), program(small.url)
    assert embedded[30:] == served[30:]
    assert [one[0] for one in embedded[:30]] == [one[0] for one in served[:30]]
    assert {one[3] for one in served[:30]} == {"learned"}
    same = sum(a[1] == b[1] for a, b in zip(embedded[:30], served[:30], strict=True))
    assert same >= 28


def test_errors_are_the_librarys(small):
    with RemoteBandit.open(small.url, "button") as bandit:
        decision = bandit.decide(probability=True)
        assert 0.0 < decision.probability <= 1.0
        bandit.reward(decision.id, 1)
        with pytest.raises(RecordConflict, match="already"):
            bandit.reward(decision.id, 0)
        with pytest.raises(NotFound, match="no decision"):
            bandit.reward("missing", 0)
        with pytest.raises(ValueError, match="outside reward_range"):
            bandit.reward(decision.id, 3)
        with pytest.raises(ValueError, match="finite"):
            bandit.reward(decision.id, float("nan"))
        with pytest.raises(ValueError, match="unknown"):
            bandit.fix("purple")
        found = bandit.reward_many([("missing", 1.0), (decision.id, 1.0), ("bad id", 1.0)])
        assert [type(one) for one in found] == [NotFound, str, ValueError]
        assert bandit.probabilities().keys() == {"red", "green", "blue"}
        among = bandit.probabilities(available=["red", "blue"], draws=500)
        assert among.keys() == {"red", "blue"}
        assert sum(among.values()) == pytest.approx(1.0)
        assert bandit.policy == DiscountedTS()
        with pytest.raises(ValueError, match="unknown"):
            bandit.probabilities(available=["purple"])
    with pytest.raises(NotFound, match="no bandit"):
        RemoteBandit.open(small.url, "missing")
    with pytest.raises(ValueError, match="address"):
        RemoteBandit.open("ftp://x", "button")


def test_keys_are_sent(serve, tmp_path, monkeypatch):
    keys = Keys(tmp_path / "keys.json")
    boss = keys.add("boss", ["admin", "read", "decide", "reward"])
    served = serve(tmp_path / "journal.db", "--keys", keys.path)
    with pytest.raises(AccessDenied, match="needs a key"):
        RemoteBandit.open(served.url, "b", DiscountedTS(), arms=2)
    monkeypatch.setenv("DRIFTBANDIT_KEY", boss)
    with Bandit.open(served.url, "b", DiscountedTS(), arms=2) as bandit:
        assert bandit.decide().arm in (0, 1)


def test_a_key_that_may_decide_and_reward_is_enough_for_a_program_that_does(serve, tmp_path):
    keys = Keys(tmp_path / "keys.json")
    boss, shop = keys.add("boss", ["admin", "read"]), keys.add("shop", ["decide", "reward"])
    served = serve(tmp_path / "journal.db", "--keys", keys.path)
    RemoteBandit.open(served.url, "button", arms=["red", "green"], key=boss).close()
    for arms in (None, ["red", "green"]):
        with RemoteBandit.open(served.url, "button", arms=arms, key=shop) as bandit:
            decision = bandit.decide()
            assert bandit.reward(decision.id, 1.0) == "learned"
            with pytest.raises(AccessDenied, match="read"):
                bandit.probabilities()
    with RemoteBandit.open(served.url, "missing", key=shop) as bandit, pytest.raises(NotFound, match="no bandit"):
        bandit.decide()
    with pytest.raises(AccessDenied, match="key"):
        RemoteBandit.open(served.url, "button", key="drb_00000000_wrong")
    with pytest.raises(ValueError, match="only plays in simulations"):
        RemoteBandit.open(served.url, "late", Delayed(DiscountedTS()), arms=2, key=boss)


def test_coroutines(small):
    async def main():
        bandit = RemoteBandit.open(small.url, "button")
        decisions = await asyncio.gather(*(bandit.adecide() for _ in range(20)))
        verdicts = await asyncio.gather(*(bandit.areward(one.id, 1.0) for one in decisions))
        many = await bandit.adecide_many(3)
        verdicts += await bandit.areward_many([(one.id, 0.5) for one in many])
        await bandit.aclose()
        return verdicts

    assert asyncio.run(main()) == ["learned"] * 23


def test_a_service_that_restarts_is_waited_for_and_nothing_is_done_twice(serve, tmp_path):
    from service.conftest import BUTTON

    served = serve(tmp_path / "journal.db")
    port = served.url.rsplit(":", 1)[1]
    served.words[-1] = port
    served.post("/v1/bandits", BUTTON)
    bandit = RemoteBandit.open(served.url, "button", patience=60)
    done = []

    def work():
        for _ in range(150):
            decision = bandit.decide()
            done.append((decision.id, bandit.reward(decision.id, 1.0)))

    thread = threading.Thread(target=work)
    thread.start()
    while len(done) < 20:
        time.sleep(0.01)
    served.kill()
    time.sleep(0.3)
    served.start()
    thread.join(90)
    assert len(done) == len({id for id, _ in done}) == 150
    assert {verdict for _, verdict in done} <= {"learned", "again"}
    health = bandit.health()
    assert (health["decisions"], health["rewards"]) == (150, 150)


def test_patience_ends_with_a_sentence():
    with pytest.raises(StoreError, match=r"did not answer within 0\.2 s"):
        RemoteBandit.open("http://127.0.0.1:9", "button", patience=0.2)


def test_the_commands_work_on_a_service_as_on_a_journal(serve, tmp_path, monkeypatch, capsys):
    keys = Keys(tmp_path / "keys.json")
    boss, shop = keys.add("boss", ["admin", "read", "decide", "reward"]), keys.add("shop", ["decide", "reward"])
    url = serve(tmp_path / "journal.db", "--keys", keys.path).url

    def live(*words, code=0):
        assert main(["live", *words]) == code
        return capsys.readouterr()

    assert "needs a key" in live("fix", url, "button", "red", code=2).err
    monkeypatch.setenv("DRIFTBANDIT_KEY", boss)
    made = live(
        "create", url, "button", "--policy", "ds-ts", "--arms", "red", "green", "--wait", "1 h", "--half-life", "6 h"
    ).out
    assert "half_life: 6 h" in made
    assert "wait: 1 h" in made
    assert "already" in live("create", url, "button", "--arms", "red", "green", code=2).err
    decision = live("decide", url, "button").out.split()[0]
    live("reward", url, "button", decision, "1")
    assert live("fix", url, "button", "red", "--who", "Ada").out == "button plays red until it is released\n"
    assert "fixed: red" in live("show", url, "button").out
    live("release", url, "button")
    live(
        "change",
        url,
        "button",
        "--holdback",
        "0.2",
        "--baseline",
        "uniform",
        "--retire-arm",
        "red",
        "--add-arm",
        "blue",
    )
    shown = json.loads(live("show", url, "button", "--json").out)
    assert shown["config"]["holdback"] == 0.2
    assert shown["health"]["decisions"] == 1
    assert "button" in live("show", url).out
    printed = live("changes", url, "button").out
    assert "fix red" in printed
    assert "boss: Ada" in printed
    assert "policy" in live("uplift", url, "button").out
    assert "does not allow 'admin'" in live("fix", url, "button", "green", "--key", shop, code=2).err
    assert "no bandit" in live("fix", url, "missing", "green", code=2).err
    assert "--key is for a service" in live("show", str(tmp_path / "journal.db"), "--key", boss, code=2).err
