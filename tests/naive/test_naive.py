"""The twins against numbers that can be checked by hand.

Nothing here is random: every stream has a fixed seed, so a test that passes keeps passing.
"""

import math

import numpy as np
import pytest

from . import TWINS
from .detectors import cusum
from .draws import TIES, Draws, Twin, argmax_fair, draw_from, shuffled
from .glr import calligraphic_t, glr, glr_threshold
from .plays import play, reward
from .ucb import kl, kl_ucb

SEQUENCE = [(0, 1.0), (1, 0.0), (0, 0.0)]  # (arm, reward), two arms


def fed(name: str, sequence: list[tuple[int, float]], n_arms: int = 2, **parameters: object) -> Twin:
    twin = TWINS[name](n_arms, **parameters)
    for t, (arm, x) in enumerate(sequence):
        twin.learn(t, arm, x)
    return twin


def test_discounted_ts_keeps_discounted_counts_and_means():
    twin = fed("DiscountedTS", SEQUENCE, gamma=0.5, tau_max=2.0)
    assert twin.pulls == [1.25, 0.5]
    assert twin.means == pytest.approx([0.2, 0.0], abs=1e-15)
    assert twin.sds() == pytest.approx([0.894427, 1.414214], abs=5e-7)
    assert fed("DiscountedTS", SEQUENCE, gamma=0.5, tau_max=0.2).sds() == [0.2, 0.2]


def test_discounted_means_are_the_weighted_averages_they_abbreviate():
    twin = TWINS["DiscountedTS"](5, gamma=0.9, tau_max=0.2)
    arms = play(twin, 150, binary=False)
    weights = [0.9 ** (149 - t) for t in range(150)]
    for i in range(5):
        n = sum(w for w, arm in zip(weights, arms, strict=True) if arm == i)
        s = sum(w * reward(t, i, binary=False) for t, w in enumerate(weights) if arms[t] == i)
        assert twin.pulls[i] == pytest.approx(n, rel=1e-12)
        assert twin.means[i] == pytest.approx(s / n if n else 0.0, rel=1e-9)


def test_forgetting_replaces_the_mean_of_a_faded_arm_by_its_faded_sum():
    twin = fed("DiscountedTS", [(0, 1.0), (1, 0.0), (1, 0.0)], gamma=0.5, tau_max=0.2, forget_below=0.3)
    assert twin.pulls[0] == 0.25
    assert twin.centres()[0] == 0.25  # 0.25 * mean 1
    assert twin.means[0] == 1.0


def test_beta_policies_hold_the_counts_of_the_specification():
    assert fed("DiscountedBetaTS", SEQUENCE, gamma=0.5).parameters() == ([1.25, 1.0], [2.0, 1.5])
    assert fed("BetaTS", SEQUENCE).parameters() == ([2.0, 1.0], [2.0, 2.0])
    sliding = fed("SlidingTS", SEQUENCE, window=2)
    assert (sliding.wins(), sliding.losses()) == ([0.0, 0.0], [1.0, 1.0])


def test_binarised_rewards_use_the_coin_of_the_round():
    twin = TWINS["BetaTS"](2, binarise=True)
    rng = Draws(3, 0)
    arm = twin.choose(0, rng)
    twin.learn(0, arm, rng.uniform(2) + 1e-9)
    assert twin.wins()[arm] == 1.0
    twin.learn(1, arm, rng.uniform(2))  # coin < reward is strict
    assert (twin.wins()[arm], twin.losses()[arm]) == (1.0, 1.0)


def test_discounted_ucb_has_the_indices_of_the_specification():
    twin = fed("DiscountedUCB", SEQUENCE, gamma=0.5, xi=2 / 3, reward_max=1.0)
    assert twin.n == 1.75
    assert twin.indices(3) == pytest.approx([1.2926331, 1.7276046], abs=5e-8)


def test_exp3s_has_the_weights_of_the_specification():
    twin = fed("EXP3S", [(0, 1.0)], explore=0.5, share=0.1)
    assert twin.weights == pytest.approx([0.6016047, 0.3983953], abs=5e-8)
    assert twin.probabilities() == pytest.approx([0.5508024, 0.4491976], abs=5e-8)


def test_cusum_rises_by_the_surplus_over_its_reference():
    statistics = [cusum([0.0, 0.0, 1.0, 1.0][: j + 1], samples=2, drift=0.1)[0] for j in range(4)]
    assert statistics == pytest.approx([0.0, 0.0, 0.9, 1.8])
    twin = TWINS["CusumUCB"](2, samples=2, drift=0.1, threshold=1.0, explore=0.0, xi=0.5, warmup=False)
    for t, x in enumerate([0.0, 0.0, 1.0]):
        twin.learn(t, 0, x)
    assert (twin.alarms, len(twin.rewards[0])) == (0, 3)
    twin.learn(3, 0, 1.0)
    assert (twin.alarms, twin.rewards[0]) == (1, [])


@pytest.mark.parametrize(("threshold", "alarms"), [(1.5, 1), (2.0, 0)])
def test_monitored_ucb_compares_the_halves_of_its_window(threshold: float, alarms: int):
    sequence = [(0, x) for x in (0.0, 0.0, 1.0, 1.0)]
    assert fed("MonitoredUCB", sequence, window=4, threshold=threshold, explore=0.1).alarms == alarms


