"""How regret grows: the fit on lines with a known exponent, the orders' slopes, and a small run of the whole."""

import math

import numpy as np
import pytest

from driftbandit.environments import AbruptGap
from driftbandit.paper.theory import growth
from driftbandit.paper.theory.growth import Sweep

BASE = AbruptGap(n_arms=3, horizon=10_000, phases=4, gap=0.4)
HORIZON = Sweep("horizon T", "horizon", (1_000.0, 4_000.0, 16_000.0, 64_000.0), BASE)

EVERY = slice(None)  # all points of a sweep


def line(exponent, noise=0.0, runs=40, policy="ds-ts", sweep=HORIZON, seed=0):
    rng = np.random.default_rng(seed)
    mean = 2.0 * sweep.x() ** exponent
    return policy, sweep, mean[:, None] * np.exp(noise * rng.standard_normal((len(mean), runs)))


def test_a_power_law_without_noise_gives_its_exponent_exactly():
    fit = growth.fit(*line(0.5))
    assert fit.exponent == pytest.approx(0.5, abs=1e-12)
    assert (fit.low, fit.high, fit.last) == pytest.approx((0.5, 0.5, 0.5), abs=1e-12)
    assert fit.points == 4


def test_the_interval_covers_the_true_exponent_about_as_often_as_it_says():
    # 100 lines of 40 runs with 30 % noise. A percentile interval of nominal 95 % covers a little less; the probability
    # that a true 93 % gives 85 or fewer of 100 is about 1 in 200, and the seeds are fixed.
    hits = 0
    for seed in range(100):
        fit = growth.fit(*line(0.4, noise=0.3, seed=seed))
        hits += fit.low <= 0.4 <= fit.high
    assert hits >= 86


def test_points_that_cost_half_of_uniform_play_are_not_fitted():
    # Uniform play costs T gap (1 - 1/K) = 0.2667 T; 2 T^0.9 is more than half of that at all these horizons.
    fit = growth.fit(*line(0.9))
    assert fit.points == 0
    assert math.isnan(fit.exponent)
    assert fit.verdict == "saturated"


def test_a_verdict_compares_the_interval_with_the_order():
    fit = growth.fit(*line(0.5))
    assert fit._replace(low=0.4, high=0.6).verdict == "as the order"
    assert fit._replace(low=0.6, high=0.7).verdict == "steeper in this range"
    assert fit._replace(low=0.1, high=0.2).verdict == "flatter"
    assert fit._replace(order=None).verdict == "not in the order"


@pytest.mark.parametrize(
    ("policy", "slope"), [("ds-ts", 2.0), ("ds-ts, tau_max 1", 2.0), ("sw-ts", 1.0), ("d-ucb", 2.0)]
)
def test_table_1_grows_with_the_inverse_gap_as_printed(policy, slope):
    sweep = Sweep("1 / gap", "gap", (0.5, 0.25, 0.125), BASE)
    assert growth.order_slope(policy, sweep, EVERY) == pytest.approx(slope, abs=1e-9)


def test_the_order_of_cusum_lies_between_its_two_terms():
    sweep = Sweep("1 / gap", "gap", (0.5, 0.05, 0.005), BASE)
    assert 0.0 < growth.order_slope("cusum-ucb", sweep, EVERY) < 2.0


def test_every_order_grows_as_the_root_of_horizon_and_phases_and_none_knows_the_arms():
    phases = Sweep("phases B_T", "phases", (2, 8, 32), BASE)
    for policy in ("ds-ts", "sw-ts", "d-ucb"):
        assert growth.order_slope(policy, HORIZON, EVERY) == pytest.approx(0.5, abs=1e-9)
        assert growth.order_slope(policy, phases, EVERY) == pytest.approx(0.5, abs=1e-9)
    assert growth.order_slope("ds-ts", Sweep("arms K", "n_arms", (2, 4, 8), BASE), EVERY) is None


def test_the_gap_stands_on_the_axis_as_its_inverse():
    sweep = Sweep("1 / gap", "gap", (0.5, 0.25), BASE)
    assert sweep.x().tolist() == [2.0, 4.0]
    assert sweep.environment(0.25).gap == 0.25
    assert HORIZON.environment(4_000.0).horizon == 4_000


def test_a_small_run_of_the_whole_fits_every_policy_in_every_sweep():
    chosen = [
        Sweep("horizon T", "horizon", (1_000, 2_000, 4_000), BASE),
        Sweep("arms K", "n_arms", (2, 3, 4), BASE._replace(horizon=2_000)),
    ]
    some = {name: growth.POLICIES[name] for name in ("ds-ts", "cusum-ucb")}
    fits = growth.growth(8, progress=False, sweeps=chosen, policies=some).fits
    assert [(fit.sweep, fit.policy) for fit in fits] == [
        (sweep, policy) for sweep in ("horizon T", "arms K") for policy in ("ds-ts", "cusum-ucb")
    ]


def test_below_the_cap_ds_ts_explores_at_a_fixed_rate_so_its_regret_is_linear_in_the_horizon():
    # gap 0.4 at tau_max 0.2: a wrong arm's sample passes with probability P(Z > 2) = 0.023 while its spread is capped.
    # One phase, so nothing but this is paid for: doubling T at the same gamma doubles regret. The two means of 40 runs
    # each have a relative error of about 2 %, so 12 % is four standard errors of their ratio.
    from driftbandit.lab.engine.simulate import simulate
    from driftbandit.policies.discounted_ts import DiscountedTS

    environment = AbruptGap(n_arms=2, horizon=40_000, phases=1, gap=0.4)
    regret = simulate(DiscountedTS(gamma=0.99), environment, 40, 0, checkpoints=np.array([20_000, 40_000])).regret.mean(
        axis=0
    )
    assert regret[1] / regret[0] == pytest.approx(2.0, rel=0.12)
