"""The slow DriftTS against numbers worked out by hand from its specification, in fractions wherever there are any.

Nothing here is random: every stream has a fixed seed, so a test that passes keeps passing.
"""

from fractions import Fraction

import pytest

from .draws import Draws
from .drift_ts import Count, NaiveDriftTS, Run, runs_of
from .plays import play, reward

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def taught(steps: list[tuple[int, float]], n_arms: int = 2) -> NaiveDriftTS:
    twin = NaiveDriftTS(n_arms)
    for t, (arm, y) in enumerate(steps):
        twin.learn(t, arm, y)
    return twin


def weights(twin: NaiveDriftTS) -> list[float]:
    return [hypothesis.weight for hypothesis in twin.hypotheses()]


class Fixed:
    """A round whose uniform numbers and Beta draws are given; `asked` keeps the parameters of the Beta draws."""

    def __init__(self, uniforms: dict[int, float], betas: list[float]) -> None:
        self.uniforms, self.draws = uniforms, betas
        self.asked: tuple[list[float], list[float]] = ([], [])

    def uniform(self, slot: int) -> float:
        return self.uniforms[slot]

    def normals(self, n: int) -> list[float]:
        raise AssertionError("DriftTS draws no normals")

    def betas(self, a: list[float], b: list[float]) -> list[float]:
        self.asked = (list(a), list(b))
        return self.draws


def test_the_first_weights_are_nine_equal_parts_shared_three_to_one():
    twin = NaiveDriftTS(3)
    assert weights(twin) == pytest.approx([1 / 18] * 2 + [1 / 12] * 8 + [1 / 36] * 8, rel=1e-15)
    assert sum(weights(twin)) == pytest.approx(1.0, abs=1e-15)


def test_three_rewards_leave_the_weights_worked_out_by_hand():
    """Arm 0 wins, arm 1 loses, arm 0 loses. Nobody is newest or given anything before round 16, so weights only meet
    likelihoods.

    A root predicts 1/2, 1/2, then arm 0 has 1 of 1: a loss has probability 1/3. A drift of rate q predicts 1/2, 1/2,
    and for arm 0, two rounds after its win, n = 1/(1 + 2q): a loss has (1 + n - n)/(2 + n) = (1 + 2q)/(3 + 4q).
    A common starts with u = r = 1/4, u grows by q before each reward.
    """
    rates = [Fraction(1, 8 ** (g + 2)) for g in range(8)]
    run_predicts = [HALF, HALF, Fraction(1, 3)]
    drifts_predict = [[HALF, HALF, (1 + 2 * q) / (3 + 4 * q)] for q in rates]
    common_predict = [common_drift_predicts(q) for q in rates]
    w = [Fraction(1, 18)] * 2 + [Fraction(1, 12)] * 8 + [Fraction(1, 36)] * 8
    for t in range(3):
        said = [run_predicts[t]] * 2 + [d[t] for d in drifts_predict] + [d[t] for d in common_predict]
        joint = [a * b for a, b in zip(w, said, strict=True)]
        w = [j / sum(joint) for j in joint]
    assert sum(w) == 1
    twin = taught([(0, 1.0), (1, 0.0), (0, 0.0)])
    assert weights(twin) == pytest.approx([float(x) for x in w], rel=1e-13)
    # in decimals: a root, drifts 0 and 7, common_drifts 0 and 7
    assert [float(w[i]) for i in (0, 2, 9, 10, 17)] == pytest.approx(
        [0.0506847, 0.0768028, 0.076027, 0.0368986, 0.0360724], abs=5e-8
    )


def common_drift_predicts(q: Fraction) -> list[Fraction]:
    """What a common of rate q gives the rewards 1 (arm 0), 0 (arm 1), 0 (arm 0), step by step."""
    # Round 1: u + r = 1/2 + q is not evidence (1/(u + r) < 2), so 1/2. Then level and offset 0 take their parts of 1/2.
    u, r0, r1 = QUARTER + q, QUARTER, QUARTER
    s = 1 + u + r0
    level, offset0 = HALF + u * HALF / s, r0 * HALF / s
    u, r0 = u * (1 + r0) / s, r0 * (1 + u) / s
    # Round 2: arm 1, never seen, is predicted by the level only.
    u += q
    n = max(1 / (u + r1) - 2, Fraction(0))
    second = 1 - (1 + n * level) / (2 + n)
    s = 1 + u + r1
    level += u * (0 - level) / s
    u = u * (1 + r1) / s
    # Round 3: arm 0, by level and offset.
    u += q
    n = max(1 / (u + r0) - 2, Fraction(0))
    return [HALF, second, 1 - (1 + n * (level + offset0)) / (2 + n)]


