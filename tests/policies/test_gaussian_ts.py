"""Gaussian Thompson sampling against its twins, its invariants (2.3, 2.5 of the specification) and numbers checkable
by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.draws import Stream
from driftbandit.environments.abrupt import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.gaussian_ts import DiscountedGaussianTS, GaussianTS, SlidingGaussianTS, SlidingPrecisionTS
from driftbandit.state import to_lists
from harness import (
    abrupt_means,
    assert_compiled_as_interpreted,
    assert_odd_parameters_follow_the_twin,
    assert_same_as_twin,
    play,
    rewards,
    taught,
)

QUICK = [
    GaussianTS(),
    SlidingGaussianTS(window=40, noise_sd=0.4),
    DiscountedGaussianTS(gamma=0.97, noise_sd=0.4, prior_mean=0.5),
    SlidingPrecisionTS(window=50, precision=3.0),
]
ODD = [
    GaussianTS(shrink=False),
    SlidingGaussianTS(window=1),
    SlidingGaussianTS(window=5000, prior_mean=0.7, prior_sd=0.3, noise_sd=0.2),
    DiscountedGaussianTS(gamma=1.0, prior_sd=0.2),
    DiscountedGaussianTS(gamma=0.3),
    SlidingPrecisionTS(window=1),
    SlidingPrecisionTS(window=3, precision=0.5),
    SlidingPrecisionTS(window=5000, precision=50.0),
]
STEPS = st.lists(st.tuples(st.integers(0, 3), st.floats(-5, 5)), max_size=60)


def centre_and_spread(policy, state, t):
    """What one choice adds to and multiplies into the normal draws, read off two different rounds' numbers."""
    n = len(state.scores)
    found = []
    for seed in (1, 2):
        noise = [0.0] * n
        Stream(seed).at(t).normals(noise)
        policy.choose(state, t, Stream(seed).at(t))
        found.append((noise, list(state.scores)))
    (z, x), (w, y) = found
    spread = [(x[i] - y[i]) / (z[i] - w[i]) for i in range(n)]
    return [x[i] - spread[i] * z[i] for i in range(n)], spread


@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("world", ["abrupt", "smooth"])
@pytest.mark.parametrize("n_arms", [1, 2, 5, 30])
@pytest.mark.parametrize("policy", QUICK, ids=repr)
def test_gaussian_policies_choose_the_arms_of_their_twins(policy, n_arms, world, kind):
    rounds = 700 if isinstance(policy, GaussianTS) else 2000 if n_arms < 30 else 700
    assert_same_as_twin(policy, n_arms, rounds, seed=n_arms, world=world, kind=kind)


@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("policy", ODD, ids=repr)
def test_odd_parameters_follow_the_twin_too(policy, kind):
    assert_odd_parameters_follow_the_twin(policy, 500, kind)


@pytest.mark.parametrize("policy", QUICK, ids=repr)
def test_compiled_and_interpreted_gaussian_policies_choose_the_same_arms(policy):
    assert_compiled_as_interpreted(policy)


@pytest.mark.parametrize("policy", [GaussianTS(), GaussianTS(shrink=False), DiscountedGaussianTS(gamma=0.97)], ids=repr)
def test_runs_in_lockstep_and_runs_alone_have_the_same_regret(policy):
    world = Abrupt(n_arms=4, horizon=400, phases=3, world="fresh")
    together, alone = (simulate(policy, world, runs=16, lockstep=flag) for flag in (True, False))
    assert (together.regret == alone.regret).all()


@given(STEPS)
def test_gaussian_ts_is_the_exact_posterior_of_a_normal_mean(steps):
    policy = GaussianTS()
    state = taught(policy, steps)
    centre, spread = centre_and_spread(policy, state, len(steps))
    for arm in range(4):
        mine = [x for i, x in steps if i == arm]
        variance = 1.0 / (1.0 / 1.0 + len(mine) / 1.0)  # prior N(0, 1), noise 1
        assert spread[arm] ** 2 == pytest.approx(variance, rel=1e-6)  # 1 for an arm never played
        assert centre[arm] == pytest.approx(variance * sum(mine), abs=1e-6)
    assert sum(state.pulls) == len(steps)


def test_gaussian_ts_at_three_pulls_has_a_quarter_as_variance_not_as_deviation():
    policy = GaussianTS()
    state = taught(policy, [(0, 1.0), (0, 1.0), (0, 0.0)], 1)
    centre, spread = centre_and_spread(policy, state, 3)
    assert (centre[0], spread[0]) == (pytest.approx(2 / 4), pytest.approx(1 / 2))


