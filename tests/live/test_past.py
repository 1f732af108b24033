"""Arms with a past: what is known of them when they are added."""

import random

import numpy as np
import pytest

from driftbandit import Bandit
from driftbandit.bandit.beliefs import arm_beliefs
from driftbandit.spec.parse import parse_policy
from live.button import HOUR, Clock, assert_proved

PASTS = [{"like": "green"}, {"mean": 0.7, "worth": 50.0}]
BELIEVERS = [
    "ts", "dts", "dots", "ds-ts", "d-gts", "d-ucb", "d-klucb", "eps-greedy", "drift-ts", "drift-auto", "drift-lin-ts",
    "lin-ts", "lin-ucb", "d-lin-ts", "d-lin-ucb", "stable-lin-ts", "d-logistic-ts",
]  # fmt: skip
RATES = {"red": 0.3, "green": 0.6}


def made(target, policy="ts", clock=None, **options) -> Bandit:
    options = {"reward_range": (0, 1), "seed": 5, "clock": clock, **options}
    policy = parse_policy(policy)
    if target is None:
        return Bandit(list(RATES), policy, **options)
    return Bandit.open(target, "b", policy, list(RATES), **options)


def play(bandit, rounds, seed=1, contexts=False, scale=1.0) -> list:
    chance, arms = random.Random(seed), []
    for n in range(rounds):
        decision = bandit.decide(f"{seed}-{n}", **({"context": {"x": chance.random()}} if contexts else {}))
        bandit.reward(decision, scale * float(chance.random() < RATES.get(decision.arm, 0.7)))
        bandit.refresh()
        arms.append((decision.arm, decision.how))
    return arms


def numbers(state) -> list:
    return [numbers(part) if isinstance(part, tuple) else np.asarray(part).tolist() for part in state]


@pytest.mark.parametrize("past", PASTS)
@pytest.mark.parametrize("policy", ["ts", "ds-ts", "drift-auto", "drift-lin-ts"])
def test_memory_and_journals_know_the_same_and_the_audit_proves_it(store, policy, past) -> None:
    found = []
    for target in (None, store):
        with made(target, policy) as bandit:
            play(bandit, 40)
            bandit.add_arm("new", who="ann", **past)
            assert ("first" in {how for _, how in play(bandit, 40, 2)}) is False
            found.append((numbers(bandit.state), bandit.changes()[-1]["what"], bandit.changes()[-1]["who"]))
            if target is None:
                assert Bandit.restore(bandit.snapshot()).fingerprint() == bandit.fingerprint()
            last = bandit.fingerprint()
    assert found[0][1:] == found[1][1:]
    assert found[0][1] == "add_arm new, " + ("like green" if "like" in past else "mean 0.7 worth 50")
    with made(store, policy) as bandit:
        assert bandit.fingerprint() == last
    assert_proved(store)


@pytest.mark.parametrize("policy", BELIEVERS)
def test_an_arm_like_another_is_believed_to_be_as_good_and_as_known(policy) -> None:
    bandit = made(None, policy)
    play(bandit, 60)
    bandit.add_arm("new", like="green")
    found = arm_beliefs(bandit.policy, bandit.state, bandit.stored)
    if policy.startswith(("lin", "d-lin", "stable", "d-log")):  # a regression of each arm
        state = bandit.state
        for name in ("gram", "target", "pulls"):
            field = np.asarray(getattr(state, name)).reshape(3, -1)
            assert (field[2] == field[1]).all()
            assert (field[2] != field[0]).any()
    else:
        assert found.mean[2] == pytest.approx(found.mean[1], abs=1e-9)
        assert found.mean[2] != found.mean[0]
        assert found.spread[2] == pytest.approx(found.spread[1], abs=1e-9)
    assert Bandit.restore(bandit.snapshot()).fingerprint() == bandit.fingerprint()  # a state that is accepted


@pytest.mark.parametrize("policy", BELIEVERS)
def test_a_mean_worth_more_is_believed_more(policy) -> None:
    means, spreads = [], []
    for worth in (2.0, 20.0, 2000.0):
        bandit = made(None, policy)
        play(bandit, 60)
        bandit.add_arm("new", mean=0.8, worth=worth)
        found = arm_beliefs(bandit.policy, bandit.state, bandit.stored)
        means.append(found.mean[2])
        spreads.append(found.spread[2])
        again = Bandit.restore(bandit.snapshot())
        assert again.fingerprint() == bandit.fingerprint()
        assert play(again, 10, 3) == play(bandit, 10, 3)
    if means[0] is not None:
        assert means[2] == pytest.approx(0.8, abs=0.03)
        assert abs(means[0] - 0.8) >= abs(means[2] - 0.8) - 1e-6
    if spreads[0] is not None:
        assert spreads[0] >= spreads[1] >= spreads[2]
        assert spreads[0] > spreads[2]


