"""EXP3.S and REXP3 against their twins, their invariants, and numbers one can check by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.exp3 import EXP3S, REXP3
from harness import SITUATIONS, assert_same_as_twin, play, rewards, smooth_means

plays = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), max_size=200)


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize(
    "policy", [EXP3S(explore=0.1, share=0.001), EXP3S(explore=1.0, share=1.0), EXP3S(explore=0.02, share=0.0)]
)
def test_exp3s_chooses_the_arms_of_its_twin(policy, n_arms, environment, kind):
    assert_same_as_twin(policy, n_arms, 2500, seed=n_arms, environment=environment, kind=kind)


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", [REXP3(batch=50, explore=0.2), REXP3(1, 0.5), REXP3(2, 0.5), REXP3(1000, 0.05)])
def test_rexp3_chooses_the_arms_of_its_twin(policy, n_arms, environment, kind):
    assert_same_as_twin(policy, n_arms, 400 if n_arms == 30 else 1000, seed=n_arms, environment=environment, kind=kind)


@pytest.mark.parametrize("policy", [EXP3S(explore=0.1, share=0.001), REXP3(batch=7, explore=0.2)])
def test_a_horizon_shorter_than_the_number_of_arms_is_played(policy):
    assert_same_as_twin(policy, 30, 12, seed=3)


@pytest.mark.long
@pytest.mark.parametrize("policy", [EXP3S(explore=0.1, share=0.001), REXP3(batch=100, explore=0.2)])
def test_compiled_and_interpreted_play_the_same_arms(policy):
    environment = Abrupt(n_arms=4, horizon=1500, phases=3, instance="1")
    compiled = simulate(policy, environment, runs=1, trajectories=True)
    interpreted = simulate(policy, environment, runs=1, trajectories=True, compiled=False)
    assert np.array_equal(compiled.arms, interpreted.arms)


def test_one_reward_moves_the_weights_as_computed_by_hand():
    policy = EXP3S(explore=0.5, share=0.1)
    state = to_lists(policy.init(2))
    assert state.probabilities == [0.5, 0.5]
    policy.learn(state, 0, 0, 1.0)
    # The gain is 0.5 / (2 * 0.5) = 1/2, so 0.5 e^(1/2) and 0.5, each plus e * 0.1 / 2, divided by their sum.
    assert state.weights == pytest.approx([0.6016047, 0.3983953], abs=5e-8)
    assert state.probabilities == pytest.approx([0.5508024, 0.4491976], abs=5e-8)


@given(plays, st.floats(0.01, 1), st.just(0.0) | st.floats(1e-99, 1))
def test_probabilities_add_up_and_weights_keep_their_floor(history, explore, share):
    policy = EXP3S(explore, share)
    state = to_lists(policy.init(4))
    for t, (arm, reward) in enumerate(history):
        assert 0.0 <= explore * reward / (4 * state.probabilities[arm]) <= 1.0 + 1e-12
        policy.learn(state, t, arm, reward)
        assert math.fsum(state.probabilities) == pytest.approx(1.0, abs=1e-12)
        assert min(state.probabilities) >= explore / 4 * (1 - 1e-12)
        assert min(state.weights) >= share / (4 * (1 + share)) * (1 - 1e-12)


@given(plays, st.floats(1e-6, 1e6))
def test_scaling_all_weights_changes_no_probability(history, factor):
    policy = EXP3S(explore=0.2, share=0.01)
    state, scaled = to_lists(policy.init(4)), to_lists(policy.init(4))
    for i in range(4):
        scaled.weights[i] *= factor
    scaled.whole[0] *= factor
    for t, (arm, reward) in enumerate(history):
        policy.learn(state, t, arm, reward)
        policy.learn(scaled, t, arm, reward)
        assert scaled.probabilities == pytest.approx(state.probabilities, abs=1e-13)


@pytest.mark.parametrize("share", [0.0, 1e-5, 0.5])
def test_rounding_does_not_pile_up_in_the_weights(share):
    # One round leaves an error of some 1e-16; carried on, 20 000 of them would make about 1e-14.
    policy, reward_rng = EXP3S(explore=0.2, share=share), np.random.default_rng(1)
    state = to_lists(policy.init(5))
    for t in range(20_000):
        policy.learn(state, t, int(reward_rng.integers(5)), float(reward_rng.random()))
        if t % 100 == 0:
            assert math.fsum(state.weights) == pytest.approx(1.0, abs=2e-15)
            assert state.whole[0] == pytest.approx(math.fsum(state.weights), abs=1e-15)


def test_full_exploration_is_uniform_play():
    policy = EXP3S(explore=1.0, share=0.1)
    state = to_lists(policy.init(4))
    policy.learn(state, 0, 2, 1.0)
    assert state.probabilities == [0.25] * 4


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_without_sharing_and_without_restart_both_are_exp3(kind):
    reward = rewards(smooth_means(5, 2000, 1), kind, 1)
    assert play(EXP3S(0.1, 0.0), 5, 2000, reward, 1) == play(REXP3(2000, 0.1), 5, 2000, reward, 1)


def test_rexp3_is_uniform_at_every_start_of_a_batch_and_only_there():
    policy = REXP3(batch=10, explore=0.2)
    state = to_lists(policy.init(4))
    for t in range(45):
        assert (state.probabilities == pytest.approx([0.25] * 4, abs=1e-15)) == (t % 10 == 0)
        policy.learn(state, t, t % 3, 1.0)


def test_rexp3_survives_gains_whose_exponential_overflows():
    policy = REXP3(batch=10_000_000, explore=0.01)
    state = to_lists(policy.init(2))
    state.gains[0] = state.largest[0] = 5000.0
    policy.learn(state, 0, 0, 1.0)
    assert state.gains[0] > 5000.0
    assert state.probabilities == pytest.approx([0.995, 0.005], abs=1e-12)


def test_the_presets_give_the_values_of_the_papers():
    assert EXP3S.tuned(100_000, 10, 5).explore == pytest.approx(0.0624304, abs=5e-8)
    assert EXP3S.code(100_000, 10, 5).explore == pytest.approx(0.0059293, abs=5e-8)
    assert EXP3S.code(10_000, 10, 5, smooth=True).explore == pytest.approx(0.0062765, abs=5e-8)
    assert EXP3S.code(100_000, 1, 5, smooth=True).explore == pytest.approx(0.0021470, abs=5e-8)
    assert EXP3S.misprinted(100_000, 10, 5).explore == 1.0
    assert EXP3S.text(100_000, 10, 5) == EXP3S.tuned(100_000, 10, 5)
    assert EXP3S.tuned(100_000, 10, 5).share == EXP3S.code(100_000, 10, 5).share == 1e-5
    # (5 ln 5)^(1/3) (1e5 / 9)^(2/3) = 997.9
    assert REXP3.tuned(100_000, 10, 5) == REXP3(998, math.sqrt(5 * math.log(5) / ((math.e - 1) * 998)))
    assert REXP3.tuned(1000, 1, 1) == REXP3(1, 1.0)
    assert REXP3.tuned(1000, 5, 2, variation=1000.0).batch == 2


def test_values_outside_their_domain_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"EXP3S needs explore in \(0, 1\]; got 0"):
        EXP3S(explore=0.0)
    with pytest.raises(ValueError, match=r"REXP3 needs batch >= 1, a whole number; got 0"):
        REXP3(batch=0)


def test_at_the_value_of_the_theory_exp3s_finishes_and_beats_uniform_play():
    # Uniform play loses 35 377 (standard deviation 41) in this environment; plain weights overflow before round 100
    # 000.
    short = simulate(EXP3S.tuned(100_000, 10, 5), Abrupt(n_arms=5, horizon=100_000, instance="authors"), runs=2)
    assert (short.regret[:, -1] < 10_000).all()
    long = simulate(EXP3S.tuned(10_000_000, 10, 5), Abrupt(n_arms=5, horizon=10_000_000, instance="authors"), runs=1)
    assert long.regret[0, -1] < 0.1 * 3_537_700
