"""The chances a bandit states are those it chooses with, and asking for them changes nothing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit import Bandit, DiscountedTS
from driftbandit.core.beliefs import BetaBelief, NormalBelief, beta_cdf, largest_probabilities
from small_policies import ALONE, POLICIES, Stubborn, play_arm, played


def frequencies(bandit: Bandit, n: int) -> dict:
    counts = dict.fromkeys(bandit.arms, 0)
    for _ in range(n):
        counts[bandit.decide().arm] += 1
    return {arm: count / n for arm, count in counts.items()}


def assert_chances_match(bandit: Bandit, n: int = 8000) -> None:
    chances, seen = bandit.probabilities(), frequencies(bandit, n)
    assert list(chances) == bandit.arms
    assert sum(chances.values()) == pytest.approx(1.0, abs=1e-9)
    for arm, chance in chances.items():
        # False alarm one in a million per arm; the stated error is two standard errors, so 2.5 of it are five.
        slack = 4.9 * math.sqrt(max(chance * (1 - chance), 1 / n) / n) + 2.5 * chances.error
        assert abs(seen[arm] - chance) < slack, (arm, seen, chances, chances.error)


@pytest.mark.parametrize("policy", [*POLICIES, DiscountedTS(gamma=0.5, tau_max=1.0, forget_below=0.1)], ids=repr)
def test_chances_agree_with_how_often_arms_are_chosen(policy):
    bandit = Bandit(list("abcde"), policy, reward_range=(0, 1), seed=7)
    assert_chances_match(bandit, 3000)
    played(bandit, 12, seed=1)
    bandit.retire_arm("d")
    assert_chances_match(bandit)


def test_chances_of_a_thompson_sampler_are_exact_for_two_arms():
    # P(N(m1, s1) > N(m2, s2)) = Phi((m1 - m2) / sqrt(s1**2 + s2**2))
    for m1, m2, s1, s2 in ((0.3, 0.1, 0.2, 0.1), (0.5, 0.1, 0.001, 0.2), (0.0, 0.0, 1.0, 1e-6), (0.9, 0.1, 0.1, 0.1)):
        p, error = largest_probabilities(NormalBelief(np.array([m1, m2]), np.array([s1, s2])))
        exact = 0.5 * math.erfc(-(m1 - m2) / math.hypot(s1, s2) / math.sqrt(2))
        assert abs(p[0] - exact) <= error
        assert error < 2e-3


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(1e-4, 1)), min_size=2, max_size=6))
def test_chances_are_probabilities_and_follow_the_arms(arms):
    mean, sd = (np.array(column) for column in zip(*arms, strict=True))
    p, error = largest_probabilities(NormalBelief(mean, sd))
    assert p.sum() == pytest.approx(1.0)
    assert p.min() >= 0
    mirrored, _ = largest_probabilities(NormalBelief(mean[::-1], sd[::-1]))
    assert np.allclose(mirrored[::-1], p, atol=2 * error + 1e-9)


def test_the_beta_distribution_function_agrees_with_scipy():
    from scipy import stats

    x = np.concatenate([[0.0, 1e-12, 1e-5], np.linspace(0.01, 0.99, 99), [1 - 1e-9, 1.0]])
    for a, b in ((1, 1), (0.5, 0.5), (2, 5), (0.05, 3), (300, 700), (50_000, 3), (1e-3, 1e-3)):
        assert np.allclose(beta_cdf(float(a), float(b), x), stats.beta(a, b).cdf(x), atol=1e-9), (a, b)


def test_chances_of_beta_samples_agree_with_drawing_them():
    a, b = np.array([1.0, 8.0, 0.3, 300.0]), np.array([1.0, 3.0, 0.2, 150.0])
    p, error = largest_probabilities(BetaBelief(a, b))
    n = 200_000
    won = np.bincount(np.random.default_rng(1).beta(a, b, (n, 4)).argmax(axis=1), minlength=4) / n
    assert np.abs(p - won).max() < 4.9 * 0.5 / math.sqrt(n) + error  # false alarm: four in a million
    assert error < 2e-3


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_asking_for_chances_changes_nothing(policy):
    asked, silent = (Bandit(3, policy, reward_range=(0, 1), seed=8, clock=lambda: 1) for _ in range(2))
    for n in range(30):
        one, two = asked.decide().arm, silent.decide().arm
        assert one == two
        before = asked.snapshot()
        asked.probabilities(draws=20)
        assert asked.snapshot() == before
        play_arm(asked, one, n % 2)
        play_arm(silent, two, n % 2)
    assert asked.snapshot() == silent.snapshot()


def test_a_sampled_chance_of_zero_is_not_called_exact():
    bandit = Bandit(2, Stubborn(), seed=9, **ALONE)
    chances = bandit.probabilities(draws=100)
    assert chances[1] == 0.0
    assert chances.error >= 0.01
    for draws in (0, -1, 2.5, True, "many"):
        with pytest.raises(ValueError, match="probabilities needs draws of 1 or more"):
            bandit.probabilities(draws=draws)
