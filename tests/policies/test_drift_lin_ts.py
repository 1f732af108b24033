"""DriftLinTS: what it computes by hand, what never changes its choices, and that it stays finite."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit.core.draws import Stream
from driftbandit.core.state import to_lists
from driftbandit.environments.abrupt import Abrupt
from driftbandit.environments.rewards import Constant, Gaussian
from driftbandit.lab import simulate
from driftbandit.player import Player
from driftbandit.policies.drift.drift_auto import TRIAL, DriftAuto
from driftbandit.policies.drift.drift_lin_ts import DriftLinTS, by_hypothesis
from driftbandit.policies.drift.drift_ts import DriftTS
from driftbandit.policies.drift.regressions import CENTRE, MOST_RUNS, N_RUNS, NOISE, RUNS
from naive.drift_lin_ts import NaiveDriftLinTS


def play(rewards, policy=None, n_arms=3, seed=5):
    """The arms chosen, and the player, when round t pays rewards[t][arm]."""
    player, stream, arms = Player(DriftLinTS() if policy is None else policy, n_arms, key=seed), Stream(seed), []
    for t, row in enumerate(rewards):
        arms.append(player.choose(stream.at(t)))
        player.learn(arms[-1], float(row[arms[-1]]))
    return arms, player


def noise(rounds, n_arms=3, seed=1, means=(0.0, 0.5, 1.0), sd=0.25):
    """Rewards that are multiples of 2**-20, so that sums and products with small powers of two are exact."""
    values = np.random.default_rng(seed).normal(np.resize(means, n_arms), sd, (rounds, n_arms))
    return np.round(values * 2.0**20) / 2.0**20


def live(player):
    return RUNS + player.state.counts[N_RUNS]


def test_the_oldest_run_is_a_bayesian_regression():
    """After 16 rewards of one arm it holds the posterior of a normal mean, in units of the noise."""
    rewards = noise(16, 1)
    _, player = play(rewards, n_arms=1)
    state = player.state
    relative = rewards[:, 0] - rewards[0, 0]
    prior, centre = state.prior[0], state.numbers[CENTRE]
    assert state.covariance[RUNS] == pytest.approx(1.0 / (1.0 / prior + 16.0))
    assert state.mean[RUNS] == pytest.approx((centre / prior + relative.sum()) / (1.0 / prior + 16.0))
    assert centre == pytest.approx(relative.mean())


@settings(max_examples=25, deadline=None)
@given(st.integers(-20, 20), st.integers(-1000, 1000), st.sampled_from([0.0, 2.0**30]), st.integers(0, 2**32))
def test_the_scale_and_the_origin_of_rewards_do_not_change_choices(power, shift, absurd, seed):
    rewards = noise(120, seed=seed)
    rewards[0] += absurd
    assert play(rewards)[0] == play(2.0**power * (rewards + shift))[0]


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 400),
    st.sampled_from(["noise", "constant", "no noise", "two values", "one far away", "growing"]),
    st.integers(0, 2**32),
)
def test_weights_sum_to_one_and_variances_stay_positive(rounds, kind, seed):
    rewards = noise(rounds, seed=seed)
    if kind == "constant":
        rewards[:] = 3.0
    if kind == "no noise":
        rewards[:] = (1.0, 2.0, 3.0)
    if kind == "two values":
        rewards = (rewards > 0.5) * 1.0
    if kind == "one far away":
        rewards[seed % rounds] += 1e6
    if kind == "growing":
        rewards *= np.exp(np.arange(rounds))[:, None]
    _, player = play(rewards)
    state, count = player.state, live(player)
    assert sum(state.weights) == pytest.approx(1.0)
    assert sum(weight > 0.0 for weight in state.weights) == count
    assert 1 <= state.counts[N_RUNS] < MOST_RUNS
    assert min(state.covariance) >= 0.0
    assert min(state.level_variance) >= 0.0
    for field in state:
        assert np.isfinite(field).all()


@pytest.mark.parametrize("size", [1e6 * 0.25, 1e17, -(2.0**63), 1e30])
@pytest.mark.parametrize("at", [[0], [1], [7], [15], [16], [40], [300], [0, 1], [2, 9], [5, 6]])
def test_absurd_rewards_cost_little_wherever_they_come(at, size):
    """The best arm is found again: of the last 200 of 600 choices at least 150 are the best arm's."""
    rewards = noise(600, seed=3)
    rewards[at] += size
    arms, _ = play(rewards)
    assert arms[-200:].count(2) >= 150


