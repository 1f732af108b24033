"""ADSWITCH against its twin, its invariants (section 2.17 of the specification) and numbers one can check by hand."""

import pytest

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.adswitch import AdSwitch
from harness import SITUATIONS, abrupt_means, assert_same_as_twin, new_debts, play_twin, rewards
from naive import TWINS

POLICIES = [AdSwitch(horizon=600, c1=0.5, every=10), AdSwitch(horizon=300, c1=0.3, every=7), AdSwitch(horizon=600)]


def played(policy, n_arms, rounds, reward, seed, look=lambda state, t, arm, rng: None):
    state, stream = to_lists(policy.init(n_arms)), Stream(stream_key(seed, 0, POLICY))
    for t in range(rounds):
        arm = policy.choose(state, t, stream.at(t))
        look(state, t, arm, stream.at(t))
        learn_reward(policy, state, t, arm, reward(t, arm), stream.at(t))
    return state


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_adswitch_chooses_the_arms_of_its_twin(policy, n_arms, environment, kind):
    assert_same_as_twin(policy, n_arms, min(policy.horizon, 400), n_arms, environment, kind)


def test_adswitch_chooses_the_arms_of_its_twin_for_thousands_of_rounds():
    assert_same_as_twin(AdSwitch(horizon=2500, c1=0.5, every=50), 5, 2500, 1)


@pytest.mark.parametrize("n_arms", [2, 5])
def test_testing_every_round_is_played_like_the_twin(n_arms):
    assert_same_as_twin(AdSwitch(horizon=2000, c1=0.2, every=1), n_arms, 150, n_arms)


def test_a_horizon_shorter_than_the_number_of_arms_is_played_like_the_twin():
    assert_same_as_twin(AdSwitch(horizon=11, every=3), 30, 11, 3)


@pytest.mark.long
def test_compiled_and_interpreted_adswitch_choose_the_same_arms():
    environment = Abrupt(n_arms=4, horizon=1500, phases=3, instance="1")
    policy = AdSwitch(horizon=1500, c1=0.5, every=10)
    fast = simulate(policy, environment, runs=2, trajectories=True)
    slow = simulate(policy, environment, runs=2, trajectories=True, compiled=False)
    assert (fast.arms == slow.arms).all()


def test_episodes_evictions_and_debts_are_those_of_the_twin():
    policy, reward = AdSwitch(horizon=1500, c1=0.5, every=10), rewards(abrupt_means(3, 1500, 4), "binary", 4)
    twin = TWINS["AdSwitch"](3, **policy._asdict())
    play_twin(twin, 1500, reward, 4)
    state = played(policy, 3, 1500, reward, 4)
    assert (state.episode, state.start, state.alarms) == ([twin.episode], [twin.start], [twin.episode - 1])
    assert [arm for arm in range(3) if state.good[arm]] == twin.good
    for arm in range(3):
        assert (state.plays[arm] < state.debt[arm]) == bool(twin.owed[arm])
        if arm in twin.frozen:
            assert (state.frozen[arm], state.gap[arm]) == twin.frozen[arm]
    assert twin.episode > 1


def test_the_worse_of_two_arms_is_evicted_once_ten_pulls_show_it():
    state = played(AdSwitch(horizon=100, c1=1.0, every=10), 2, 20, lambda t, arm: float(arm), 0)
    # 10 pulls each: gap 1 > sqrt(ln 100 / 9) = 0.715; after 5 pulls each sqrt(ln 100 / 4) = 1.07 was too wide.
    assert (state.good, state.frozen[0], state.gap[0]) == ([0, 1], 0.0, 1.0)


def test_forty_ones_after_forty_zeros_begin_an_episode():
    policy = AdSwitch(horizon=100, every=10)
    state = to_lists(policy.init(1))
    for t in range(80):
        assert state.alarms == [0]
        learn_reward(policy, state, t, 0, float(t >= 40), Stream(1).at(t))
    # 1 > 2 sqrt(2 ln 100 / 40) = 0.96; a suffix of 20 ones is too short: 0.48 + 0.68 > 1.
    assert (state.alarms, state.start, state.plays) == ([1], [80], [0])


def test_some_arm_is_always_good_and_good_arms_take_turns():
    policy = AdSwitch(horizon=2000, c1=0.5, every=10)

    def look(state, t, arm, rng):
        assert sum(state.good) >= 1
        plays = [state.plays[i] for i in range(5)]
        if all(state.good):  # no arm was evicted yet, so there are no debts
            assert max(plays) - min(plays) <= 1
        assert state.good[arm] or state.plays[arm] < state.debt[arm] or arm in new_debts(policy, state, rng)

    played(policy, 5, 2000, rewards(abrupt_means(5, 2000, 2), "binary", 2), 2, look)


def test_equal_means_do_not_evict_arms():
    state = played(AdSwitch(horizon=1000, c1=1.0, every=10), 3, 1000, lambda t, arm: 0.5, 1)
    assert (state.good, state.alarms) == ([1, 1, 1], [0])


def test_rounds_past_the_horizon_end_an_episode_that_outgrows_its_store_without_alarm():
    policy = AdSwitch(horizon=100, every=10)
    state = played(policy, 2, 150, lambda t, arm: 0.5, 1)
    assert (state.episode, state.alarms, state.start) == ([2], [0], [110])


def test_ten_million_rounds_need_less_than_forty_megabytes():
    state = AdSwitch(horizon=10**7).init(10)
    assert sum(field.nbytes for field in state) < 40e6
