"""The twin of DriftLinTS against facts that can be checked by hand.

Nothing here is random: every stream has a fixed seed, so a test that passes keeps passing.
"""

import math

import numpy as np
import pytest

from .draws import Draws
from .drift_lin_ts import RATES, NaiveDriftLinTS, arrow, cholesky

MEANS = (0.2, 0.5, 0.7)


def features(t: int, n_features: int) -> np.ndarray:
    """Multiples of 1/1024, so that 8 x + 4 is exact."""
    return np.round(np.random.default_rng([3, t]).standard_normal(n_features) * 1024) / 1024


def noisy(t: int, arm: int, x: np.ndarray) -> float:
    """A reward of arm `arm`, again a multiple of 1/1024. The second half of 400 rounds has other means."""
    noise = np.random.default_rng([4, t, arm]).standard_normal()
    mean = MEANS[(arm + t // 200) % 3] + (arm - 1) * float(np.sum(x)) / 4
    return round((mean + noise / 8) * 1024) / 1024


def play(
    rounds: int, n_features: int = 0, a: float = 1.0, b: float = 0.0, ax: float = 1.0, bx: float = 0.0
) -> tuple[NaiveDriftLinTS, list[int]]:
    """Play with rewards a y + b and features ax x + bx."""
    twin, arms = NaiveDriftLinTS(3, n_features), []
    for t in range(rounds):
        x = features(t, n_features)
        arms.append(twin.choose(t, Draws(1, t), ax * x + bx))
        twin.learn(t, arms[-1], a * noisy(t, arms[-1], x) + b, ax * x + bx)
    return twin, arms


def fed(rewards: list[float], n_arms: int = 2) -> NaiveDriftLinTS:
    """The arms in turn, without features."""
    twin = NaiveDriftLinTS(n_arms)
    for t, y in enumerate(rewards):
        twin.learn(t, t % n_arms, y)
    return twin


def test_the_first_hypotheses_are_a_run_and_eight_drifts_of_each_kind():
    twin = NaiveDriftLinTS(3, 2)
    assert [run.weight for run in twin.runs] == [1 / 9]
    assert [own.weight for own in twin.own_drifts] == [15 / 144] * 8
    assert [common.weight for common in twin.common_drifts] == [1 / 144] * 8
    assert RATES[0] == 1 / 64
    assert RATES[-1] == 8.0**-9
    assert np.array_equal(twin.V0, np.diag([1.0, 0.0, 0.0]))
    assert np.array_equal(twin.VQ, twin.V0)


def test_an_arrow_matrix_is_the_prior_of_centred_features():
    assert np.array_equal(arrow([2.0], []), [[2.0]])
    matrix = arrow([2.0, 3.0, 5.0], [0.5, -1.0])
    assert np.array_equal(matrix, [[7.75, -1.5, 5.0], [-1.5, 3.0, 0.0], [5.0, 0.0, 5.0]])
    x = np.array([1.0, 4.0, 7.0])  # variance 2 + 3 (4 - 0.5)^2 + 5 (7 + 1)^2
    assert x @ matrix @ x == 2.0 + 3.0 * 3.5**2 + 5.0 * 8.0**2


def test_plain_variances_use_the_larger_of_spread_and_range():
    twin = NaiveDriftLinTS(1, 2)
    for t, x in enumerate([[5.0, 1.0], [7.0, 1.0]]):
        twin.learn(t, 0, float(t), x)
    # Feature 0 minus its first value: 0 and 2, mean 1, variance 1, range 2. Feature 1 has not moved.
    assert (twin.feature_means, twin.feature_variances, twin.feature_ranges) == ([1.0, 0.0], [1.0, 0.0], [2.0, 0.0])
    assert twin.plain_variances() == [1.0, 1 / 2, 0.0]
    assert np.array_equal(twin.VQ, [[1.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])


def test_the_second_reward_gives_the_first_noise_variance():
    twin = NaiveDriftLinTS(1)
    twin.learn(0, 0, 10.0)
    assert (twin.s2, twin.c0, twin.top) == (0.0, 0.0, 0.0)  # the first reward is the origin
    twin.learn(1, 0, 13.0)
    assert (twin.top, twin.pairs, twin.within, twin.c0) == (9.0, 1, 4.5, 1.5)
    # An observation of unit noise turns the variance v into v / (1 + v). Each hypothesis expects 0 for the second
    # reward, and E is the weighted mean of 3^2 / S.
    E = 9.0 / 1.5 / 9
    for q in RATES:
        E += 15 / 144 * 9.0 / (1 + (1 + q) / (2 + q) + q)
        E += 1 / 144 * 9.0 / (1 + (2 + q) / (3 + q) + q)
    assert twin.s2 == pytest.approx(E, rel=1e-12)  # the pairs would allow up to 4.5 (1 + 4)


def test_moments_forget_at_the_rate_of_the_specification():
    twin = fed([0.0, 1.0, 3.0])
    # f = 1, 4/5, 2/3: M = 0, 0.8, 0.8 + 2/3 * 2.2
    assert twin.reward_mean == pytest.approx(0.8 + 2 / 3 * 2.2)
    assert twin.reward_variance == pytest.approx((0.2 * 0.8 + 2 / 3 * 2.2**2) / 3)
    assert twin.reward_fourth == pytest.approx((0.2 * 0.8 + 2 / 3 * 2.2**4) / 3)
    assert twin.top == pytest.approx(2.2**2)


def test_a_late_reward_is_cut_to_the_moments():
    twin = fed([float(t % 3) for t in range(20)])
    width = 3 * math.sqrt(twin.reward_fourth / twin.reward_variance)
    highest = twin.reward_mean + width
    assert twin.learn_reward_moments(np.array([1.0]), 0, 1e9) == highest
    assert highest < 5.0


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("rounds", [16, 31])
def test_a_single_run_is_bayesian_regression(joint: bool, rounds: int):
    twin = NaiveDriftLinTS(3, 2, joint)
    rewards = []
    for t in range(rounds):
        x = features(t, 2)
        rewards.append(noisy(t, t % 3, x))
        twin.learn(t, t % 3, rewards[-1], x)
        if t == 15:
            c0 = twin.c0
    assert len(twin.runs) == 1
    inverse = np.linalg.inv(twin.V0)
    for group in range(twin.n_groups):
        played = [t for t in range(rounds) if joint or t % 3 == group]
        X = np.array([[1.0, *(features(t, 2) - features(0, 2))] for t in played])
        y = np.array([rewards[t] - rewards[0] for t in played])
        covariance = np.linalg.inv(inverse + X.T @ X)
        mean = covariance @ (inverse @ [c0, 0.0, 0.0] + X.T @ y)
        assert twin.runs[0].covariances[group] == pytest.approx(covariance, rel=1e-9, abs=1e-12)
        assert twin.runs[0].means[group] == pytest.approx(mean, rel=1e-9, abs=1e-12)


def test_a_feature_that_moves_late_has_its_prior_from_the_start():
    twin = NaiveDriftLinTS(1, 1)
    values = [4.0] * 20 + [4.5, 3.0, 4.0, 6.0]
    rewards = [noisy(t, 0, np.zeros(1)) for t in range(24)]
    for t in range(24):
        twin.learn(t, 0, rewards[t], [values[t]])
        if t == 15:
            prior, c0 = twin.V0[0, 0], twin.c0
    assert np.array_equal(twin.V0, [[prior, 0.0], [0.0, 0.0]])  # until the next renewal
    inverse = np.diag([1 / prior, 0.25 / 8])  # 1 / (0.5^2 max(1/21, 1/8)) is the variance
    X = np.array([[1.0, value - 4.0] for value in values])
    covariance = np.linalg.inv(inverse + X.T @ X)
    mean = covariance @ (inverse @ [c0, 0.0] + X.T @ (np.array(rewards) - rewards[0]))
    assert twin.runs[0].covariances[0] == pytest.approx(covariance, rel=1e-9)
    assert twin.runs[0].means[0] == pytest.approx(mean, rel=1e-9)


def test_drifts_of_one_arm_are_exact_gaussian_processes():
    twin = NaiveDriftLinTS(1)
    rewards = [noisy(t, 0, np.zeros(1)) for t in range(16)]
    for t in range(16):
        twin.learn(t, 0, rewards[t])
    y = np.array(rewards) - rewards[0] - twin.c0
    rounds = np.arange(1, 17)
    walk = np.minimum.outer(rounds, rounds)
    for own, common in zip(twin.own_drifts, twin.common_drifts, strict=True):
        for hypothesis, spread in ((own, twin.V0[0, 0]), (common, twin.V0[0, 0] + 1.0)):
            covariance = spread + hypothesis.rate * walk
            weights = np.linalg.solve(covariance + np.eye(16), y)
            p = twin.predict(hypothesis, np.array([1.0]), 0)
            assert p.mean == pytest.approx(twin.c0 + covariance[-1] @ weights, rel=1e-9)
            left = covariance[-1, -1] - covariance[-1] @ np.linalg.solve(covariance + np.eye(16), covariance[-1])
            assert p.variance == pytest.approx(1 + left, rel=1e-9)


def test_an_independent_drift_is_less_certain_of_an_idle_arm():
    twin = fed([0.0, 1.0] * 8)
    own = twin.own_drifts[0]
    before = [covariance[0, 0] for covariance in own.covariances]
    for t in range(16, 21):
        twin.learn(t, 0, 0.0)
    assert own.covariances[1][0, 0] == before[1]  # as of round 16, when arm 1 was last learned
    twin.learn(21, 1, 1.0)
    faded = before[1] + own.rate * 6 * twin.VQ[0, 0]
    assert own.covariances[1][0, 0] == pytest.approx(faded / (1 + faded), rel=1e-12)


def test_weights_follow_the_likelihood_of_a_moderate_reward():
    twin = fed([noisy(t, t % 2, np.zeros(1)) for t in range(20)])
    before = [hypothesis.weight for hypothesis in twin.hypotheses()]
    for own in twin.own_drifts:  # as they will be when arm 0 is learned in round 21
        own.covariances[0] = own.covariances[0] + own.rate * 2 * twin.VQ
    for common in twin.common_drifts:
        common.level_variance += common.rate
    p = [twin.predict(hypothesis, np.array([1.0]), 0) for hypothesis in twin.hypotheses()]

    twin = fed([noisy(t, t % 2, np.zeros(1)) for t in range(20)])
    y = float(np.average([q.mean for q in p], weights=before)) + math.sqrt(twin.s2)
    s2 = twin.s2
    twin.absorb(np.array([1.0]), 0, y, 21)
    after = [
        w * math.exp(-((y - q.mean) ** 2) / (2 * s2 * q.variance)) / math.sqrt(q.variance)
        for w, q in zip(before, p, strict=True)
    ]
    expected = [w / sum(after) for w in after]
    assert [hypothesis.weight for hypothesis in twin.hypotheses()] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_features", [0, 2])
def test_weights_sum_to_one(n_features: int):
    for rounds in (1, 15, 16, 32, 47, 333):
        twin, _ = play(rounds, n_features)
        assert sum(hypothesis.weight for hypothesis in twin.hypotheses()) == pytest.approx(1.0, abs=1e-12)


def test_the_classes_of_runs_count_the_renewals():
    # Rewards that never vary leave the weights as they are, so no run is dropped. One run starts at 0 and one at each
    # of 32, 48, ...; a run of class c stands for 2^c of them, and each class up to the oldest has one or two runs.
    twin = NaiveDriftLinTS(2)
    sizes = []
    for t in range(16 * 16):
        twin.learn(t, t % 2, 0.5)
        if (t + 1) % 16 == 0:
            sizes.append(len(twin.runs))
            assert sum(2**run.age_class for run in twin.runs) == (t + 1) // 16
            assert [run.start for run in twin.runs] == sorted(run.start for run in twin.runs)
    # The sums of the digits of 1, 2, 3, ... in base 2 written with the digits 1 and 2: 1, 2, 11, 12, 21, 22, 111, ...
    assert sizes == [1, 2, 2, 3, 3, 4, 3, 4, 4, 5, 4, 5, 5, 6, 4, 5]


def test_the_oldest_two_of_three_runs_merge_into_the_heavier():
    twin = NaiveDriftLinTS(2)
    twin.runs = [twin.new_run(weight, start) for weight, start in ((0.1, 0), (0.2, 32), (0.05, 48))]
    twin.merge_runs()
    assert [(run.start, run.age_class) for run in twin.runs] == [(32, 1), (48, 0)]
    assert twin.runs[0].weight == pytest.approx(0.3)


def test_a_renewal_gives_the_shares_of_the_specification():
    twin = fed([0.5] * 31)
    before = {id(hypothesis): hypothesis.weight for hypothesis in twin.hypotheses()}
    twin.learn(31, 1, 0.5)
    s = 1 / 33
    (old, new) = twin.runs
    assert old.weight == pytest.approx(before[id(old)] * (1 - s) ** 2)
    assert new.weight == pytest.approx((1 / 9 + 8 * 15 / 144) * s * (1 - s))
    for own in twin.own_drifts:
        assert own.weight == pytest.approx(before[id(own)] * (1 - s) ** 2 + 15 / 16 * s / 8)
    for common in twin.common_drifts:
        assert common.weight == pytest.approx(before[id(common)] * (1 - s) + s / 16 / 8)


@pytest.mark.parametrize("n_features", [0, 2])
def test_choices_do_not_depend_on_units(n_features: int):
    plain, arms = play(400, n_features)
    other, same = play(400, n_features, a=1024.0, b=-512.0, ax=8.0, bx=4.0)
    assert arms == same
    assert len(set(arms)) == 3
    assert other.s2 == plain.s2 * 2.0**20
    assert [h.weight for h in other.hypotheses()] == [h.weight for h in plain.hypotheses()]


@pytest.mark.parametrize("where", [1, 7, 15])
@pytest.mark.parametrize("absurd", [1e6, -1e6, 1e300])
def test_an_absurd_reward_among_the_first_16_is_cut(where: int, absurd: float):
    rewards = [float(t * 7 % 5) for t in range(40)]
    first = [*rewards[:where], absurd, *rewards[where + 1 : 16]]
    median = float(np.median(first))
    far = 3 * sorted(abs(y - median) for y in first)[-2]
    cut = [*rewards[:where], median + math.copysign(far, absurd), *rewards[where + 1 :]]
    twin, expected = fed(first + rewards[16:]), fed(cut)
    assert (twin.s2, twin.c0, twin.top) == (expected.s2, expected.c0, expected.top)
    assert [h.weight for h in twin.hypotheses()] == [h.weight for h in expected.hypotheses()]


def test_an_absurd_first_reward_is_cut_too():
    rewards = [float(t * 7 % 5) for t in range(40)]
    for absurd in (1e9, -1e17, 1e300):
        twin = fed([absurd, *rewards[1:]])
        assert twin.first_reward == rewards[1]  # the first that is not cut
        assert [y for _, _, y in twin.triples[1:]] == [y - rewards[1] for y in rewards[1:16]]
        assert twin.s2 < 10.0
        assert twin.n_cut == 1


def test_a_difference_within_rounding_of_the_first_context_counts_as_zero():
    twin = NaiveDriftLinTS(2, 2)
    twin.learn(0, 0, 1.0, [1e7, 0.0])
    assert np.array_equal(twin.extended([1e7 + 1e-6, 1e-6]), [1.0, 0.0, 1e-6])
    assert np.array_equal(twin.extended([1e7 + 1.0, 0.0]), [1.0, 1.0, 0.0])


class Fixed(Draws):
    """A round in which all normals are 0 and the given slots have uniform number 0, the others almost 1."""

    def __init__(self, *zeros: int) -> None:
        self.zeros = zeros

    def uniform(self, slot: int) -> float:
        return 0.0 if slot in self.zeros else 1 - 2.0**-53

    def normals(self, n: int) -> list[float]:
        return [0.0] * n


def test_an_idle_arm_may_be_drawn_from_the_prior():
    twin = NaiveDriftLinTS(2)
    for t in range(80):
        twin.learn(t, int(t < 4), -1.0 + (t % 2) / 8 if t >= 4 else -5.0 + (t % 2) / 8)
    twin.c0 = 0.0 - twin.first_reward  # a prior mean of 0 in the units of rewards
    assert twin.last == [80, 4]
    assert twin.choose(80, Fixed()) == 0
    assert twin.choose(80, Fixed(201)) == 1
    assert twin.choose(80, Fixed(200, 201)) == 0  # both at the prior mean: the first arm


def test_until_the_noise_is_estimated_the_largest_normal_chooses():
    twin = NaiveDriftLinTS(4)
    for t in range(5):
        normals = Draws(9, t).normals(4)
        assert twin.choose(t, Draws(9, t)) == normals.index(max(normals))
        twin.learn(t, 0, 3.0)
    assert twin.s2 == 0.0


def test_a_singular_matrix_has_a_cholesky_factor():
    root = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 4.0]])
    assert np.array_equal(cholesky(root @ root.T), root)
    assert np.array_equal(cholesky(np.zeros((2, 2))), np.zeros((2, 2)))