def test_a_change_is_followed():
    """The best arm falls by ten standard deviations: of the last 200 choices at least 150 are the second best's."""
    rewards = noise(800, seed=4)
    rewards[400:, 2] -= 2.5
    arms, _ = play(rewards)
    assert arms[200:400].count(2) >= 150
    assert arms[-200:].count(1) >= 150


@pytest.mark.long
@pytest.mark.parametrize("law", [Gaussian(sd=1.0), Constant()])
def test_a_million_rounds_stay_finite(law):
    result = simulate(DriftLinTS(), Abrupt(n_arms=3, horizon=1_000_000, phases=4, law=law), runs=1)
    assert np.isfinite(result.regret).all()
    assert result.regret[0, -1] < 50_000  # uniform play has some 300,000


def test_it_explains_its_belief_in_the_units_of_the_rewards():
    _, player = play(noise(300, means=(100.0, 105.0, 110.0)))
    found = player.policy.explain(player.arrays(), ["a", "b", "c"])
    assert found.stationary + found.jumps + found.drifts + found.common_drift == pytest.approx(1.0)
    assert found.arms["c"].mean == pytest.approx(110.0, abs=0.5)
    assert found.learned == 300


def test_an_arm_added_later_is_tried():
    _, player = play(noise(200))
    player.add_arm()
    arms, stream = [], Stream(8)
    for t in range(200):
        arms.append(player.choose(stream.at(t)))
        player.learn(arms[-1], 3.0 if arms[-1] == 3 else 1.0)
    assert arms[-50:].count(3) >= 40


# ---- DriftAuto -------------------------------------------------------------------------------------------------------


def test_rewards_of_two_values_are_played_as_drift_ts_does():
    zeros_and_ones = (noise(300, sd=1.0) > 0.5) * 1.0
    expected = play(zeros_and_ones, DriftTS())[0]
    assert play(zeros_and_ones, DriftAuto())[0] == expected
    assert play(40.0 * zeros_and_ones - 20.0, DriftAuto())[0] == expected  # a loss and a gain


def test_the_third_value_brings_drift_lin_ts_which_has_learned_everything():
    rewards = np.zeros((60, 3))
    rewards[20:] = noise(40)
    _, auto = play(rewards, DriftAuto())
    assert auto.policy.plays(auto.state) == "DriftLinTS"
    assert auto.state.counts == [3, 20 + 1, 60]
    assert auto.state.many.numbers[NOISE] > 0.0


def test_after_a_trial_drift_lin_ts_rests_until_a_third_value_comes():
    player = Player(DriftAuto(), 2)
    for t in range(TRIAL + 50):
        player.learn(t % 2, float(t % 2))
    assert player.state.counts == [2, TRIAL + 50, TRIAL]
    player.learn(0, 7.5)
    assert player.state.counts == [3, TRIAL + 50, 1]


def test_an_absurd_third_value_after_the_trial_is_cut():
    """DriftLinTS begins anew with it. Of the last 500 of 2,000 choices at least 400 are the best arm's."""
    rewards = (np.random.default_rng(6).random((TRIAL + 2000, 3)) < (0.3, 0.5, 0.7)) * 1.0
    rewards[TRIAL] = 1e20
    arms, player = play(rewards, DriftAuto())
    assert player.policy.cut_rewards(player.state) >= 1
    assert arms[-500:].count(2) >= 400


