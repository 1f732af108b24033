"""The theorems as numbers, the conditions they rest on, and Table 1."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.paper.theory import bounds_for, diagnose
from driftbandit.paper.theory.theorem import first_useful_horizon, table1, theorem1, theorem2
from theory import letters as f
from theory.environments import Phases, Smooth, shows

MAIN = {"horizon": 10**5, "phases": 10, "gap": 0.1, "eps": 0.01}


def value(bound):
    return 10**bound.log10


def test_theorem_1_at_the_main_setting_is_5e16_times_the_horizon():
    proved = theorem1(**MAIN)
    assert shows(value(proved), "1.9009e21")
    assert shows(value(proved) * f.G(0.01), "5.1933e21")  # as printed, with G once more
    assert proved.failed == []
    assert proved.vacuous


def test_theorem_1_is_its_formula():
    expected = 10 * f.D(0.01) + (f.C(5.0) + 2) * f.L(0.01, 0.1) * f.G(0.01) * 10**5 * 0.01 * math.log(100)
    assert value(theorem1(**MAIN)) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    ("change", "proved"),
    [({}, "40.04"), ({"arms": 4}, "41.30"), ({"gap": 0.5}, "37.1"), ({"phases": 1}, "39.04")],
)
def test_theorem_1_says_something_only_beyond_ten_to_the_forty(change, proved):
    assert shows(first_useful_horizon(**({"phases": 10, "gap": 0.1} | change)), proved)


def test_no_horizon_helps_a_gap_of_zero():
    assert first_useful_horizon(phases=1, gap=0.0) == math.inf
    assert first_useful_horizon(phases=1, gap=1e-290) == math.inf


def test_just_beyond_that_horizon_the_bound_is_no_longer_vacuous():
    for exponent, vacuous in ((39, True), (42, False)):
        horizon = 10**exponent
        assert theorem1(horizon=horizon, phases=10, gap=0.1, eps=math.sqrt(10 / horizon)).vacuous is vacuous


def test_summing_over_arms_counts_the_rounds_near_a_change_once():
    one, all_arms = value(theorem1(**MAIN)), value(theorem1(**MAIN, arms=5))
    near = 10 * f.D(0.01)
    assert all_arms == pytest.approx(near + 5 * (one - near), rel=1e-11)


def test_all_k_arms_must_be_summed_once_the_best_arm_changes():
    # Two arms take turns at being best and the player is always wrong: k_T = (50, 50), so what bounds each of them,
    # taken K - 1 = 1 times, does not bound the regret.
    environment = Phases([[1.0, 0.0], [0.0, 1.0]], 50)
    wrong = environment.means(0, 100).argmin(axis=1)
    plays = [int((wrong == arm).sum()) for arm in range(2)]
    assert plays == [50, 50]
    assert sum(plays) > (2 - 1) * max(plays)
    assert diagnose(environment).suboptimal_arms == 2


def test_theorem_2_at_the_papers_settings_is_ten_to_the_sixteen_times_the_horizon():
    fig6a = theorem2(horizon=10**4, gap=0.3, drift=1e-3, eps=0.1, close_rounds=0, mu_max=0.8)
    fig6c = theorem2(horizon=10**5, gap=0.3, drift=1e-4, eps=10 / math.sqrt(10**5), close_rounds=0, mu_max=0.8)
    assert fig6a.failed == fig6c.failed == []
    assert shows(value(fig6a) / 10**4, "1.1e16")
    assert shows(value(fig6c) / 10**5, "5e15")


def test_theorem_2_is_its_formula():
    bound = theorem2(horizon=10**4, gap=0.3, drift=1e-4, eps=0.1, close_rounds=700)
    expected = 700 + f.M(0.1, 0.3, 1e-4, 5.0) * 10**4 * 0.1 * math.log(10)
    assert value(bound) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    ("horizon", "drift", "eps", "twice", "holds"),
    [
        (10**4, 1e-3, 0.1, "0.0716", True),
        (10**4, 1e-3, 0.01, "1.529", False),
        (10**5, 1e-4, 10 / math.sqrt(10**5), "0.0353", True),
        (10**5, 1e-4, 1 / math.sqrt(10**5), "0.616", False),
    ],
)
def test_the_papers_discount_meets_the_drift_condition_and_the_corollarys_does_not(horizon, drift, eps, twice, holds):
    assert shows(2 * drift * f.D(eps), twice)
    bound = theorem2(horizon=horizon, gap=1 / 3, drift=drift, eps=eps, close_rounds=0)
    assert [condition.text for condition in bound.failed] == ([] if holds else ["2 sigma D(gamma) < gap / 3"])
    assert (bound.log10 is None) is not holds


def test_theorem_2_needs_gaps_above_six_sigma_d():
    assert shows(6 * 1e-3 * f.D(0.1), "0.215")
    assert shows(6 * 1e-4 * f.D(10 / math.sqrt(10**5)), "0.106")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"eps": 0.0}, "gamma is in"),
        ({"eps": 1.0}, "gamma is in"),
        ({"eps": -0.2}, "gamma is in"),
        ({"eps": 0.5}, "gamma is in"),
        ({"gap": 0.0}, "the best arm is never tied"),
        ({"tau_max": 1e-9}, "tau_max is large enough"),
        ({"tau_max": 1e-300}, "tau_max is large enough"),
    ],
)
def test_a_bound_outside_its_domain_names_the_condition_that_fails(change, text):
    bound = theorem1(**(MAIN | change))
    assert any(text in condition.text for condition in bound.failed)
    assert bound.vacuous


@given(st.floats(1e-6, 1.0), st.floats(1e-300, 0.36))
def test_the_printed_floor_of_tau_max_implies_the_one_the_proof_needs(gap, eps):
    needed = f.smallest_tau_max(gap, eps)
    assert needed < 1 / (12 * math.sqrt(2))
    assert 1 / needed**2 == pytest.approx(f.A(eps, gap), rel=1e-9)
    problem = {"horizon": 10, "phases": 1, "gap": gap, "eps": eps}
    assert theorem1(**problem, tau_max=needed * 1.0001).failed == []
    assert len(theorem1(**problem, tau_max=needed * 0.9999).failed) == 1


def test_a_bound_of_thousands_of_digits_is_given_as_a_logarithm():
    assert theorem1(**(MAIN | {"tau_max": 0.01})).log10 > 2000


LEVELS = [[0.9, 0.5, 0.1], [0.5, 0.9, 0.1], [0.1, 0.5, 0.9]]


def bounds(environment, eps, **changes):
    return bounds_for(environment, eps, 0.2, diagnose(environment)._replace(**changes))


def test_at_practical_sizes_every_bound_is_vacuous():
    found = bounds(Phases(LEVELS, 1000), 0.03)
    assert [bound.name for bound in found] == [
        f"Theorem {n}, {scope}" for n in (1, 2) for scope in ("one arm", "3 arms")
    ]
    assert all(bound.verdict == "vacuous" for bound in found)


def test_theorem_2_applies_to_smooth_changes():
    assert [bound.failed for bound in bounds(Smooth(5, 10_000, 1e-3), 0.1)[-2:]] == [[], []]


def test_a_stationary_environment_with_a_huge_horizon_has_a_guarantee():
    assert {bound.verdict for bound in bounds(Phases([[1.0, 0.0]], 10), 10**-22.5, horizon=10**45)} == {"below T"}


def test_table_1_at_the_main_setting():
    assert table1(10**5, 10, 0.1) == pytest.approx({"cusum-ucb": 2000, "sw-ts": 10**4, "d-ucb": 10**5, "ds-ts": 10**5})


def test_halving_the_gap_doubles_the_order_of_sw_ts_and_quadruples_that_of_ds_ts():
    wide, narrow = table1(10**5, 10, 0.2), table1(10**5, 10, 0.1)
    assert narrow["sw-ts"] / wide["sw-ts"] == pytest.approx(2)
    assert narrow["ds-ts"] / wide["ds-ts"] == pytest.approx(4)
