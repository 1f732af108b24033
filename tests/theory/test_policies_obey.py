"""The deterministic lemmas on trajectories that real policies leave behind, not only on random arms."""

import math

import numpy as np
import pytest

from driftbandit.environments import Abrupt, Smooth
from driftbandit.lab.engine.simulate import simulate
from driftbandit.paper.theory import diagnose, pseudo_stationary
from driftbandit.policies.beta_ts import SlidingTS
from driftbandit.policies.detecting_ucb import CusumUCB
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.ucb import DiscountedUCB
from theory import lemmas

POLICIES = [
    DiscountedTS(gamma=0.9),
    DiscountedTS(gamma=0.97, tau_max=1.0),
    SlidingTS(window=60),
    DiscountedUCB(gamma=0.95),
    CusumUCB.tuned(3_000, 4, 4),
]
ABRUPT = Abrupt(n_arms=4, horizon=3_000, phases=4, instance="5")
SMOOTH = Smooth(n_arms=4, horizon=3_000, sigma=0.002)
EPS = (0.03, 0.1, 0.3)


def name(policy):
    return f"{policy.short}-{getattr(policy, 'gamma', '')}"


@pytest.fixture(scope="module", params=POLICIES, ids=name)
def played(request):
    """(environment, means, arms of two runs) for the abrupt and for the drifting environment."""
    out = []
    for environment in (ABRUPT, SMOOTH):
        arms = simulate(request.param, environment, 2, seed=3, trajectories=True, checkpoints=1, compiled=False).arms
        out.append((environment.realise(0), arms))
    return out


@pytest.mark.parametrize("eps", EPS)
def test_lemma_6_holds_for_every_arm_and_level(played, eps):
    for environment, runs in played:
        for arms in runs:
            for arm in range(environment.n_arms):
                for level in (0.5, 1.0, 2.0, 5.0, 1.0 / eps):
                    seen = lemmas.rare_plays(arms == arm, level, eps)
                    assert seen <= lemmas.rare_plays_limit(environment.horizon, level, eps) + 1e-9


@pytest.mark.parametrize("eps", EPS)
def test_lemma_1_holds_in_pseudo_stationary_rounds(played, eps):
    environment, runs = played[0]
    means = environment.means(0, environment.horizon)
    ranges = pseudo_stationary(environment.breakpoints.tolist(), environment.horizon, eps)
    assert len(ranges) == 4  # D(0.03) = 190.1: every phase of 750 rounds has settled rounds
    for arms in runs:
        for arm in range(environment.n_arms):
            bias, weight = lemmas.bias(arms == arm, means[:, arm], eps)
            limit = lemmas.bias_limit(weight, eps)
            for start, stop in ranges:
                known = weight[start:stop] > 0
                assert (bias[start:stop][known] <= limit[start:stop][known] * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("eps", EPS)
def test_lemma_3_holds_in_every_round_of_a_drift(played, eps):
    environment, runs = played[1]
    means, drift = environment.means(0, environment.horizon), diagnose(environment).drift
    for arms in runs:
        for arm in range(environment.n_arms):
            bias, weight = lemmas.bias(arms == arm, means[:, arm], eps)
            limit = lemmas.bias_limit(weight, eps, drift)
            known = weight > 0
            assert (bias[known] <= limit[known] * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("eps", EPS)
def test_counts_add_up_and_are_ordered(played, eps):
    for environment, runs in played:
        for arms in runs:
            once = np.array([lemmas.counts(arms == arm, eps) for arm in range(environment.n_arms)])
            twice = np.array([lemmas.counts(arms == arm, 1 - (1 - eps) ** 2) for arm in range(environment.n_arms)])
            t = np.arange(1, environment.horizon + 1)
            assert np.allclose(once.sum(axis=0), -np.expm1(t * math.log1p(-eps)) / eps, rtol=1e-9)
            assert (twice <= once * (1 + 1e-12)).all()
            assert (once <= 1 / eps * (1 + 1e-12)).all()


def test_regret_is_at_most_the_wrong_plays_and_they_at_most_the_horizon(played):
    for environment, runs in played:
        means = environment.means(0, environment.horizon)
        best = means.max(axis=1)
        for arms in runs:
            lost = best - means[np.arange(environment.horizon), arms]
            assert lost.sum() <= (lost > 0).sum() <= environment.horizon


def test_the_simulators_regret_is_the_sum_of_the_gaps_along_its_trajectory():
    for environment in (ABRUPT, SMOOTH):
        result = simulate(DiscountedTS(0.95), environment, 2, seed=3, trajectories=True, checkpoints=1)
        means = environment.realise(0).means(0, environment.horizon)
        for arms, regret in zip(result.arms, result.regret[:, -1], strict=True):
            lost = means.max(axis=1) - means[np.arange(environment.horizon), arms]
            assert regret == pytest.approx(lost.sum(), rel=1e-9)


def test_lemma_6_before_the_update_fails_on_a_real_run_of_ds_ts():
    # The first play of an arm meets N = 0, below every level, and with a small level the right side is below 1.
    arms = simulate(DiscountedTS(0.9), ABRUPT, 1, seed=3, trajectories=True, checkpoints=1).arms[0]
    level, eps, arm = 1e-3, 0.1, int(arms[0])
    assert lemmas.rare_plays(arms == arm, level, eps, after=False) >= 1
    assert lemmas.rare_plays_limit(1, level, eps) < 1
    assert lemmas.rare_plays(arms[:1] == arm, level, eps, after=False) > lemmas.rare_plays_limit(1, level, eps)
