"""The store behind subsampling duels: sums of last rewards as exact arithmetic gives them, and no space lost."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.core.state import to_lists
from driftbandit.policies.blocks import add_reward, beats, drop_oldest, elect, last_sum, new_blocks, tail_of, take_turn

numbers = st.one_of(st.floats(-1e3, 1e3), st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.0]))


def held_by(blocks, arm):
    """What the store says of the last 1, 2, .. rewards of an arm."""
    tail = tail_of(blocks, arm)
    return [last_sum(blocks, tail, n) for n in range(1, blocks.count[arm] + 1)]


@given(st.lists(st.tuples(st.integers(0, 2), numbers), max_size=150), st.integers(1, 40))
def test_sums_of_last_rewards_are_those_of_exact_arithmetic(history, window):
    blocks, recent, cursor = to_lists(new_blocks(3, window, window)), [-1] * window, [0]
    for t, (arm, reward) in enumerate(history):
        take_turn(blocks, recent, cursor, arm, reward)
        last = history[max(0, t + 1 - window) : t + 1]
        assert sum(blocks.count) == len(last)
        for k in range(3):
            mine = [x for a, x in last if a == k]
            exact = [math.fsum(mine[-n:]) for n in range(1, len(mine) + 1)]
            assert held_by(blocks, k) == pytest.approx(exact, rel=3e-16, abs=1e-26)
            assert blocks.sums[k] == (held_by(blocks, k)[-1] if mine else 0.0)


@given(st.lists(st.integers(0, 2), max_size=300), st.integers(1, 70))
def test_every_chunk_given_out_comes_back(arms, window):
    blocks, recent, cursor = to_lists(new_blocks(3, window, window)), [-1] * window, [0]
    size, chunks = 1 << blocks.shape[0], len(blocks.free)
    for arm in arms:
        take_turn(blocks, recent, cursor, arm, 1.0)
        assert blocks.shape[2] <= sum(blocks.count) // size + 2 * 3
    for k in range(3):
        for _ in range(blocks.count[k]):
            drop_oldest(blocks, k)
    assert blocks.shape[2] == 0
    assert sorted(blocks.free) == list(range(chunks))


def test_plain_prefix_sums_would_break_this_tie():
    assert (0.1 + 0.2 + 0.3) - (0.1 + 0.2) != 0.3
    blocks = to_lists(new_blocks(2, 10, 10))
    for reward in (0.1, 0.2, 0.3):
        add_reward(blocks, 0, reward)
    add_reward(blocks, 1, 0.3)
    assert last_sum(blocks, tail_of(blocks, 0), 1) == 0.3
    assert beats(blocks, 1, tail_of(blocks, 0))


def test_whole_rewards_beyond_the_53_bits_of_a_float_are_rounded_once():
    blocks = to_lists(new_blocks(1, 10, 10))
    for reward in (-1.0, 2.0**53, 3.0):  # running totals -1, 2**53 - 1, 2**53 + 2: none has a lower part
        add_reward(blocks, 0, reward)
    assert blocks.total_low == [0.0]
    # 3, then 2**53 + 3, which lies halfway between two floats and goes to the even one, then 2**53 + 2.
    assert held_by(blocks, 0) == [3.0, 2.0**53 + 4.0, 2.0**53 + 2.0]


@given(st.floats(-1e6, 1e6), st.integers(1, 30), st.integers(0, 500))
def test_equal_rewards_are_a_tie_whatever_was_before(reward, n, before):
    blocks = to_lists(new_blocks(2, 600, 600))
    for _ in range(before + n):
        add_reward(blocks, 0, reward)
    for _ in range(n):
        add_reward(blocks, 1, reward)
    assert last_sum(blocks, tail_of(blocks, 0), n) == blocks.sums[1]


def test_a_challenger_with_more_rewards_than_the_leader_is_compared_by_means():
    blocks = to_lists(new_blocks(2, 10, 10))
    for reward in (1.0, 0.0, 1.0):  # mean 2/3
        add_reward(blocks, 0, reward)
    for reward in (1.0, 0.0):  # mean 1/2
        add_reward(blocks, 1, reward)
    assert beats(blocks, 0, tail_of(blocks, 1))
    add_reward(blocks, 1, 1.0)  # mean 2/3 as well, now of three
    add_reward(blocks, 0, 0.0)  # mean 1/2
    assert not beats(blocks, 0, tail_of(blocks, 1))


class Coin:
    """A round in which every number is the same."""

    def __init__(self, u):
        self.u = u

    def uniform(self, slot):
        return self.u


def test_the_leader_has_the_largest_count_then_sum_then_the_title_then_a_random_draw():
    all_three = [1, 1, 1]
    assert elect(all_three, [2, 3, 1], [9.0, 0.0, 9.0], 0, Coin(0.0)) == 1
    assert elect(all_three, [3, 3, 3], [1.0, 0.0, 2.0], 0, Coin(0.0)) == 2
    assert elect(all_three, [3, 3, 3], [1.0, 1.0, 1.0], 1, Coin(0.99)) == 1
    assert [elect(all_three, [3, 3, 3], [1.0, 0.0, 1.0], 1, Coin(u)) for u in (0.49, 0.5)] == [0, 2]
    assert elect([0, 1, 1], [9, 3, 2], [1.0, 1.0, 1.0], 0, Coin(0.0)) == 1


def test_memory_is_that_of_the_window_not_of_window_times_arms():
    blocks = new_blocks(30, 100_000, 100_000)
    places = len(blocks.before)
    assert places <= 100_000 + 3 * 30 * 512
    assert len(blocks.table) + len(blocks.free) < 10_000
