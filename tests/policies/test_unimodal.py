"""SW-OSUB against its twin and its invariants (2.11 of the specification)."""

import pytest

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.environments.smooth import Smooth
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.unimodal import SlidingOSUB, leader_of
from harness import (
    SITUATIONS,
    assert_compiled_as_interpreted,
    assert_odd_parameters_follow_the_twin,
    assert_same_as_twin,
    rewards,
    smooth_means,
)

POLICIES = [SlidingOSUB(window=60)]
ODD = [
    SlidingOSUB(window=1),
    SlidingOSUB(window=2, c=1.0),
    SlidingOSUB(window=8),
    SlidingOSUB(window=5000, c=3.0),
]


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_unimodal_policies_choose_the_arms_of_their_twins(policy, n_arms, environment, kind):
    assert_same_as_twin(policy, n_arms, 2000, seed=n_arms, environment=environment, kind=kind)


@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("policy", ODD, ids=repr)
def test_odd_parameters_follow_the_twin_too(policy, kind):
    assert_odd_parameters_follow_the_twin(policy, 600, kind)


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_compiled_and_interpreted_unimodal_policies_choose_the_same_arms(policy):
    assert_compiled_as_interpreted(policy)


@pytest.mark.parametrize("policy", [*POLICIES, *ODD], ids=repr)
def test_only_the_leader_and_its_neighbours_are_played_and_the_leader_in_a_third_of_its_rounds(policy):
    n_arms, rounds, seed = 6, 1500, 8
    reward = rewards(smooth_means(n_arms, rounds, seed), "binary", seed)
    state, stream = to_lists(policy.init(n_arms)), Stream(stream_key(seed, 0, POLICY))
    led, led_and_played = [0] * n_arms, [0] * n_arms
    for t in range(rounds):
        arm = policy.choose(state, t, stream.at(t))
        leader = leader_of(state.mean, state.seen, stream.at(t))
        if t < n_arms:
            assert (leader, arm) == (-1, t)
        else:
            assert abs(arm - leader) <= 1
            assert state.mean[leader] == max(state.mean)
            led[leader] += 1
            led_and_played[leader] += arm == leader
            assert 3 * led_and_played[leader] >= led[leader]
        learn_reward(policy, state, t, arm, reward(t, arm), stream.at(t))
        assert list(state.led) == led
    assert sum(led) == rounds - n_arms


def test_rounds_led_within_the_window_are_those_of_the_last_rounds():
    policy, n_arms, rounds, seed = SlidingOSUB(window=50), 5, 700, 3
    reward = rewards(smooth_means(n_arms, rounds, seed), "real", seed)
    state, stream, leaders = to_lists(policy.init(n_arms)), Stream(stream_key(seed, 0, POLICY)), []
    for t in range(rounds):
        arm = policy.choose(state, t, stream.at(t))
        leaders.append(leader_of(state.mean, state.seen, stream.at(t)))
        learn_reward(policy, state, t, arm, reward(t, arm), stream.at(t))
        assert state.lately == [leaders[-50:].count(i) for i in range(n_arms)]
        assert sum(state.pulls) == min(t + 1, 50)


def test_a_round_counts_for_its_leader_whether_or_not_anybody_chose():
    policy = SlidingOSUB(window=3)
    state = to_lists(policy.init(2))
    for t in range(10):
        policy.learn(state, t, t % 2, float(t % 2), Stream(1).at(t))
    assert (state.led, state.lately, state.seen) == ([0, 8], [0, 3], [1, 1])  # no arm leads before both were played


@pytest.mark.long
def test_following_a_wandering_peak_beats_never_forgetting():
    environment = Smooth(n_arms=10, horizon=20_000)
    forgetting, remembering = (
        simulate(p, environment, runs=8, seed=1).regret[:, -1]
        for p in (SlidingOSUB(window=300), SlidingOSUB(window=20_000))
    )
    assert forgetting.mean() < 0.7 * remembering.mean()  # fixed seed; about a third was seen


def test_windows_come_from_the_number_of_changes_or_from_the_drift():
    assert SlidingOSUB.tuned(100_000, 11).window == 678
    assert SlidingOSUB.tuned_smooth(1e-4).window == int(1000 * 9.210340 / 8)
    assert SlidingOSUB.tuned_smooth(1e-5, practice=True).window in (9999, 10_000)
    with pytest.raises(ValueError, match="sigma, the largest change of a mean in a round"):
        SlidingOSUB.tuned_smooth(0.0)


def test_sw_osub_goes_on_comparing_under_a_lasting_leader():
    """Window 60 is divisible by 3: a count of led rounds that stops at the window would play the leader forever."""
    policy, stream = SlidingOSUB(window=60), Stream(stream_key(1, 0, POLICY))
    state, late = to_lists(policy.init(3)), []
    for t in range(900):
        arm = policy.choose(state, t, stream.at(t))
        learn_reward(policy, state, t, arm, float(arm == 1), stream.at(t))
        late.append(arm)
    assert set(late[300:]) == {0, 1, 2}
    assert late[300:].count(1) > 540  # nine tenths of 600
