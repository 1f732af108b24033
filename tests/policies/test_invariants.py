"""Invariants of section 2 of the specification on random plays: random seeds, numbers of arms, parameters."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.policies.adswitch import AdSwitch
from driftbandit.policies.cts import GlobalCTS
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.unimodal import SlidingOSUB, leader_of
from driftbandit.policies.wrappers import PeriodicRestart
from harness import abrupt_means, new_debts, rewards

SEEDS, ARMS = st.integers(0, 10**6), st.integers(2, 7)
ROUNDS = 250


def rounds(policy: Any, n_arms: int, seed: int, length: int = ROUNDS) -> Any:
    """Play, and hand out (t, state, arm, draws) between choosing and learning."""
    reward = rewards(abrupt_means(n_arms, length, seed), "binary", seed)
    state, stream = to_lists(policy.init(n_arms)), Stream(stream_key(seed, 0, POLICY))
    for t in range(length):
        arm = policy.choose(state, t, stream.at(t))
        yield t, state, arm, stream.at(t)
        learn_reward(policy, state, t, arm, reward(t, arm), stream.at(t))


@settings(max_examples=25)
@given(SEEDS, ARMS, st.sampled_from([0.3, 1.0, 16.1]), st.sampled_from([5, 20]))
def test_adswitch_always_has_a_good_arm_and_plays_good_or_indebted_ones(seed, n_arms, c1, every):
    policy = AdSwitch(horizon=ROUNDS, c1=c1, every=every)
    for _, state, arm, rng in rounds(policy, n_arms, seed):
        assert sum(state.good) >= 1
        assert set(state.good) <= {0, 1}
        assert state.good[arm] or state.plays[arm] < state.debt[arm] or arm in new_debts(policy, state, rng)


@settings(max_examples=25)
@given(SEEDS, ARMS, st.sampled_from([SlidingOSUB(window=40), SlidingOSUB(window=5)]))
def test_unimodal_policies_play_the_leader_or_its_neighbour(seed, n_arms, policy):
    for _, state, arm, rng in rounds(policy, n_arms, seed):
        leader = leader_of(state.mean, state.seen, rng)
        assert leader == -1 or abs(arm - leader) <= 1


@settings(max_examples=25)
@given(SEEDS, ARMS, st.integers(1, 60), st.sampled_from([0.5, 0.97, 1.0]))
def test_a_periodic_restart_is_as_new_at_every_period_and_only_then(seed, n_arms, period, gamma):
    for t, state, _, _ in rounds(PeriodicRestart(DiscountedTS(gamma=gamma), period=period), n_arms, seed):
        assert state.start == [t - t % period]
        held = sum(state.base.pulls)
        assert (held == 0.0) == (t % period == 0)


@settings(max_examples=25)
@given(SEEDS, ARMS, st.floats(0.001, 1.0))
def test_change_point_weights_are_a_law_whose_youngest_run_has_the_hazard(seed, n_arms, hazard):
    for t, state, _, _ in rounds(GlobalCTS(hazard=hazard, max_runs=60), n_arms, seed, 150):
        size = state.size[0]
        weights = np.array(state.weights[:size])
        assert weights.sum() == pytest.approx(1.0)
        if 0 < t < 50 and hazard > 1e-3:  # before anything is dropped
            assert weights[-1] == pytest.approx(hazard, rel=1e-6) or size == 1
        # The mixture's mean of any arm lies strictly between 0 and 1: every run has the prior's counts in it.
        for arm in range(n_arms):
            mixture = 0.0
            for i in range(size):
                slot = arm * 61 + state.slots[i]
                wins = 1.0 + state.wins[arm] - state.wins_at_start[slot]
                losses = 1.0 + state.losses[arm] - state.losses_at_start[slot]
                mixture += weights[i] * wins / (wins + losses)
            assert 0.0 < mixture < 1.0
