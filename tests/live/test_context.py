"""Decisions in a context: in memory and in both stores."""

import csv
import json
import math
import random

import pytest

from driftbandit import Bandit
from driftbandit.bandit.audit import audit
from driftbandit.bandit.export import export
from driftbandit.bandit.inputs import Config
from driftbandit.bandit.reports import View
from driftbandit.policies import DriftLinTS, LinTS
from live.button import Clock, assert_proved

ARMS = ["red", "green", "blue"]
FEATURES = {"device": ["mobile", "desktop"], "basket": "number", "member": "flag", "hour": "hour of day"}
HOUR = 3600 * 1_000_000
BEST = {"mobile": "red", "desktop": "green"}


def device(n: int) -> str:
    return ("mobile", "desktop")[n * 7 % 5 % 2]


def context(n: int) -> dict:
    return {"device": device(n), "basket": 10.0 * (n % 7), "member": n % 3 == 0}


def pay(n: int, arm: str) -> float:
    return 20.0 * (arm == BEST[device(n)]) + n % 4


def play(bandit, rounds: int, first: int = 0) -> list[str]:
    arms = []
    for n in range(first, first + rounds):
        decision = bandit.decide(f"d{n}", context=context(n))
        bandit.reward(decision, pay(n, decision.arm))
        arms.append(decision.arm)
        if n % 20 == 19:
            bandit.refresh()
    bandit.refresh()
    return arms


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def target(request, tmp_path):
    if request.param == "memory":
        return None
    return str(tmp_path / "journal.db") if request.param == "sqlite" else request.getfixturevalue("postgres")


def made(target, **options):
    options = {"arms": ARMS, "features": FEATURES, "seed": 1, **options}
    return Bandit(**options) if target is None else Bandit.open(target, "banner", **options)


def test_a_bandit_learns_which_arm_is_best_in_which_context(target):
    with made(target) as bandit:
        assert bandit.policy == DriftLinTS()
        arms = play(bandit, 200)
        assert sum(arm == BEST[device(n)] for n, arm in enumerate(arms) if n >= 100) >= 90
        assert bandit.config.features == FEATURES
        for name, best in BEST.items():
            found = bandit.probabilities({"device": name}, draws=200)
            assert max(found, key=found.get) == best
        assert bandit.outcome("d3").context == context(3)
    if target is not None:
        assert_proved(target)
        with Bandit.open(target, "banner") as again:
            assert again.config.features == FEATURES
            assert again.decide("d3", context={"device": "desktop"}).arm == arms[3]


def test_an_id_sent_again_is_the_first_decision_whatever_its_context(target):
    with made(target) as bandit:
        first = bandit.decide("mine", context={"device": "mobile"})
        assert bandit.decide("mine", context={"device": "desktop"}) == first
        assert bandit.outcome("mine").context == {"device": "mobile"}
        many = bandit.decide_many(["a", "mine"], context=[{"device": "mobile"}, {}], probability=True)
        assert many[1]._replace(probability=None) == first
        assert many[0].probability is not None
        assert len(bandit.decide_many(3, context={"device": "mobile"})) == 3
        bandit.reward("mine", 1.0)
        assert bandit.reward("mine", 1.0) == "again"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"devise": "mobile"}, "There is no feature 'devise'"),
        ({"basket": "much"}, "is a number"),
        ({"hour": 3}, "decision's time"),
        ([("device", "mobile")], "maps names"),
        ("mobile", "maps names"),
    ],
)
def test_a_wrong_context_is_refused_in_a_sentence_and_changes_nothing(target, given, words):
    with made(target) as bandit:
        before = bandit.fingerprint()
        for wrong in (
            lambda: bandit.decide(context=given),
            lambda: bandit.decide("mine", context=given),
            lambda: bandit.decide_many(2, context=[given, {}]),
            lambda: bandit.probabilities(given),
        ):
            with pytest.raises(ValueError, match=words):
                wrong()
        with pytest.raises(ValueError, match="one for each"):
            bandit.decide_many(2, context=[{}])
        for missing in (bandit.decide, lambda: bandit.decide("mine"), lambda: bandit.decide_many(2)):
            with pytest.raises(ValueError, match=r"decides in a context: .* with device, basket, member"):
                missing()
        assert (bandit.fingerprint(), bandit.health()["decisions"]) == (before, 0)
        bandit.decide("mine", context={})