def test_the_joint_form_learns_one_vector_for_all_arms():
    twin, truth, chosen = NaiveDriftLinTS(4, 2, joint=True), np.array([1.0, -0.5]), []
    for t in range(300):
        x = np.random.default_rng([5, t]).standard_normal((4, 2))
        arm = twin.choose(t, Draws(2, t), x)
        twin.learn(t, arm, float(x[arm] @ truth) + np.random.default_rng([6, t]).standard_normal() / 4, x[arm])
        chosen.append(arm == int(np.argmax(x @ truth)))
    assert sum(chosen[100:]) > 160
    assert twin.heaviest().means[0][1:] == pytest.approx(truth, abs=0.15)
    assert np.array_equal(twin.VQ, twin.V0)


def test_a_renewal_estimates_the_prior_from_the_heaviest_hypothesis():
    twin, _ = play(31, 1)
    twin.s2, twin.c0 = 4.0, 1.0
    twin.feature_means, twin.feature_variances, twin.feature_ranges = [0.5], [2.0], [1.0]
    run = twin.runs[0]
    run.weight = 10.0
    run.means = [np.array([m, 2.0]) for m in (0.0, 1.0, 5.0)]
    run.covariances = [np.diag([0.5, 2.0])] * 3
    twin.renew_prior()
    assert twin.c0 == 3.0  # the arms at the mean context: 1, 2, 6
    v0 = (1 / 4 + (0 + 1 + 25) / 4 + 3 * (0.5 + 2.0 * 0.25)) / (1 / 4 + 3)
    v1 = (1 / 2 / 4 + 3 * (4 / 4 + 2.0)) / (1 / 4 + 3)
    np.testing.assert_allclose(twin.V0, arrow([v0, v1], [0.5]), rtol=1e-12)
    np.testing.assert_allclose(twin.VQ, arrow([1.0, 0.5], [0.5]), rtol=1e-12)


