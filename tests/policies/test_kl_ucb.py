"""kl-UCB against its twins, its invariants (2.6 to 2.8 of the specification) and numbers checkable by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.core.draws import Stream
from driftbandit.core.state import to_lists
from driftbandit.policies.kl_ucb import KLUCB, DiscountedKLUCB, SlidingKLUCB, kl_bernoulli, kl_ucb, log_budget
from harness import (
    SITUATIONS,
    abrupt_means,
    assert_compiled_as_interpreted,
    assert_odd_parameters_follow_the_twin,
    assert_same_as_twin,
    play,
    rewards,
)
from naive.ucb import kl_ucb as by_halving

QUICK = [KLUCB(), DiscountedKLUCB(gamma=0.97), SlidingKLUCB(window=60)]
ODD = [
    KLUCB(c=3.0),
    DiscountedKLUCB(gamma=0.2),
    SlidingKLUCB(window=1),
    SlidingKLUCB(window=2, c=1.0),
    SlidingKLUCB(window=5000, c=3.0),
]
RATE, BOUND = st.floats(0, 1), st.floats(0, 50)


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", QUICK, ids=repr)
def test_kl_bounds_choose_the_arms_of_their_twins(policy, n_arms, environment, kind):
    rounds = 2000 if n_arms < 5 else 600 if n_arms < 30 else 250
    assert_same_as_twin(policy, n_arms, rounds, seed=n_arms, environment=environment, kind=kind)


@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("policy", ODD, ids=repr)
def test_odd_parameters_follow_the_twin_too(policy, kind):
    assert_odd_parameters_follow_the_twin(policy, 400, kind)


@pytest.mark.long
@pytest.mark.parametrize(
    "policy", [KLUCB(c=1.0), DiscountedKLUCB(gamma=0.98), SlidingKLUCB(window=60, c=1.0)], ids=repr
)
def test_compiled_and_interpreted_kl_bounds_choose_the_same_arms(policy):
    assert_compiled_as_interpreted(policy)


@pytest.mark.parametrize(("p", "bound", "q"), [(0.5, 0.2, 0.7870888), (0.1, 0.2, 0.3783915), (0.9, 0.4, 0.9992858)])
def test_kl_bounds_have_known_values(p, bound, q):
    assert kl_ucb(p, bound) == pytest.approx(q, abs=1e-7)


@given(RATE, BOUND)
def test_the_bound_is_the_one_found_by_halving_an_interval(p, bound):
    # Where the bound is tiny both are limited by rounding in kl, which is flat there: the slope is about sqrt(8 bound).
    assert kl_ucb(p, bound) == pytest.approx(by_halving(p, bound), abs=1e-12 + 1e-16 / math.sqrt(bound + 1e-30))


@given(st.floats(0, 1e-6), BOUND)
def test_tiny_and_nearly_certain_rates_work(tiny, bound):
    for p in (tiny, tiny**20, 1.0 - tiny):
        q = kl_ucb(p, bound)
        assert p <= q <= 1.0
        assert q == pytest.approx(by_halving(p, bound), abs=1e-9)


@given(RATE, RATE, BOUND, BOUND)
def test_a_larger_mean_or_a_larger_bound_never_lowers_the_index(p, other, bound, wider):
    low, high = sorted((p, other))
    assert kl_ucb(low, bound) <= kl_ucb(high, bound) + 1e-9
    small, large = sorted((bound, wider))
    assert kl_ucb(p, small) <= kl_ucb(p, large) + 1e-9


@given(RATE, BOUND)
def test_the_index_lies_between_the_mean_and_the_bound_of_pinsker(p, bound):
    assert kl_ucb(p, 0.0) == p
    assert p <= kl_ucb(p, bound) <= min(1.0, p + math.sqrt(bound / 2))
    # kl is steep near 1 and flat near p, so the index is tested by its neighbours rather than by its own kl.
    assert kl_bernoulli(p, max(p, kl_ucb(p, bound) - 1e-12)) <= bound + 1e-12


def test_the_budget_is_never_negative_and_counts_the_double_logarithm_from_e_on():
    assert [log_budget(n, 3.0) for n in (0, 1, 2)] == [0.0, 0.0, math.log(2)]
    assert log_budget(100, 3.0) == pytest.approx(math.log(100) + 3.0 * math.log(math.log(100)))


def test_several_arms_with_too_little_evidence_tie_at_exactly_one():
    assert kl_ucb(0.3, 40.0) == kl_ucb(0.6, 35.0) == kl_ucb(0.0, 35.0) == kl_ucb(1.0, 0.0) == 1.0
    assert kl_ucb(0.0, 34.0) < 1.0


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), max_size=60), st.integers(1, 70))
def test_the_window_holds_exactly_the_last_rounds(steps, window):
    policy = SlidingKLUCB(window=window)
    state = to_lists(policy.init(4))
    for t, (arm, reward) in enumerate(steps):
        policy.learn(state, t, arm, reward)
    for arm in range(4):
        mine = [x for i, x in steps[-window:] if i == arm]
        assert state.pulls[arm] == len(mine)
        assert state.mean[arm] == pytest.approx(sum(mine) / max(len(mine), 1), abs=1e-9)
    assert sum(state.pulls) == min(len(steps), window)


def test_an_arm_whose_count_underflowed_is_tried_again():
    policy = DiscountedKLUCB(gamma=0.4)
    state = to_lists(policy.init(2))
    policy.learn(state, 0, 1, 0.0)
    for t in range(1, 1000):
        policy.learn(state, t, 0, 1.0)
    assert state.pulls[1] == 0.0
    assert policy.choose(state, 1000, Stream(0).at(1000)) == 1


def test_without_discount_the_twin_is_followed_where_rewards_do_not_tie():
    # Equal records of 0/1 rewards have running means that differ in the last bit, between which rounding decides.
    assert_same_as_twin(DiscountedKLUCB(gamma=1.0), 5, 600, seed=3, kind="real")


def test_without_window_or_discount_they_are_kl_ucb():
    for kind in ("binary", "real"):
        reward = rewards(abrupt_means(5, 1500, 2), kind, 2)
        plain = play(KLUCB(), 5, 1500, reward, seed=9)
        assert play(SlidingKLUCB(window=1500), 5, 1500, reward, seed=9) == plain
    assert (
        play(DiscountedKLUCB(gamma=1.0), 5, 1500, reward, seed=9) == plain
    )  # real rewards: running means break no tie


def test_kl_policies_are_tuned_like_their_square_root_relatives():
    assert DiscountedKLUCB.tuned(100_000, 10).gamma == pytest.approx(1 - math.sqrt(9 / 100_000) / 4)
    assert SlidingKLUCB.tuned(100_000, 11).window == 678
    assert KLUCB.tuned(10, 1) == KLUCB(c=0.0)


def test_a_negative_weight_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"KLUCB needs c >= 0; got -1.0. The theory needs 3"):
        KLUCB(c=-1.0)
