"""Beta draws have the law they are asked for, at every size of their parameters."""

import math

import numpy as np
import pytest
from scipy import stats

from draws_of_rounds import ALARM, assert_independent
from driftbandit.core import draws
from driftbandit.core.draws import POLICY, Draws, Stream, log_of_unit, round_key, stream_key
from driftbandit.core.primitives import exponent_and_rest

SHAPES = [(1.0, 1.0), (2.0, 5.0), (0.5, 0.5), (0.1, 3.0), (1.0, 0.2), (30.0, 70.0), (4000.0, 12.0), (1.3, 0.999)]


def test_beta_draws_have_the_law_they_are_asked_for():
    stream, n = Stream(stream_key(12, 0, POLICY)), 20_000
    a, b = [list(column) for column in zip(*SHAPES, strict=True)]
    table, out = np.empty((n, len(SHAPES))), [0.0] * len(SHAPES)
    for t in range(n):
        stream.at(t).betas(a, b, out)
        table[t] = out
    for arm, (shape_a, shape_b) in enumerate(SHAPES):
        assert stats.kstest(table[:, arm], stats.beta(shape_a, shape_b).cdf).pvalue > ALARM, (shape_a, shape_b)
    u = [stats.beta(*shapes).cdf(table[:, arm]) for arm, shapes in enumerate(SHAPES)]
    for arm in range(1, len(SHAPES)):  # between arms, and between rounds
        assert_independent(u[arm - 1], u[arm], cells=8)
        assert_independent(u[arm][1:], u[arm][:-1], cells=8)


@pytest.mark.parametrize("shape", [0.01, 0.001])
def test_beta_draws_of_tiny_parameters_are_neither_lost_nor_not_a_number(shape):
    # Half of all mass lies below 1e-30 for shape 0.01: a gamma that underflows would give 0/0.
    stream, n = Stream(stream_key(13, 0, POLICY)), 8000
    values = np.empty(n)
    for t in range(n):
        values[t] = stream.at(t).beta(shape, shape, 0)
    assert np.isfinite(values).all()
    edges = np.array([0.0, 1e-250, 1e-100, 1e-30, 1e-6, 0.5, 1 - 1e-6, 1 - 1e-12])
    cdf = stats.beta(shape, shape).cdf
    expected = np.append(np.diff(cdf(edges)), 1 - cdf(edges[-1]))
    observed = np.histogram(values, np.append(edges, 1.0))[0]
    assert stats.chisquare(observed, expected / expected.sum() * n).pvalue > ALARM


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 2.0), (1.05, 1.4), (3.0, 1.0), (60.0, 1.2)])
def test_one_attempt_at_a_beta_draw_has_the_right_law_where_it_is_accepted(a, b):
    # Many at once, so that a bound or a test that is slightly off shows: 300,000 attempts.
    keys = round_key(np.uint64(stream_key(16, 0, POLICY)) + np.arange(300_000, dtype=np.uint64), 0)
    x, y, u = Draws(keys).beta_material(3, 0)
    ga, gb, sure = draws.beta_attempt(a, b, x, y, u)
    with np.errstate(invalid="ignore"):
        accepted = draws.beta_passes(a, b, x, y, u)
    assert not (sure & ~accepted).any()  # the quick look never accepts what the exact test refuses
    assert (accepted & ~sure).sum() < 0.04 * len(keys)  # and leaves little to it
    values = (ga / (ga + gb))[accepted]
    assert stats.kstest(values, stats.beta(a, b).cdf).pvalue > ALARM
    assert stats.kstest(ga[accepted], stats.gamma(a).cdf).pvalue > ALARM
    assert_independent(stats.gamma(a).cdf(ga[accepted]), stats.gamma(b).cdf(gb[accepted]), cells=12)


def test_a_huge_parameter_does_not_disturb_the_draw_of_the_other():
    # Both gammas are accepted by one number, so what rounding does to the probability of a huge one would reach the
    # other.
    keys = round_key(np.uint64(stream_key(18, 0, POLICY)) + np.arange(300_000, dtype=np.uint64), 0)
    x, y, u = Draws(keys).beta_material(0, 0)
    for huge in (1e9, 1e16, 1e100):
        ga, _, _ = draws.beta_attempt(1.2, huge, x, y, u)
        accepted = draws.beta_passes(1.2, huge, x, y, u)
        assert accepted.mean() == pytest.approx(0.963, abs=0.002)
        assert stats.kstest(ga[accepted], stats.gamma(1.2).cdf).pvalue > ALARM


@pytest.mark.parametrize(
    "x", [1.0, 0.5, 2.0**-0.5, 0.70710678118654746, 0.7071067811865477, 3.0, 1e-300, 1e300, 2.3e-308]
)
def test_a_number_is_taken_apart_alike_by_python_and_by_its_bits(x):
    k, f = exponent_and_rest(x)
    assert (k, f) == tuple(float(part[0]) for part in exponent_and_rest(np.array([x])))
    assert math.ldexp(1.0 + f, int(k)) == x
    assert float(log_of_unit(np.array([x]))[0]) == log_of_unit(x)


@pytest.mark.parametrize("d", [2.0 / 3.0, 0.7, 1.0, 1.6, 4.0, 50.0, 1e6])
def test_the_bound_on_the_chance_to_accept_a_gamma_candidate_holds(d):
    # On a grid of y = z / sqrt(9 d). Next to y = 0 both sides are 1 but for rounding.
    y = np.concatenate([-np.geomspace(0.01, 1.0 - 1e-9, 200_000), np.geomspace(0.01, 30.0, 100_000)])
    z = y * math.sqrt(9.0 * d)
    v, candidate, missing = draws.gamma_candidate(d, z)
    chance = np.exp(d * (1.5 * y**2 - 3.0 * y - y**3 + 3.0 * np.log1p(y)))
    assert (1.0 - missing <= chance + 1e-12).all()
    assert np.allclose(candidate, d * (1.0 + y) ** 3, rtol=1e-9, atol=1e-12)
    assert np.allclose(np.exp(draws.gamma_log_probability(d, z, v)), chance, rtol=1e-7, atol=1e-12)
    low = -np.geomspace(1.0, 50.0, 1000) * math.sqrt(9.0 * d)
    assert (draws.gamma_candidate(d, low)[2] > 1.0).all()  # no candidate below 0 is ever taken unseen


class FirstRefused:
    """A round whose first attempts are never accepted."""

    def __init__(self, round_):
        self.round = round_

    def beta_material(self, arm, attempt):
        return (-100.0, 0.0, 0.5) if attempt < 3 else self.round.beta_material(arm, attempt)


def test_a_refused_attempt_is_repeated_with_other_numbers():
    stream = Stream(stream_key(14, 0, POLICY))
    values = np.array([draws.beta_from(FirstRefused(stream.at(t)), 1.2, 1.7, 0) for t in range(8000)])
    assert stats.kstest(values, stats.beta(1.2, 1.7).cdf).pvalue > ALARM