@pytest.mark.parametrize("binary", [True, False])
def test_the_first_run_added_to_each_bank_weighs_2_of_85(binary: bool):
    """At t = 16 no arm has shown a change, so every hypothesis gives h/16 = 16/17/16 = 1/17 of its weight, and
    1 - alpha = 1 - 4/(4 + 16) = 4/5 is there to be given: 4/85 in all. Both roots weigh the same, hence each bank has
    half."""
    twin = NaiveDriftTS(5)
    play(twin, 16, binary=binary)
    for bank in (twin.together, twin.one_by_one):
        root, newest = bank[0]
        assert newest.weight == pytest.approx(2 / 85, rel=1e-13)
        assert (root.changes, newest.changes) == (0.0, 1.0)
        assert newest.since == [Count()] * 5
    assert twin.together[0][0].weight == pytest.approx(twin.one_by_one[0][0].weight, rel=1e-14)
    assert twin.one_by_one[0][1].changed == [0.5] * 5


def test_a_run_added_later_counts_its_parents_changes_and_one_more():
    """At t = 16 all has changes 0, or 1 in the new runs of weight 2/85 each. 16 rounds on, a parent of changes c
    gives h (1/16 + c/4) of its weight: the child's changes are 1 + (the givers' changes averaged by what they give)."""
    twin = NaiveDriftTS(2)
    for t in range(31):
        twin.learn(t, t % 2, 0.5)  # y = 1/2 keeps both arms at 1/2: everybody says 1/2
    roots, newest = [bank[0][0] for bank in (twin.together, twin.one_by_one)], twin.together[0][1]
    others = [*twin.drifts, *twin.common_drifts]
    assert [root.changes for root in roots] == [0.0, 0.0]
    assert newest.weight == pytest.approx(2 / 85, rel=1e-12)
    givers = [(newest.weight, 1.0)] + [(o.weight / 2, o.changes) for o in others] + [(roots[0].weight, 0.0)]
    gives = [w * (1 / 16 + c / 4) for w, c in givers]
    average = sum(g * c for g, (_, c) in zip(gives, givers, strict=True)) / sum(gives)
    twin.learn(31, 0, 0.5)
    child = twin.together[0][0]
    assert child.weight == pytest.approx(8 / 9 * 16 / 33 * sum(gives), rel=1e-12)
    assert child.changes == pytest.approx(1.0 + average, rel=1e-12)


def test_shared_weight_brings_the_changes_of_the_average_hypothesis():
    """y = 1/2 as above. At t = 16 all changes are 0; at t = 32 the average is that of the two new runs, 4/85, and
    alpha = 4/36: drift g gives 16/33/16 of its weight to new runs, keeps 8/9 of the rest, and is given 3/4/8/9 =
    1/96 with changes 4/85."""
    twin = NaiveDriftTS(2)
    for t in range(31):
        twin.learn(t, t % 2, 0.5)
    drift, common = twin.drifts[4], twin.common_drifts[4]
    before = drift.weight, common.weight
    assert (drift.changes, common.changes) == (0.0, 0.0)
    twin.learn(31, 0, 0.5)
    for hypothesis, old, share in ((drift, before[0], 1 / 96), (common, before[1], 1 / 288)):
        kept = old * 8 / 9 * 32 / 33
        assert hypothesis.weight == pytest.approx(kept + share, rel=1e-12)
        assert hypothesis.changes == pytest.approx(4 / 85 * share / (kept + share), rel=1e-12)


