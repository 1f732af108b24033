import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.paper.theory.diagnosis import diagnose
from driftbandit.paper.theory.theorem import first_useful_horizon, theorem1, theorem2
from theory import letters as f
from theory.worlds import Phases, shows

MAIN = {"horizon": 10**5, "phases": 10, "gap": 0.1, "eps": 0.01}


def test_theorem_1_at_the_main_setting_is_5e16_times_the_horizon():
    printed, proved = theorem1(**MAIN, form="printed"), theorem1(**MAIN)
    assert shows(printed.value, "5.1933e21")
    assert shows(proved.value, "1.9009e21")
    assert printed.value / proved.value == pytest.approx(f.G(0.01), rel=1e-12)
    assert proved.holds
    assert proved.vacuous
    assert not proved.promises
    assert proved.scope == "one arm"


def test_theorem_1_is_its_formula():
    value = 10 * f.D(0.01) + (f.C(5.0) + 2) * f.L(0.01, 0.1) * f.G(0.01) * 10**5 * 0.01 * math.log(100)
    assert theorem1(**MAIN).value == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize(
    ("change", "printed", "proved"),
    [
        ({}, "40.95", "40.04"),
        ({"sum_over": 4}, "42.21", "41.30"),
        ({"gap": 0.5}, "38.0", "37.1"),
        ({"phases": 1}, "39.95", "39.04"),
        ({"tau_max": 1 / 3}, "40.95", "40.04"),
    ],
)
def test_theorem_1_says_something_only_beyond_ten_to_the_forty(change, printed, proved):
    problem = {"phases": 10, "gap": 0.1} | change
    assert shows(first_useful_horizon(**problem, form="printed"), printed)
    assert shows(first_useful_horizon(**problem), proved)


def test_just_beyond_that_horizon_the_bound_is_no_longer_vacuous():
    for exponent, vacuous in ((39, True), (42, False)):
        horizon = 10**exponent
        assert theorem1(horizon=horizon, phases=10, gap=0.1, eps=math.sqrt(10 / horizon)).vacuous is vacuous


def test_summing_over_arms_counts_the_rounds_near_a_change_once():
    one, all_arms = theorem1(**MAIN).value, theorem1(**MAIN, sum_over=5).value
    near = 10 * f.D(0.01)
    assert all_arms == pytest.approx(near + 5 * (one - near), rel=1e-11)
    assert theorem1(**MAIN, sum_over=5).scope == "all arms"


def test_all_k_arms_must_be_summed_once_the_best_arm_changes():
    # Two arms take turns at being best and the player is always wrong: k_T = (50, 50), so what bounds each of them,
    # taken K - 1 = 1 times, does not bound the regret.
    world = Phases([[1.0, 0.0], [0.0, 1.0]], 50)
    wrong = world.means(0, 100).argmin(axis=1)
    plays = [int((wrong == arm).sum()) for arm in range(2)]
    assert plays == [50, 50]
    assert sum(plays) > (2 - 1) * max(plays)
    assert diagnose(world).suboptimal_arms == 2


def test_theorem_2_at_the_papers_settings_is_ten_to_the_sixteen_times_the_horizon():
    fig6a = theorem2(horizon=10**4, gap=0.3, drift=1e-3, eps=0.1, close_rounds=0, mu_max=0.8)
    fig6c = theorem2(horizon=10**5, gap=0.3, drift=1e-4, eps=10 / math.sqrt(10**5), close_rounds=0, mu_max=0.8)
    assert fig6a.holds
    assert fig6c.holds
    assert shows(fig6a.value / 10**4, "1.1e16")
    assert shows(fig6c.value / 10**5, "5e15")


