import math

import pytest

from driftbandit.paper.theory.peers import floor_with_blocks, lower_bound, table1
from driftbandit.policies.kl import kl_bernoulli


def test_table_1_at_the_main_setting():
    rows = {name: 10**order.log10 for name, order in table1(10**5, 10, 0.1).items()}
    assert rows == pytest.approx({"cusum-ucb": 2000, "sw-ts": 10_000, "d-ucb": 100_000, "ds-ts": 100_000})


def test_halving_the_gap_doubles_the_order_of_sw_ts_and_quadruples_that_of_ds_ts():
    wide, narrow = table1(10**5, 10, 0.2), table1(10**5, 10, 0.1)
    assert narrow["sw-ts"].log10 - wide["sw-ts"].log10 == pytest.approx(math.log10(2))
    assert narrow["ds-ts"].log10 - wide["ds-ts"].log10 == pytest.approx(math.log10(4))


def test_table_1_has_no_number_for_tied_arms():
    assert {order.log10 for order in table1(10**5, 10, 0.0).values()} == {None}


def test_the_two_regrets_of_the_lower_bound_meet_where_it_says():
    horizon, blocks, gap, rise = 10_000, 20, 0.1, 0.1
    kl = kl_bernoulli(0.4, 0.6)
    value = floor_with_blocks(horizon, blocks, gap, rise, kl)
    plays, length = value / gap, horizon // blocks
    changed = rise * length * (1 - plays / (blocks * length) - math.sqrt(kl * plays / (2 * blocks)))
    assert changed == pytest.approx(value, rel=1e-9)


def test_no_block_count_beats_the_grid_by_more_than_two_percent():
    kl = kl_bernoulli(0.4, 0.6)
    best = max(floor_with_blocks(10_000, blocks, 0.1, 0.1, kl) for blocks in range(1, 10_001))
    assert best * 0.98 <= lower_bound(10_000).value <= best * (1 + 1e-12)


def test_the_lower_bound_grows_like_the_root_of_the_horizon():
    ratio = lower_bound(10**12).value / lower_bound(10**10).value
    assert ratio == pytest.approx(10.0, rel=0.02)


def test_the_lower_bound_is_below_what_fixed_arms_cost():
    # Always playing the best arm of the stationary world costs rise x block length in the other: at most rise x T.
    assert lower_bound(1000).value <= 0.1 * 1000


@pytest.mark.parametrize("arguments", [(0,), (100, 0.4, 0.5), (100, 0.5, 0.4, 0.5), (10**400,)])
def test_a_lower_bound_without_meaning_says_so(arguments):
    bound = lower_bound(*arguments)
    assert bound.log10 is None
    assert bound.failed


def test_an_order_says_which_condition_fails_and_whether_it_is_vacuous():
    tied = table1(100_000, 10, 0.0)["ds-ts"]
    assert tied.log10 is None
    assert tied.vacuous
    assert ["gap" in condition.text for condition in tied.failed] == [True]
    assert not table1(100_000, 10, 0.5)["ds-ts"].vacuous  # sqrt(1e6) / 0.25 = 4000 of 100 000 rounds