def test_policies_and_contexts_must_fit(target):
    with pytest.raises(ValueError, match="cannot use features"):
        made(target, policy="drift-ts")
    with pytest.raises(ValueError, match="65 columns, and at most 64"):
        made(target, features={f"f{n}": "number" for n in range(65)})
    with pytest.raises(ValueError, match="numbers, and at most"):
        made(target, arms=1000, features={f"f{n}": "number" for n in range(64)})
    with pytest.raises(ValueError, match="half_life needs a policy"):
        made(target, half_life="1 h")
    with made(target, features=None) as bandit:
        with pytest.raises(ValueError, match="no features"):
            bandit.decide(context={"device": "mobile"})
        with pytest.raises(ValueError, match="DriftAuto cannot use features"):
            bandit.change(features=FEATURES, from_now=True)
        bandit.decide()


def test_the_clock_is_a_context_that_need_not_be_given(target):
    clock = Clock()
    with made(target, features={"hour": "hour of day"}, clock=clock) as bandit:
        right = 0
        for n in range(300):
            clock.now += 5 * HOUR + 7
            decision, day = bandit.decide(), clock.now // HOUR % 24 < 12
            bandit.reward(decision, 5.0 * (decision.arm == ("red" if day else "green")) + n % 3)
            right += n >= 200 and decision.arm == ("red" if day else "green")
            if n % 10 == 9:
                bandit.refresh()
        assert right >= 75


def test_missing_values_and_undeclared_levels_are_counted(target):
    with made(target) as bandit:
        play(bandit, 20)
        for n in range(30):
            bandit.reward(bandit.decide(context={"device": "fridge", "member": None}), float(n % 5))
        bandit.refresh()
        health = bandit.health()
        assert health["missing"] == {"basket": 30, "member": 30}
        assert health["undeclared"] == {"device": {"fridge": 30}}
        assert any("30 of 50 contexts" in text for text in health["warnings"])
    if target is not None:
        assert_proved(target)


def test_waiting_outcomes_keep_their_contexts(target):
    clock = Clock()
    with made(target, wait="1 h", default=0.0, clock=clock, floor=0.1, holdback=0.1, baseline="blue") as bandit:
        for n in range(120):
            clock.now += HOUR // 20
            decision = bandit.decide(f"d{n}", context=context(n))
            if pay(n, decision.arm) >= 20.0:
                bandit.reward(decision, pay(n, decision.arm))
        text = bandit.fingerprint()
        assert bandit.health()["waiting"] > 0
        if target is None:
            bandit = Bandit.restore(bandit.snapshot(), clock=clock)
            assert bandit.fingerprint() == text
        clock.now += 3 * HOUR
        bandit.settle()
        bandit.refresh()
        assert bandit.health()["waiting"] == 0
        for name, best in BEST.items():
            found = bandit.probabilities({"device": name, "basket": 30.0, "member": False}, draws=300)
            assert max(found, key=found.get) == best
        assert target is None or bandit.uplift().difference > 0.0
        bandit.fix("blue")
        assert bandit.decide(context={}).how == "fixed"
    if target is not None:
        assert_proved(target)


