"""Arms with features: candidates that come with every request, in memory and in both stores."""

import csv
import json
import random

import numpy as np
import pytest

from driftbandit import Bandit
from driftbandit.bandit.export import export
from driftbandit.bandit.reports import View
from driftbandit.errors import LogError, RecordConflict
from driftbandit.logs import Log
from driftbandit.policies import DriftLinTS
from live.button import Clock, assert_proved

FEATURES = {"price": "number", "new": "flag", "kind": ["shoe", "hat"]}
HOUR = 3600 * 1_000_000


def offers(n: int) -> dict:
    """Between one and seven candidates, other ones each time."""
    chance = random.Random(n)
    return {
        f"offer-{chance.randrange(20)}": {
            "price": round(chance.uniform(1.0, 20.0), 2),
            "new": chance.random() < 0.5,
            "kind": chance.choice(FEATURES["kind"]),
        }
        for _ in range(1 + n * 5 % 7)
    }


def worth(offer: dict) -> float:
    return 5.0 - 0.3 * offer["price"] + 2.0 * offer["new"] + (offer["kind"] == "shoe")


def play(bandit, rounds: int, first: int = 0, **options) -> int:
    """How often the best candidate was chosen in the second half."""
    hits = 0
    for n in range(first, first + rounds):
        among = offers(n)
        decision = bandit.decide(f"d{n}", candidates=among, **options)
        bandit.reward(decision, worth(among[decision.arm]) + n % 5 / 20.0)
        best = max(among, key=lambda name: worth(among[name]))
        hits += n - first >= rounds // 2 and decision.arm == best
        if n % 20 == 19:
            bandit.refresh()
    bandit.refresh()
    return hits


def made(target, **options):
    options = {"features": FEATURES, "candidates": True, "seed": 1, **options}
    return Bandit(**options) if target is None else Bandit.open(target, "offers", **options)


def test_one_model_learns_which_of_ever_new_candidates_is_best(target):
    with made(target) as bandit:
        assert (bandit.policy, bandit.arms, bandit.config.candidates) == (DriftLinTS(), [], True)
        assert play(bandit, 120) >= 57
        among = {"a": {"price": 3.0, "new": True, "kind": "hat"}, "b": {"price": 9.0, "new": True}, "c": {}}
        found = bandit.probabilities(candidates=among)
        assert sum(found.values()) == pytest.approx(1.0)
        assert max(found, key=found.get) == bandit.greedy(candidates=among) == "a"
        believed = bandit.expected(candidates={"a": among["a"]})["a"]
        assert abs(believed.mean - worth(among["a"])) < 0.2
        assert bandit.outcome("d7").decision.arm in offers(7)
        assert bandit.outcome("d7").context == offers(7)[bandit.outcome("d7").decision.arm]
        text = str(bandit.explain())
        assert "With price" in text
        assert "a candidate earns" in text
        state = bandit.fingerprint()
    if target is not None:
        assert_proved(target)
        with View(target, "offers") as view:
            assert view.fingerprint() == state
        with Bandit.open(target, "offers", features=FEATURES, candidates=True) as again:
            assert again.decide("d3", candidates=offers(3)).arm in offers(3)


def test_a_snapshot_and_a_change_keep_what_was_learned(target):
    with made(target, policy="lin-ts") as bandit:
        play(bandit, 60)
        if target is None:
            other = Bandit.restore(bandit.snapshot())
            assert play(other, 20, 60) == play(bandit, 20, 60)
            states = [json.loads(one.fingerprint())["player"]["state"] for one in (other, bandit)]
            assert states[0] == states[1]
            with pytest.raises(ValueError, match="damaged"):
                Bandit.restore(bandit.snapshot().replace('"candidates": true', '"candidates": false'))
            return
        bandit.change(features={**FEATURES, "weight": "number"}, policy="drift-lin-ts")
        bandit.refresh()
        among = {"dear": {"price": 19.0, "new": False}, "cheap": {"price": 2.0, "new": True}}
        assert bandit.greedy(candidates=among) == "cheap"
    assert_proved(target)


def test_late_rewards_wait_and_a_half_life_work_as_with_arms(target):
    clock = Clock()
    options = {"policy": "stable-lin-ts", "half_life": "30 d", "wait": "1 h", "holdback": 0.2, "baseline": "uniform"}
    with made(target, clock=clock, floor=0.1, **options) as bandit:
        for n in range(80):
            clock.now += HOUR // 10
            decision, among = bandit.decide(f"d{n}", candidates=offers(n)), offers(n)
            if n % 3:
                bandit.reward(decision, worth(among[decision.arm]))
        clock.now += 2 * HOUR
        bandit.settle()
        bandit.refresh()
        assert bandit.health()["waiting"] == 0
        assert bandit.reward("d3", 1.0) == "late"
        ways = {one.decision.how for one in bandit.recent(80)}
        assert ways == {"policy", "floor", "holdback"}
        assert bandit.uplift().n_baseline > 0
    if target is not None:
        assert_proved(target)


