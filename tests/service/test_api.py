"""The API over real HTTP, against SQLite and PostgreSQL."""

import re
import time

import httpx
import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.audit import audit

AT = "/v1/bandits/button"


def test_a_decision_and_its_reward(service):
    made = service.post(f"{service.at}/decisions").json()
    assert made["arm"] in ("red", "green", "blue")
    assert made["how"] in ("first", "policy", "floor")
    assert service.post(f"{service.at}/rewards", {"id": made["id"], "reward": 1.0}).json() == {
        "id": made["id"],
        "verdict": "learned",
    }
    record = service.get(f"{service.at}/decisions/{made['id']}").json()
    assert (record["outcome"], record["reward"]) == ("reward", 1.0)
    assert record["decision"]["arm"] == made["arm"]


def test_the_same_id_is_the_same_decision_and_a_reward_counts_once(service):
    first = service.post(f"{service.at}/decisions", {"id": "order-1"})
    assert first.json() == service.post(f"{service.at}/decisions", {"id": "order-1"}).json()
    other = service.post(f"{service.at}/decisions", {"id": "order-1", "available": ["red", "green"]})
    assert (other.status_code, other.json()["kind"]) == (409, "conflict")
    verdicts = [
        service.post(f"{service.at}/rewards", {"id": "order-1", "reward": 1}).json()["verdict"] for _ in range(3)
    ]
    assert verdicts == ["learned", "again", "again"]
    conflict = service.post(f"{service.at}/rewards", {"id": "order-1", "reward": 0})
    assert conflict.status_code == 409
    assert "already has the reward 1.0" in conflict.json()["error"]
    assert service.wait_for(f"{service.at}/health", lambda found: found["rewards"])["rewards"] == 1


def test_batches_have_a_verdict_each(service):
    made = service.post(f"{service.at}/decisions/batch", {"count": 40}).json()["decisions"]
    assert len({one["id"] for one in made}) == 40
    named = service.post(f"{service.at}/decisions/batch", {"ids": ["a", "b"]}).json()["decisions"]
    assert [one["id"] for one in named] == ["a", "b"]
    rewards = [{"id": one["id"], "reward": 0.5} for one in made[:3]]
    rewards += [{"id": "missing", "reward": 1}, {"id": made[0]["id"], "reward": 1}, {"id": made[3]["id"], "reward": 7}]
    verdicts = service.post(f"{service.at}/rewards/batch", {"rewards": rewards}).json()["verdicts"]
    assert [one.get("verdict") for one in verdicts] == ["learned", "learned", "learned", None, None, None]
    assert [one.get("kind") for one in verdicts[3:]] == ["unknown", "conflict", "invalid"]
    assert "outside reward_range" in verdicts[5]["error"]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/decisions", {"id": "no spaces"}, 422, "A decision's id is a text of 1 to 128 letters"),
        ("/decisions", {"available": ["purple"]}, 422, "unknown"),
        ("/decisions", {"available": []}, 422, "length"),
        ("/decisions", {"idd": "x"}, 422, "unknown field"),
        ("/decisions/batch", {}, 422, "either count or ids"),
        ("/decisions/batch", {"count": 1001}, 422, "1000"),
        ("/rewards", {"id": "x"}, 422, "reward"),
        ("/rewards", {"id": "x", "reward": "1"}, 422, "float"),
        ("/rewards", {"id": "x", "reward": True}, 422, "float"),
        ("/rewards", {"id": "x", "reward": 1}, 404, "no decision"),
        ("/rewards", {"id": "x", "reward": 2}, 422, "outside reward_range"),
        ("/rewards", {"id": "x", "reward": 1, "add": True}, 422, "add needs a part: an id"),
        ("/rewards", {"id": "x", "reward": 1, "add": True, "part": "1"}, 422, "add=True needs wait"),
        ("/rewards", {"id": "x", "reward": 1, "part": "1"}, 422, "give add=True"),
        ("/rewards/batch", {"rewards": [{"id": "x", "reward": 1}], "add": True}, 422, "add needs a part"),
        ("/rewards/batch", {"rewards": [{"id": "x", "reward": 1, "part": "1"}]}, 422, "give add=true"),
        ("/arms", {"arm": "new", "mean": 0.5}, 422, "mean=... and worth="),
        ("/arms", {"arm": "new", "like": "purple"}, 422, "unknown"),
        ("/fix", {"arm": "purple"}, 422, "unknown"),
        ("/arms", {"arm": "red"}, 422, "distinct"),
        ("/arms", {"arm": "tab\t"}, 422, "printable"),
    ],
)
def test_bad_messages_get_one_sentence(small, path, body, status, words):
    answer = small.post(AT + path, body)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "body", [b'{"id": "x", "reward": NaN}', b'{"id": "x", "reward": 1e400}', b"[1", b"\xff\xfe", b"null"]
)
def test_what_is_not_json_is_refused(small, body):
    with httpx.Client() as client:
        answer = client.post(f"{small.url}{AT}/rewards", content=body)
    assert answer.status_code == 422
    assert answer.json()["kind"] == "invalid"