def test_the_order_of_reports_changes_nothing_that_waits(target):
    found = []
    for reverse in (False, True):
        clock = Clock()
        options = {"wait": "1 h", "default": 0.0, "clock": clock, "arms": ARMS, "features": FEATURES, "seed": 1}
        with Bandit(**options) if target is None else Bandit.open(target, f"b{reverse}", **options) as bandit:
            for hour in range(8):
                made = []
                for n in range(12):
                    clock.now += HOUR // 1000
                    made.append((bandit.decide(f"{hour}-{n}", context=context(7 * hour + n)), 7 * hour + n))
                bandit.reward_many([(one, pay(n, one.arm)) for one, n in (made[:6][::-1] if reverse else made[:6])])
                for one, n in reversed(made[6:]) if reverse else made[6:]:
                    bandit.reward(one, pay(n, one.arm))
                clock.now += 2 * HOUR
                bandit.settle()
                bandit.refresh()
            found.append([field.tolist() for field in bandit.state])
    assert found[0] == found[1]


def test_snapshots_of_a_journal_lead_to_the_same_state(store):
    with made(store, snapshot_every=50) as bandit:
        play(bandit, 130)
        bandit.decide(context={"basket": 1.0})
        text = bandit.fingerprint()
        with View(store, "banner") as replica:
            assert replica.fingerprint() == text
            assert replica.expected({"device": "mobile"}).keys() == set(ARMS)
    with made(store, snapshot_every=50) as bandit:
        assert bandit.fingerprint() == text
    (report,) = audit(store)
    assert (report.differences, report.snapshots >= 2) == ([], True)


def test_a_bandit_in_memory_is_restored_with_its_contexts():
    clock = Clock()
    bandit = made(None, clock=clock)
    play(bandit, 60)
    bandit.decide("open", context=context(1))
    twin = Bandit.restore(bandit.snapshot(), clock=clock)
    for one in (bandit, twin):
        one.reward("open", 3.0)
    assert twin.fingerprint() == bandit.fingerprint()
    assert play(twin, 20, 100) == play(bandit, 20, 100)


@pytest.mark.parametrize(
    ("part", "values"),
    [
        (
            ("fold", "config", "features"),
            [[["x", "numbre"]], [["x"]], "x", 3, [["device", ["a"]]], [["x", "number"]] * 2],
        ),
        (("fold", "seen"), [None, [], [1, 2, 3, 4, 5], {}]),
        (("fold", "seen", 0), [-1, None, "x"]),
        (("fold", "seen", 1), [[], [0.0] * 3, ["x"] * 8, [1e999] * 8]),
        (("fold", "seen", 3), [[0, 0, 0], [0, 0, 0, -1], [0, 0, 0, 10**9], [None] * 4]),
        (("fold", "seen", 4), [[{}] * 3, [3] * 4, [{"a": "x"}] * 4]),
        (("memory", "open", 0, 7), [3, "[1]", "{", '"x"', "{}" + " " * 5000]),
    ],
)
def test_a_snapshot_that_no_bandit_wrote_is_refused(part, values):
    bandit = made(None)
    play(bandit, 30)
    bandit.decide(context=context(1))
    for value in values:
        data = json.loads(bandit.snapshot())
        del data["check"]
        place = data
        for name in part[:-1]:
            place = place[name]
        assert place[part[-1]] != value
        place[part[-1]] = value
        with pytest.raises(ValueError, match="snapshot"):
            Bandit.restore(json.dumps(data))


@pytest.mark.long  # compiles
def test_compiled_and_interpreted_choose_the_same():
    pytest.importorskip("numba")
    assert play(made(None, clock=Clock()), 150) == play(made(None, clock=Clock(), compiled=True), 150)


def test_a_policy_that_discounts_forgets_contexts_by_the_clock(target):
    with made(target, policy="stable-lin-ts(sd=5.0)", half_life="1 h", compiled=False) as bandit:
        arms = play(bandit, 120)
        assert sum(arm == BEST[device(n)] for n, arm in enumerate(arms) if n >= 80) >= 30
    if target is not None:
        assert_proved(target)


