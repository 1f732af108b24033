"""GLR-klUCB against its twin, its invariants (section 2.16 of the specification), and hulls against plain search."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftbandit.policies.glr_klucb as module
from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.glr_klucb import GLRKLUCB, largest_ratio, push, theory_threshold
from harness import SITUATIONS, abrupt_means, assert_same_as_twin, play, play_twin, rewards
from naive import TWINS
from naive.glr import glr, glr_threshold

POLICIES = [
    GLRKLUCB(horizon=600, delta=0.05),
    GLRKLUCB(horizon=600, delta=0.1, local=False, threshold=3.0, changes=3, c=3.0),
    GLRKLUCB(horizon=600, delta=1.0, threshold=0.0),
    GLRKLUCB(horizon=1, delta=0.05),
]
REWARDS = st.lists(st.sampled_from([0.0, 1.0]), max_size=60) | st.lists(st.floats(0.0, 1.0), max_size=60)


def hulls(values, capacity=1024):
    """The GLR statistic of the rewards by hulls, and the number of vertices."""
    at, sums = [[0.0] * capacity, [0.0] * capacity], [[0.0] * capacity, [0.0] * capacity]
    count, total = [0, 0], 0.0
    for s, value in enumerate(values):
        if s > 0:
            for i in (0, 1):
                count[i] = push(at[i], sums[i], 0, count[i], capacity, float(s), total, 1.0 - 2.0 * i)
        total += value
    n = len(values)
    if n < 2 or not 0.0 < total / n < 1.0:
        return 0.0, count
    return max(largest_ratio(at[i], sums[i], 0, count[i], float(n), total, 0.0) for i in (0, 1)), count


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_glr_klucb_chooses_the_arms_of_its_twin(policy, n_arms, environment, kind):
    rounds = 500 if policy.horizon > 1 else 150  # a test of every split after every reward makes the twin slow
    assert_same_as_twin(policy, n_arms, rounds, n_arms, environment, kind)


@pytest.mark.long
def test_glr_klucb_chooses_the_arms_of_its_twin_for_thousands_of_rounds():
    assert_same_as_twin(GLRKLUCB(horizon=2000, delta=0.02), 5, 2000, 1)


def test_a_horizon_shorter_than_the_number_of_arms_is_played_like_the_twin():
    assert_same_as_twin(GLRKLUCB(horizon=11, delta=0.3), 30, 11, 3)


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES[:3], ids=str)
def test_compiled_and_interpreted_glr_klucb_choose_the_same_arms(policy):
    environment = Abrupt(n_arms=4, horizon=1500, phases=3, instance="1")
    fast = simulate(policy, environment, runs=1, trajectories=True)
    slow = simulate(policy, environment, runs=1, trajectories=True, compiled=False)
    assert (fast.arms == slow.arms).all()


@pytest.mark.parametrize(("policy", "least"), [(POLICIES[0], 3), (POLICIES[1], 3), (POLICIES[2], 1)], ids=str)
def test_alarms_are_counted_as_the_twin_counts_them(policy, least):
    reward = rewards(np.repeat([[0.05, 0.5], [0.95, 0.4], [0.1, 0.2], [0.9, 0.3]], 200, axis=0), "binary", 4)
    twin = TWINS["GLRKLUCB"](2, **policy._asdict())
    play_twin(twin, 800, reward, 4)
    state, stream = to_lists(policy.init(2)), Stream(stream_key(4, 0, POLICY))
    for t in range(800):
        arm = policy.choose(state, t, stream.at(t))
        policy.learn(state, t, arm, reward(t, arm))
    assert (state.alarms, state.start) == ([twin.alarms], twin.start)
    assert twin.alarms >= least


def test_two_zeros_and_two_ones_have_a_ratio_of_four_ln_two():
    assert hulls([0.0, 0.0, 1.0, 1.0])[0] == pytest.approx(4.0 * math.log(2.0), abs=1e-12)


@given(REWARDS)
def test_the_largest_ratio_is_found_at_a_vertex(values):
    assert hulls(values)[0] == pytest.approx(glr(values), rel=1e-9, abs=1e-9)


@given(REWARDS, st.floats(0.01, 8.0))
def test_skipping_bounded_vertices_does_not_change_verdicts(values, bar):
    n, total = len(values), sum(values)
    if n >= 2 and 0.0 < total / n < 1.0:
        _, count = hulls(values)
        state = to_lists(GLRKLUCB(delta=0.0).init(1))
        for t, value in enumerate(values):
            GLRKLUCB(delta=0.0).learn(state, t, 0, value)
        found = max(
            largest_ratio(state.upper_at, state.upper_sum, 0, count[0], float(n), total, bar),
            largest_ratio(state.lower_at, state.lower_sum, 0, count[1], float(n), total, bar),
        )
        exact = glr(values)
        if abs(exact - bar) > 1e-9:
            assert (found > bar) == (exact > bar)


@given(st.sampled_from([0.0, 0.3, 1.0]), st.integers(2, 50))
def test_constant_rewards_have_no_ratio(value, n):
    assert abs(hulls([value] * n)[0]) < 1e-9


@given(st.lists(st.sampled_from([0.0, 1.0]), max_size=25))
def test_doubling_the_data_doubles_the_ratio(values):
    doubled = [value for value in values for _ in (0, 1)]
    assert hulls(doubled)[0] >= 2.0 * hulls(values)[0] - 1e-9  # new splits between two copies may add a little
    assert hulls(doubled)[0] == pytest.approx(glr(doubled), abs=1e-9)


def test_random_rewards_have_few_vertices():
    values = (np.random.default_rng(3).random(5000) < 0.4).astype(float).tolist()
    assert sum(hulls(values)[1]) < 60  # about 4 ln 5000 = 34


@pytest.mark.parametrize(("capacity", "kept"), [(64, 0.99), (16, 0.9)])
def test_a_full_hull_is_thinned_and_then_shows_nearly_the_exact_ratio_and_never_more(capacity, kept):
    values = [s / 400 for s in range(400)]  # bends upwards forever: every point is a vertex of the lower hull
    exact, count = hulls(values)
    assert count[1] == 399
    thinned, fewer = hulls(values, capacity)
    assert fewer[1] <= capacity
    assert kept * exact < thinned <= exact


def test_a_late_change_is_seen_by_a_thinned_hull():
    values = [0.3 + 0.1 * s / 3000 for s in range(3000)] + [1.0] * 12
    exact, thinned = hulls(values, 4000)[0], hulls(values, 256)[0]
    assert 0.98 * exact < thinned <= exact


def test_a_policy_with_little_room_stays_within_it(monkeypatch):
    monkeypatch.setattr(module, "VERTICES", 8)
    policy = GLRKLUCB(horizon=500, delta=0.0)
    state = to_lists(policy.init(2))
    other = list(state.lower_at[8:])
    for t in range(400):
        policy.learn(state, t, 0, t / 400)
        assert max(state.corners) <= 8
    assert state.lower_at[8:] == other


@given(st.integers(2, 10**7), st.floats(1e-6, 1.0))
def test_the_thresholds_are_those_of_the_twin(n, delta):
    x = math.log(3.0) + 1.5 * math.log(n) - math.log(delta)
    theory = glr_threshold(n, delta, 0.0)
    assert theory_threshold(x, float(n)) == pytest.approx(theory, rel=1e-12)
    assert theory > x  # why the practical threshold may be tried first


def test_the_threshold_of_the_specification_at_one_hundred_samples():
    delta = 1.0 / math.sqrt(1e5)
    assert theory_threshold(math.log(3.0 * 100**1.5 / delta), 100.0) == pytest.approx(45.6, abs=0.05)


def test_local_and_global_restarts_agree_until_the_first_alarm():
    reward = rewards(abrupt_means(3, 900, 4), "binary", 4)
    twin = TWINS["GLRKLUCB"](3, horizon=900, delta=0.05)
    play_twin(twin, 900, reward, 1)
    assert twin.alarms > 0
    local = play(GLRKLUCB(horizon=900, delta=0.05), 3, 900, reward, 1)
    everywhere = play(GLRKLUCB(horizon=900, delta=0.05, local=False), 3, 900, reward, 1)
    calm = play(GLRKLUCB(horizon=900, delta=0.0), 3, 900, reward, 1)
    parted = next(t for t in range(900) if local[t] != everywhere[t])
    assert local[:parted] == everywhere[:parted]
    assert next(t for t in range(900) if local[t] != calm[t]) <= parted


def test_tuned_takes_the_usual_delta():
    assert GLRKLUCB.tuned(10_000, 5, 3) == GLRKLUCB(10_000, 0.01, True, 1.0, 0, 0.0)
