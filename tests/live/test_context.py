"""Decisions in a context: in memory and in both stores."""

import csv
import json

import pytest

from driftbandit import Bandit
from driftbandit.bandit.audit import audit
from driftbandit.bandit.export import export
from driftbandit.bandit.inputs import Config
from driftbandit.bandit.reports import View
from driftbandit.policies import DriftLinTS, LinTS
from live.banner import ARMS, BEST, FEATURES, HOUR, context, device, made, pay, play
from live.button import Clock, assert_proved


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