def test_monitored_ucb_forces_every_arm_in_order_after_a_restart():
    twin = fed("MonitoredUCB", [(0, x) for x in (0.0, 0.0, 1.0, 1.0)], window=4, threshold=1.5, explore=0.1)
    arms = []
    for t in range(4, 6):
        arms.append(twin.choose(t, Draws(0, t)))
        twin.learn(t, arms[-1], 0.0)
    assert arms == [0, 1]


def test_glr_of_a_clean_step_is_four_bits():
    assert glr([0.0, 0.0, 1.0, 1.0]) == pytest.approx(4 * math.log(2))
    assert glr([1.0] * 9) == 0.0


def test_glr_thresholds_have_the_published_sizes():
    assert glr_threshold(100, 1e5**-0.5, threshold=1.0) == pytest.approx(12.7, abs=0.05)
    assert glr_threshold(100, 1e5**-0.5, threshold=0.0) == pytest.approx(45.6, abs=0.05)
    assert [calligraphic_t(x) for x in (5.0, 10.0)] == pytest.approx([15.19, 21.45], abs=0.005)


def test_kl_bound_has_the_values_of_the_specification():
    assert kl_ucb(0.5, 0.2) == pytest.approx(0.7870888, abs=5e-8)
    assert kl_ucb(0.1, 0.2) == pytest.approx(0.3783915, abs=5e-8)
    assert kl_ucb(0.9, 0.4) == pytest.approx(0.9992858, abs=5e-8)
    assert kl_ucb(0.3, 0.0) == 0.3
    assert kl_ucb(0.3, 1e9) == 1.0
    assert kl(0.5, 0.25) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))


def test_global_cts_gives_a_new_run_the_hazard():
    twin = fed("GlobalCTS", [(0, 1.0)], hazard=0.1)
    assert twin.weights == pytest.approx([0.9, 0.1])  # oldest first
    assert (twin.wins, twin.losses) == ([[1, 0], [0, 0]], [[0, 0], [0, 0]])


def test_per_arm_cts_equals_the_unmerged_recursion():
    h, sequence = 0.05, [(int(b), float(x)) for b, x in np.random.default_rng(8).integers(0, 2, (60, 2))]
    twin = fed("PerArmCTS", sequence, hazard=h)
    runs = [(0, 0, 1.0)]  # arm 0, one entry for every possible time of change
    for arm, x in sequence:
        if arm == 0:
            joint = [w * ((1 + a if x else 1 + b) / (2 + a + b)) for a, b, w in runs]
            whole = sum(joint)
            runs = [(a + int(x), b + 1 - int(x), (1 - h) * j / whole) for (a, b, _), j in zip(runs, joint, strict=True)]
        else:
            runs = [(a, b, (1 - h) * w) for a, b, w in runs]
        runs.append((0, 0, h))
    merged: dict[tuple[int, int], float] = {}
    for a, b, w in runs:
        merged[a, b] = merged.get((a, b), 0.0) + w
    for a, b, w in twin.runs[0]:
        assert w == pytest.approx(merged.pop((a, b)), abs=1e-11)
    assert sum(merged.values()) < 1e-10  # only negligible runs were forgotten


def test_exact_ties_are_settled_by_the_slot_for_ties():
    rng = Draws(4, 0)
    assert argmax_fair([1.0, 3.0, 2.0], rng) == 1
    assert argmax_fair([3.0, 1.0, 3.0], rng) == (0, 2)[int(rng.uniform(TIES) * 2)]


def test_a_number_beyond_the_cumulative_sum_draws_the_last_entry():
    assert [draw_from([0.25, 0.25, 0.5], u) for u in (0.0, 0.25, 0.5, 0.999)] == [0, 1, 2, 2]
    assert draw_from([0.3, 0.3], 0.9) == 1


def test_shuffling_keeps_every_item():
    assert sorted(shuffled([4, 7, 9, 11], Draws(0, 0))) == [4, 7, 9, 11]


def test_a_duel_is_lost_only_by_a_strictly_smaller_mean():
    twin = fed("LBSDA", [(0, 1.0), (1, 0.0), (0, 0.0), (0, 0.0)])  # sweep, then two rewards before any plan
    assert twin.choose(4, Draws(0, 4)) == 1  # its 0.0 ties the leader's last reward
    twin.learn(4, 1, 0.0)
    assert (twin.round, twin.leader) == (2, 0)


def test_sliding_duels_open_with_every_arm():
    twin = TWINS["SlidingLBSDA"](4, window=50)
    assert sorted(play(twin, 4)) == [0, 1, 2, 3]
    assert twin.last_drawn == [1, 1, 1, 1]


def test_osub_plays_only_the_leader_and_its_neighbours():
    twin = TWINS["SlidingOSUB"](5, window=300)
    arms = play(twin, 300)
    assert arms[:5] == [0, 1, 2, 3, 4]
    assert all(abs(arm - leader) <= 1 for arm, leader in zip(arms[5:], twin.leaders[5:], strict=True))


def test_osub_plays_each_leader_in_a_third_of_its_rounds_at_least():
    twin = TWINS["SlidingOSUB"](5, window=30)
    arms = play(twin, 300)
    for i in range(5):
        led = [arm for arm, leader in zip(arms, twin.leaders, strict=True) if leader == i]
        assert 3 * led.count(i) >= len(led)


def test_restarts_happen_before_the_choice_of_the_round():
    twin = TWINS["PeriodicRestart"](2, base=TWINS["BetaTS"], period=3)
    play(twin, 3)
    assert len(twin.twin.history) == 3
    twin.choose(3, Draws(1, 3))
    assert len(twin.twin.history) == 0