@pytest.mark.parametrize("policy", [None, "lin-ts(sd=2.0)", "d-lin-ucb(sd=2.0)", "kalman-ts(sd=2.0, prior_sd=10.0)"])
def test_a_bandit_tells_what_it_expects_and_which_features_matter(policy):
    bandit = made(None, policy=policy, floor=0.2, clock=Clock())
    play(bandit, 400)
    for name, best in BEST.items():
        found = bandit.expected({"device": name, "basket": 30.0, "member": True})
        assert max(found, key=lambda arm: found[arm].mean) == best
        assert found[best].mean == pytest.approx(21.5, abs=2.0)
        assert 0.0 < found[best].sd < 3.0
    explained = bandit.explain()
    assert len(explained.features["device"]) == 2
    assert "With device mobile, red earns" in str(explained)
    assert (explained.features["member"], explained.features["basket"]) == ([], [])
    assert set(explained.arms) == set(ARMS)
    assert bandit.expected()["red"] == explained.arms["red"]


@pytest.mark.parametrize("rounds", [0, 2, 30, 300])
@pytest.mark.parametrize("available", [None, ["red", "blue"]])
def test_probabilities_are_the_shares_of_the_arms_chosen(rounds, available):
    bandit = made(None, clock=Clock(), first=False)
    play(bandit, rounds)
    asked = {"device": "mobile", "basket": 20.0, "member": False}
    found = bandit.probabilities(asked, available=available)
    decisions = bandit.decide_many(1000, context=asked, available=available)
    decisions += bandit.decide_many(1000, context=asked, available=available)
    for arm, probability in found.items():
        share = sum(decision.arm == arm for decision in decisions) / 2000
        assert abs(share - probability) < 3.5 * (probability * (1.0 - probability) / 2000) ** 0.5 + found.error


def test_what_is_expected_of_costs_has_their_sign():
    bandit = made(None, goal="minimise", features={"device": ["mobile", "desktop"]})
    for n in range(200):
        decision = bandit.decide(context={"device": device(n)})
        bandit.reward(decision, 30.0 - pay(n, decision.arm))
    assert bandit.expected({"device": "mobile"})["red"].mean < 12.0
    assert " less than " in str(bandit.explain())


def test_a_new_bandit_has_nothing_to_tell():
    assert "Nothing learned yet" in str(made(None).explain())
    assert str(made(None, policy="lin-ts").explain()) == ""
    assert math.isinf(made(None, features=None).expected()["red"].sd)
    assert math.isnan(made(None).expected()["red"].mean)
    with pytest.raises(ValueError, match="no effects to show"):
        made(None, features=None).effects()
    assert made(None).effects().gain is None


def test_after_a_pause_it_says_how_little_it_knows_of_another_hour():
    clock = Clock()
    bandit = made(None, features={"hour": "hour of day"}, clock=clock)
    for n in range(120):
        clock.now += 10_000
        decision = bandit.decide()
        bandit.reward(decision, (decision.arm == "red") + n % 4 / 4)
    clock.now += 3 * HOUR
    for arm, found in bandit.expected().items():
        assert abs(found.mean - (arm == "red") - 0.4) < 2.0
        assert 0.1 < found.sd < 5.0


def test_absurd_rewards_are_counted_with_features():
    bandit = made(None, features={"device": ["mobile", "desktop"]})
    for n in range(60):
        decision = bandit.decide(context={"device": device(n)})
        bandit.reward(decision, 1e9 if n in (7, 40) else pay(n, decision.arm))
    assert bandit.health()["cut"] >= 2


def test_an_altered_context_is_found(tmp_path):
    import sqlite3

    path = str(tmp_path / "journal.db")
    with made(path) as bandit:
        play(bandit, 40)
    with sqlite3.connect(path) as connection:
        sql = "UPDATE decision SET context = replace(context, 'mobile', 'desktop') WHERE id = 'd30'"
        assert connection.execute(sql).rowcount == 1
    found = audit(path)
    assert any("d30" in text for report in found for text in report.differences)


