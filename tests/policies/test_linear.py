"""Linear policies against their twins, with and without features, and numbers one can check by hand."""

from typing import Any

import numpy as np
import pytest

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.state import add_arm_to, count_numbers, to_arrays, to_lists
from driftbandit.policies.linear import (
    CusumLinUCB,
    DiscountedLinTS,
    DiscountedLinUCB,
    DiscountedLogisticTS,
    DiscountedRandLinUCB,
    KalmanTS,
    LinTS,
    LinUCB,
    RestartLinUCB,
    SlidingLinUCB,
    StableLinTS,
    WeightedLinUCB,
)
from harness import TwinRound, assert_same_as_twin
from naive import TWINS

THEORY = {"lam": 0.1, "sd": 0.3, "delta": 0.01}
POLICIES = [
    LinUCB(**THEORY),
    LinUCB(alpha=1.0, lam=0.5, sd=0.3),
    LinTS(alpha=0.8, lam=0.5, sd=0.3),
    DiscountedLinUCB(gamma=0.95, **THEORY),
    DiscountedLinUCB(gamma=0.95, alpha=1.0, lam=0.5, sd=0.3),
    DiscountedLinUCB(gamma=0.95, form="code", **THEORY),
    DiscountedLinUCB(gamma=1.0, form="code", alpha=1.0),
    WeightedLinUCB(gamma=0.95, **THEORY),
    SlidingLinUCB(window=40, **THEORY),
    SlidingLinUCB(window=40, alpha=1.0, sd=0.3),
    RestartLinUCB(period=70, **THEORY),
    DiscountedLinTS(gamma=0.95, alpha=0.8, lam=0.5, sd=0.3),
    DiscountedRandLinUCB(gamma=0.95, **THEORY),
    StableLinTS(gamma=0.95, lam=0.5, sd=0.3),
    KalmanTS(drift=0.05, sd=0.3, prior_sd=0.7),
    DiscountedLogisticTS(gamma=0.95, lam=0.5),
    CusumLinUCB(threshold=4.0, explore=0.05, alpha=1.0, sd=0.3),
    CusumLinUCB(threshold=4.0, explore=0.05, local=True, **THEORY),
]
FORMS = [(5, 3, False), (4, 3, True), (1, 2, False), (3, 1, True), (2, 0, False)]


def name_of(policy: Any) -> str:
    return f"{policy.short}{'-alpha' if getattr(policy, 'alpha', 0.0) and 'ucb' in policy.short else ''}"


class Game:
    """Features and rewards of some rounds: coefficients jump after two fifths of them."""

    def __init__(self, n_arms: int, n_features: int, joint: bool, rounds: int, seed: int, binary: bool) -> None:
        rng = np.random.default_rng([seed, n_arms, n_features, joint])
        self.n_arms, self.n_features, self.joint, self.rounds = n_arms, n_features, joint, rounds
        self.features = rng.standard_normal((rounds, n_arms * n_features if joint else n_features))
        self.theta = rng.standard_normal((2, n_features) if joint else (2, n_arms, n_features + 1))
        self.noise = rng.standard_normal((rounds, n_arms)) * 0.3
        self.binary = binary

    def own(self, t: int, arm: int) -> list[float]:
        """What the policy is given to learn from this arm."""
        x = self.features[t]
        return list(x.reshape(self.n_arms, -1)[arm] if self.joint else x)

    def reward(self, t: int, arm: int) -> float:
        theta, x = self.theta[int(t > 0.4 * self.rounds)], self.own(t, arm)
        mean = float(np.dot(theta, x) if self.joint else np.dot(theta[arm], [1.0, *x]))
        return float(mean + self.noise[t, arm] > 0.0) if self.binary else mean + float(self.noise[t, arm])


def play(policy: Any, game: Game, seed: int) -> tuple[list[int], Any]:
    """The arms of the policy, interpreted, and its last state."""
    state = to_lists(policy.init(game.n_arms, game.n_features, game.joint))
    stream, arms = Stream(stream_key(seed, 0, POLICY)), []
    for t in range(game.rounds):
        arm = policy.choose_in(state, t, stream.at(t), game.features[t].tolist())
        policy.learn_in(state, t, arm, game.reward(t, arm), game.own(t, arm))
        arms.append(arm)
    return arms, state