@pytest.mark.parametrize("policy", ["drift-auto", "drift-lin-ts", "ts"])
def test_adding_a_good_arm_that_is_known_costs_less_than_one_that_is_not(policy) -> None:
    lost = []
    for past in ({}, {"mean": 0.7, "worth": 200.0}):
        total = 0.0
        for seed in range(8):
            bandit = made(None, policy, seed=seed)
            play(bandit, 150, seed)
            bandit.add_arm("new", **past)
            total += sum(0.7 - RATES.get(arm, 0.7) for arm, _ in play(bandit, 200, seed + 100))
        lost.append(total)
    assert lost[1] < 0.8 * lost[0]


def test_the_mean_is_in_the_units_of_the_rewards_and_smaller_may_be_better() -> None:
    bandit = made(None, "ts", reward_range=(10, 30), goal="minimise")
    bandit.add_arm("new", mean=15.0, worth=100.0)
    assert (bandit.state.wins[2], bandit.state.losses[2]) == (75.0, 25.0)
    assert bandit.greedy() == "new"
    money = Bandit(["a", "b"], seed=1)
    chance = random.Random(1)
    for _ in range(60):
        money.reward(money.decide(), chance.gauss(30.0, 5.0))
    money.add_arm("new", mean=45.0, worth=100.0)
    assert money.expected()["new"].mean == pytest.approx(45.0, abs=2.0)
    assert money.greedy() == "new"


def test_with_features_the_mean_is_that_in_the_mean_context(store) -> None:
    for policy in ("drift-lin-ts", "lin-ts", "d-lin-ts"):
        bandit = made(None, policy, features={"x": "number"})
        play(bandit, 60, contexts=True)
        bandit.add_arm("sure", mean=0.9, worth=500.0)
        bandit.add_arm("twin", like="green")
        expected = bandit.expected(context={})
        assert expected["sure"].mean == pytest.approx(0.9, abs=0.02)
        assert expected["twin"] == expected["green"]
    with made(store, "drift-lin-ts", features={"x": "number"}) as bandit:
        play(bandit, 40, contexts=True)
        bandit.add_arm("sure", mean=0.9, worth=500.0)
        play(bandit, 40, 2, contexts=True)
    assert_proved(store)


def test_a_past_fades_by_the_clock_from_when_it_was_given(store) -> None:
    clock = Clock()
    with made(store, "dts", clock, half_life="1 h") as bandit:
        play(bandit, 10)
        clock.now += 5 * HOUR
        bandit.add_arm("new", mean=0.5, worth=64.0)
        clock.now += HOUR
        assert bandit.state.wins[2] == pytest.approx(16.0)
        assert bandit.state.wins[1] < 1.0
    assert_proved(store)


def test_another_policy_learns_the_past_again_or_is_refused(store) -> None:
    with made(store, "ts") as bandit:
        play(bandit, 20)
        bandit.add_arm("new", mean=0.5, worth=64.0)
        bandit.add_arm("twin", like="new")
        bandit.change(policy="dts(gamma=1.0)")
        assert bandit.state.wins[2] == bandit.state.wins[3] == 32.0
        with pytest.raises(ValueError, match=r"SlidingTS cannot take .*; change\(..., from_now=True\)"):
            bandit.change(policy="sw-ts")
        bandit.change(policy="sw-ts", from_now=True)
        assert list(bandit.state.pulls) == [0.0] * 4
        play(bandit, 10, 2)
    assert_proved(store)


def test_an_arm_like_one_that_was_never_tried_is_tried_first() -> None:
    bandit = made(None, "ts")
    bandit.add_arm("new", like="green")
    assert {how for _, how in play(bandit, 3)} == {"first"}


def test_wrong_pasts_get_one_sentence_and_change_nothing() -> None:
    bandit = made(None, "ts")
    before = bandit.fingerprint()
    for wrong, what in (
        ({"mean": 0.5}, "is like=..., another arm, or mean=... and worth"),
        ({"worth": 5}, "is like=..., another arm, or mean=... and worth"),
        ({"like": "red", "mean": 0.5, "worth": 5}, "is like=..., another arm, or mean=... and worth"),
        ({"like": "pink"}, "Arm 'pink' is unknown; the arms are"),
        ({"mean": 1.5, "worth": 5}, "mean is a reward from 0 to 1; got 1.5"),
        ({"mean": float("nan"), "worth": 5}, "mean is a reward from 0 to 1; got nan"),
        ({"mean": 0.5, "worth": 0}, "worth is a number of observations above 0, and at most 1e\\+09; got 0"),
        ({"mean": 0.5, "worth": "x"}, "is a number; got 'x'"),
    ):
        with pytest.raises(ValueError, match=what):
            bandit.add_arm("new", **wrong)
    assert bandit.fingerprint() == before
    for policy in ("sw-ts", "exp3s", "uniform", "kalman-ts"):
        with pytest.raises(ValueError, match="cannot take an arm with a past; DriftAuto"):
            made(None, policy).add_arm("new", mean=0.5, worth=5)
    with pytest.raises(ValueError, match="takes the unit of rewards from the first 16, and 0 have been learned"):
        made(None, "drift-lin-ts").add_arm("new", mean=0.5, worth=5)
