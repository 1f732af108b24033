"""Global-CTS and PA-CTS against their twins, their invariants (section 2.13), and numbers one can check by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.core.draws import Stream
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.beta_ts import BetaTS
from driftbandit.policies.cts import GlobalCTS, PerArmCTS, add_up, smallest_from, total_of
from harness import SITUATIONS, abrupt_means, assert_same_as_twin, play, rewards
from naive import TWINS

wins_and_losses = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 1.0])), max_size=120)
hazards = st.sampled_from([0.0, 1e-13, 0.001, 0.05, 0.5, 1.0])


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize(
    "policy",
    [
        GlobalCTS(hazard=0.01, max_runs=40),
        GlobalCTS(hazard=0.2, max_runs=1),
        GlobalCTS(hazard=0.5, prior_wins=2.0, prior_losses=0.5),
        GlobalCTS(hazard=0.0),
        GlobalCTS(hazard=1.0),
        PerArmCTS(hazard=0.01, max_runs=40),
        PerArmCTS(hazard=0.2, max_runs=1),
        PerArmCTS(hazard=0.3, max_runs=3, prior_wins=0.5, prior_losses=2.0),
        PerArmCTS(hazard=0.001, max_runs=2),
        PerArmCTS(hazard=0.0),
        PerArmCTS(hazard=1.0),
    ],
)
def test_cts_chooses_the_arms_of_its_twin(policy, n_arms, environment, kind):
    assert_same_as_twin(policy, n_arms, 300 if n_arms == 30 else 600, seed=n_arms, environment=environment, kind=kind)


@pytest.mark.long
@pytest.mark.parametrize("policy", [GlobalCTS(hazard=0.01), PerArmCTS(hazard=0.01)])
def test_over_thousands_of_rounds_too(policy):
    assert_same_as_twin(policy, 3, 2500, seed=1)


@pytest.mark.parametrize("policy", [GlobalCTS(hazard=0.01), PerArmCTS(hazard=0.01)])
def test_a_horizon_shorter_than_the_number_of_arms_is_played(policy):
    assert_same_as_twin(policy, 30, 12, seed=3)


@pytest.mark.long
@pytest.mark.parametrize("policy", [GlobalCTS(hazard=0.01, max_runs=60), PerArmCTS(hazard=0.01, max_runs=60)])
def test_compiled_and_interpreted_play_the_same_arms(policy):
    environment = Abrupt(n_arms=4, horizon=1500, phases=3, instance="1")
    compiled = simulate(policy, environment, runs=1, trajectories=True)
    interpreted = simulate(policy, environment, runs=1, trajectories=True, compiled=False)
    assert np.array_equal(compiled.arms, interpreted.arms)


@pytest.mark.parametrize("count", range(1, 14))
def test_sums_and_minima_four_at_a_time_leave_nothing_out(count):
    # Powers of two, so that every sum is exact; before and after them numbers that must not be looked at.
    weights = [-1.0, -1.0] + [2.0 ** (i * 5 % 13) for i in range(count)] + [-1.0]
    inside = weights[2 : 2 + count]
    assert total_of(weights, 2, count) == sum(inside)
    assert smallest_from(weights, 2, count) == 2 + inside.index(min(inside))
    cumulative = [0.0] * len(weights)
    add_up(weights, cumulative, 2, count)
    assert cumulative == [0.0, 0.0] + [sum(inside[: i + 1]) for i in range(count)] + [0.0]


def test_the_first_of_equal_weights_is_the_smallest():
    assert smallest_from([3.0, 1.0, 2.0, 1.0, 1.0, 1.0], 0, 6) == 1
    assert smallest_from([1.0] * 9, 2, 7) == 2


def test_the_first_win_gives_the_belief_computed_by_hand():
    policy = GlobalCTS(hazard=0.1)
    state = to_lists(policy.init(2))
    learn_reward(policy, state, 0, 0, 1.0, Stream(1).at(0))
    assert state.weights[:2] == pytest.approx([0.9, 0.1], abs=1e-15)
    width = policy.max_runs + 1
    since_birth = [
        [state.wins[arm] - state.wins_at_start[arm * width + state.slots[r]] for arm in (0, 1)] for r in (0, 1)
    ]
    assert since_birth == [[1, 0], [0, 0]]  # Beta(2, 1) for arm 0 if nothing changed, the prior if it did


def test_a_surprise_makes_a_change_likelier():
    # After a win the old run gives a loss 1/3, the prior 1/2: 0.9/3 against 0.1/2, each times 0.9; 0.1 for a new run.
    for policy in (GlobalCTS(hazard=0.1), PerArmCTS(hazard=0.1)):
        state = to_lists(policy.init(1))
        learn_reward(policy, state, 0, 0, 1.0, Stream(1).at(0))
        learn_reward(policy, state, 1, 0, 0.0, Stream(1).at(1))
        assert state.weights[:2] == pytest.approx([0.9 * 0.3 / 0.35, 0.9 * 0.05 / 0.35], abs=1e-15)
        newest = state.weights[2] if isinstance(policy, GlobalCTS) else state.fresh[0]
        assert newest == pytest.approx(0.1, abs=1e-15)


@given(wins_and_losses, hazards, st.integers(1, 30))
def test_the_belief_adds_up_and_a_new_run_has_the_hazard(history, hazard, max_runs):
    policy = GlobalCTS(hazard, max_runs)
    state = to_lists(policy.init(3))
    for t, (arm, reward) in enumerate(history):
        learn_reward(policy, state, t, arm, reward, Stream(1).at(t))
        size = state.size[0]
        kept = state.weights[:size]
        assert 1 <= size <= max_runs
        assert math.fsum(kept) == pytest.approx(1.0, abs=1e-12)
        assert sorted(state.slots) == list(range(max_runs + 1))
        if t + 1 < max_runs and hazard >= 1e-3:  # nothing was dropped for lack of space
            assert kept[-1] == pytest.approx(hazard, abs=1e-9)


@given(wins_and_losses, hazards, st.integers(1, 30))
def test_resting_arms_hold_the_belief_of_the_full_recursion(history, hazard, max_runs):
    policy, twin = PerArmCTS(hazard, max_runs), TWINS["PerArmCTS"](3, hazard, max_runs)
    state = to_lists(policy.init(3))
    width = max_runs + 2
    for t, (arm, reward) in enumerate(history):
        learn_reward(policy, state, t, arm, reward, Stream(1).at(t))
        twin.learn(t, arm, reward)
        for i in range(3):
            kept, size = state.kept[i], state.size[i]
            ours = {
                (state.wins[i * width + r], state.losses[i * width + r]): kept * state.weights[i * width + r]
                for r in range(size)
            }
            ours[0, 0] = state.fresh[i]
            theirs = {(0, 0): 0.0} | {(wins, losses): weight for wins, losses, weight in twin.runs[i]}
            assert ours == pytest.approx(theirs, abs=1e-12)
            assert math.fsum(ours.values()) == pytest.approx(1.0, abs=1e-12)
            assert size + (i == arm and state.fresh[i] > 0.0) <= max_runs


@pytest.mark.parametrize("policy", [GlobalCTS(hazard=0.0), PerArmCTS(hazard=0.0)])
def test_without_changes_it_is_thompson_sampling(policy):
    for kind in ("binary", "real"):
        reward = rewards(abrupt_means(5, 1000, 1), kind, 1)
        assert play(policy, 5, 1000, reward, 1) == play(BetaTS(binarise=True), 5, 1000, reward, 1)


@pytest.mark.parametrize("policy", [GlobalCTS(hazard=1.0), PerArmCTS(hazard=1.0)])
def test_with_a_change_every_round_rewards_teach_nothing(policy):
    reward = rewards(abrupt_means(5, 500, 1), "binary", 1)
    assert play(policy, 5, 500, reward, 1) == play(policy, 5, 500, lambda t, arm: 0.0, 1)


def test_an_arm_idle_for_very_long_is_back_at_the_prior():
    policy = PerArmCTS(hazard=0.5)
    state = to_lists(policy.init(2))
    learn_reward(policy, state, 0, 0, 1.0, Stream(1).at(0))
    for t in range(1, 1200):  # 0.5**1199 is below the smallest float
        learn_reward(policy, state, t, 1, 1.0, Stream(1).at(t))
    assert state.kept[0] == 0.0
    assert policy.draw_run(state, 0, 0.0) == -1
    learn_reward(policy, state, 1200, 0, 1.0, Stream(1).at(1200))
    assert (state.size[0], state.wins[0], state.weights[0]) == (1, 1, 0.5)


def test_tuning_takes_the_rate_of_changes():
    assert GlobalCTS.tuned(100_000, 10) == GlobalCTS(hazard=9e-5)
    assert PerArmCTS.tuned(100_000, 1) == PerArmCTS(hazard=1e-5)  # one change at least
    with pytest.raises(ValueError, match=r"GlobalCTS needs hazard in \[0, 1\]; got 2"):
        GlobalCTS(hazard=2)


@pytest.mark.long
def test_known_changes_of_all_arms_are_followed():
    # 327 with standard deviation 13 when measured; SW-LB-SDA, which is given the same, loses about 2000.
    environment = Abrupt(n_arms=5, horizon=100_000, instance="authors")
    regret = simulate(GlobalCTS.tuned(100_000, 10)._replace(max_runs=100), environment, runs=2).regret[:, -1]
    assert (regret < 1000).all()
