"""What a contextual bandit expects of each arm, how sure it is, and which features matter."""

import math
import random

import pytest

from driftbandit import Bandit
from live.banner import ARMS, BEST, HOUR, device, made, pay, play
from live.button import Clock


@pytest.mark.parametrize("policy", [None, "lin-ts(sd=2.0)", "d-lin-ucb(sd=2.0)", "kalman-ts(sd=2.0, prior_sd=10.0)"])
def test_a_bandit_returns_expected_rewards_and_the_effects_of_features(policy):
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


def test_a_new_bandit_has_no_explanation():
    assert "Nothing learned yet" in str(made(None).explain())
    assert str(made(None, policy="lin-ts").explain()) == ""
    assert math.isinf(made(None, features=None).expected()["red"].sd)
    assert math.isnan(made(None).expected()["red"].mean)
    with pytest.raises(ValueError, match="no effects to show"):
        made(None, features=None).effects()
    assert made(None).effects().gain is None


def test_after_a_pause_the_uncertainty_about_another_hour_is_large():
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


@pytest.mark.parametrize("noise", [0.05, 0.5, 1.0])
def test_the_interval_of_the_believed_gain_contains_the_truth_or_is_withheld(noise):
    held = given = 0
    for seed in range(8):
        chance, seen = random.Random(seed), []
        bandit = Bandit(["a", "b"], features={"device": ["mobile", "desktop"]}, seed=seed)
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
    assert given <= 1 if noise < 0.1 else given >= 6