@pytest.mark.parametrize(("first", "second"), [(5.0, 7.0), (-3.0, -8.0)])
def test_a_first_value_taken_for_the_wrong_one_is_forgotten(first, second):
    player = Player(DriftAuto(), 2)
    for reward in (first, first, second):
        player.learn(0, reward)
    assert player.state.values == sorted([first, second])
    assert player.state.counts[1] == 1
    assert math.isfinite(sum(player.state.two.known.wins))


# ---- against the twin ------------------------------------------------------------------------------------------------


class _Round:
    """The numbers of a stream's round, as the twin asks for them."""

    def __init__(self, stream):
        self.stream = stream

    def uniform(self, slot):
        return self.stream.uniform(slot)

    def normals(self, n):
        out = [0.0] * n
        self.stream.normals(out)
        return out


@pytest.mark.parametrize("kind", ["noise", "two values", "a change", "one far away", "an absurd first", "skewed"])
def test_it_makes_the_choices_of_its_twin(kind):
    rewards = noise(400, 4, seed=11)
    if kind == "two values":
        rewards = (rewards > 0.5) * 1.0
    if kind == "a change":
        rewards[200:] = rewards[200:, ::-1]
    if kind == "one far away":
        rewards[9, :] += 1e5
    if kind == "an absurd first":
        rewards[0, :] = -1e18
    if kind == "skewed":
        rewards = np.exp(3.0 * rewards)
    twin, stream = NaiveDriftLinTS(4), Stream(5)
    expected = []
    for t, row in enumerate(rewards):
        expected.append(twin.choose(t, _Round(stream.at(t))))
        twin.learn(t, expected[-1], float(row[expected[-1]]))
    assert play(rewards, n_arms=4)[0] == expected


