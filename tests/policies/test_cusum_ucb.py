"""CUSUM-UCB against its twin, its invariants (2.14 of the specification) and hand-made numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.detecting_ucb import CusumUCB
from harness import SITUATIONS, abrupt_means, assert_same_as_twin, play, play_twin, rewards
from naive import TWINS

POLICIES = [
    CusumUCB(samples=20, drift=0.05, threshold=3.0, explore=0.1, xi=0.5, warmup=True),
    CusumUCB(samples=1, drift=0.1, threshold=2.0, explore=0.2, xi=1.0, warmup=False),
    CusumUCB(samples=50, drift=0.0, threshold=math.inf, explore=0.0, xi=2.0, warmup=True),
]
REWARDS = st.lists(st.sampled_from([0.0, 0.25, 1.0]) | st.floats(0.0, 1.0), max_size=120)


def fed(policy, values, n_arms=2, arm=0):
    state = to_lists(policy.init(n_arms))
    for t, value in enumerate(values):
        policy.learn(state, t, arm, value)
    return state


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_cusum_chooses_the_arms_of_its_twin(policy, n_arms, environment, kind):
    # A record that never restarts makes the twin quadratic: its rounds are fewer.
    rounds = 400 if policy.threshold == math.inf else 700 if n_arms == 1 else 2000
    assert_same_as_twin(policy, n_arms, rounds, n_arms, environment, kind)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_horizon_shorter_than_the_number_of_arms_is_played_like_the_twin(policy):
    assert_same_as_twin(policy, 30, 11, 3)


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES[:2], ids=str)
def test_compiled_and_interpreted_alarms_choose_the_same_arms(policy):
    environment = Abrupt(n_arms=4, horizon=1500, phases=3, instance="1")
    fast = simulate(policy, environment, runs=2, trajectories=True)
    slow = simulate(policy, environment, runs=2, trajectories=True, compiled=False)
    assert (fast.arms == slow.arms).all()


@pytest.mark.parametrize("policy", POLICIES[:2], ids=str)
def test_alarms_are_counted_as_the_twin_counts_them(policy):
    reward = rewards(abrupt_means(3, 1500, 4), "binary", 4)
    twin = TWINS[type(policy).__name__](3, **policy._asdict())
    play_twin(twin, 1500, reward, 4)
    state, stream = to_lists(policy.init(3)), Stream(stream_key(4, 0, POLICY))
    for t in range(1500):
        arm = policy.choose(state, t, stream.at(t))
        policy.learn(state, t, arm, reward(t, arm))
        assert state.counted[0] == sum(state.pulls)
        if policy.warmup:
            assert state.short[0] == sum(k < policy.samples for k in state.pulls)
    assert state.alarms == [twin.alarms]
    assert twin.alarms > 3


def test_cusum_rings_at_the_fourth_reward_of_the_golden_sequence():
    policy = CusumUCB(samples=2, drift=0.1, threshold=1.0)
    assert fed(policy, [0.0, 0.0]).up[0] == 0.0
    assert fed(policy, [0.0, 0.0, 1.0]).up[0] == pytest.approx(0.9)
    assert fed(policy._replace(threshold=9.0), [0.0, 0.0, 1.0, 1.0]).up[0] == pytest.approx(1.8)
    assert fed(policy, [0.0, 0.0, 1.0, 1.0]).alarms == [1]


def test_an_alarm_at_exactly_the_threshold_rings():
    policy = CusumUCB(samples=1, drift=0.5, threshold=0.5)
    assert fed(policy, [0.0, 1.0]).alarms == [1]  # g+ = 1 - 0 - 0.5


def test_an_alarm_empties_only_its_own_arm():
    policy = CusumUCB(samples=2, drift=0.1, threshold=1.0, warmup=True)
    state = fed(policy, [1.0, 1.0, 0.5], arm=1)
    before = [list(field) for field in state]
    for t, value in enumerate([0.0, 0.0, 1.0, 1.0], start=3):
        policy.learn(state, t, 0, value)
    for field, old in zip(state._fields[:6], before, strict=False):
        assert getattr(state, field) == [0.0, old[1]]
    assert (state.counted, state.short) == ([3.0], [1])


@given(REWARDS, st.sampled_from(POLICIES))
def test_evidence_is_never_negative_and_zero_until_the_samples_are_in(values, policy):
    state = to_lists(policy.init(1))
    for t, value in enumerate(values):
        policy.learn(state, t, 0, value)
        assert min(state.up[0], state.down[0]) >= 0.0
        if state.pulls[0] <= policy.samples:
            assert state.up[0] == state.down[0] == 0.0


@given(REWARDS)
def test_an_alarm_needs_ten_rewards_after_the_samples_at_the_default_values(values):
    policy = CusumUCB.text(100_000, 10, 5)
    assert fed(policy, [0.5] * 50 + values[:9], n_arms=1).alarms == [0]  # ceil(9.21 / 0.95) = 10
    assert fed(policy, [0.0] * 50 + [1.0] * 10, n_arms=1).alarms == [1]


def test_without_alarm_and_exploration_cusum_is_ucb():
    policy = CusumUCB(samples=5, threshold=math.inf, explore=0.0, xi=2.0, warmup=False)
    reward = rewards(abrupt_means(5, 600, 2), "binary", 2)
    assert play(policy, 5, 600, reward, 2) == play_twin(TWINS["SlidingUCB"](5, window=600, xi=2.0), 600, reward, 2)


def test_the_presets_have_the_values_of_the_paper():
    text = CusumUCB.text(100_000, 10, 5)
    assert text == CusumUCB.code(100_000, 10, 5)
    assert (text.samples, text.drift, text.xi, text.warmup) == (50, 0.05, 0.5, True)
    assert text.threshold == pytest.approx(9.2103, abs=1e-4)
    assert text.explore == pytest.approx(0.0303485, abs=1e-7)
    tuned = CusumUCB.tuned(100_000, 10, 5)
    assert tuned.threshold == pytest.approx(math.log(100_000 / 9))
    assert tuned.explore == pytest.approx(math.sqrt(9e-5 * math.log(100_000 / 9)))
    assert (tuned.xi, tuned.warmup) == (1.0, False)


def test_tuning_survives_one_phase_and_refuses_more_phases_than_rounds():
    assert CusumUCB.tuned(1, 1, 5).threshold > 0.0
    with pytest.raises(ValueError, match=r"phases <= horizon; got 6 phases in 5 rounds"):
        CusumUCB.tuned(5, 6, 2)