def test_theorem_2_is_its_formula_in_both_forms():
    common = {"horizon": 10**4, "gap": 0.3, "drift": 1e-4, "eps": 0.1}
    rest = f.M(0.1, 0.3, 1e-4, 5.0) * 10**4 * 0.1 * math.log(10)
    proved = theorem2(**common, close_rounds=700)
    printed = theorem2(**common, constant=50.0, beta=0.5)
    assert proved.value == pytest.approx(700 + rest, rel=1e-11)
    assert printed.value == pytest.approx(50 * 0.3 * 100 + rest, rel=1e-11)
    assert (proved.name, printed.name) == ("Theorem 2 as proved", "Theorem 2 as printed")


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
    assert bound.holds is holds
    if not holds:
        assert [condition.text for condition in bound.failed] == ["2 sigma D(gamma) < gap / 3"]
        assert bound.log10 is None


def test_theorem_2_needs_gaps_above_six_sigma_d():
    assert shows(6 * 1e-3 * f.D(0.1), "0.215")
    assert shows(6 * 1e-4 * f.D(10 / math.sqrt(10**5)), "0.106")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"eps": 0.0}, "gamma lies in"),
        ({"eps": 1.0}, "gamma lies in"),
        ({"eps": -0.2}, "gamma lies in"),
        ({"eps": 1.5}, "gamma lies in"),
        ({"eps": math.nan}, "gamma lies in"),
        ({"eps": 0.5}, "gamma lies in"),
        ({"gap": 0.0}, "the best arm is never tied"),
        ({"gap": -0.1}, "the best arm is never tied"),
        ({"gap": math.nan}, "the best arm is never tied"),
        ({"horizon": 0}, "the horizon T is at least 1"),
        ({"horizon": math.inf}, "the horizon T is at least 1"),
        ({"phases": 0}, "the number of phases"),
        ({"phases": 10**6}, "the number of phases"),
        ({"mu_max": 0.0}, "the largest mean"),
        ({"mu_max": 1.5}, "the largest mean"),
        ({"tau_max": 0.0}, "tau_max >="),
        ({"tau_max": 1e-9}, "tau_max >="),
    ],
)
@pytest.mark.parametrize("form", ["proved", "printed"])
def test_bad_input_is_answered_by_the_condition_that_fails(change, text, form):
    bound = theorem1(**(MAIN | change), form=form)
    assert not bound.holds
    assert any(text in condition.text for condition in bound.failed)
    assert bound.vacuous
    assert text in str(bound)


@given(
    eps=st.floats(allow_nan=True, allow_infinity=True),
    gap=st.floats(allow_nan=True, allow_infinity=True),
    horizon=st.one_of(st.integers(-5, 10**400), st.floats(allow_nan=True)),
    phases=st.integers(-2, 10**400),
    tau_max=st.floats(allow_nan=True),
    drift=st.floats(allow_nan=True),
)
def test_no_input_gives_an_infinite_or_undefined_number(eps, gap, horizon, phases, tau_max, drift):
    bounds = [
        theorem1(horizon=horizon, phases=phases, gap=gap, eps=eps, tau_max=tau_max),
        theorem2(horizon=horizon, gap=gap, drift=drift, eps=eps, tau_max=tau_max, close_rounds=3),
        theorem2(horizon=horizon, gap=gap, drift=drift, eps=eps, tau_max=tau_max, constant=gap, beta=0.5),
    ]
    for bound in bounds:
        assert bound.log10 is None or math.isfinite(bound.log10)
        assert bound.value is None or math.isfinite(bound.value)
        assert bound.log10 is not None or not bound.holds
        assert str(bound)


def test_a_bound_of_thousands_of_digits_is_given_as_a_logarithm():
    bound = theorem1(**(MAIN | {"tau_max": 0.01}))
    assert bound.value is None
    assert bound.log10 > 2000
    assert "10^2" in str(bound)


def test_theorem_2_wants_one_way_of_counting_close_rounds():
    with pytest.raises(ValueError, match="either close_rounds, or constant and beta"):
        theorem2(horizon=10, gap=0.1, drift=0.0, eps=0.1)


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match='form is "proved" or "printed"'):
        theorem1(**MAIN, form="guessed")