def contexts(kind, rounds, n_arms, n_features, joint, seed=3):
    """Features of every round (joint: arm after arm), rewards of every arm, multiples of 2**-10, and their means."""
    rng = np.random.default_rng(seed)
    shape = (rounds, n_arms if joint else 1, n_features)
    features = np.round(rng.normal(0.5, 1.0, shape) * 1024.0) / 1024.0
    if kind == "duplicate":
        features[:, :, 1] = features[:, :, 0]
    if kind == "constant":
        features[:, :, 1] = 7.0
    if kind == "late":
        features[: rounds // 2, :, 1] = 7.0
    if kind == "leap":
        features[20 : rounds // 2, :, 1] = 2.0**-40 * features[20 : rounds // 2, :, 1]
        features[:20, :, 1] = 0.0
    if kind == "scales":
        features *= np.resize([2.0**-20, 2.0**20], n_features)
    usual = features.copy()  # what rewards depend on
    if kind.startswith("absurd"):
        features[int(kind.split()[1]), :, 1] = -999_999.0
    size = np.maximum(np.abs(usual).max(axis=(0, 1)), 2.0**-60)
    effects = rng.normal(0.0, 1.0, (1 if joint else n_arms, n_features)) / size
    means = (usual * effects).sum(axis=2)
    means = means + (0.0 if joint else np.linspace(0.0, 1.0, n_arms))
    rewards = np.round((means + rng.normal(0.0, 0.25, (rounds, n_arms))) * 1024.0) / 1024.0
    return features.reshape(rounds, -1), rewards, means


def play_in(policy, state, features, rewards, joint, rng):
    """The arms chosen by a policy of lists."""
    arms, d = [], features.shape[1] // (rewards.shape[1] if joint else 1)
    for t, x in enumerate(features.tolist()):
        arm = policy.choose_in(state, t, rng.at(t), x)
        policy.learn_in(state, t, arm, float(rewards[t, arm]), x[arm * d : (arm + 1) * d] if joint else x)
        arms.append(arm)
    return arms


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("kind", ["plain", "duplicate", "constant", "late", "leap", "scales", "absurd 9", "absurd 40"])
def test_with_features_it_makes_the_choices_of_its_twin(kind, joint):
    features, rewards, _ = contexts(kind, 120, 3, 2, joint)
    twin, policy, stream = NaiveDriftLinTS(3, 2, joint), DriftLinTS(), Stream(5)
    state = to_lists(policy.init(3, 2, joint))
    for t, x in enumerate(features):
        arm = policy.choose_in(state, t, stream.at(t), x.tolist())
        rows = x.reshape(3, 2) if joint else x
        assert arm == twin.choose(t, _Round(stream.at(t)), rows), t
        given_x = rows[arm] if joint else x
        policy.learn_in(state, t, arm, float(rewards[t, arm]), given_x.tolist())
        twin.learn(t, arm, float(rewards[t, arm]), given_x)


@pytest.mark.parametrize("joint", [False, True])
def test_units_of_rewards_and_features_do_not_change_choices(joint):
    features, rewards, _ = contexts("plain", 200, 3, 2, joint)
    policy, scales = DriftLinTS(), np.resize([2.0**-20, 2.0**20], features.shape[1])
    plain, other = (to_lists(policy.init(3, 2, joint)) for _ in range(2))
    expected = play_in(policy, plain, features, rewards, joint, Stream(5))
    moved = scales * features - np.resize([2.0**-18, 2.0**18], features.shape[1])
    assert play_in(policy, other, moved, 1024.0 * rewards - 512.0, joint, Stream(5)) == expected


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize(
    "kind", ["duplicate", "constant", "late", "leap", "scales", "absurd 0", "absurd 9", "absurd 200"]
)
def test_features_of_every_kind_leave_it_finite_and_learning(kind, joint):
    """In the last 200 of 500 rounds it has less than half of the regret of uniform play."""
    features, rewards, means = contexts(kind, 500, 3, 2, joint, seed=8)
    policy = DriftLinTS()
    state = to_lists(policy.init(3, 2, joint))
    arms = play_in(policy, state, features, rewards, joint, Stream(5))
    assert all(np.isfinite(field).all() for field in state)
    best, earned = means.max(axis=1), means[np.arange(500), arms]
    assert (best - earned)[300:].mean() < 0.5 * (best - means.mean(axis=1))[300:].mean()


def test_a_known_variance_of_a_feature_makes_the_choices_of_the_twin():
    rng, policy, stream = np.random.default_rng(4), DriftLinTS(), Stream(5)
    features, rewards = 1e-3 * rng.normal(size=(100, 2)), noise(100, 3)
    features[60:] *= 1e3  # no more than what was known beforehand
    twin, state = NaiveDriftLinTS(3, 2, known=[0.5, 0.0]), to_lists(policy.init(3, 2))
    policy.know_variances(state, [0.5, 0.0])
    for t, x in enumerate(features.tolist()):
        arm = policy.choose_in(state, t, stream.at(t), x)
        assert arm == twin.choose(t, _Round(stream.at(t)), x), t
        policy.learn_in(state, t, arm, float(rewards[t, arm]), x)
        twin.learn(t, arm, float(rewards[t, arm]), x)


def test_rewards_that_are_cut_are_counted_as_the_twin_counts_them():
    rewards = noise(60, 3)
    rewards[[4, 9, 30, 50]] += 1e4
    arms, player = play(rewards)
    twin = NaiveDriftLinTS(3)
    for t, arm in enumerate(arms):
        twin.learn(t, arm, float(rewards[t, arm]))
    assert player.policy.cut_rewards(player.state) == twin.n_cut >= 4


def awkward(kind, rounds, rng):
    """Columns that are nearly collinear, or have hardly moved for long."""
    n = np.arange(float(rounds))
    if kind == "hour of day":
        return np.stack([wave(2.0 * np.pi * k * n / 14_400.0) for k in (1, 2) for wave in (np.sin, np.cos)], axis=1)
    if kind == "powers":
        return np.stack([n, n**2, n**3], axis=1)
    if kind == "duplicates":
        x = rng.normal(size=rounds)
        return np.stack([x, 3.0 * x + 1.0, x + 1e-9 * rng.normal(size=rounds)], axis=1)
    if kind == "late":
        x = rng.normal(size=(rounds, 3))
        x[: rounds // 2] *= (0.0, 1e-9, 1.0)
        return x
    return np.stack([4.0 ** np.minimum(n, 100.0), rng.normal(size=rounds)], axis=1)


def least_variance(state):
    """Of all coefficients in all hypotheses."""
    n, used = len(state.x), [*range(RUNS), *state.slots[: state.counts[N_RUNS]]]
    diagonal = [j * (j + 3) // 2 for j in range(n)]
    return by_hypothesis(state.covariance, n * (n + 1) // 2)[:, diagonal][:, :, used].min()


@pytest.mark.parametrize("seed", range(3))
def test_a_feature_that_grows_without_end_leaves_variances_positive(seed):
    rng, policy = np.random.default_rng(seed), DriftLinTS()
    state = to_lists(policy.init(3, 2))
    for t, x in enumerate(awkward("growing", 96, rng).tolist()):
        policy.learn_in(state, t, t % 3, t % 3 + float(rng.normal()), x)
    assert least_variance(state) >= 0.0
    assert all(np.isfinite(field).all() for field in state)


@pytest.mark.long
def test_variances_stay_positive_with_awkward_features():
    """Twenty seeds each. Without the growth of variances, or without the bound on the covariance of a common level with
    the groups that were not played, several kinds fail."""
    learn = compiled_learning()
    for kind in ("hour of day", "powers", "duplicates", "late", "growing"):
        for seed in range(20):
            rng = np.random.default_rng(seed)
            features = awkward(kind, 1600, rng)
            arms, rewards = rng.integers(0, 3, 1600), rng.normal(0.0, 0.5, 1600)
            state = DriftLinTS().init(3, features.shape[1])
            for start in range(0, 1600, 16):
                learn(DriftLinTS(), state, features, rewards, arms, start)
                assert least_variance(state) >= 0.0, (kind, seed, start)
            assert all(np.isfinite(field).all() for field in state), (kind, seed)


def compiled_learning():
    """16 rounds of learning, as machine code."""
    import numba

    from driftbandit.lab.engine import code_cache, numba_methods  # noqa: F401  what compiled loops call

    numba_methods.prepare(DriftLinTS())

    @numba.njit(error_model="numpy")
    def learn(policy, state, features, rewards, arms, start):
        for t in range(start, start + 16):
            policy.learn_in(state, t, arms[t], rewards[t], features[t])

    return learn


@pytest.mark.long
@pytest.mark.parametrize("joint", [False, True])
def test_compiled_it_has_the_same_bits_in_context(joint):
    import numba

    from driftbandit.core.draws import Draws, round_key
    from driftbandit.lab.engine import code_cache, numba_methods  # noqa: F401  what compiled loops call

    policy, (features, rewards, _) = DriftLinTS(), contexts("late", 150, 3, 2, joint)
    numba_methods.prepare(policy)
    numba_methods.prepare(Draws(np.uint64(5)))

    @numba.njit(error_model="numpy")
    def compiled(policy, state, features, rewards, joint, arms):
        for t in range(len(features)):
            arm = policy.choose_in(state, t, Draws(round_key(np.uint64(5), t)), features[t])
            first = arm * 2 if joint else 0
            policy.learn_in(state, t, arm, rewards[t, arm], features[t, first : first + 2])
            arms[t] = arm

    state, lists, arms = policy.init(3, 2, joint), to_lists(policy.init(3, 2, joint)), np.zeros(150, np.int64)
    compiled(policy, state, features, rewards, joint, arms)
    assert play_in(policy, lists, features, rewards, joint, Stream(5)) == arms.tolist()
    for name in state._fields:
        if name not in policy.scratch:
            assert np.array_equal(getattr(state, name), getattr(lists, name)), name
