"""Distribution functions held to SciPy, mpmath's formulas and limits, and chances that are always a distribution."""

import math

import numpy as np
import pytest
from scipy import special

from driftbandit import Bandit
from driftbandit.core.beliefs import BetaBelief, NormalBelief, beta_cdf, largest_probabilities, normal_cdf
from driftbandit.policies import BetaTS, DiscountedBetaTS, SlidingTS
from live_policies import LIVE, make
from small_policies import chosen, play_arm

SIZES = (1e-100, 1e-6, 1e-3, 0.05, 0.5, 1.0, 2.0, 10.0, 300.0, 3e3, 5e4, 1e6)


def around(a: float, b: float) -> np.ndarray:
    mean = a / (a + b)
    near = mean + math.sqrt(mean * (1.0 - mean) / (a + b + 1.0)) * np.linspace(-8, 8, 60)
    ends = [0.0, 1e-300, 1e-30, 1e-12, 1e-5, 1 - 1e-9, 1.0]
    return np.unique(np.clip(np.concatenate([ends, np.linspace(0.01, 0.99, 40), near]), 0.0, 1.0))


@pytest.mark.parametrize("a", SIZES)
@pytest.mark.parametrize("b", SIZES)
def test_the_beta_distribution_function_is_scipys(a, b):
    x = around(a, b)
    assert np.abs(beta_cdf(a, b, x) - special.betainc(a, b, x)).max() < 1e-9


@pytest.mark.parametrize("n", [1e6, 1e8, 1e12, 1e15, 1e30, 1e100, 1e300])
def test_for_huge_parameters_it_tends_to_the_normal_and_the_gamma_law(n):
    """Where SciPy's own is off (by 0.13 at 1e15), limits whose error is known: the skewness 2 (b - a) sqrt(a + b + 1)
    / ((a + b + 2) sqrt(a b)) over 6 for the normal, 1 / n for the gamma law."""
    z = np.linspace(-6, 6, 200)
    if n <= 1e15:  # beyond, places this close together are the same number
        for share in (0.5, 0.2, 0.99):
            a, b = share * n, (1 - share) * n
            x = share + math.sqrt(share * (1 - share) / (n + 1)) * z
            exact_z = (x - share) / math.sqrt(share * (1 - share) / (n + 1))
            skew = abs(b - a) / math.sqrt(a) / math.sqrt(b) / math.sqrt(n)
            off = np.abs(beta_cdf(a, b, x) - special.ndtr(exact_z)).max()
            assert off < skew / 6 + 2 / n + 1e-7, (share, off, skew / 6)
    for a in (0.5, 1.0, 2.0, 30.0):
        y = special.gammaincinv(a, np.linspace(0.001, 0.999, 100))
        assert np.abs(beta_cdf(a, n, y / n) - special.gammainc(a, y)).max() < 10 * a / n + 1e-9
        if n <= 1e8:  # the mirror image; beyond, 1 - y / n has lost y
            assert np.abs(beta_cdf(n, a, 1 - y / n) - special.gammaincc(a, y)).max() < 10 * a / n + 1e-5


def test_the_normal_distribution_function_is_scipys():
    z = np.concatenate([np.linspace(-40, 40, 50_001), [-np.inf, np.inf]])
    assert np.abs(normal_cdf(z) - special.ndtr(z)).max() < 1e-12


@pytest.mark.parametrize("prior", [1e-100, 1.0, 1e3, 1e6, 1e8, 1e15])
@pytest.mark.parametrize("cls", [BetaTS, DiscountedBetaTS, SlidingTS])
def test_chances_under_large_and_small_priors_are_a_distribution(cls, prior):
    bandit = Bandit(3, cls(prior_wins=prior, prior_losses=prior), reward_range=(0, 1), seed=1, first=False, floor=0.0)
    for n in range(30):
        play_arm(bandit, 0, 1.0)
        play_arm(bandit, 1, float(n % 2))
    chances = bandit.probabilities()
    assert sum(chances.values()) == pytest.approx(1.0, abs=1e-12)
    assert all(chance >= 0.0 for chance in chances.values())
    assert chances.error < 0.01
    if prior < 1.0:
        return  # most samples are 0 or 1 to the last bit, and chances know no ties
    n = 4000
    arms = chosen(bandit, n)
    for arm, chance in chances.items():  # false alarm: one in a million per arm
        slack = 4.9 * math.sqrt(max(chance * (1 - chance), 1 / n) / n) + chances.error
        assert abs(arms.count(arm) / n - chance) < slack


def test_beliefs_beyond_all_measure_still_give_a_distribution():
    for a, b in (([1e300, 1e300], [1e300, 2e300]), ([1e308, 1.0], [1e308, 1.0]), ([1e-300, 1e300], [1e300, 1e-300])):
        p, _ = largest_probabilities(BetaBelief(np.array(a), np.array(b)))
        assert p.sum() == pytest.approx(1.0)
    for mean, sd in (([0.0, 1e100], [1e-60, 1e100]), ([1.0, 1.0], [1e-60, 1e-60]), ([0.0, 0.0], [1e100, 1e-60])):
        p, _ = largest_probabilities(NormalBelief(np.array(mean), np.array(sd)))
        assert p.sum() == pytest.approx(1.0)
    p, _ = largest_probabilities(NormalBelief(np.array([0.0, 1.0, 1.0]), np.full(3, 1e-60)))
    assert p == pytest.approx([0.0, 0.5, 0.5])
    p, _ = largest_probabilities(BetaBelief(np.full(3, 1e299), np.array([1e299, 1e299, 2e299])))
    assert p == pytest.approx([0.5, 0.5, 0.0])


def test_many_arms_have_chances_too():
    for belief in (
        NormalBelief(np.linspace(0, 1, 1000), np.full(1000, 0.1)),
        BetaBelief(np.tile([1.0, 3.0], 500), np.tile([1.0, 2.0], 500)),
    ):
        p, error = largest_probabilities(belief)
        assert p.sum() == pytest.approx(1.0)
        assert error < 1e-3


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if "LBSDA" in name else ()) for name in LIVE]
)
def test_chances_are_a_distribution_in_every_state_of_every_policy(name):
    """At the start, in play, without the leader, without all arms but two, with a new arm; all rules on or off."""
    for options in ({}, {"first": False, "floor": 0.0}):
        bandit = Bandit(list("abcde"), make(name), reward_range=(0, 1), seed=3, **options)
        reward_rng = np.random.default_rng(1)

        def looks_right(bandit=bandit):
            chances = bandit.probabilities(draws=30)
            assert list(chances) == bandit.arms
            assert sum(chances.values()) == pytest.approx(1.0, abs=1e-9)
            assert all(0.0 <= chance <= 1.0 for chance in chances.values())
            assert math.isfinite(chances.error)
            assert bandit.decide().arm in bandit.arms

        looks_right()
        for t in range(300):
            decision = bandit.decide()
            arm = decision.arm
            bandit.reward(decision, float(reward_rng.random() < (0.9 if arm == "a" else 0.1)))
            if t % 60 == 0:
                looks_right()
        for arm in ("a", "c", "d"):  # the leader first
            bandit.retire_arm(arm)
            looks_right()
        bandit.add_arm("new")
        looks_right()