def play_twin(policy: Any, game: Game, seed: int) -> list[int]:
    twin = TWINS[type(policy).__name__](game.n_arms, game.n_features, game.joint, **policy._asdict())
    stream, arms = Stream(stream_key(seed, 0, POLICY)), []
    for t in range(game.rounds):
        arm = twin.choose(t, TwinRound(stream.at(t)), game.features[t])
        twin.learn(t, arm, game.reward(t, arm), game.own(t, arm))
        arms.append(arm)
    return arms


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_a_linear_policy_chooses_the_arms_of_its_twin(policy: Any, form: tuple[int, int, bool]) -> None:
    game = Game(*form, rounds=120, seed=3, binary=isinstance(policy, DiscountedLogisticTS))
    assert play(policy, game, 3)[0] == play_twin(policy, game, 3)


@pytest.mark.parametrize(
    "policy", [LinUCB(alpha=1.0, sd=0.5, lam=0.1), StableLinTS(gamma=0.97, sd=0.5, lam=0.25), SlidingLinUCB(window=50)]
)
def test_without_features_a_policy_follows_its_twin(policy: Any) -> None:
    assert_same_as_twin(policy, 5, 300, seed=1, kind="real")


@pytest.mark.long
@pytest.mark.parametrize("seed", [5, 6, 7])
@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_six_hundred_rounds_with_other_seeds_follow_the_twin(policy: Any, seed: int) -> None:
    for form in ((4, 5, False), (7, 4, True)):
        game = Game(*form, rounds=600, seed=seed, binary=isinstance(policy, DiscountedLogisticTS))
        assert play(policy, game, seed)[0] == play_twin(policy, game, seed)


def play_compiled(policy: Any, state: Any, draws: Any, features: Any, rewards: Any, arms: Any, joint: bool) -> None:
    """The rounds of `play`, in machine code."""
    own = features.shape[1] // rewards.shape[1]
    for t in range(len(arms)):
        arm = policy.choose_in(state, t, draws.at(t), features[t])
        arms[t] = arm
        first = arm * own if joint else 0
        policy.learn_in(state, t, arm, rewards[t, arm], features[t, first : first + own if joint else len(features[t])])


@pytest.mark.parametrize(
    "policy", [pytest.param(p, marks=() if p == POLICIES[0] else pytest.mark.long, id=name_of(p)) for p in POLICIES]
)
def test_compiled_and_interpreted_choose_the_same_arms_and_keep_the_same_bits(policy: Any) -> None:
    numba = pytest.importorskip("numba")
    from driftbandit.lab.engine import compiled_draws, numba_methods

    compiled = numba.njit(**numba_methods.OPTIONS)(play_compiled)
    for part in (policy, policy.init(2, 1)):
        numba_methods.prepare(part)
    for form in ((4, 3, False), (3, 2, True)):
        game = Game(*form, rounds=200, seed=2, binary=isinstance(policy, DiscountedLogisticTS))
        rewards = np.array([[game.reward(t, arm) for arm in range(game.n_arms)] for t in range(game.rounds)])
        arms, state = np.zeros(game.rounds, np.int64), policy.init(*form)
        draws = compiled_draws.ahead_stream(stream_key(2, 0, POLICY), 4)
        compiled(policy, state, draws, game.features, rewards, arms, game.joint)
        plain, last = play(policy, game, 2)
        assert arms.tolist() == plain
        for name, field in zip(state._fields, to_arrays(last, state), strict=True):
            assert np.array_equal(getattr(state, name), field), name


def test_an_index_has_the_value_that_one_computes_by_hand() -> None:
    policy = LinUCB(alpha=2.0, lam=1.0, sd=0.5)
    state = to_lists(policy.init(2))
    for t, reward in enumerate((1.0, 0.0, 1.0)):
        policy.learn(state, t, 0, reward)
    policy.choose(state, 3, Stream(1).at(3))
    assert state.scores == pytest.approx([2 / 4 + 2.0 * 0.5 / 2.0, 2.0 * 0.5])  # V = 1 + 3 rewards, and 1