def test_unknown_bandits_and_paths(small):
    assert small.post("/v1/bandits/missing/decisions").status_code == 404
    assert small.get("/v1/nothing").json()["kind"] == "unknown"
    assert small.call("PUT", f"{AT}/decisions").status_code == 405


def test_the_name_in_the_path_is_the_one_in_the_body(service):
    new = {"name": service.name, "policy": "ds-ts", "arms": ["red", "green", "blue"], "reward_range": [0, 1]}
    assert service.call("PUT", f"/v1/bandits/{service.name}", new).status_code == 200
    answer = service.call("PUT", "/v1/bandits/another", new)
    assert (answer.status_code, answer.json()["kind"]) == (422, "invalid")


def test_a_bandit_is_made_once_and_a_different_one_conflicts(service):
    again = service.post("/v1/bandits", {"name": service.name, "policy": "ds-ts", "arms": ["red", "green", "blue"]})
    assert again.status_code == 200
    other = service.post(
        "/v1/bandits", {"name": service.name, "policy": "ts", "reward_range": [0, 1], "arms": ["red", "green", "blue"]}
    )
    assert other.status_code == 409
    assert "DiscountedTS" in other.json()["error"]
    assert service.get("/v1/bandits").json()["bandits"].count(service.name) == 1


def test_changes_are_records_in_the_journal(service):
    assert service.post(f"{service.at}/fix", {"arm": "red", "who": "ann"}).json()["fixed"] == "red"
    assert {service.post(f"{service.at}/decisions").json()["how"] for _ in range(5)} == {"fixed"}
    service.post(f"{service.at}/release")
    service.post(f"{service.at}/arms", {"arm": "gold"})
    info = service.post(f"{service.at}/arms/retire", {"arm": "blue"}).json()
    assert (info["arms"], info["retired"]) == (["red", "green", "gold"], ["blue"])
    info = service.call(
        "PATCH", service.at, {"half_life": "3 h", "floor": 0.05, "holdback": 0.1, "baseline": "red"}
    ).json()
    assert (info["half_life"], info["floor"], info["baseline"]) == ("3 h", 0.05, "red")
    assert service.call("PATCH", service.at, {"half_life": None}).json()["half_life"] is None
    found = service.get(f"{service.at}/changes").json()["changes"]
    assert [row["what"] for row in found] == [
        "create", "fix red", "release red", "add_arm gold", "retire_arm blue",
        "half_life none -> 3 h, floor 0.005 -> 0.05, holdback 0 -> 0.1, baseline uniform -> red",
        "half_life 3 h -> none",
    ]  # fmt: skip
    info = service.post(f"{service.at}/arms", {"arm": "blue"}).json()
    assert (info["arms"], info["retired"]) == (["red", "green", "gold", "blue"], [])
    listed = [(row["arm"], row["retired"]) for row in service.get(f"{service.at}/arms").json()["arms"]]
    assert listed == [("red", False), ("green", False), ("gold", False), ("blue", False)]
    assert found[1]["who"] == "local: ann"


def test_a_policy_is_changed_by_its_text(service):
    info = service.call("PATCH", service.at, {"policy": "ts"})
    assert info.json()["policy"].startswith("BetaTS")
    assert service.post(f"{service.at}/decisions").status_code == 200


def fed(service, count=200, name=None):
    """Decisions with rewards: red pays best."""
    name = name or service.name
    made = service.post(f"/v1/bandits/{name}/decisions/batch", {"count": count}).json()["decisions"]
    pay = {"red": 0.9, "green": 0.4, "blue": 0.1}
    rewards = [{"id": one["id"], "reward": float(pay[one["arm"]])} for one in made]
    answer = service.post(f"/v1/bandits/{name}/rewards/batch", {"rewards": rewards})
    assert answer.status_code == 200
    return made