@given(STEPS, st.integers(1, 70))
def test_the_window_holds_exactly_the_last_rounds(steps, window):
    policy = SlidingGaussianTS(window=window, prior_mean=0.3, prior_sd=2.0, noise_sd=0.5)
    state = taught(policy, steps)
    for arm in range(4):
        mine = [x for i, x in steps[-window:] if i == arm]
        variance = 1.0 / (1.0 / 4.0 + len(mine) / 0.25)
        assert state.spread[arm] == pytest.approx(math.sqrt(variance), rel=1e-12)
        assert state.centre[arm] == pytest.approx(variance * (0.3 / 4.0 + sum(mine) / 0.25), abs=1e-8)
    assert sum(state.pulls) == min(len(steps), window)


@given(STEPS, st.floats(0.05, 0.999))
def test_discounted_counts_add_up_and_an_idle_mean_does_not_move(steps, gamma):
    policy = DiscountedGaussianTS(gamma=gamma)
    state = taught(policy, steps)
    assert sum(state.pulls) == pytest.approx((1 - gamma ** len(steps)) / (1 - gamma), rel=1e-9)
    later = taught(policy, [*steps, (0, 2.0)])
    assert later.mean[1:] == state.mean[1:]


def test_an_arm_idle_for_ever_is_sampled_from_its_prior():
    policy = DiscountedGaussianTS(gamma=0.5, prior_mean=0.4, prior_sd=0.3)
    state = to_lists(policy.init(2))
    policy.learn(state, 0, 1, 1.0)
    for t in range(1, 3000):
        policy.learn(state, t, 0, 0.5)
    assert state.pulls[1] == 0.0
    centre, spread = centre_and_spread(policy, state, 3000)
    assert (centre[1], spread[1]) == (pytest.approx(0.4), pytest.approx(0.3))


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-5, 5)), min_size=1, max_size=60), st.integers(1, 20))
def test_an_arm_missing_from_the_window_is_played_at_once(steps, window):
    policy = SlidingPrecisionTS(window=window)
    state = taught(policy, steps)
    arm = policy.choose(state, len(steps), Stream(5).at(len(steps)))
    held = {i for i, _ in steps[-window:]}
    assert len(held) == 4 or arm not in held


@pytest.mark.parametrize("policy", [*QUICK[:3], GaussianTS(shrink=False)], ids=repr)
def test_a_stated_belief_is_the_one_that_is_sampled_from(policy):
    state = taught(policy, [(0, 1.0), (1, 0.3), (0, 0.5), (2, 0.1)])
    belief = policy.belief(state)
    centre, spread = centre_and_spread(policy, state, 4)
    assert list(belief.mean) == pytest.approx(centre, abs=1e-9)
    assert list(belief.sd) == pytest.approx(spread, rel=1e-9)


def test_gaussian_policies_are_tuned_like_their_beta_relatives():
    assert SlidingGaussianTS.tuned(100_000, 10).window == SlidingPrecisionTS.tuned(100_000, 10).window == 100
    assert DiscountedGaussianTS.tuned(100_000, 10).gamma == pytest.approx(0.99)
    assert GaussianTS.tuned(100, 2) == GaussianTS()


def test_a_window_without_end_is_the_same_policy_as_no_discount():
    reward = rewards(abrupt_means(5, 1200, 2), "real", 2)
    sliding, discounted = SlidingGaussianTS(window=1200), DiscountedGaussianTS(gamma=1.0)
    assert play(sliding, 5, 1200, reward, seed=9) == play(discounted, 5, 1200, reward, seed=9)
    assert play(sliding, 5, 1200, reward, seed=9) == play(GaussianTS(), 5, 1200, reward, seed=9)


def test_ds_ts_without_discount_is_not_gaussian_ts():
    reward = rewards(abrupt_means(5, 400, 2), "real", 2)
    assert play(DiscountedTS(gamma=1.0, tau_max=1.0), 5, 400, reward, seed=9) != play(
        GaussianTS(), 5, 400, reward, seed=9
    )


def test_window_sums_do_not_drift_in_a_hundred_thousand_real_rewards():
    policy = SlidingPrecisionTS(window=300)
    state = to_lists(policy.init(3))
    reward_rng = np.random.default_rng(1)
    steps = list(
        zip(reward_rng.integers(0, 3, 100_000).tolist(), (reward_rng.random(100_000) * 1e3).tolist(), strict=True)
    )
    for t, (arm, reward) in enumerate(steps):
        policy.learn(state, t, arm, reward)
    for arm in range(3):
        assert state.sums[arm] == pytest.approx(sum(x for i, x in steps[-300:] if i == arm), abs=1e-8)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SlidingGaussianTS(window=10, noise_sd=0.0), "noise_sd > 0; got 0.0"),
        (lambda: SlidingPrecisionTS(window=10, precision=-1.0), "precision > 0; got -1.0"),
        (lambda: DiscountedGaussianTS(gamma=0.0), r"gamma in \(0, 1\]; got 0.0"),
        (lambda: GaussianTS(shrink=2), "shrink to be True or False; got 2"),
    ],
)
def test_wrong_parameters_are_refused_in_one_sentence(make, says):
    with pytest.raises(ValueError, match=says):
        make()
