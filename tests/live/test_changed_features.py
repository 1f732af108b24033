"""Features that are added, changed and removed while a bandit runs."""

import random

import pytest

from driftbandit import Bandit
from driftbandit.policies import DriftLinTS
from live.banner import BEST, FEATURES, device, made, pay, play
from live.button import assert_proved


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


CARRYING = ["drift-lin-ts", "lin-ts", "stable-lin-ts(gamma=0.999)", "d-logistic-ts(gamma=0.999)",
            "kalman-ts(drift=0.001)", "d-lin-ucb(gamma=0.999)", "sw-lin-ucb(window=300)", "cusum-lin-ucb"]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "compiled"),
    [*((policy, False) for policy in CARRYING), pytest.param("drift-lin-ts", True, marks=pytest.mark.long)],
)
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
