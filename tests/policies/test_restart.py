"""Policies started anew, against twins that are, and against the policies they wrap."""

import numpy as np
import pytest

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies import DiscountedTS
from driftbandit.policies.exp3 import EXP3S
from driftbandit.policies.lb_sda import SlidingLBSDA
from driftbandit.policies.wrappers import PeriodicRestart
from harness import abrupt_means, play, play_twin, rewards
from naive import TWINS

BASES = [DiscountedTS(gamma=0.97), EXP3S(explore=0.2, share=0.01), SlidingLBSDA(window=30)]


def twin_factory(base):
    return lambda n_arms: TWINS[type(base).__name__](n_arms, **base._asdict())


@pytest.mark.parametrize(("n_arms", "kind"), [(1, "binary"), (5, "real"), (30, "binary")])
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("period", [1, 7, 100, 5000])
def test_a_periodic_restart_chooses_the_arms_of_its_twin(base, n_arms, period, kind):
    reward = rewards(abrupt_means(n_arms, 1000, 1), kind, 1)
    twin = TWINS["PeriodicRestart"](n_arms, twin_factory(base), period)
    assert play(PeriodicRestart(base, period), n_arms, 1000, reward, 2) == play_twin(twin, 1000, reward, 2)


@pytest.mark.long
@pytest.mark.parametrize("policy", [PeriodicRestart(BASES[0], period=100)])
def test_compiled_and_interpreted_play_the_same_arms(policy):
    environment = Abrupt(n_arms=4, horizon=1500, phases=3, instance="1")
    compiled = simulate(policy, environment, runs=2, trajectories=True)
    interpreted = simulate(policy, environment, runs=2, trajectories=True, compiled=False)
    assert np.array_equal(compiled.arms, interpreted.arms)


@pytest.mark.parametrize("base", BASES)
def test_without_a_restart_it_is_the_wrapped_policy(base):
    environment = Abrupt(n_arms=4, horizon=500, phases=1, instance="1")
    single = simulate(base, environment, runs=1, trajectories=True, compiled=False).arms
    wrapped = PeriodicRestart(base, period=500)
    assert np.array_equal(simulate(wrapped, environment, runs=1, trajectories=True, compiled=False).arms, single)


def test_the_state_is_as_new_after_the_last_round_of_a_period_and_not_before():
    policy = PeriodicRestart(DiscountedTS(gamma=0.9), period=3)
    state = to_lists(policy.init(2))
    for t in range(7):
        assert (state.base == state.fresh) == (t in (0, 3, 6))
        learn_reward(policy, state, t, 0, 1.0, Stream(1).at(t))
    assert state.start == [6]


def test_asking_twice_gives_the_same_arm_and_changes_nothing_that_matters():
    policy = PeriodicRestart(SlidingLBSDA(window=20), period=9)
    once, twice, stream = to_lists(policy.init(5)), to_lists(policy.init(5)), Stream(stream_key(0, 0, POLICY))
    for t in range(200):
        arm = policy.choose(once, t, stream.at(t))
        assert policy.choose(twice, t, stream.at(t)) == policy.choose(twice, t, stream.at(t)) == arm
        learn_reward(policy, once, t, arm, float(arm == t % 5), stream.at(t))
        learn_reward(policy, twice, t, arm, float(arm == t % 5), stream.at(t))


def test_restarts_may_be_nested_each_with_its_own_clock():
    # The inner clock runs 0..9, so the inner restart falls on outer rounds 7, 10, 17, 20, ...
    policy = PeriodicRestart(PeriodicRestart(DiscountedTS(gamma=0.9), period=7), period=10)
    state = to_lists(policy.init(2))
    new = []
    for t in range(30):
        if state.base.base.pulls == [0.0, 0.0]:
            new.append(t)
        learn_reward(policy, state, t, 0, 1.0, Stream(1).at(t))
    assert new == [0, 7, 10, 17, 20, 27]


def test_wrappers_are_written_as_they_are_made():
    policy = PeriodicRestart(base=DiscountedTS(gamma=0.9), period=100)
    text = "DiscountedTS(gamma=0.9, tau_max=0.2, forget_below=0.0, weight=1.0)"
    assert repr(policy) == f"PeriodicRestart(base={text}, period=100)"
    assert eval(repr(policy)) == policy


def test_the_tuned_period_balances_restarts_and_changes():
    # (1e5 * sqrt(4) / (2 * 10))^(2/3) = 1e4^(2/3) = 464.2; never beyond the horizon, and one change at least.
    base = DiscountedTS()
    assert PeriodicRestart.tuned(100_000, 11, 4, base).period == 465
    assert PeriodicRestart.tuned(100, 1, 10_000, base).period == 100


def test_mistakes_are_explained_in_one_sentence():
    with pytest.raises(ValueError, match=r"PeriodicRestart needs base to be a policy such as .*; got 'ds-ts'"):
        PeriodicRestart("ds-ts", 10)
    with pytest.raises(ValueError, match="PeriodicRestart needs base to be a policy"):
        PeriodicRestart(DiscountedTS)
    with pytest.raises(ValueError, match="PeriodicRestart needs period >= 1"):
        PeriodicRestart(DiscountedTS(), 0)