def test_the_joint_form_learns_the_coefficients_that_all_arms_share() -> None:
    policy = LinUCB(alpha=1.0, lam=1.0)
    state = to_lists(policy.init(3, 2, joint=True))
    policy.learn_in(state, 0, 2, 4.0, [1.0, 1.0])  # V = I + [[1, 1], [1, 1]], theta = (4/3, 4/3)
    policy.choose_in(state, 1, Stream(1).at(1), [3.0, 0.0, 0.0, 0.0, 1.0, -1.0])
    assert state.scores == pytest.approx([4.0 + 3.0 * (2 / 3) ** 0.5, 0.0, 2.0**0.5])


def test_the_second_matrix_has_squared_weights_and_in_the_code_those_of_the_first() -> None:
    sums = {}
    for form in ("paper", "code"):
        policy = DiscountedLinUCB(gamma=0.5, form=form)
        state = to_lists(policy.init(1))
        for t in range(3):
            policy.learn(state, t, 0, 1.0)
        sums[form] = state.gram[0], state.second[0]
    assert sums == {"paper": (1.75, 1 / 16 + 1 / 4 + 1), "code": (1.75, 1.75 / 4 + 1)}


def test_the_theory_gives_the_published_settings_and_a_radius_for_all_rounds_together() -> None:
    sizes = {"horizon": 6000, "phases": 4, "n_arms": 50, "n_features": 2, "joint": True, "variation": 4 + 2**0.5}
    assert DiscountedLinUCB.tuned(**sizes).gamma == pytest.approx(0.994117, abs=5e-7)
    assert SlidingLinUCB.tuned(**sizes).window == 169
    assert RestartLinUCB.tuned(**sizes).period == int((12000 / (5 + 2**0.5)) ** (2 / 3))
    assert WeightedLinUCB.tuned(**sizes).gamma == pytest.approx(1 - ((4 + 2**0.5) / 12000) ** 0.5)
    for cls in (DiscountedLinUCB, SlidingLinUCB, WeightedLinUCB, DiscountedRandLinUCB):
        assert cls.tuned(**sizes).delta == 0.01 / 6000


@pytest.mark.parametrize("form", [(3, 2, False), (3, 2, True)], ids=str)
def test_policies_that_never_forget_are_limits_of_those_that_do(form: tuple[int, int, bool]) -> None:
    game, bound = Game(*form, rounds=120, seed=4, binary=False), {"alpha": 1.0, "lam": 0.5, "sd": 0.3}
    arms = play(LinUCB(**bound), game, 4)[0]
    for same in (
        WeightedLinUCB(gamma=1.0, **bound),
        DiscountedLinUCB(gamma=1.0, **bound),
        SlidingLinUCB(window=120, **bound),
        RestartLinUCB(period=200, **bound),
        CusumLinUCB(threshold=1e9, explore=0.0, **bound),
    ):
        assert play(same, game, 4)[0] == arms
    samples = play(LinTS(lam=0.5, sd=0.3), game, 4)[0]
    assert play(StableLinTS(gamma=1.0, lam=0.5, sd=0.3), game, 4)[0] == samples
    if not game.joint:  # in the joint form the same normals give other samples of the same law
        assert play(DiscountedLinTS(gamma=1.0, lam=0.5, sd=0.3), game, 4)[0] == samples


def without_scratch(policy: Any, state: Any) -> list[Any]:
    return [field for name, field in zip(state._fields, state, strict=True) if name not in policy.scratch]


@pytest.mark.parametrize("policy", [p for p in POLICIES if "gamma" in p._fields], ids=name_of)
def test_learning_in_a_context_is_fading_and_taking(policy: Any) -> None:
    rng = np.random.default_rng(3)
    whole, halves = to_lists(policy.init(3, 2)), to_lists(policy.init(3, 2))
    for t in range(60):
        arm, reward, features = int(rng.integers(3)), float(rng.random()), rng.random(2).tolist()
        policy.learn_in(whole, t, arm, reward, features)
        policy.fade(halves, policy.gamma)
        policy.take_in(halves, arm, reward, 1.0, features)
    assert without_scratch(policy, whole) == without_scratch(policy, halves)


