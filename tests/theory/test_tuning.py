import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.paper.theory.bound import beta_interval, corollary1, corollary2
from driftbandit.paper.theory.theorem import first_useful_horizon, tau_max_condition
from theory import letters as f
from theory.letters import longest_horizon, smallest_tau_max
from theory.worlds import shows


def test_corollary_1_gives_the_papers_gamma():
    tuning = corollary1(100_000, 10)
    assert tuning.gamma == pytest.approx(0.99, abs=1e-15)
    assert tuning.holds


def test_corollary_1_works_where_gamma_rounds_to_one():
    tuning = corollary1(10**500, 1)
    assert tuning.eps == pytest.approx(1e-250, rel=1e-9)
    assert tuning.gamma == 1.0


@pytest.mark.parametrize(("horizon", "phases"), [(73, 10), (10, 10), (0, 1), (100, 0), (math.nan, 1)])
def test_corollary_1_says_when_the_horizon_is_too_short(horizon, phases):
    assert not corollary1(horizon, phases).holds


def test_corollary_1_needs_e_squared_rounds_a_phase():
    assert corollary1(74, 10).holds
    assert not corollary1(73, 10).holds


def test_corollary_2_gives_one_over_the_root_of_the_horizon_at_beta_one_half():
    assert corollary2(10_000, 0.5).eps == pytest.approx(0.01, rel=1e-12)
    assert not corollary2(10_000, 1.0).holds
    assert not corollary2(5, 0.5).holds
    assert corollary2(10_000, -1.0).eps is None


@pytest.mark.parametrize(("horizon", "exponent"), [(10**4, "0.75"), (10**5, "0.70")])
def test_the_papers_smooth_discount_is_not_beta_one_half(horizon, exponent):
    beta = 1 + math.log(10 / math.sqrt(horizon)) / math.log(horizon)
    assert shows(beta, exponent)


@pytest.mark.parametrize(
    ("horizon", "drift", "third", "one"),
    [(10**4, 1e-3, "0.880", "0.761"), (10**4, 1e-4, "0.630", "0.511"), (10**5, 1e-4, "0.723", "0.628")],
)
def test_beta_one_half_is_not_admissible_in_the_papers_smooth_settings(horizon, drift, third, one):
    wide = beta_interval(horizon=horizon, gap=1.0, drift=drift)
    narrow = beta_interval(horizon=horizon, gap=1 / 3, drift=drift)
    assert shows(narrow.low, third)
    assert shows(wide.low, one)
    assert not wide.admits(0.5)
    assert not wide.empty
    assert wide.admits(1.0)


def test_arms_that_cross_can_bind_beta_too():
    interval = beta_interval(horizon=10**4, gap=0.1, drift=1e-6, constant=1.0, crossings=23)
    inner = 0.1 / (24 * 23 * math.log(10**4))
    assert interval.crossing_term == pytest.approx(0.5 - math.log(math.sqrt(inner)) / math.log(10**4), rel=1e-12)
    assert interval.low == max(interval.drift_term, interval.crossing_term)


@pytest.mark.parametrize("change", [{"horizon": 1}, {"gap": 0.0}, {"drift": 0.0}, {"crossings": 2}])
def test_an_interval_that_cannot_be_computed_says_why(change):
    interval = beta_interval(**({"horizon": 100, "gap": 0.5, "drift": 1e-3} | change))
    assert interval.empty
    assert [condition.holds for condition in interval.conditions].count(False) == 1


def test_a_fast_drift_leaves_no_beta():
    assert beta_interval(horizon=1000, gap=0.1, drift=0.5).empty


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


@given(st.floats(1e-6, 1.0), st.floats(1e-300, 0.36))
def test_the_printed_floor_of_tau_max_implies_the_one_the_proof_needs(gap, eps):
    assert smallest_tau_max(gap, eps) < 1 / (12 * math.sqrt(2))
    needed = smallest_tau_max(gap, eps)
    assert 1 / needed**2 == pytest.approx(f.A(eps, gap), rel=1e-9)
    assert tau_max_condition(needed * 1.0001, gap, eps).holds
    assert not tau_max_condition(needed * 0.9999, gap, eps).holds


def test_the_papers_tau_max_is_allowed_and_a_twentieth_only_by_the_proof():
    assert tau_max_condition(0.2, 0.1, 0.01, "printed").holds
    assert not tau_max_condition(0.05, 0.1, 0.01, "printed").holds
    assert tau_max_condition(0.05, 0.1, 0.01).holds


def test_no_horizon_helps_a_gap_of_zero():
    assert first_useful_horizon(phases=1, gap=0.0) is None
    assert first_useful_horizon(phases=1, gap=1e-290) is None