def test_arms_history_and_charts_agree_with_what_was_sent(service):
    made = fed(service) + fed(service)
    service.wait_for(f"{service.at}/health", lambda found: found["rewards"] >= 400)
    arms = service.get(f"{service.at}/arms").json()
    assert sum(row["probability"] for row in arms["arms"]) == pytest.approx(1.0, abs=1e-6)
    assert arms["arms"][0]["mean"] == pytest.approx(0.9)
    history = service.get(f"{service.at}/history?points=10").json()
    for slot, arm in enumerate(["red", "green", "blue"]):
        count = sum(one["arm"] == arm for one in made)
        assert sum(row[slot] for row in history["decisions"]) == count
        assert sum(row[slot] for row in history["outcomes"]) == count
    time.sleep(1.3)  # beliefs are sampled each second
    service.post(f"{service.at}/fix", {"arm": "red"})
    charts = service.wait_for(f"{service.at}/charts?points=20", lambda found: found["beliefs"]["mean"])
    assert sum(map(sum, charts["history"]["decisions"])) == len(made)
    assert charts["beliefs"]["mean"][-1][0] == pytest.approx(0.9)
    assert sum(charts["delays"]["counts"]) == len(made)
    assert len(charts["densities"]["density"]) == 3


def test_the_default_policy_has_a_mean_a_spread_and_a_weight_for_every_arm(service):
    def complete(found):
        return found.get("densities") and found["beliefs"]["weight"] and None not in found["beliefs"]["weight"][-1]

    new = {"name": f"{service.name}-default", "arms": ["red", "green", "blue"], "reward_range": [0, 10]}
    at = f"/v1/bandits/{new['name']}"
    assert service.post("/v1/bandits", new).status_code == 201
    assert service.get(f"{at}/charts").json()["densities"] is None  # nothing is learned yet
    for _ in range(3):
        made = service.post(f"{at}/decisions/batch", {"count": 40}).json()["decisions"]
        paid = [
            {"id": one["id"], "reward": 9 if (one["arm"] == "red") == (n % 5 > 0) else 3} for n, one in enumerate(made)
        ]
        service.post(f"{at}/rewards/batch", {"rewards": paid})
    service.wait_for(f"{at}/health", lambda found: found["events"] > 120)  # folded, not only stored
    rows = service.get(f"{at}/arms").json()["arms"]
    best = max(rows, key=lambda row: row["mean"])
    assert best["arm"] == "red"
    assert best["mean"] == pytest.approx(7.8, abs=1.0)
    assert all(0 < row["spread"] < 3 and 0 < row["weight"] < 121 for row in rows)
    found = service.wait_for(f"{at}/charts?points=20", complete)
    for density in found["densities"]["density"]:
        step = found["densities"]["at"][1] - found["densities"]["at"][0]
        mass = sum(density) + (density[0] + density[-1]) / 2  # with the half steps before the first and after the last
        assert mass * step == pytest.approx(1.0, abs=0.02)  # in units of the rewards
    assert all(value is not None for row in found["beliefs"]["weight"][-1:] for value in row)


def test_a_bandit_with_one_decision_has_one_per_minute(small):
    small.post("/v1/bandits/button/decisions")
    until, shown = time.monotonic() + 10, []
    while shown != ["1"] and time.monotonic() < until:
        time.sleep(0.1)
        shown = re.findall(r'data-label="Decisions per minute">([^<]+)<', small.get("/").text)
    assert shown == ["1"]


def test_why_computes_the_decision_again(service):
    for one in fed(service, 20)[::5]:
        why = service.get(f"{service.at}/decisions/{one['id']}/why").json()
        assert why["proved"] is True
        assert why["decision"]["arm"] == one["arm"]
        if one["how"] == "policy":
            scores = {row["arm"]: row["score"] for row in why["scores"]}
            assert max(scores, key=scores.get) == one["arm"]
        assert sum(row["probability"] for row in why["scores"]) == pytest.approx(1.0, abs=1e-6)


def test_the_audit_proves_the_journal(service):
    fed(service, 50)
    assert service.get(f"{service.at}/audit").json()["state"] == "never"
    service.post(f"{service.at}/audit")
    for _ in range(100):
        found = service.get(f"{service.at}/audit").json()
        if found["state"] != "running":
            break
        time.sleep(0.1)
    assert (found["state"], found["decisions"]) == ("proved", 50)
    assert audit(service.db, service.name)[0].differences == []  # the command agrees, next to the running service


def test_alive_ready_and_numbers(service):
    assert service.get("/livez").text == "alive\n"
    assert service.get("/readyz").text == "ready\n"
    fed(service, 30)
    text = service.get("/metrics").text
    assert f'driftbandit_decisions_total{{bandit="{service.name}"}} 30' in text
    assert f'driftbandit_rewards_total{{bandit="{service.name}",verdict="learned"}} 30' in text
    assert "driftbandit_queue_length 0" in text
    for name in ("lag_seconds", "arm_share", "arm_weight", "request_seconds_bucket"):
        assert f"driftbandit_{name}{{" in text
    parser = pytest.importorskip("prometheus_client.parser")
    assert len(list(parser.text_string_to_metric_families(text))) > 8