def test_late_rewards_by_the_clock_have_the_weight_they_would_have_had() -> None:
    policy = StableLinTS(lam=0.5, sd=0.3)
    early, late = to_lists(policy.init(2, 1)), to_lists(policy.init(2, 1))
    policy.take_in(early, 1, 1.0, 1.0, [0.5])
    policy.take_in(early, 0, 2.0, 1.0, [0.1])
    policy.fade(early, 0.3)
    policy.take_in(late, 0, 2.0, 1.0, [0.1])
    policy.fade(late, 0.3)
    policy.take_in(late, 1, 1.0, 0.3, [0.5])
    for name in ("gram", "target", "factor", "white"):
        assert getattr(early, name) == pytest.approx(getattr(late, name), rel=1e-12)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_features_of_very_different_sizes_leave_every_number_finite(policy: Any, joint: bool) -> None:
    sizes, rng = np.array([1e-6, 1.0, 1e6, 0.0]), np.random.default_rng(1)
    state, stream = to_lists(policy.init(3, 5, joint)), Stream(2)
    for t in range(60):
        x = rng.standard_normal((3 if joint else 1, 4)) * sizes
        x = np.concatenate([x, x[:, 1:2]], axis=1)  # a duplicate
        arm = policy.choose_in(state, t, stream.at(t), x.ravel().tolist())
        policy.learn_in(state, t, arm, float(t % 2), x[arm if joint else 0].tolist())
        assert all(np.isfinite(field).all() for field in state)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("policy", [POLICIES[i] for i in (0, 3, 8, 11, 14, 16)], ids=name_of)
def test_a_state_is_accepted_as_it_was_played_and_refused_when_numbers_disagree(policy: Any, joint: bool) -> None:
    game = Game(3, 2, joint, rounds=60, seed=1, binary=False)
    like = policy.init(3, 2, joint)
    state = to_arrays(play(policy, game, 1)[1], like)
    policy.validate_state(state, 60, like)
    for name in ("factor", "white", "gram", "target") if "gram" in state._fields else ("covariance",):
        wrong = getattr(state, name).copy()
        wrong[0] = -wrong[0] - 1.0
        with pytest.raises(ValueError, match="in the state"):
            policy.validate_state(state._replace(**{name: wrong}), 60, like)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_size_of_a_state_is_known_before_it_is_made(form: tuple[int, int, bool]) -> None:
    for policy in POLICIES:
        assert count_numbers(policy.init(*form)) <= policy.state_size(*form) <= 3 * count_numbers(policy.init(*form))


def test_the_joint_form_without_features_and_an_unknown_form_are_refused() -> None:
    with pytest.raises(ValueError, match="n_features >= 1"):
        LinUCB().init(3, 0, joint=True)
    with pytest.raises(ValueError, match="'paper' or 'code'"):
        DiscountedLinUCB(form="text")
    with pytest.raises(ValueError, match="variation needs to be >= 0"):
        StableLinTS.tuned(1000, 3, variation=-1.0)


def test_an_alarm_discards_everything_or_only_its_arm() -> None:
    for local, kept in ((False, 0.0), (True, 20.0)):
        policy = CusumLinUCB(threshold=5.0, sd=0.1, local=local)
        state = to_lists(policy.init(2))
        for t in range(40):
            policy.learn(state, t, t % 2, 0.5)
        policy.learn(state, 40, 0, 5.0)
        assert (state.alarms, state.pulls) == ([1], [0.0, kept])


def test_an_arm_added_to_a_walk_starts_at_the_prior() -> None:
    policy = KalmanTS(drift=0.1, prior_sd=2.0)
    state = to_lists(policy.init(2))
    for t in range(30):
        policy.learn(state, t, 0, 0.5)
    grown = add_arm_to(state, policy, 2, 30)
    assert (grown.last, grown.covariance[2]) == ([29.0, 0.0, 30.0], 4.0)
