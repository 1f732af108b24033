"""LB-SDA and SW-LB-SDA against their twins, and their invariants (section 2.12 of the specification)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit import Bandit
from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.blocks import take_turn
from driftbandit.policies.lb_sda import LBSDA, SlidingLBSDA
from harness import SITUATIONS, TwinRound, abrupt_means, assert_same_as_twin, play, play_twin, rewards, smooth_means
from naive import TWINS

ALL = [LBSDA(capacity=2000), SlidingLBSDA(window=50)]


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", [LBSDA(0.5, 2000), LBSDA(2.0, 2000)])
def test_lb_sda_chooses_the_arms_of_its_twin(policy, n_arms, environment, kind):
    reward = rewards((abrupt_means if environment == "abrupt" else smooth_means)(n_arms, 2000, 1), kind, 1)
    twin = TWINS["LBSDA"](n_arms, policy.forced_power)
    assert play(policy, n_arms, 2000, reward, n_arms) == play_twin(twin, 2000, reward, n_arms)


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize(
    "policy",
    [
        SlidingLBSDA(window=1),
        SlidingLBSDA(window=2),
        SlidingLBSDA(window=40),
        SlidingLBSDA(window=300, forced_power=0.333),
        SlidingLBSDA(window=100, forced_power=2.0),
        SlidingLBSDA(window=5000),
    ],
)
def test_sliding_duels_choose_the_arms_of_their_twin(policy, n_arms, environment, kind):
    rounds = 700 if policy.window > 500 else 2000
    assert_same_as_twin(policy, n_arms, rounds, seed=n_arms, environment=environment, kind=kind)


@pytest.mark.parametrize("policy", [SlidingLBSDA(window=50), SlidingLBSDA(window=7)])
def test_a_horizon_shorter_than_the_number_of_arms_is_played(policy):
    assert_same_as_twin(policy, 30, 12, seed=3)


@pytest.mark.parametrize("policy", [SlidingLBSDA(window=60)])
def test_equal_and_constant_rewards_are_decided_as_by_the_twin(policy):
    for reward in (lambda t, arm: 0.5, lambda t, arm: 1.0, lambda t, arm: 0.25 * ((t + arm) % 4)):
        twin = TWINS[type(policy).__name__](4, **policy._asdict())
        assert play(policy, 4, 1000, reward, 1) == play_twin(twin, 1000, reward, 1)


@pytest.mark.long
@pytest.mark.parametrize("policy", ALL)
def test_compiled_and_interpreted_play_the_same_arms(policy):
    environment = Abrupt(n_arms=4, horizon=1500, phases=3, instance="1")
    compiled = simulate(policy, environment, runs=1, trajectories=True)
    interpreted = simulate(policy, environment, runs=1, trajectories=True, compiled=False)
    assert np.array_equal(compiled.arms, interpreted.arms)


@given(st.integers(1, 8), st.integers(1, 40), st.integers(0, 1000))
def test_the_window_holds_the_last_plays_and_the_leader_its_date_of_election(n_arms, window, seed):
    policy = SlidingLBSDA(window)
    state, stream = to_lists(policy.init(n_arms)), Stream(stream_key(seed, 0, POLICY))
    reward_rng = np.random.default_rng(seed)
    arms, leader, since = [], -1, 0
    for t in range(150):
        arms.append(policy.choose(state, t, stream.at(t)))
        learn_reward(policy, state, t, arms[-1], float(reward_rng.random()), stream.at(t))
        assert state.blocks.count == [arms[-window:].count(k) for k in range(n_arms)]
        assert sum(state.blocks.count) == min(t + 1, window)
        assert state.rounds[0] <= t + 1
        assert max(state.drawn) == state.rounds[0]
        if state.leader[0] != leader:
            leader, since = state.leader[0], state.rounds[0]
        assert state.since[0] == since


@pytest.mark.parametrize("policy", ALL)
@pytest.mark.parametrize(("scale", "shift"), [(8.0, 0.0), (0.25, 64.0), (2.0, -1024.0)])
def test_scaling_and_shifting_rewards_changes_no_decision(policy, scale, shift):
    # Rewards in eighths and powers of two: the changed rewards are exact, so that ties stay ties.
    reward_rng = np.random.default_rng(2).integers(0, 9, (1000, 5)) / 8
    means = abrupt_means(5, 1000, 2)
    plain = play(policy, 5, 1000, lambda t, arm: float(reward_rng[t, arm] + round(8 * means[t, arm]) / 8), 1)
    moved = play(
        policy, 5, 1000, lambda t, arm: float(scale * (reward_rng[t, arm] + round(8 * means[t, arm]) / 8) + shift), 1
    )
    assert plain == moved


@pytest.mark.parametrize("reward", [0.0, 0.3, 1.0, -7.7])
@pytest.mark.parametrize("policy", ALL)
def test_constant_rewards_make_every_challenger_win(policy, reward):
    arms = play(policy, 4, 400, lambda t, arm: reward, 1)
    counts = [arms.count(k) for k in range(4)]
    assert max(counts) - min(counts) <= 2


@pytest.mark.parametrize("policy", ALL)
def test_asking_twice_gives_the_same_arm_and_changes_nothing_that_matters(policy):
    once, twice, stream = to_lists(policy.init(5)), to_lists(policy.init(5)), Stream(stream_key(0, 0, POLICY))
    for t in range(300):
        arm = policy.choose(once, t, stream.at(t))
        assert policy.choose(twice, t, stream.at(t)) == policy.choose(twice, t, stream.at(t)) == arm
        learn_reward(policy, once, t, arm, float(t % 3 == 0), stream.at(t))
        learn_reward(policy, twice, t, arm, float(t % 3 == 0), stream.at(t))
        assert once == twice


@pytest.mark.parametrize("policy", [SlidingLBSDA(window=30)])
def test_a_reward_without_a_choice_begins_the_round_that_a_choice_would_have_planned(policy):
    reward = rewards(abrupt_means(4, 600, 1), "binary", 1)
    twin = TWINS[type(policy).__name__](4, **policy._asdict())
    state, stream = to_lists(policy.init(4)), Stream(stream_key(1, 0, POLICY))
    for t in range(600):
        arm = twin.choose(t, TwinRound(stream.at(t)))
        if t % 7 != 3:  # in the others without a choice
            assert arm == policy.choose(state, t, stream.at(t))
        played = arm if t % 5 else (arm + 1) % 4  # and sometimes another arm is played
        learn_reward(policy, state, t, played, reward(t, played), stream.at(t))
        twin.learn(t, played, reward(t, played))


def test_beyond_its_capacity_lb_sda_sees_the_latest_plays_only():
    policy, whole = LBSDA(capacity=100), LBSDA(capacity=1000)
    reward = rewards(abrupt_means(3, 1000, 4), "binary", 4)
    assert play(policy, 3, 100, reward, 1) == play(whole, 3, 100, reward, 1)
    state, stream = to_lists(policy.init(3)), Stream(stream_key(1, 0, POLICY))
    arms = []
    for t in range(1000):
        arms.append(policy.choose(state, t, stream.at(t)))
        learn_reward(policy, state, t, arms[-1], reward(t, arms[-1]), stream.at(t))
        assert state.blocks.count == [arms[-100:].count(k) for k in range(3)]
        assert state.pulls == [arms.count(k) for k in range(3)]


@pytest.mark.parametrize(("window", "leader"), [(4, 0), (5, 1)])
def test_a_leader_with_exactly_half_its_fair_share_stands_and_with_less_it_does_not(window, leader):
    policy = SlidingLBSDA(window)
    state = to_lists(policy.init(2))
    for arm in [0] + [1] * (window - 1):  # the leader holds 1 of 4, half of its fair share 2, or 1 of 5
        take_turn(state.blocks, state.recent, state.cursor, arm, 0.5)
    state.leader[0], state.rounds[0] = 0, 10
    state.drawn[:] = [10, 3]  # arm 1 was not played in the last round
    state.queue[:] = [1, 1, 0]
    assert policy.lead(state, None) == leader


def test_arms_may_join_a_live_duel():
    for policy in (SlidingLBSDA(window=12), LBSDA(capacity=40)):
        bandit = Bandit(["a"], policy, seed=1)
        seen = set()
        for t in range(400):
            if t in (50, 51, 52, 120):
                bandit.add_arm(t)
            decision = bandit.decide()
            arm = decision.arm
            seen.add(arm)
            bandit.reward(decision, 0.25 * (t % 5))
        assert seen == {"a", 50, 51, 52, 120}


def test_the_presets_give_the_windows_of_the_papers():
    assert SlidingLBSDA.text(100_000, 10) == SlidingLBSDA(678, 0.333)
    assert SlidingLBSDA.code(100_000, 10) == SlidingLBSDA(678, 0.333)
    assert SlidingLBSDA.code(100_000, 5).window == 959
    assert SlidingLBSDA.code(100_000, 20).window == 479
    assert SlidingLBSDA.code(10_000, 10, smooth=True).window == 606
    assert SlidingLBSDA.text(100_000, 1, smooth=True).window == 2145
    assert SlidingLBSDA.tuned(100_000, 10).window == 715  # nine changes
    assert LBSDA.tuned(5000) == LBSDA(0.5, 5000)


@pytest.mark.long
def test_regret_in_the_authors_environment_matches_their_code():
    # Their code: 1968 with standard deviation 50 over 20 runs. Four standard errors of the difference of both means,
    # about one false alarm in 16 000.
    regret = simulate(
        SlidingLBSDA.code(100_000, 10), Abrupt(n_arms=5, horizon=100_000, instance="authors"), runs=20
    ).regret
    mean, error = regret[:, -1].mean(), np.hypot(regret[:, -1].std(ddof=1), 50) / 20**0.5
    assert abs(mean - 1968) < 4 * error


def test_values_outside_their_domain_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"SlidingLBSDA needs window >= 1, a whole number; got 0"):
        SlidingLBSDA(window=0)


def test_a_window_longer_than_the_horizon_is_not_lb_sda():
    # The rules of leadership, forced play and diversity differ; the specification warns of the tempting equality.
    reward = rewards(abrupt_means(5, 600, seed=2), "binary", seed=2)
    assert play(SlidingLBSDA(window=5000), 5, 600, reward, seed=2) != play(LBSDA(), 5, 600, reward, seed=2)
