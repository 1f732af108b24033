import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theory import letters as f
from theory.environments import shows

# gamma, then D, G, U sqrt(N) and n^2 as rounded reference values
ANCHORS = [
    (0.9, "35.7927", "2.867972", "0.479853", "321.0994"),
    (0.9051316702, "38.66449", "2.859553", "0.472694", "320.2161"),
    (0.96837722, "176.3967", "2.762546", "0.330486", "306.3916"),
    (0.99, "764.46806", "2.731999", "0.214597", "298.27234"),
    (0.99683772, "3082.319", "2.722592", "0.134921", "293.7544"),
    (0.9975, "4071.939", "2.721687", "0.122387", "293.1137"),
]
INSIDE = st.floats(1e-12, 0.367)


@pytest.mark.parametrize(("gamma", "d", "g", "u", "n_squared"), ANCHORS)
def test_the_letters_have_their_known_values(gamma, d, g, u, n_squared):
    eps = 1.0 - gamma
    assert shows(f.D(eps), d)
    assert shows(f.G(eps), g)
    assert shows(f.U(eps, 1.0), u)
    assert shows(f.n(eps) ** 2, n_squared)


def test_the_letters_at_gamma_99_and_a_gap_of_one_tenth():
    assert shows(f.m(0.01), "172.70563")
    assert shows(f.n(0.01), "17.270563")
    assert shows(f.A(0.01, 0.1), "137359.488")
    assert shows(f.L(0.01, 0.1), "2098233.765")
    assert shows(f.L(0.01, 0.1) * f.G(0.01), "5732372.6")
    assert shows(f.U(0.01, 25.0), "0.0429193")
    assert shows(f.F(1.0), "0.1209854")
    assert shows(f.F(5.0), "2.859076e-7")
    assert shows(1.0 / f.F(5.0), "3497633.51")
    assert shows(f.C(5.0), "7.2008397e10")


def test_the_delay_stays_right_where_gamma_itself_rounds_to_one():
    eps = 1e-20
    assert 1.0 - eps == 1.0
    assert f.D(eps) == pytest.approx((2 * 20 * math.log(10) - math.log(20 * math.log(10))) * 1e20, rel=1e-12)
    assert f.G(eps) == pytest.approx(math.e, rel=1e-12)


def test_without_evidence_an_arm_may_be_anywhere():
    assert f.U(0.1, 0.0) == math.inf


@given(INSIDE)
def test_logarithms_agree_with_the_plain_forms(eps):
    assert f.log_D(eps) == pytest.approx(math.log(f.D(eps)), rel=1e-12)
    assert f.log_A(eps, 0.3) == pytest.approx(math.log(f.A(eps, 0.3)), rel=1e-12)
    assert f.log_L(eps, 0.3) == pytest.approx(math.log(f.L(eps, 0.3)), rel=1e-12)


@given(INSIDE)
def test_m_n_and_the_594_of_theorem_2_fit_together(eps):
    m, n = f.m(eps), f.n(eps)
    assert n == pytest.approx(m * math.sqrt(eps), rel=1e-12)
    assert (1 / 3 - 1 / m) ** 2 * n**2 == pytest.approx(32.0, rel=1e-9)
    assert 288.0 < n**2 < 353.07 < 594.0


@given(INSIDE, st.floats(1e-3, 1.0), st.floats(1e-3, 1e6))
def test_the_bias_is_the_gap_over_m_times_the_root_of_a_over_n(eps, gap, count):
    assert f.U(eps, count) == pytest.approx(gap / f.m(eps) * math.sqrt(f.A(eps, gap) / count), rel=1e-9)


@given(st.floats(1e-6, 30.0))
def test_fact_1_encloses_the_gaussian_tail(a):
    tail = 0.5 * math.erfc(a / math.sqrt(2.0))
    assert f.F(a) <= tail * (1 + 1e-12)
    assert tail <= math.exp(-a * a / 2.0) / (a + math.sqrt(a * a + 4.0)) * (1 + 1e-12)


def test_e_to_the_25_is_nearly_the_smallest_constant_the_proof_can_use():
    def excess(log_r):
        root = math.sqrt(log_r)
        return math.exp(log_r / 2 - root) / (math.sqrt(2 * math.pi * math.e) * (root + 2)) - 2 * log_r

    assert excess(24.353) >= 0 > excess(24.352)
    assert all(excess(24.353 + 0.01 * step) >= 0 for step in range(5000))


@given(st.floats(0.0, 0.99), st.floats(1.1, 600.0))
def test_the_remark_after_corollary_2_bounds_the_delay(beta, log_horizon):
    lam = (1 - beta) * log_horizon
    if 1.0 < lam < 690.0:
        assert f.log_D(math.exp(-lam)) <= math.log(2 * lam) + lam + 1e-9


@given(st.floats(1e-3, 0.3), st.floats(0.05, 1.0), st.floats(0.0, 1e-5))
def test_m_of_theorem_2_is_what_it_says(eps, gap, drift):
    if gap / 3 - 2 * drift * f.D(eps) > 1e-3:
        margin = gap / 3 - 2 * drift * f.D(eps)
        expected = f.L(eps, gap) * f.G(eps) * (f.C(5.0) + 1) + 594 * f.G(eps) / margin**2
        assert f.M(eps, gap, drift, 5.0) == pytest.approx(expected, rel=1e-12)


def test_a_number_beyond_floats_has_a_logarithm():
    assert f.log_C(100.0) == pytest.approx(5000 + math.log(100.01) + 0.5 * math.log(2 * math.pi), rel=1e-9)
