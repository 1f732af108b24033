"""Upper confidence bounds against their twins, their invariants (2.6 to 2.8 of the specification) and numbers
checkable by hand."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from driftbandit.core.draws import Stream
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.policies.detecting_ucb import CusumUCB, MonitoredUCB
from driftbandit.policies.ucb import DiscountedUCB, SlidingUCB
from harness import (
    SITUATIONS,
    abrupt_means,
    assert_compiled_as_interpreted,
    assert_odd_parameters_follow_the_twin,
    assert_same_as_twin,
    play,
    rewards,
    taught,
)

QUICK = [DiscountedUCB(gamma=0.97), SlidingUCB(window=60, xi=0.6)]
ODD = [
    DiscountedUCB(gamma=1.0, xi=0.5),
    DiscountedUCB(gamma=0.2, reward_max=3.0),
    SlidingUCB(window=1),
    SlidingUCB(window=2, xi=0.1),
    SlidingUCB(window=7, reward_max=2.0),
    SlidingUCB(window=5000, xi=0.1),
]
STEPS = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), max_size=60)


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", QUICK, ids=repr)
def test_upper_bounds_choose_the_arms_of_their_twins(policy, n_arms, environment, kind):
    rounds = 3000 if n_arms < 30 else 1000
    assert_same_as_twin(policy, n_arms, rounds, seed=n_arms, environment=environment, kind=kind)


@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("policy", ODD, ids=repr)
def test_odd_parameters_follow_the_twin_too(policy, kind):
    assert_odd_parameters_follow_the_twin(policy, 600, kind)


@pytest.mark.long
@pytest.mark.parametrize("policy", QUICK, ids=repr)
def test_compiled_and_interpreted_bounds_choose_the_same_arms(policy):
    assert_compiled_as_interpreted(policy)


def test_three_rewards_give_the_indices_one_computes_by_hand():
    policy = DiscountedUCB(gamma=0.5, xi=2 / 3)
    state = taught(policy, [(0, 1.0), (1, 0.0), (0, 0.0)], 2)
    assert (state.pulls, state.total) == ([1.25, 0.5], [1.75])
    policy.choose(state, 3, Stream(0).at(3))
    assert state.scores == pytest.approx([1.2926331, 1.7276046], abs=1e-7)


def test_without_forgetting_the_index_after_ten_rounds_is_that_of_ucb1():
    policy = SlidingUCB(window=100, xi=2.0)
    state = taught(policy, [(0, 1.0)] * 4 + [(0, 0.0)] * 4 + [(1, 1.0), (1, 0.0)], 2)
    policy.choose(state, 10, Stream(0).at(10))
    assert state.scores == pytest.approx([0.5 + math.sqrt(2 * math.log(10) / 8), 0.5 + math.sqrt(2 * math.log(10) / 2)])


def test_the_window_stands_inside_the_logarithm():
    policy = SlidingUCB(window=4, xi=2.0)
    state = taught(policy, [(0, 1.0), (1, 0.0)] * 10, 2)
    policy.choose(state, 20, Stream(0).at(20))
    bonus = math.sqrt(2 * math.log(4) / 2)  # not ln 20, nor min(ln 20, 4)
    assert state.scores == pytest.approx([1.0 + bonus, bonus])


@given(STEPS, st.floats(0.05, 0.999))
def test_the_discounted_total_is_a_geometric_sum_and_the_sum_of_all_arms(steps, gamma):
    state = taught(DiscountedUCB(gamma=gamma), steps)
    assert state.total[0] == pytest.approx((1 - gamma ** len(steps)) / (1 - gamma), rel=1e-9)
    assert sum(state.pulls) == pytest.approx(state.total[0], rel=1e-9)


@given(STEPS, st.floats(0.3, 0.999))
def test_an_arm_with_too_little_evidence_is_played_whatever_the_others_earned(steps, gamma):
    policy = DiscountedUCB(gamma=gamma)
    state = taught(policy, steps)
    assume(all(n > 0.0 for n in state.pulls) and state.total[0] > 1.0)
    arm = policy.choose(state, len(steps), Stream(5).at(len(steps)))
    budget = 4 * policy.xi * math.log(state.total[0])
    padding = [math.sqrt(budget / n) for n in state.pulls]
    starved = [i for i in range(4) if all(j == i or state.pulls[i] < budget / (1 + padding[j]) ** 2 for j in range(4))]
    assert starved in ([], [arm])


@given(STEPS, st.integers(1, 70))
def test_the_window_holds_exactly_the_last_rounds(steps, window):
    state = taught(SlidingUCB(window=window), steps)
    for arm in range(4):
        mine = [x for i, x in steps[-window:] if i == arm]
        assert state.pulls[arm] == len(mine)
        assert state.sums[arm] == pytest.approx(sum(mine), abs=1e-9)
        assert state.mean[arm] == (pytest.approx(sum(mine) / len(mine), abs=1e-9) if mine else math.inf)
    assert sum(state.pulls) == min(len(steps), window)


@pytest.mark.parametrize("policy", QUICK, ids=repr)
def test_every_arm_is_played_once_before_any_is_played_twice(policy):
    arms = play(policy, 6, 6, rewards(abrupt_means(6, 6, 1, phases=1), "binary", 1), seed=2)
    assert sorted(arms) == [0, 1, 2, 3, 4, 5]


def test_among_arms_never_played_each_is_first_equally_often():
    policy = SlidingUCB(window=5)
    firsts = [policy.choose(to_lists(policy.init(4)), 0, Stream(seed).at(0)) for seed in range(2000)]
    # Each count is binomial(2000, 1/4), standard deviation 19.4; five of those miss by chance once in two million.
    assert all(abs(firsts.count(arm) - 500) < 97 for arm in range(4))


def test_an_arm_whose_count_underflowed_is_tried_again():
    policy = DiscountedUCB(gamma=0.4)
    state = to_lists(policy.init(2))
    policy.learn(state, 0, 1, 1.0)
    for t in range(1, 1000):
        policy.learn(state, t, 0, 1.0)
    assert state.pulls[1] == 0.0
    assert policy.choose(state, 1000, Stream(0).at(1000)) == 1
    assert state.mean[1] == 1.0


def test_without_discount_discounted_ucb_is_ucb_with_an_endless_window():
    # Rewards without exact ties: running means and sum / count may differ in the last bit, which only ties can see.
    reward = rewards(abrupt_means(5, 2000, 2), "real", 2)
    endless = play(SlidingUCB(window=2000, xi=2.0), 5, 2000, reward, seed=9)
    assert play(DiscountedUCB(gamma=1.0, xi=0.5), 5, 2000, reward, seed=9) == endless


def test_presets_have_the_values_of_the_paper_and_its_code():
    assert DiscountedUCB.text(100_000, 10).gamma == pytest.approx(0.9975)
    assert DiscountedUCB.code(100_000, 10).gamma == pytest.approx(0.999375)
    assert DiscountedUCB.code(10_000, 1, smooth=True).gamma == pytest.approx(0.9991667, abs=1e-7)
    assert DiscountedUCB.code(100_000, 1, smooth=True).gamma == pytest.approx(0.9997365, abs=1e-7)
    assert DiscountedUCB.tuned(100_000, 10).gamma == pytest.approx(1 - math.sqrt(9 / 100_000) / 4)
    assert DiscountedUCB.tuned(100_000, 10, reward_max=2.0).gamma == pytest.approx(1 - math.sqrt(9 / 100_000) / 8)
    assert DiscountedUCB.tuned(100_000, 1).gamma < 1.0  # no change still counts as one
    assert SlidingUCB.tuned(100_000, 11).window == 678
    assert DiscountedUCB().xi == SlidingUCB().xi == 2 / 3


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SlidingUCB(window=10, xi=0.0), "xi > 0; got 0.0. The theory needs more than 1/2."),
        (lambda: DiscountedUCB(gamma=2.0), r"gamma in \(0, 1\]; got 2.0"),
        (lambda: DiscountedUCB.tuned(5, 10), "phases <= horizon"),
    ],
)
def test_wrong_parameters_are_refused_in_one_sentence(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_every_bound_counts_past_rewards_in_its_logarithm():
    """One reward of each of two arms: ln 2 everywhere, where counting the coming round in some would give ln 3."""
    for policy in (
        DiscountedUCB(gamma=1.0, xi=0.5),
        SlidingUCB(window=100, xi=2.0),
        MonitoredUCB(explore=0.0),
        CusumUCB(explore=0.0, xi=2.0, warmup=False),
    ):
        state = to_lists(policy.init(2))
        for t, (arm, reward) in enumerate([(0, 1.0), (1, 0.0)]):
            learn_reward(policy, state, t, arm, reward, Stream(1).at(t))
        policy.choose(state, 2, Stream(0).at(2))
        assert state.scores == pytest.approx([1.0 + math.sqrt(2 * math.log(2)), math.sqrt(2 * math.log(2))])