def test_the_description_is_made_of_the_types_that_check(small):
    found = small.get("/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    reward = found["components"]["schemas"]["Reward"]
    assert reward["required"] == ["id", "reward"]
    assert set(found["paths"]["/v1/bandits/{bandit}/decisions"]) == {"get", "post"}
    page = small.get("/api").text
    assert all(path in page for path in found["paths"])


def test_waiting_ends_with_the_default_and_late_rewards_are_kept(shared_service):
    served = shared_service
    served.post(
        "/v1/bandits", {"name": "quick", "policy": "ts", "reward_range": [0, 1], "arms": ["a", "b"], "wait": "300 ms"}
    )
    made = served.post("/v1/bandits/quick/decisions").json()["id"]
    time.sleep(0.6)
    assert served.post("/v1/bandits/quick/rewards", {"id": made, "reward": 1}).json()["verdict"] == "late"
    record = served.get(f"/v1/bandits/quick/decisions/{made}").json()
    assert (record["outcome"], record["reward"], record["late"]) == ("default", 0.0, 1.0)
    health = served.wait_for("/v1/bandits/quick/health", lambda found: found["late"] and found["defaults"])
    assert (health["late"], health["defaults"]) == (1, 1)


def test_rewards_wait_and_successes_without_failures_are_noticed(shared_service):
    served, at = shared_service, "/v1/bandits/slow"
    made = served.post(
        "/v1/bandits", {"name": "slow", "policy": "ts", "reward_range": [0, 1], "arms": ["a", "b"], "wait": "1 h"}
    ).json()
    assert (made["wait"], made["learn"]) == ("1 h", "wait")
    ids = [one["id"] for one in served.post(f"{at}/decisions/batch", {"count": 400}).json()["decisions"]]
    assert served.post(f"{at}/rewards", {"id": ids[0], "reward": 1}).json()["verdict"] == "waiting"
    record = served.get(f"{at}/decisions/{ids[0]}").json()
    assert record["waiting"]
    assert record["came"] >= record["decision"]["at"]
    assert served.wait_for(f"{at}/health", lambda found: found["waiting"])["waiting"] == 1
    uplift = served.get(f"{at}/uplift").json()
    assert (uplift["n_policy"], uplift["low"]) == (0, None)
    assert served.call("PATCH", at, {"wait": None}).json()["wait"] is None
    served.post(f"{at}/rewards/batch", {"rewards": [{"id": id, "reward": 1} for id in ids[:120]]})
    health = served.wait_for(f"{at}/health", lambda found: found["rewards"] == 120 and found["warnings"])
    assert (health["waiting"], health["rewards"]) == (0, 120)
    assert "If only successes are reported" in health["warnings"][0]
    assert health["delays"].startswith("90% of rewards arrive within")
    assert "If only successes are reported" in served.get("/bandits/slow").text
    assert "rewards arrive within" in served.get(f"{at}/charts").json()["delays"]["text"]
    assert served.call("PATCH", at, {"learn": "never"}).status_code == 422


@pytest.mark.long
def test_two_workers_share_one_journal(serve, postgres):
    served = serve(postgres, "--workers", 2)
    served.post("/v1/bandits", {"name": "button", "policy": "ds-ts", "arms": ["red", "green", "blue"]})
    for number in range(20):
        made = served.post(f"{AT}/decisions", {"id": f"n{number}"}).json()
        assert served.post(f"{AT}/rewards", {"id": made["id"], "reward": 1}).json()["verdict"] == "learned"
    assert served.wait_for(f"{AT}/health", lambda found: found["rewards"] >= 20)["rewards"] == 20
    assert audit(postgres)[0].differences == []


def test_the_default_policy_explains_itself_over_http_too(service):
    assert "DiscountedTS cannot explain its choices" in service.get(f"{service.at}/explanation").json()["error"]
    service.post("/v1/bandits", {"name": "drifting", "arms": ["a", "b"], "reward_range": [0, 10]})
    at = "/v1/bandits/drifting"
    assert service.get(f"{at}/explanation").json()["text"].startswith("Nothing learned yet")
    for n in range(20):
        made = service.post(f"{at}/decisions").json()
        service.post(f"{at}/rewards", {"id": made["id"], "reward": 9 if made["arm"] == "a" else n % 2})
    found = service.wait_for(f"{at}/explanation", lambda body: body["learned"] == 20)
    assert found["text"].startswith("The environment is stationary")
    assert [row["arm"] for row in found["arms"]] == ["a", "b"]
    shown = {row["arm"]: (row["mean"], row["spread"]) for row in service.get(f"{at}/arms").json()["arms"]}
    assert shown == {row["arm"]: (pytest.approx(row["mean"]), pytest.approx(row["sd"])) for row in found["arms"]}
    with Bandit.open(service.url, "drifting") as bandit:
        assert str(bandit.explain()) == found["text"]
