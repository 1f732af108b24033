"""Contexts over HTTP: the library's sentences, what a key may see, and nothing of them in the log."""

import math

import httpx
import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.reports import View
from driftbandit.service.auth import Keys
from service.conftest import BANNER

AT = "/v1/bandits/banner"
SECRET = "a-level-nobody-should-read"


@pytest.fixture
def banner(serve, tmp_path):
    served = serve(tmp_path / "journal.db")
    answer = served.post("/v1/bandits", BANNER)
    assert answer.status_code == 201
    assert answer.json()["features"] == BANNER["features"]
    assert answer.json()["policy"] == "DriftLinTS()"
    return served


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"devise": "mobile"}, "There is no feature 'devise'; did you mean device?"),
        ({"basket": "much"}, "Feature 'basket' is a number between"),
        (None, "This bandit decides in a context"),
        ({"device": "x" * 201}, "Feature 'device' is a text of at most 200 characters"),
        ({"device": ["mobile"]}, "context"),
        ("mobile", "context"),
    ],
)
def test_a_wrong_context_is_refused_with_the_sentence_of_the_library(banner, context, words):
    bodies = {"decisions": {"context": context}, "decisions/batch": {"count": 2, "context": context}}
    if context is not None:
        bodies["what-if"] = {"context": context}
    for path, body in bodies.items():
        answer = banner.post(f"{AT}/{path}", body)
        assert answer.status_code == 422
        assert words in answer.json()["error"]
    assert banner.get(f"{AT}/health").json()["decisions"] == 0


def test_a_repeated_request_has_the_first_decision_and_a_batch_its_contexts(banner):
    first = banner.post(f"{AT}/decisions", {"id": "a", "context": {"device": "mobile"}}).json()
    assert banner.post(f"{AT}/decisions", {"id": "a", "context": {"device": "desktop"}}).json() == first
    many = {"ids": ["b", "c"], "context": [{"device": "mobile"}, {"basket": 3}]}
    assert len(banner.post(f"{AT}/decisions/batch", many).json()["decisions"]) == 2
    assert banner.get(f"{AT}/decisions/c").json()["context"] == {"basket": 3.0}
    assert banner.post(f"{AT}/decisions/batch", {**many, "ids": ["d"]}).status_code == 422
    banner.post(f"{AT}/rewards", {"id": "a", "reward": 3.5})
    banner.post(f"{AT}/rewards", {"id": "b", "reward": 1.5})
    found = banner.post(f"{AT}/what-if", {"context": {"device": "mobile"}}).json()
    assert sum(row["probability"] for row in found["arms"]) == pytest.approx(1.0)
    assert all(row["mean"] is not None and row["spread"] >= 0.0 for row in found["arms"])
    why = banner.get(f"{AT}/decisions/b/why").json()
    assert (why["proved"], why["decision"]["id"]) == (True, "b")
    assert banner.get(f"{AT}/arms").status_code == banner.get(f"{AT}/charts").status_code == 200
    assert banner.get("/bandits/banner").status_code == 200
    changed = banner.call("PATCH", AT, {"features": {"device": ["mobile", "desktop", "tv"]}})
    assert changed.json()["features"] == {"device": ["mobile", "desktop", "tv"]}
    again = {**BANNER, "features": {"device": ["mobile", "desktop", "tv"]}}
    assert banner.post("/v1/bandits", again).status_code == 200
    assert banner.post("/v1/bandits", BANNER).status_code == 409


def test_contexts_are_shown_to_keys_that_read_and_are_never_logged(serve, tmp_path):
    made = Keys(str(tmp_path / "keys.json"))
    scopes = ("decide", "reward", "read", "admin")
    keys = {scope: {"authorization": f"Bearer {made.add(scope, [scope])}"} for scope in scopes}
    served = serve(tmp_path / "journal.db", "--keys", tmp_path / "keys.json")
    assert served.post("/v1/bandits", BANNER, headers=keys["admin"]).status_code == 201
    for n in range(40):
        body = {"id": f"d{n}", "context": {"device": SECRET, "basket": 1.0}}
        answer = served.post(f"{AT}/decisions", body, headers=keys["decide"])
        assert answer.status_code == 200
        assert SECRET not in answer.text
        answer = served.post(f"{AT}/rewards", {"id": f"d{n}", "reward": 1.0}, headers=keys["reward"])
        assert SECRET not in answer.text
    wrong = [{"device": SECRET, "no": 1}, {SECRET: 1}, {"basket": SECRET}, {"device": [SECRET]}, SECRET]
    bodies = [{"context": context} for context in wrong] + [{"candidates": {SECRET: {}}}, {"candidates": {}}]
    for body in [*bodies, {"candidates": {SECRET: {SECRET: SECRET}}}, {"available": [SECRET], "context": {}}]:
        for path, more in (("decisions", {}), ("decisions/batch", {"count": 1}), ("what-if", {}), ("greedy", {})):
            scope = "read" if path == "what-if" else "decide"
            assert served.post(f"{AT}/{path}", body | more, headers=keys[scope]).status_code == 422, body
    twice = f'{{"context": {{"{SECRET}": 1, "{SECRET}": 2}}}}'
    answer = httpx.post(served.url + f"{AT}/decisions", content=twice, headers=keys["decide"])
    assert answer.status_code == 422, answer.text
    for allowed in ("decide", "reward"):
        for method, address, body in (
            ("GET", "decisions", None),
            ("GET", "decisions/d0", None),
            ("GET", "decisions/d0/why", None),
            ("GET", "health", None),
            ("GET", "explanation", None),
            ("POST", "what-if", {"context": {"device": "mobile"}}),
        ):
            answer = served.call(method, f"{AT}/{address}", body, headers=keys[allowed])
            assert answer.status_code == 403
            assert SECRET not in answer.text
    assert served.get(f"{AT}/decisions/d0", headers=keys["read"]).json()["context"]["device"] == SECRET
    assert served.get(f"{AT}/health", headers=keys["read"]).json()["undeclared"] == {"device": {SECRET: 40}}
    served.stop()
    lines = "".join(served.lines)
    assert SECRET not in lines
    assert "The features are device, basket" in lines
    assert "Feature 'basket' is a number between" in lines