def test_a_common_drift_without_weight_starts_again_at_a_renewal():
    twin = fed([noisy(t, t % 2, np.zeros(1)) for t in range(31)])
    twin.t = 32
    gift = 1 / 16 / 33 / 8
    twin.common_drifts[0].weight, twin.common_drifts[1].weight = gift / 20, gift / 5
    twin.renew()
    again, kept = twin.common_drifts[:2]
    assert (again.level, again.level_variance) == (twin.c0, 1.0)
    assert [mean[0] for mean in again.means + again.level_covariances] == [0.0] * 4
    assert again.weight == pytest.approx(gift / 20 * 32 / 33 + gift)
    assert kept.level_variance < 1.0
    assert kept.weight == pytest.approx(gift / 5 * 32 / 33 + gift)


def test_draws_within_a_hypothesis_have_the_shrunken_variance():
    twin = fed([0.0, 1.0] * 8)
    own = twin.own_drifts[0]  # uniform number 0 draws it
    twin.V0, twin.VQ, twin.s2, twin.t = np.array([[2.0]]), np.array([[1.0]]), 4.0, 16
    own.means, own.covariances = [np.array([0.0]), np.array([3.0])], [np.array([[1.0]])] * 2
    # Arm 0 was not played for one round: v = 1 + 1/64, r = v / 2, and v shrinks by r + (1 - r) / 4.
    v = 1 + 1 / 64
    sd = math.sqrt(4.0 * v * (v / 2 + (1 - v / 2) / 4))
    for factor, arm in ((0.999, 1), (1.001, 0)):
        rng = Fixed(0)
        rng.normals = lambda n, z=factor * 3.0 / sd: [z, -9.0]  # arm 1 has its mean as score, which is 3
        assert twin.choose(16, rng) == arm


def test_choices_of_the_joint_form_do_not_depend_on_units():
    plain, other = (NaiveDriftLinTS(3, 2, joint=True) for _ in range(2))
    for t in range(200):
        x = np.array([features(10 * t + arm, 2) for arm in range(3)])
        arm = plain.choose(t, Draws(1, t), x)
        assert other.choose(t, Draws(1, t), 8 * x + 4) == arm
        y = noisy(t, 1, x[arm]) + float(x[arm, 0]) / 4
        plain.learn(t, arm, y, x[arm])
        other.learn(t, arm, 1024 * y - 512, 8 * x[arm] + 4)
    assert other.s2 == plain.s2 * 2.0**20
