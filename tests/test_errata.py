"""Faults known from public implementations, from the paper and from its code, each planted nowhere here.

`docs/reference/errata.md` tells what each fault does and names the test that would find it; `test_errata_page.py` keeps
that page honest.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.environments import Constant, Smooth
from driftbandit.policies.adswitch import AdSwitch
from driftbandit.policies.baseline import EpsilonGreedy, Oracle, Uniform
from driftbandit.policies.beta_ts import BetaTS, DiscountedBetaTS, SlidingTS
from driftbandit.policies.detecting_ucb import CusumUCB, MonitoredUCB
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.exp3 import EXP3S, REXP3
from driftbandit.policies.glr_klucb import GLRKLUCB, h_inverse, theory_threshold
from driftbandit.policies.kl_ucb import DiscountedKLUCB
from driftbandit.policies.ucb import DiscountedUCB
from driftbandit.spec.parse import policies
from naive.plays import PARAMETERS
from naive.ucb import kl

FORGETS_WITH_TIME = [
    name
    for name, cls in sorted(policies().items())
    if {"gamma", "window"} & set(cls._fields) and name != "MonitoredUCB"  # its window only looks for changes
]


def fed(policy: Any, steps: Any, n_arms: int = 2) -> Any:
    """The state after these (arm, reward) pairs."""
    state = to_lists(policy.init(n_arms))
    for t, (arm, reward) in enumerate(steps):
        learn_reward(policy, state, t, arm, reward, Stream(1).at(t))
    return state


def evidence(state: Any, arm: int) -> float:
    """How many rewards of the arm still count."""
    if hasattr(state, "blocks"):
        return float(state.blocks.count[arm])
    return float(state.pulls[arm] if hasattr(state, "pulls") else state.wins[arm] + state.losses[arm])


class Always:
    """A round whose uniform numbers are all the same."""

    def __init__(self, value: float) -> None:
        self.value = value

    def uniform(self, slot: int) -> float:
        return self.value


# ---- forgetting


@pytest.mark.parametrize("name", FORGETS_WITH_TIME)
def test_two_thousand_rounds_of_another_arm_leave_nothing_of_an_idle_one(name):
    policy = policies()[name](**PARAMETERS[name])
    busy = [(1, 1.0)] * 40
    assert evidence(fed(policy, busy), 1) > 20.0
    assert evidence(fed(policy, busy + [(0, 1.0)] * 2000), 1) < 1e-24  # 0 in a window; 0.97**2000 is 3.5e-27


@pytest.mark.parametrize(
    "policy",
    [
        DiscountedTS(gamma=0.5),
        DiscountedBetaTS(gamma=0.5),
        DiscountedUCB(gamma=0.5),
        DiscountedKLUCB(gamma=0.5),
        EpsilonGreedy(gamma=0.5),
    ],
)
def test_every_arm_is_discounted_exactly_once_a_round(policy):
    state = fed(policy, [(0, 1.0), (1, 0.0), (2, 1.0)], 3)
    assert [evidence(state, arm) for arm in range(3)] == [0.25, 0.5, 1.0]


@pytest.mark.parametrize("policy", [BetaTS(), DiscountedBetaTS(gamma=0.5), SlidingTS(window=7)])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_one_sided_feedback_leaves_both_beta_parameters_at_the_prior_or_above(policy, reward):
    state = fed(policy, [(0, reward)] * 300)
    assert min(state.a + state.b) == 1.0


def test_an_arm_never_played_is_drawn_from_its_prior():
    """Beta(6, 1) against Beta(1, 1): the second wins with probability 1/7. Binomial(4000, 1/7) has mean 571 and
    standard deviation 22; five of those miss by chance once in two million."""
    policy = DiscountedBetaTS(gamma=1.0)
    state = fed(policy, [(0, 1.0)] * 5)
    stream = Stream(stream_key(3, 0, POLICY))
    assert abs(sum(policy.choose(state, t, stream.at(t)) for t in range(4000)) - 571) < 110


def test_the_first_arm_of_ds_ts_does_not_depend_on_its_first_deviation():
    small, large = DiscountedTS(tau_max=0.2), DiscountedTS(tau_max=1.0)
    for seed in range(100):
        rng = Stream(seed).at(0)
        assert small.choose(to_lists(small.init(5)), 0, rng) == large.choose(to_lists(large.init(5)), 0, rng)


# ---- exponential weights


def test_exp3s_divides_by_the_probability_it_has_just_drawn_from():
    """After a reward of 1 from arm 0, p = (0.56, 0.44): a draw of 0.53 gives arm 0, by stale halves it would give 1."""
    policy = EXP3S(explore=0.5, share=0.0)
    state = fed(policy, [(0, 1.0)])
    p = 0.5 * math.exp(0.5) / (math.exp(0.5) + 1.0) + 0.25  # g = 0.5 * 1 / (2 * 0.5)
    assert state.probabilities == pytest.approx([p, 1.0 - p])
    assert policy.choose(state, 1, Always(0.53)) == 0
    before = state.weights[0] / state.weights[1]
    learn_reward(policy, state, 1, 0, 1.0, Stream(1).at(1))
    assert state.weights[0] / state.weights[1] == pytest.approx(before * math.exp(0.5 / (2.0 * p)))


@pytest.mark.long
@pytest.mark.parametrize("policy", [EXP3S.tuned(100_000, 10, 2), REXP3(batch=100_000, explore=0.034)])
def test_a_hundred_thousand_rewards_at_the_theorys_value_overflow_nothing(policy):
    # Plain weights would reach exp(0.5 * explore * 1e5), far beyond the largest number, exp(709).
    assert 0.5 * policy.explore * 1e5 > 1.5 * 709
    state = to_lists(policy.init(2))
    reward_rng = np.random.default_rng(1).random(100_000).tolist()
    for t in range(99_999):
        arm = 0 if reward_rng[t] < state.probabilities[0] else 1
        learn_reward(policy, state, t, arm, 1.0 - arm, Stream(1).at(t))
        if t % 1000 == 0:
            assert math.fsum(state.probabilities) == pytest.approx(1.0, abs=1e-12)
            assert min(state.probabilities) >= policy.explore / 2 * (1 - 1e-12)
    assert math.isfinite(sum(state.weights))
    assert state.probabilities[0] == pytest.approx(1.0 - policy.explore / 2, abs=1e-3)


# ---- upper confidence bounds


def test_a_discounted_count_below_one_has_a_finite_index():
    policy = DiscountedUCB(gamma=0.5, xi=2 / 3)
    state = fed(policy, [(1, 0.25), (0, 1.0), (0, 1.0), (0, 1.0)])
    policy.choose(state, 4, Stream(0).at(4))
    assert state.pulls == [1.75, 0.125]
    assert state.scores[1] == pytest.approx(0.25 + 2 * math.sqrt(2 / 3 * math.log(1.875) / 0.125))


# ---- detectors


@pytest.mark.parametrize(
    "policy",
    [CusumUCB(explore=1.0, warmup=False), EpsilonGreedy(explore=1.0), Uniform()],
    ids=lambda policy: type(policy).__name__,
)
def test_exploration_reaches_the_last_arm_as_often_as_the_others(policy):
    """Binomial(900, 1/3) has standard deviation 14; five of those miss by chance once in two million."""
    state, stream = to_lists(policy.init(3)), Stream(stream_key(2, 0, POLICY))
    arms = [policy.choose(state, 0, stream.at(t)) for t in range(900)]
    assert all(abs(arms.count(arm) - 300) < 71 for arm in range(3))


def test_a_full_window_of_m_ucb_is_not_an_alarm():
    state = fed(MonitoredUCB(window=4, threshold=1.0, explore=0.1), [(0, float(t % 2)) for t in range(400)])
    assert (state.alarms, state.pulls[0]) == ([0], 400.0)


def test_both_halves_of_m_ucb_have_all_their_rewards():
    for single in range(4):  # one reward of 1 in any of the four places makes the halves differ by 1
        steps = [(0, float(place == single)) for place in range(4)]
        assert fed(MonitoredUCB(window=4, threshold=0.5, explore=0.1), steps).alarms == [1]


def test_m_ucb_visits_all_arms_every_floor_of_k_over_explore_rounds():
    assert MonitoredUCB(explore=0.3).init(5).period.tolist() == [16]  # 5 / 0.3 = 16.67


def test_a_horizon_in_32_bits_gives_the_threshold_of_a_long_one():
    # T**2 = 1e10 does not fit 32 bits: ln(2 K T**2) = ln(1e11).
    for horizon in (100_000, np.int32(100_000)):
        assert MonitoredUCB.text(horizon, 10, 5).threshold == pytest.approx(math.sqrt(400 * math.log(1e11)))


def test_the_walk_of_cusum_leaves_out_the_samples_that_fixed_its_reference():
    policy = CusumUCB(samples=4, drift=0.1, threshold=0.5)
    halves = [(0, 1.0), (0, 1.0), (0, 0.0), (0, 0.0)]  # u0 = 0.5; a walk over these would reach 0.8 and ring
    state = fed(policy, halves)
    assert (state.alarms, state.up[0], state.down[0]) == ([0], 0.0, 0.0)
    assert fed(policy, [*halves, (0, 1.0)]).up[0] == pytest.approx(0.4)


def test_glr_refuses_probabilities_above_one():
    with pytest.raises(ValueError, match=r"GLRKLUCB needs delta in \[0, 1\]; got 3\.2"):
        GLRKLUCB(delta=3.2)
    assert GLRKLUCB.tuned(100_000, 10).delta == pytest.approx(0.00316, abs=1e-5)


def test_the_three_of_glr_klucb_stands_before_the_double_logarithm():
    policy = GLRKLUCB(delta=0.0, c=3.0)
    state = fed(policy, [(0, 1.0), (0, 0.0)] * 200 + [(1, 0.0)] * 10)
    policy.choose(state, 410, Stream(0).at(410))
    assert 400 * kl(0.5, state.scores[0]) == pytest.approx(math.log(410) + 3 * math.log(math.log(410)), rel=1e-6)


def test_the_theoretical_threshold_of_glr_is_continuous_where_its_formula_changes():
    """h~ changes at y = h(1 / ln 1.5) = 1.5635, where both formulas give 3.699; at h^-1(1 / ln 1.5) = 3.80 they
    differ by 0.45."""
    root = 1 / math.log(1.5)

    def curved(y):
        return math.exp(1 / h_inverse(y)) * h_inverse(y)

    def straight(y):
        return 1.5 * (y - math.log(math.log(1.5)))

    switch = root - math.log(root)
    assert (curved(switch), straight(switch)) == (pytest.approx(3.6995, abs=1e-4), pytest.approx(3.6995, abs=1e-4))
    assert straight(h_inverse(root)) - curved(h_inverse(root)) == pytest.approx(0.452, abs=1e-3)
    steps = [theory_threshold(0.01 * i, 100.0) for i in range(20, 2000)]  # the formula changes at x = 0.55
    assert max(abs(b - a) for a, b in pairwise(steps)) < 0.1


def test_adswitch_owes_samples_for_every_size_down_to_a_sixteenth_of_the_gap():
    policy = AdSwitch(horizon=100)
    state = to_lists(policy.init(2))
    state.good[0], state.gap[0] = 0, 1.0
    policy.learn(state, 0, 1, 0.5, Always(0.0))
    assert state.debt == [int(2**9 * math.log(100)), 0]  # size 1/16 needs 2**(2 * 4 + 1) ln T pulls


def test_a_new_episode_of_adswitch_owes_nothing():
    policy = AdSwitch(horizon=100, every=10)
    state = to_lists(policy.init(2))
    state.good[0], state.gap[0], state.debt[0] = 0, 1.0, 60
    for t in range(80):
        learn_reward(policy, state, t, 1, float(t >= 40), Always(1.0))
    assert (state.alarms, state.good, state.debt) == ([1], [1, 1], [0, 0])


# ---- environments and presets


def test_a_drifting_environment_pays_by_the_mean_of_the_round_it_is_scored_by():
    environment, reward_rng = Smooth(n_arms=5, horizon=100, sigma=0.1, law=Constant()), Stream(1)
    table = environment.means(0, 100)
    for t in range(100):
        assert [environment.pull(t, arm, reward_rng.at(t)) for arm in range(5)] == pytest.approx(table[t], abs=1e-12)
        assert environment.best(t) == pytest.approx(table[t].max(), abs=1e-12)


@pytest.mark.parametrize("preset", ["tuned", "text", "code"])
def test_every_preset_of_every_policy_plays(preset):
    for cls in policies().values():
        if hasattr(cls, preset) and "base" not in cls._fields and cls is not Oracle:
            policy = getattr(cls, preset)(5000, 3, 4)
            state, stream = to_lists(policy.init(4)), Stream(1)
            for t in range(30):
                arm = policy.choose(state, t, stream.at(t))
                assert 0 <= arm < 4
                learn_reward(policy, state, t, arm, float(t % 2), stream.at(t))
