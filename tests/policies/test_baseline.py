"""Yardsticks against their twins (2.20 of the specification) and against what they promise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.core.state import to_lists
from driftbandit.environments.abrupt import Abrupt
from driftbandit.environments.smooth import Smooth
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.baseline import EpsilonGreedy, FixedArm, Oracle, Uniform
from harness import SITUATIONS, assert_compiled_as_interpreted, assert_same_as_twin

POLICIES = [Uniform(), FixedArm(arm=0), EpsilonGreedy(explore=0.1, gamma=0.97), EpsilonGreedy(explore=0.0, gamma=1.0)]


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", [*POLICIES, EpsilonGreedy(explore=1.0, gamma=0.5)], ids=repr)
def test_yardsticks_choose_the_arms_of_their_twins(policy, n_arms, environment, kind):
    assert_same_as_twin(policy, n_arms, 2500, seed=n_arms, environment=environment, kind=kind)
    assert_same_as_twin(
        policy, n_arms, n_arms // 2 + 1, seed=4, environment=environment, kind=kind
    )  # fewer rounds than arms


@pytest.mark.long
@pytest.mark.parametrize("policy", [*POLICIES, Oracle()], ids=repr)
def test_compiled_and_interpreted_yardsticks_choose_the_same_arms(policy):
    assert_compiled_as_interpreted(policy)


@pytest.mark.long
@pytest.mark.parametrize(
    "environment",
    [Abrupt(n_arms=5, horizon=2000, phases=7, instance="fresh"), Smooth(n_arms=5, horizon=2000)],
    ids=repr,
)
def test_the_oracle_has_no_regret_in_any_environment(environment):
    assert (simulate(Oracle(), environment, runs=3).regret == 0.0).all()


def test_an_oracle_outside_a_simulation_is_refused():
    with pytest.raises(ValueError, match="Oracle only plays in simulations"):
        Oracle().init(3)


def test_a_fixed_arm_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="FixedArm needs an arm from 0 to 2 here; got 3"):
        FixedArm(arm=3).init(3)


def test_uniform_play_pulls_every_arm_alike():
    pulls = simulate(Uniform(), Abrupt(n_arms=4, horizon=40_000, instance="1"), runs=1, pulls=True).pulls
    # Each count is binomial(40 000, 1/4), standard deviation 86.6; five of those miss by chance once in two million.
    assert abs(pulls[0] - 10_000).max() < 433


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-2, 2)), max_size=60), st.floats(0.05, 0.999))
def test_discounted_means_stay_within_the_arms_rewards_and_do_not_move_while_idle(steps, gamma):
    policy = EpsilonGreedy(explore=0.1, gamma=gamma)
    state = to_lists(policy.init(4))
    for t, (arm, reward) in enumerate(steps):
        before = list(state.mean)
        policy.learn(state, t, arm, reward)
        assert all(state.mean[i] == before[i] for i in range(4) if i != arm)
    for arm in range(4):
        mine = [x for i, x in steps if i == arm]
        if mine:
            assert min(mine) - 1e-9 <= state.mean[arm] <= max(mine) + 1e-9
    assert sum(state.pulls) == pytest.approx((1 - gamma ** len(steps)) / (1 - gamma), rel=1e-9)


def test_yardsticks_have_next_to_nothing_to_tune():
    assert EpsilonGreedy.tuned(100_000, 10).gamma == pytest.approx(0.99)
    assert (Uniform.tuned(10, 1), FixedArm.tuned(10, 1), Oracle.tuned(10, 1)) == (Uniform(), FixedArm(arm=0), Oracle())


def test_wrong_parameters_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"explore in \[0, 1\]; got 1.5"):
        EpsilonGreedy(explore=1.5)
    with pytest.raises(ValueError, match="arm >= 0, a whole number; got -1"):
        FixedArm(arm=-1)