@pytest.mark.parametrize("binary", [True, False])
def test_weights_sum_to_one_after_every_reward(binary: bool):
    twin = NaiveDriftTS(5)
    for t in range(600):
        arm = twin.choose(t, Draws(2, t))
        twin.learn(t, arm, reward(t, (arm + t // 200) % 5, binary))
        assert sum(weights(twin)) == pytest.approx(1.0, abs=1e-13)
        assert min(weights(twin)) >= 0.0


def test_a_run_that_is_out_of_the_question_weighs_nothing():
    twin = taught([(0, 1.0)] * 1500 + [(0, 0.0)] * 1500, n_arms=1)
    assert 0.0 in [run.weight for run in runs_of(twin.together)]
    assert sum(weights(twin)) == pytest.approx(1.0, abs=1e-13)


def test_a_run_of_s_learns_arm_by_arm_whether_it_changed():
    """Changed with 1/2: nothing known, a win has 1/2. Not changed: 8 wins of 8, a win has 9/10. So 1/4 against 9/20."""
    run = Run(1.0, 0.0, [Count(), Count()], [Count(8.0, 8.0), Count(3.0, 1.0)], [0.5, 0.5])
    run.learn(0, 1.0)
    assert run.weight == pytest.approx(0.7, rel=1e-15)
    assert run.changed == pytest.approx([5 / 14, 0.5], rel=1e-15)
    assert (run.since[0], run.longer[0]) == (Count(1.0, 1.0), Count(9.0, 9.0))
    assert (run.since[1], run.longer[1]) == (Count(), Count(3.0, 1.0))


def test_a_new_run_inherits_from_the_heaviest():
    twin = taught([(0, 1.0), (0, 1.0), (1, 0.0)])
    root = twin.one_by_one[0][0]
    root.weight, root.changed = 0.9, [0.4, 0.5]
    root.longer = [Count(7.0, 6.0), Count(5.0, 4.0)]
    assert twin.inherited() == [
        Count(7.0, 6.0),
        Count(1.0, 0.0),
    ]  # below 1/2 the longer memory, from 1/2 on the shorter
    twin.inherited()[1].add(1.0)
    assert root.since[1] == Count(1.0, 0.0)  # what was handed on is a copy
    twin.drifts[0].weight = 0.9
    assert twin.inherited()[0] == Count(7.0, 6.0)  # among equals S comes first
    twin.drifts[0].weight = 0.95
    # two wins a round apart: n = 1/(1 + 1/64) + 1 = 129/65; one round of rest since: n / (1 + n/64)
    n = 129 / 65 / (1 + 129 / 65 / 64)
    assert twin.inherited() == [Count(pytest.approx(n), pytest.approx(n)), Count(1.0, 0.0)]
    twin.common_drifts[0].weight = 5.0  # never asked
    twin.drifts[3].weight = 0.95  # the first of equals
    assert twin.inherited()[0].pulls == pytest.approx(n)


def only(twin: NaiveDriftTS, index: int) -> NaiveDriftTS:
    """The twin with all weight on one hypothesis."""
    for i, hypothesis in enumerate(twin.hypotheses()):
        hypothesis.weight = 1.0 if i == index else 0.0
    return twin


STEPS = [(0, 1.0), (1, 0.0), (0, 0.0), (0, 1.0)]
UNIFORMS = {0: 0.3, 1: 0.5, 2: 0.5, 3: 0.5}


def test_with_only_the_root_it_draws_from_twice_the_evidence_of_thompson_sampling():
    for index in (0, 1):
        rng = Fixed(UNIFORMS, [0.1, 0.2, 0.3])
        assert only(taught(STEPS, 3), index).choose(4, rng) == 0  # 3/5, 1/3, 1/2
        assert rng.asked == ([6.0, 2.0, 2.0], [4.0, 4.0, 2.0])  # Beta(3, 2), Beta(1, 2), Beta(1, 1), counted twice


def test_a_run_of_s_tosses_a_coin_for_each_arm():
    twin = only(taught(STEPS, 3), 1)
    root = twin.one_by_one[0][0]
    root.changed, root.longer = [0.5, 0.51, 1.0], [Count(6.0, 4.0)] * 3
    rng = Fixed(UNIFORMS, [0.1, 0.2, 0.3])
    twin.choose(4, rng)
    assert rng.asked == ([10.0, 2.0, 2.0], [6.0, 4.0, 2.0])  # 0.5 < 0.5 is false: arm 0 did not change


def test_a_drift_fades_and_draws_closer_to_its_mean():
    """Arm 1 lost in round 2, after 4 rewards: n = 1/(1 + 2/64) = 32/33, a = 1, b = 65/33; a + b = 98/33. The haste of
    drift 0 is 4 sqrt(3/64) = sqrt(3)/2, by which arm 2, never played, has 1 + 2 sqrt(3)/2; of drift 2, of rate
    1/4096, it is sqrt(3)/16."""
    rng, root = Fixed(UNIFORMS, [0.1, 0.2, 0.3]), 3**0.5
    only(taught(STEPS, 3), 2).choose(4, rng)
    factor = 1 + 98 / 33 * root / 2
    asked = [rng.asked[i][k] for k in (1, 2) for i in (0, 1)]
    assert asked == pytest.approx([factor, 65 / 33 * factor, 1 + root, 1 + root])
    only(taught(STEPS, 3), 4).choose(4, rng)
    n = 1 / (1 + 2 / 4096)
    factor = 1 + (2 + n) * root / 16
    assert [rng.asked[i][1] for i in (0, 1)] == pytest.approx([factor, (1 + n) * factor])


def test_a_common_drift_moves_level_and_offset_by_their_shares_of_the_surprise():
    """Rate 1/64: u = 17/64, r = 16/64, S = 97/64, e = 1/2 / S = 32/97. level = 1/2 + 17/64 e, offset = 16/64 e,
    u (1 - u/S) = 17/64 80/97, r (1 - r/S) = 16/64 81/97, so n = 4 97/81 - 4 = 64/81."""
    twin = taught([(0, 1.0)], 3)
    common = twin.common_drifts[0]
    assert (common.level, common.offsets) == (pytest.approx(0.5 + 8.5 / 97), [pytest.approx(8 / 97), 0.0, 0.0])
    assert common.level_variance == pytest.approx(17 / 64 * 80 / 97)
    assert common.variances == [pytest.approx(81 / 388), 0.25, 0.25]
    rng = Fixed(UNIFORMS, [0.1, 0.2, 0.3])
    only(twin, 10).choose(1, rng)
    x = 64 / 81 * (0.5 + 16.5 / 97)
    assert rng.asked == ([pytest.approx(2 + 2 * x), 2.0, 2.0], [pytest.approx(2 + 128 / 81 - 2 * x), 2.0, 2.0])


def test_a_common_drift_beyond_the_unit_interval_is_clipped_where_it_predicts_but_not_where_it_learns():
    """Level 1.2 and offset 0.1 with u = r = 1/8, rate 8^-9 = q: n = 1/(1/4 + q) - 2 is 2 but for q, so a win has
    (1 + n)/(2 + n); the surprise of it is 1 - 1.3, not 0."""
    q, common = 8.0**-9, NaiveDriftTS(1).common_drifts[7]
    common.weight, common.level, common.level_variance, common.offsets, common.variances = (
        1.0,
        1.2,
        0.125,
        [0.1],
        [0.125],
    )
    assert (common.count(0).pulls, common.count(0).wins) == (4.0, 4.0)
    common.learn(0, 1.0)
    n = 1 / (0.25 + q) - 2
    assert common.weight == pytest.approx((1 + n) / (2 + n), rel=1e-14)
    assert common.level == pytest.approx(1.2 - (0.125 + q) * 0.3 / (1.25 + q), rel=1e-14)
    assert common.offsets == [pytest.approx(0.1 - 0.125 * 0.3 / (1.25 + q), rel=1e-14)]
    common.level_variance = 50.0  # u (1 + r) / (1 + u + r) > 1
    common.learn(0, 1.0)
    assert common.level_variance == 1.0


def test_equal_scores_go_to_the_larger_draw_and_then_to_the_first_arm():
    """All means are 1/2, and no draw counts below it."""
    twin = only(NaiveDriftTS(3), 0)
    assert twin.choose(0, Fixed(UNIFORMS, [0.2, 0.4, 0.3])) == 1
    assert twin.choose(0, Fixed(UNIFORMS, [0.1, 0.4, 0.4])) == 1
    assert twin.choose(0, Fixed(UNIFORMS, [0.1, 0.4, 0.6])) == 2


def test_hypotheses_are_drawn_bank_by_bank_every_fourth_in_turn_and_in_units_of_their_sum():
    twin = taught([(0, 0.5)] * 144, 1)  # five runs a bank; laid out by hand in test_drift_levels: 8,9 | 4-5,6-7 | 0-3
    (newest, newer), (old, older), (oldest,) = twin.together[0][::-1], twin.together[1][::-1], twin.together[2]
    in_a = [oldest, newest, older, old, newer]
    split = [run for level in reversed(twin.one_by_one) for run in level]
    in_s = [split[i] for i in (0, 4, 1, 2, 3)]
    all_drifts = [*twin.drifts, *twin.common_drifts]
    order = [*in_a, *in_s, *(drift for first in range(4) for drift in all_drifts[first::4])]
    assert sorted(map(id, order)) == sorted(map(id, twin.hypotheses()))
    for hypothesis in order:
        hypothesis.weight *= 3.0  # only ratios count
    cumulative = 0.0
    for hypothesis in order:
        assert twin.drawn(cumulative + hypothesis.weight / 6.0) is hypothesis
        cumulative += hypothesis.weight / 3.0
    for hypothesis in order[5:]:
        hypothesis.weight = 0.0
    assert twin.drawn(1.0) is order[4]  # beyond the sum: the last that has any weight