def test_new_features_learn_the_whole_journal_again(store):
    with made(store, features={"basket": "number"}, policy=DriftLinTS()) as bandit:
        with pytest.raises(ValueError, match="There is no feature 'device'"):
            play(bandit, 1)
        for n in range(30):
            bandit.reward(bandit.decide(f"a{n}", context={"basket": n % 7}), 1.0 * n)
        bandit.change(features={"basket": "number", "device": ["mobile"]}, who="ann")
        for n in range(120):
            decision = bandit.decide(f"b{n}", context={"device": device(n), "basket": 1.0})
            bandit.reward(decision, pay(n, decision.arm))
        bandit.refresh()
        assert bandit.health()["undeclared"]["device"]["desktop"] > 10
        bandit.change(features={"device": ["desktop", "mobile"], "basket": "log number"})
        assert bandit.health()["undeclared"] == {}
        assert bandit.health()["missing"] == {"device": 30}
        text = bandit.fingerprint()
        assert "features" in bandit.changes()[1]["what"]
        bandit.decide(context={"device": "desktop"})
    with Bandit.open(store, "banner") as bandit:
        assert bandit.fingerprint() == text
        bandit.change(features={"device": ["mobile"]}, from_now=True)
        assert (len(bandit.state.x), bandit._fold.player.learned) == (2, 150)
        bandit.change(features=None, policy="drift-auto")
        bandit.decide()
    assert_proved(store)


def test_features_are_added_to_a_bandit_that_had_none(store):
    with made(store, features=None) as bandit:
        for n in range(30):
            bandit.reward(bandit.decide(f"a{n}"), 1.0 * n)
        bandit.change(features=FEATURES, policy="drift-lin-ts")
        arms = play(bandit, 150)
        assert sum(arm == BEST[device(n)] for n, arm in enumerate(arms) if n >= 100) >= 40
        assert bandit.health()["missing"] == {"device": 30, "basket": 30, "member": 30}
    assert_proved(store)


def test_a_bandit_in_memory_starts_new_features_from_nothing():
    bandit = made(None)
    play(bandit, 40)
    with pytest.raises(ValueError, match="from_now=True"):
        bandit.change(features={"device": ["mobile"]})
    bandit.change(features={"device": ["mobile"]}, from_now=True)
    bandit.reward(bandit.decide(context={"device": "mobile"}), 1.0)
    assert bandit.config.features == {"device": ["mobile"]}


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_an_export_has_a_column_per_feature(tmp_path, suffix):
    path, out = str(tmp_path / "journal.db"), tmp_path / f"log.{suffix}"
    clock = Clock(1_750_248_000_000_000)  # noon
    with made(path, policy=LinTS(), clock=clock) as bandit:
        play(bandit, 12)
        bandit.decide(context={"device": "fridge"})
    assert export(path, out) == 13
    if suffix == "parquet":
        rows = pytest.importorskip("pyarrow.parquet").read_table(out).to_pylist()
    elif suffix == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = list(csv.DictReader(out.open()))
    by_id = {row["decision"]: row for row in rows}
    row = by_id["d4"]
    assert row["x_device"] == device(4)
    assert float(row["x_basket"]) == 40.0
    assert row["x_member"] in (False, "False")
    assert float(row["x_hour"]) == pytest.approx(12.0)
    last = next(row for row in rows if row["x_device"] == "fridge")
    assert last["x_basket"] in (None, "")
    assert 0.0 < float(last["propensity"]) <= 1.0


def test_a_config_carries_features():
    config = Config(ARMS, features=FEATURES, floor=0.1)
    assert Bandit(config=config).config.features == FEATURES


CARRYING = ["drift-lin-ts", "lin-ts", "stable-lin-ts(gamma=0.999)", "d-logistic-ts(gamma=0.999)",
            "kalman-ts(drift=0.001)", "d-lin-ucb(gamma=0.999)", "sw-lin-ucb(window=300)", "cusum-lin-ucb"]  # fmt: skip


