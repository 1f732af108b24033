"""The discounts of the corollaries, and the beta that they admit."""

import math

import pytest

from driftbandit.paper.theory.theorem import smallest_beta
from theory import letters as f
from theory.environments import shows
from theory.letters import longest_horizon


@pytest.mark.parametrize(("horizon", "exponent"), [(10**4, "0.75"), (10**5, "0.70")])
def test_the_papers_smooth_discount_is_not_beta_one_half(horizon, exponent):
    beta = 1 + math.log(10 / math.sqrt(horizon)) / math.log(horizon)
    assert shows(beta, exponent)


@pytest.mark.parametrize(
    ("horizon", "drift", "third", "one"),
    [(10**4, 1e-3, "0.880", "0.761"), (10**4, 1e-4, "0.630", "0.511"), (10**5, 1e-4, "0.723", "0.628")],
)
def test_beta_one_half_is_not_admissible_in_the_papers_smooth_settings(horizon, drift, third, one):
    assert shows(smallest_beta(horizon, 1 / 3, drift), third)
    assert shows(smallest_beta(horizon, 1.0, drift), one)


def test_arms_that_cross_can_bind_beta_too():
    inner = 0.1 / (24 * 23 * math.log(10**4))
    crossing = 0.5 - math.log(math.sqrt(inner)) / math.log(10**4)
    assert smallest_beta(10**4, 0.1, 1e-6, constant=1.0, crossings=23) == pytest.approx(crossing, rel=1e-12)
    assert smallest_beta(10**4, 0.1, 1e-6) < crossing


def test_a_fast_drift_leaves_no_beta():
    assert smallest_beta(1000, 0.1, 0.5) > 1.0


@pytest.mark.parametrize(
    ("beta", "gap", "longest"), [(0.5, 1 / 3, 183), (0.5, 1.0, 917), (0.75, 1 / 3, 33_808), (0.75, 1.0, 842_032)]
)
def test_corollary_2_fits_theorem_2_up_to_a_finite_horizon_only(beta, gap, longest):
    assert longest_horizon(drift=1e-3, gap=gap, beta=beta) == longest
    for horizon, fits in ((longest, True), (longest + 1, False)):
        assert (2e-3 * f.D(horizon ** (beta - 1)) < gap / 3) is fits


def test_without_drift_no_horizon_is_too_long_and_with_much_every_one_is():
    assert longest_horizon(drift=0.0, gap=0.1, beta=0.5) is None
    assert longest_horizon(drift=0.5, gap=0.1, beta=0.5) == 0
    assert longest_horizon(drift=1e-3, gap=0.1, beta=0.9999) == 0
