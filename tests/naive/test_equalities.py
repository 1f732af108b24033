"""Where two policies must coincide, their twins choose the same arms from the same draws; and facts about every twin.

Nothing here is random: every stream has a fixed seed, so a test that passes keeps passing.
"""

import math

import numpy as np
import pytest

from . import TWINS
from .changepoint import NaiveGlobalCTS, NaivePerArmCTS
from .draws import Draws, Twin
from .plays import PARAMETERS, play, reward


def same(first: tuple[str, dict], second: tuple[str, dict], binary: bool = True, rounds: int = 250) -> bool:
    one, two = (TWINS[name](5, **parameters) for name, parameters in (first, second))
    return play(one, rounds, binary=binary) == play(two, rounds, binary=binary)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(
    "other", [("DiscountedBetaTS", {"gamma": 1.0}), ("SlidingTS", {"window": 250})], ids=lambda o: o[0]
)
def test_without_forgetting_beta_policies_are_thompson_sampling(other: tuple[str, dict], binary: bool):
    assert same(("BetaTS", {}), other, binary)


@pytest.mark.parametrize("name", ["GlobalCTS", "PerArmCTS"])
@pytest.mark.parametrize("binary", [True, False])
def test_without_hazard_changepoint_sampling_is_thompson_sampling(name: str, binary: bool):
    assert same(("BetaTS", {"binarise": True}), (name, {"hazard": 0.0}), binary)


@pytest.mark.parametrize(
    "other",
    [
        ("CusumUCB", {"samples": 5, "drift": 0.1, "threshold": math.inf, "explore": 0.0, "xi": 2.0, "warmup": False}),
        ("MonitoredUCB", {"window": 4, "threshold": math.inf, "explore": 0.0}),
    ],
    ids=lambda o: o[0],
)
@pytest.mark.parametrize("binary", [True, False])
def test_without_alarms_bounds_are_those_of_an_endless_window(other: tuple[str, dict], binary: bool):
    assert same(("SlidingUCB", {"window": 250, "xi": 2.0}), other, binary)


def test_without_discount_discounted_ucb_is_ucb_with_an_endless_window():
    # Rewards without exact ties: running means and sum / count may differ in the last bit, which only ties can see.
    assert same(("SlidingUCB", {"window": 250, "xi": 2.0}), ("DiscountedUCB", {"gamma": 1.0, "xi": 0.5}), binary=False)


def test_without_discount_or_window_kl_policies_are_kl_ucb():
    assert same(("KLUCB", {}), ("SlidingKLUCB", {"window": 250}))
    assert same(("KLUCB", {}), ("DiscountedKLUCB", {"gamma": 1.0}), binary=False)
    assert same(("KLUCB", {"c": 3.0}), ("SlidingKLUCB", {"window": 250, "c": 3.0}))


def test_one_endless_batch_is_exp3():
    assert same(("EXP3S", {"explore": 0.2, "share": 0.0}), ("REXP3", {"batch": 250, "explore": 0.2}))


def test_full_exploration_is_uniform_play():
    assert same(("Uniform", {}), ("EXP3S", {"explore": 1.0, "share": 0.1}))


def test_local_and_global_restarts_agree_until_the_first_alarm():
    twins = [TWINS["GLRKLUCB"](5, horizon=400, delta=0.05, local=local) for local in (True, False)]
    for t in range(400):
        arms = [twin.choose(t, Draws(1, t)) for twin in twins]
        assert arms[0] == arms[1]
        for twin in twins:
            twin.learn(t, arms[0], float(np.random.default_rng([9, t]).random() < (0.9 if t < 150 else 0.1)))
        if twins[0].alarms:
            break
    assert (twins[0].alarms, twins[1].alarms) == (1, 1)
    assert sum(rewards == [] for rewards in twins[0].rewards) == 1
    assert all(rewards == [] for rewards in twins[1].rewards)


@pytest.mark.parametrize("name", sorted(set(PARAMETERS) - {"PeriodicRestart"}))
def test_a_restart_that_never_comes_changes_nothing(name: str):
    def base(n_arms: int) -> Twin:
        return TWINS[name](n_arms, **PARAMETERS[name])

    plain = play(base(5), 60)
    assert play(TWINS["PeriodicRestart"](5, base=base, period=60), 60) == plain


def test_every_twin_has_parameters_here():
    assert sorted(PARAMETERS) == sorted(TWINS)


@pytest.mark.parametrize("name", sorted(TWINS))
def test_every_twin_documents_its_draws(name: str):
    assert "Draws:" in (TWINS[name].__doc__ or "")


@pytest.mark.parametrize("name", sorted(TWINS))
def test_choosing_twice_in_a_round_changes_nothing(name: str):
    once, twice = (TWINS[name](5, **PARAMETERS[name]) for _ in range(2))
    for t in range(120):
        arm = once.choose(t, Draws(6, t))
        twice.choose(t, Draws(7, t))  # a draw that is then discarded
        assert twice.choose(t, Draws(6, t)) == twice.choose(t, Draws(6, t)) == arm
        for twin in (once, twice):
            twin.learn(t, arm, reward(t, arm))


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(TWINS) - {"Uniform", "FixedArm", "Oracle", "AdSwitch"}))
def test_every_learner_prefers_the_best_arm(name: str):
    arms = play(TWINS[name](5, **PARAMETERS[name]), 400)
    assert arms[200:].count(2) > 400 * 0.5 / 5 * 1.3  # a third more than uniform play; the seed is fixed


@pytest.mark.parametrize("twin", [NaiveGlobalCTS, NaivePerArmCTS])
def test_run_length_probabilities_sum_to_one(twin: type):
    policy = twin(5, hazard=0.05, max_runs=20)
    play(policy, 100)
    distributions = [policy.weights] if twin is NaiveGlobalCTS else [[w for *_, w in runs] for runs in policy.runs]
    for weights in distributions:
        assert sum(weights) == pytest.approx(1.0, abs=1e-12)
