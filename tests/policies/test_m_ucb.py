"""M-UCB against its twin, its invariants (section 2.15 of the specification) and numbers one can check by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.detecting_ucb import MonitoredUCB
from harness import SITUATIONS, abrupt_means, assert_same_as_twin, play, play_twin, rewards
from naive import TWINS

POLICIES = [
    MonitoredUCB(window=20, threshold=4.0, explore=0.2),
    MonitoredUCB(window=2, threshold=0.5, explore=1.0),
    MonitoredUCB(window=50, threshold=8.0, explore=0.0),
    MonitoredUCB(window=4000, threshold=1.0, explore=0.1),
]


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_m_ucb_chooses_the_arms_of_its_twin(policy, n_arms, environment, kind):
    # A window longer than the run never restarts, which makes the twin quadratic: its rounds are fewer.
    assert_same_as_twin(policy, n_arms, 500 if policy.window > 2000 else 2000, n_arms, environment, kind)


def test_a_horizon_shorter_than_the_number_of_arms_is_played_like_the_twin():
    assert_same_as_twin(POLICIES[0], 30, 11, 3)


@pytest.mark.long
def test_compiled_and_interpreted_m_ucb_choose_the_same_arms():
    environment = Abrupt(n_arms=4, horizon=1500, phases=3, instance="1")
    fast = simulate(POLICIES[0], environment, runs=2, trajectories=True)
    slow = simulate(POLICIES[0], environment, runs=2, trajectories=True, compiled=False)
    assert (fast.arms == slow.arms).all()


def test_alarms_are_counted_as_the_twin_counts_them():
    policy, reward = POLICIES[0], rewards(abrupt_means(3, 2000, 4), "binary", 4)
    twin = TWINS["MonitoredUCB"](3, **policy._asdict())
    play_twin(twin, 2000, reward, 4)
    state, stream = to_lists(policy.init(3)), Stream(stream_key(4, 0, POLICY))
    for t in range(2000):
        arm = policy.choose(state, t, stream.at(t))
        policy.learn(state, t, arm, reward(t, arm))
    assert (state.alarms, state.start) == ([twin.alarms], [twin.start])
    assert twin.alarms > 3


def test_two_halves_that_differ_by_more_than_the_threshold_ring():
    def alarms(threshold):
        policy = MonitoredUCB(window=4, threshold=threshold, explore=0.1)
        state = to_lists(policy.init(2))
        for t, value in enumerate([0.0, 0.0, 1.0, 1.0]):
            policy.learn(state, t, 0, value)
        return state.alarms

    assert alarms(1.5) == [1]  # |2 - 0| > 1.5
    assert alarms(2.0) == [0]  # not strictly above


@given(st.lists(st.floats(0.0, 1.0), max_size=80), st.sampled_from([2, 4, 10]))
def test_half_sums_equal_those_of_the_last_rewards(values, window):
    policy = MonitoredUCB(window=window, threshold=math.inf, explore=0.1)
    state = to_lists(policy.init(2))
    for t, value in enumerate(values):
        policy.learn(state, t, 1, value)
        if t + 1 >= window:
            last = values[t + 1 - window : t + 1]
            assert state.halves[4] == pytest.approx(sum(last[: window // 2]), abs=1e-9)
            assert state.halves[5] == pytest.approx(sum(last[window // 2 :]), abs=1e-9)


def test_half_sums_do_not_drift_over_many_real_rewards():
    policy = MonitoredUCB(window=100, threshold=math.inf, explore=0.1)
    state = to_lists(policy.init(1))
    values = [(0.1 + 0.77 * t) % 1.0 for t in range(60_000)]
    for t, value in enumerate(values):
        policy.learn(state, t, 0, value)
    assert state.halves[0] == pytest.approx(sum(values[-100:-50]), abs=1e-13)


@given(st.lists(st.sampled_from([0.0, 1.0]), max_size=60))
def test_a_threshold_of_half_the_window_never_rings(values):
    policy = MonitoredUCB(window=6, threshold=3.0, explore=0.1)
    state = to_lists(policy.init(1))
    for t, value in enumerate(values):
        policy.learn(state, t, 0, value)
    assert state.alarms == [0]


@pytest.mark.parametrize("n_arms", [1, 2, 7])
def test_the_first_rounds_of_an_episode_visit_all_arms_in_turn(n_arms):
    policy = MonitoredUCB(window=2, threshold=0.5, explore=0.05)
    state = to_lists(policy.init(n_arms))
    for t, value in enumerate([0.0, 1.0]):
        policy.learn(state, t, 0, value)
    assert (state.alarms, state.start, state.pulls) == ([1], [2], [0.0] * n_arms)
    arms = []
    for t in range(2, 2 + n_arms):
        arms.append(policy.choose(state, t, Stream(1).at(t)))
        policy.learn(state, t, arms[-1], 0.0)
    assert arms == list(range(n_arms))


def test_without_alarm_and_exploration_m_ucb_is_ucb():
    reward = rewards(abrupt_means(5, 600, 2), "binary", 2)
    policy = MonitoredUCB(window=10, threshold=math.inf, explore=0.0)
    assert play(policy, 5, 600, reward, 2) == play_twin(TWINS["SlidingUCB"](5, window=600, xi=2.0), 600, reward, 2)


def test_the_presets_have_the_values_of_paper_and_source():
    text = MonitoredUCB.text(100_000, 10, 5)
    assert text == MonitoredUCB.code(100_000, 10, 5)
    assert text.window == 800
    assert text.threshold == pytest.approx(100.6547, abs=1e-4)
    assert text.explore == pytest.approx(0.0758714, abs=1e-7)
    tuned = MonitoredUCB.tuned(100_000, 10, 5, smallest_change=0.2)
    assert tuned.window == 7272  # 7270.04 rounded up to even
    assert tuned.threshold == pytest.approx(math.sqrt(3636 * math.log(1e11)))
    same = (text.threshold * 2 + 3 * math.sqrt(800)) * 9 * 5 / 2e5
    assert math.sqrt(same) == pytest.approx(0.2537, abs=1e-4)  # Cao's rate at the paper's window
    assert MonitoredUCB.tuned(100, 50, 5).explore == 1.0


def test_an_odd_window_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"MonitoredUCB needs an even window, .*; got 7\."):
        MonitoredUCB(window=7)