OFFERS = {"name": "offers", "candidates": True, "features": {"price": "number", "new": "flag"}}
AMONG = {"a": {"price": 3.0, "new": True}, "b": {"price": 9.0}}


def test_candidates_over_http_and_by_the_client(serve, tmp_path):
    served = serve(tmp_path / "journal.db")
    answer = served.post("/v1/bandits", OFFERS)
    assert (answer.status_code, answer.json()["arms"], answer.json()["candidates"]) == (201, [], True)
    assert served.post("/v1/bandits", {"name": "x"}).status_code == 422
    at = "/v1/bandits/offers"
    with Bandit.open(served.url, "offers") as bandit:
        assert (bandit.arms, bandit.config.arms, bandit.config.candidates) == ([], None, True)
        assert math.isinf(bandit.expected(candidates=AMONG)["a"].sd)
        for n in range(40):
            among = AMONG | {"a": {"price": 3.0 + n % 5, "new": True}}
            decision = bandit.decide(f"d{n}", candidates=among, probability=True)
            bandit.reward(decision.id, 10.0 - among[decision.arm]["price"] + n % 3)
        assert 0.0 < decision.probability <= 1.0
        assert bandit.greedy(candidates=AMONG) == "a"
        found = bandit.probabilities(candidates=AMONG)
        assert max(found, key=found.get) == "a"
        assert bandit.expected(candidates={"only": {"price": 3.0}})["only"].mean == pytest.approx(8.0, abs=1.5)
        many = bandit.decide_many(2, candidates=[AMONG, {"c": {}}])
        assert many[1].arm == "c"
        assert "a candidate earns" in str(bandit.explain())
        with pytest.raises(ValueError, match="Candidate 'a': There is no feature 'prize'"):
            bandit.decide(candidates={"a": {"prize": 3.0}})
        with pytest.raises(ValueError, match="no arms to"):
            bandit.fix("a")
    why = served.get(f"{at}/decisions/d39/why").json()
    assert (why["proved"], [row["arm"] for row in why["scores"]]) == (True, ["a", "b"])
    many = {f"c{n}": {} for n in range(101)}
    assert "got 101" in served.post(f"{at}/decisions", {"candidates": many}).json()["error"]
    assert served.get(f"{at}/arms").json()["arms"] == []
    assert served.get("/bandits/offers").status_code == served.get(f"{at}/charts").status_code == 200


def test_the_best_arm_in_a_context_over_http_and_by_the_client(banner):
    with Bandit.open(banner.url, "banner") as bandit:
        for n in range(40):
            device = ("mobile", "desktop")[n % 2]
            decision = bandit.decide(context={"device": device, "basket": 1.0})
            bandit.reward(decision.id, float((decision.arm == "red") == (device == "mobile")) + n % 3 / 10)
        assert bandit.greedy({"device": "mobile"}) == "red"
        assert bandit.greedy({"device": "desktop"}) == "green"
        assert bandit.greedy({"device": "desktop"}, available=["red"]) == "red"


def test_too_many_levels_are_refused_with_the_count_and_the_way_out(banner):
    features = {"device": [f"level {n}" for n in range(70)]}
    error = banner.call("PATCH", AT, {"features": features}).json()["error"]
    assert "70 columns, and at most 64 are allowed; declare fewer levels" in error


def test_the_client_explains_as_the_service_does(serve, tmp_path):
    served, path = serve(tmp_path / "journal.db"), tmp_path / "journal.db"
    served.post("/v1/bandits", {"name": "arms", "arms": ["a", "b"], "features": {"price": "number"}})
    served.post("/v1/bandits", OFFERS)
    for name, context in (("arms", {"context": {"price": 2.0}}), ("offers", {"candidates": AMONG})):
        with Bandit.open(served.url, name) as bandit:
            for n in range(12):
                bandit.reward(bandit.decide(f"d{n}", **context), 2.0 + n % 3)
                if n not in (0, 11):
                    continue
                text = served.wait_for(f"/v1/bandits/{name}/explanation", lambda body, n=n: body["learned"] == n + 1)
                with View(path, name) as view:
                    here, there = view.explain(), bandit.explain()
                assert str(there) == str(here) == text["text"]
                assert there.environment.arms == here.environment.arms
                assert list(there.environment.arms) == list(here.environment.arms) == bandit.arms