def test_the_same_id_among_other_candidates_is_a_conflict(target):
    with made(target) as bandit:
        first = bandit.decide("mine", candidates=offers(4))
        assert bandit.decide("mine", candidates=offers(4)) == first
        with pytest.raises(RecordConflict, match="other available arms"):
            bandit.decide("mine", candidates=offers(5))
        many = bandit.decide_many(["x", "y"], candidates=[offers(1), offers(2)], probability=True)
        assert [one.arm in offers(n) for n, one in enumerate(many, 1)] == [True, True]
        assert all(0.0 < one.probability <= 1.0 for one in many)
        assert len({one.arm for one in bandit.decide_many(40, candidates=offers(6))}) > 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.decide(), "give candidates"),
        (lambda b: b.decide(context={"price": 1.0}), "give candidates"),
        (lambda b: b.decide(context={}, candidates={"a": {}}), "not both"),
        (lambda b: b.decide(candidates={}), "1 to 100 candidates; got 0"),
        (lambda b: b.decide(candidates={f"c{n}": {} for n in range(101)}), "1 to 100 candidates; got 101"),
        (lambda b: b.decide(candidates=["a"]), "maps names to features"),
        (lambda b: b.decide(candidates={3: {}}), "name is a text"),
        (lambda b: b.decide(candidates={"a": {"prize": 3.0}}), "Candidate 'a': There is no feature 'prize'"),
        (lambda b: b.decide(candidates={"a": "cheap"}), "Candidate 'a': A context maps"),
        (lambda b: b.decide(candidates={f"{n:0200}": {"kind": "k" * 200} for n in range(100)} | {"a": {}}), "1 to 100"),
        (lambda b: b.decide_many(2, candidates=[{"a": {}}]), "got 1 for 2"),
        (lambda b: b.decide(candidates={"a": {}}, available=["a"]), "no arms to"),
        (lambda b: b.probabilities(), "give candidates"),
        (lambda b: b.greedy(), "give candidates"),
        (lambda b: b.add_arm("a"), "no arms to add"),
        (lambda b: b.retire_arm("candidates"), "no arms to add, retire"),
        (lambda b: b.fix("candidates"), "no arms to"),
        (lambda b: b.change(holdback=0.1, baseline="candidates"), 'holdback is "uniform"'),
        (lambda b: b.change(features=None, from_now=True), "describe each of them"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, words):
    with made(None) as bandit:
        before = bandit.fingerprint()
        with pytest.raises(ValueError, match=words):
            call(bandit)
        assert (bandit.fingerprint(), bandit.health()["decisions"]) == (before, 0)


def test_candidates_need_features_and_a_contextual_policy_and_exclude_arms(tmp_path):
    for options, words in (
        ({"arms": ["a"]}, "leave arms out"),
        ({"features": None}, "describe each"),
        ({"features": {"hour": "hour of day"}}, "describe each"),
        ({"policy": "drift-ts"}, "cannot use features"),
        ({"candidates": False}, "needs arms"),
    ):
        with pytest.raises(ValueError, match=words):
            made(None, **options)
    with Bandit(["a", "b"]) as plain, pytest.raises(ValueError, match="has arms"):
        plain.decide(candidates={"a": {}})
    with made(str(tmp_path / "j.db")) as bandit:
        large = {f"{n:0200}": {"kind": "ö" * 100} for n in range(99)}
        with pytest.raises(ValueError, match=r"at most 65,536 bytes as JSON; got \d\d,\d\d\d"):
            bandit.decide(candidates=large)


def test_probabilities_are_those_of_the_choices():
    """A probability is that with which `decide` chooses, also of candidates that are alike."""
    with made(None, floor=0.1) as bandit:
        play(bandit, 14)
        among = {f"c{n}": {"price": 4.0 + n / 2.0, "new": n % 2 == 1, "kind": "hat"} for n in range(5)}
        found = bandit.probabilities(candidates=among)
        drawn = [one.arm for one in bandit.decide_many(1000, candidates=among)]
        shares = np.array([drawn.count(name) / 1000.0 for name in among])
        assert np.abs(shares - np.array(list(found.values()))).max() < 0.05
        assert found["c0"] >= 0.02


@pytest.mark.long  # compiles
def test_interpreted_and_compiled_choose_the_same_candidates():
    pytest.importorskip("numba")
    found = []
    for compiled in (False, True):
        with made(None, policy="lin-ts", compiled=compiled) as bandit:
            arms = []
            for n in range(60):
                decision = bandit.decide(f"d{n}", candidates=offers(n))
                bandit.reward(decision, worth(offers(n)[decision.arm]))
                arms.append(decision.arm)
            found.append((arms, json.loads(bandit.fingerprint())["player"]["state"]))
    assert found[0] == found[1]


def test_an_export_has_the_candidates_and_is_not_read_as_a_log_of_arms(tmp_path):
    journal = str(tmp_path / "journal.db")
    with made(journal, policy="lin-ts") as bandit:
        play(bandit, 80)
    assert export(journal, tmp_path / "log.csv", propensity="all") == 80
    with open(tmp_path / "log.csv") as file:
        rows = list(csv.DictReader(file))
    for n in (0, 71):
        row = next(row for row in rows if row["decision"] == f"d{n}")
        assert json.loads(row["candidates"]) == offers(n)
        assert json.loads(row["available"]) == list(offers(n))
        assert float(row["x_price"]) == offers(n)[row["arm"]]["price"]
        assert json.loads(row["propensities"])[row["arm"]] == float(row["propensity"])
    pytest.importorskip("pyarrow")
    assert export(journal, tmp_path / "log.parquet") == 80
    assert export(journal, tmp_path / "log.jsonl") == 80
    for log in (journal, *(str(tmp_path / f"log.{ending}") for ending in ("csv", "parquet", "jsonl"))):
        with pytest.raises(LogError, match=r"(?i)every decision of this log had its own candidates"):
            Log(log)