@pytest.mark.parametrize(("policy", "compiled"), [*((policy, False) for policy in CARRYING), ("drift-lin-ts", True)])
def test_features_that_change_from_now_on_keep_what_was_learned_of_the_others(policy, compiled):
    before = {"device": ["mobile", "desktop"], "basket": "number", "useless": "number"}
    after = {"member": "flag", "basket": "number", "device": ["desktop", "tablet", "mobile"], "hour": "hour of day"}
    bandit = Bandit(["a", "b"], policy=policy, features=before, seed=1, compiled=compiled)
    chance, scale = random.Random(1), 1.0 if "logistic" in policy else 10.0

    def play(rounds, more):
        good = 0
        for _ in range(rounds):
            device, basket = chance.choice(["mobile", "desktop"]), chance.gauss(0.0, 1.0)
            decision = bandit.decide(context={"device": device, "basket": basket} | more())
            mean = scale * (0.5 + 0.1 * basket) + (
                0.3 * scale if (decision.arm == "a") == (device == "mobile") else 0.0
            )
            bandit.reward(decision, min(scale, max(0.0, mean + chance.gauss(0.0, 0.05 * scale))))
            good += (decision.arm == "a") == (device == "mobile")
        return good / rounds

    play(300, lambda: {"useless": chance.gauss(5.0, 1.0)})
    contexts = [{"device": device, "basket": 1.0} for device in ("mobile", "desktop")]
    known = [bandit.expected(context) for context in contexts] if "ucb" not in policy else []
    bandit.change(features=after, from_now=True)
    for context, was in zip(contexts, known, strict=False):
        for arm, (mean, sd) in bandit.expected(context | {"member": False}).items():
            assert mean == pytest.approx(was[arm].mean, abs=0.05 * scale)
            assert sd < max(0.4, 0.2 * scale)
    assert play(30, lambda: {"member": chance.random() < 0.5}) > 0.8
    assert play(100, lambda: {"member": chance.random() < 0.5}) > 0.8
    assert bandit.health()["missing"]["member"] == 300
    again = Bandit.restore(bandit.snapshot(), compiled=compiled)
    assert again.fingerprint() == bandit.fingerprint()


def test_features_change_from_now_on_after_old_events_were_dropped(tmp_path):
    path, now = str(tmp_path / "journal.db"), [1_700_006_400_000_000]
    with made(path, features={"device": ["mobile", "desktop"]}, retention="2 d", clock=lambda: now[0]) as bandit:
        for n in range(400):
            now[0] += 1800 * 1_000_000
            decision = bandit.decide(f"d{n}", context={"device": device(n)})
            bandit.reward(decision, pay(n, decision.arm))
        assert bandit.prune().decisions > 0
        was = bandit.expected({"device": "mobile"})
        with pytest.raises(ValueError, match="new features with those about the others"):
            bandit.change(features={"device": ["mobile", "desktop", "tv"]})
        bandit.change(features={"device": ["mobile", "desktop", "tv"], "member": "flag"}, from_now=True)
        for arm, (mean, _) in bandit.expected({"device": "mobile"}).items():
            assert mean == pytest.approx(was[arm].mean, abs=0.2)
        for n in range(400, 430):
            decision = bandit.decide(f"d{n}", context={"device": device(n), "member": n % 3 == 0})
            bandit.reward(decision, pay(n, decision.arm))
    assert_proved(path)


@pytest.mark.parametrize("noise", [0.05, 0.5, 1.0])
def test_the_believed_gain_holds_the_truth_or_has_no_interval(noise):
    held = given = 0
    for seed in range(12):
        chance, seen = random.Random(seed), []
        bandit = Bandit(["a", "b"], features={"device": ["mobile", "desktop"]}, seed=seed, compiled=True)
        for _ in range(400):
            seen.append(chance.choice(["mobile", "desktop"]))
            decision = bandit.decide(context={"device": seen[-1]})
            bandit.reward(decision, ((decision.arm == "a") == (seen[-1] == "mobile")) + chance.gauss(0.0, noise))
        gain, share = bandit.effects().gain, seen.count("mobile") / len(seen)
        truth = 1.0 - max(share, 1.0 - share)
        assert gain.gain > 0.0
        given += gain.low is not None
        held += gain.low is not None and gain.low <= truth <= gain.high
    assert given - held <= 1
    assert given <= 1 if noise < 0.1 else given >= 9
