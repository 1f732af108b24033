"""DS-TS against its twin, its invariants (section 2.1 of the specification) and numbers one can check by hand."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.state import to_lists
from driftbandit.policies.discounted_ts import DiscountedTS
from harness import SITUATIONS, assert_same_as_twin

GAMMAS = st.sampled_from([1.0, 0.999, 0.99, 0.9051317, 0.9, 0.5, 0.1])
HISTORY = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=80)


def learned(policy: DiscountedTS, history, n_arms: int = 4):
    state = to_lists(policy.init(n_arms))
    for t, (arm, reward) in enumerate(history):
        policy.learn(state, t, arm, reward)
    return state


def deviations(policy: DiscountedTS, state) -> list[float]:
    """The standard deviations of the next samples, read from two choices that differ only in the noise."""
    zeros, ones = Noise([0.0] * len(state.mean)), Noise([1.0] * len(state.mean))
    policy.choose(state, 0, zeros)
    centre = list(state.scores)
    policy.choose(state, 0, ones)
    return [score - middle for score, middle in zip(state.scores, centre, strict=True)]


class Noise:
    """A round with the normals we want."""

    def __init__(self, values):
        self.values = values

    def normals(self, out):
        for i in range(len(out)):
            out[i] = self.values[i]


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize(
    "policy",
    [
        DiscountedTS(gamma=0.97),
        DiscountedTS(gamma=0.9, forget_below=1e-8),
        DiscountedTS(gamma=1.0, tau_max=2.0, weight=3.0),
    ],
)
def test_ds_ts_chooses_the_arms_of_its_twin(policy, n_arms, environment, kind):
    assert_same_as_twin(policy, n_arms, 3000, seed=n_arms, environment=environment, kind=kind)


@pytest.mark.parametrize("gamma", [0.5, 0.3, 0.01])
def test_ds_ts_chooses_the_arms_of_its_twin_when_counts_underflow(gamma):
    # At gamma = 0.01 an arm's count is exactly 0 after 160 idle rounds and its spread infinite.
    assert_same_as_twin(DiscountedTS(gamma=gamma, tau_max=0.05), 5, 3000, seed=1)


# ---- golden values (section 7)

Q = [(0, 1.0), (1, 0.0), (0, 0.0)]


def test_golden_values_of_three_rounds_at_gamma_one_half():
    policy = DiscountedTS(gamma=0.5, tau_max=2.0)
    state = learned(policy, Q, n_arms=2)
    assert state.pulls == [1.25, 0.5]
    assert state.mean == pytest.approx([0.2, 0.0], abs=1e-15)
    assert sum(state.pulls) == 1.75
    assert deviations(policy, state) == pytest.approx([0.894427, 1.414214], abs=1e-6)
    assert deviations(policy._replace(tau_max=0.2), state) == pytest.approx([0.2, 0.2], abs=1e-15)


def test_the_weight_divides_the_variance_and_leaves_the_mean():
    plain, weighted = DiscountedTS(gamma=0.5, tau_max=9.0), DiscountedTS(gamma=0.5, tau_max=9.0, weight=4.0)
    a, b = learned(plain, Q, 2), learned(weighted, Q, 2)
    assert a.mean == b.mean
    assert a.pulls == b.pulls
    assert deviations(weighted, b) == pytest.approx([value / 2 for value in deviations(plain, a)])


def test_before_the_first_reward_every_arm_has_mean_zero_and_the_largest_deviation():
    policy = DiscountedTS(gamma=0.9, tau_max=0.3)
    state = to_lists(policy.init(3))
    assert deviations(policy, state) == [0.3] * 3
    assert state.mean == [0.0] * 3
    assert state.pulls == [0.0] * 3


# ---- invariants (section 2.1)


@given(GAMMAS, HISTORY)
def test_counts_are_the_discounted_numbers_of_pulls(gamma, history):
    state, rounds = learned(DiscountedTS(gamma=gamma), history), len(history)
    total = rounds if gamma == 1.0 else (1 - gamma**rounds) / (1 - gamma)
    assert sum(state.pulls) == pytest.approx(total, rel=1e-12)
    for arm in range(4):
        weights = [gamma ** (rounds - 1 - j) for j, (played, _) in enumerate(history) if played == arm]
        assert state.pulls[arm] == pytest.approx(sum(weights), rel=1e-12, abs=1e-300)
        if weights and sum(weights) > 1e-200:
            values = [reward for played, reward in history if played == arm]
            mean = sum(w * x for w, x in zip(weights, values, strict=True)) / sum(weights)
            assert state.mean[arm] == pytest.approx(mean, abs=1e-9)


@given(GAMMAS, HISTORY)
def test_the_arm_just_played_counts_at_least_once(gamma, history):
    state = learned(DiscountedTS(gamma=gamma), history)
    assert state.pulls[history[-1][0]] >= 1.0


@given(GAMMAS, HISTORY)
def test_means_stay_between_an_arms_smallest_and_largest_reward(gamma, history):
    state = learned(DiscountedTS(gamma=gamma), history)
    for arm in range(4):
        values = [reward for played, reward in history if played == arm] or [0.0]
        assert min(values) - 1e-12 <= state.mean[arm] <= max(values) + 1e-12


@given(GAMMAS, HISTORY, st.integers(1, 3000))
def test_an_idle_arm_keeps_its_mean_to_the_last_bit(gamma, history, idle):
    policy = DiscountedTS(gamma=gamma)
    state = learned(policy, history)
    before = list(state.mean)
    for t in range(idle):
        policy.learn(state, len(history) + t, 0, 0.5)
    assert state.mean[1:] == before[1:]
    assert not any(math.isnan(value) for value in [*state.pulls, *state.mean, *state.spread])


@given(GAMMAS, st.sampled_from([0.01, 0.2, 1.0, 50.0]), HISTORY)
def test_deviations_stay_between_the_smallest_possible_and_tau_max(gamma, tau_max, history):
    policy = DiscountedTS(gamma=gamma, tau_max=tau_max)
    state = learned(policy, history)
    least = min(math.sqrt(1 - gamma) if gamma < 1 else 0.0, tau_max)
    for arm, sd in enumerate(deviations(policy, state)):
        assert least - 1e-9 <= sd <= tau_max + 1e-12
        n = state.pulls[arm]
        assert sd == pytest.approx(min(n**-0.5, tau_max) if n > 0 else tau_max, rel=1e-9)


@given(st.sampled_from([0.9051317, 0.9, 0.96]), HISTORY)
def test_when_memory_is_short_the_deviation_is_tau_max_throughout(gamma, history):
    # 1 / (1 - gamma) <= 1 / tau_max**2 = 25: so in every experiment the authors ran with gamma = 0.905 or 0.9
    policy = DiscountedTS(gamma=gamma, tau_max=0.2)
    assert deviations(policy, learned(policy, history)) == pytest.approx([0.2] * 4, abs=1e-12)


def test_at_gamma_099_the_deviation_falls_to_a_tenth():
    policy = DiscountedTS(gamma=0.99, tau_max=0.2)
    state = learned(policy, [(0, 1.0)] * 3000, n_arms=2)
    assert deviations(policy, state) == pytest.approx([0.1, 0.2], abs=1e-9)


@given(HISTORY)
def test_without_forgetting_it_is_the_plain_average_and_the_root_of_the_count(history):
    policy = DiscountedTS(gamma=1.0, tau_max=0.7)
    state = learned(policy, history)
    for arm, sd in enumerate(deviations(policy, state)):
        values = [reward for played, reward in history if played == arm]
        if values:
            assert state.mean[arm] == pytest.approx(np.mean(values), abs=1e-12)  # not sum / (k + 1)
        assert sd == pytest.approx(min(len(values) ** -0.5, 0.7) if values else 0.7)


def test_the_first_arm_is_uniform():
    policy, n = DiscountedTS(), 8000
    state, stream = to_lists(policy.init(4)), Stream(stream_key(1, 0, POLICY))
    counts = np.bincount([policy.choose(state, 0, stream.at(t)) for t in range(n)], minlength=4)
    statistic = ((counts - n / 4) ** 2 / (n / 4)).sum()
    assert statistic < 30.66  # chi-square with 3 degrees of freedom: false alarm one in a million


@given(GAMMAS, HISTORY, st.permutations(range(4)), st.lists(st.floats(-3, 3), min_size=4, max_size=4, unique=True))
def test_permuting_arms_and_noise_permutes_the_choice(gamma, history, order, noise):
    policy = DiscountedTS(gamma=gamma)
    state = learned(policy, history)
    moved = learned(policy, [(order[arm], reward) for arm, reward in history])
    arm = policy.choose(state, 0, Noise(noise))
    shuffled = [0.0] * 4
    for old, new in enumerate(order):
        shuffled[new] = noise[old]
    again = policy.choose(moved, 0, Noise(shuffled))
    if sorted(state.scores)[-1] > sorted(state.scores)[-2]:
        assert again == order[arm]


@given(GAMMAS, st.integers(-8, 8), st.integers(0, 1000))
def test_adding_a_constant_to_every_reward_changes_no_choice_once_every_arm_was_played(gamma, eighths, seed):
    shift, policy = eighths / 8, DiscountedTS(gamma=gamma)
    reward_rng = np.random.default_rng(seed).integers(0, 9, 60) / 8
    plain, shifted = to_lists(policy.init(3)), to_lists(policy.init(3))
    stream = Stream(stream_key(seed, 0, POLICY))
    for t in range(60):
        arm = t if t < 3 else policy.choose(plain, t, stream.at(t))
        if t >= 3:
            gap = sorted(plain.scores)
            assert policy.choose(shifted, t, stream.at(t)) == arm or gap[-1] - gap[-2] < 1e-9
        policy.learn(plain, t, arm, float(reward_rng[t]))
        policy.learn(shifted, t, arm, float(reward_rng[t]) + shift)


@given(GAMMAS, HISTORY)
def test_the_same_rewards_give_the_same_state_whatever_is_queried_in_between(gamma, history):
    policy, stream = DiscountedTS(gamma=gamma), Stream(1)
    state = to_lists(policy.init(4))
    for t, (arm, reward) in enumerate(history):
        policy.choose(state, t, stream.at(t))
        policy.learn(state, t, arm, reward)
    assert state._replace(scores=None) == learned(policy, history)._replace(scores=None)


@given(GAMMAS, HISTORY)
def test_choosing_changes_nothing_but_scratch(gamma, history):
    policy = DiscountedTS(gamma=gamma, forget_below=1e-8)
    state, stream = learned(policy, history), Stream(9)
    before = [list(state.pulls), list(state.mean), list(state.spread)]
    first = policy.choose(state, 5, stream.at(5))
    for t in range(4):
        policy.choose(state, t, stream.at(t))
    assert policy.choose(state, 5, stream.at(5)) == first
    assert [state.pulls, state.mean, state.spread] == before


# ---- long silences


def test_the_idle_arms_count_goes_to_nothing_and_its_deviation_back_to_tau_max():
    policy = DiscountedTS(gamma=0.99, tau_max=0.2)
    state = learned(policy, [(1, 1.0)] * 200 + [(0, 1.0)] * 2000, n_arms=2)
    assert state.pulls[1] < 1e-6
    assert deviations(policy, state)[1] == pytest.approx(0.2)
    assert state.mean[1] == pytest.approx(1.0)


def test_a_mean_survives_the_underflow_of_its_count_and_recovers_at_the_next_reward():
    policy = DiscountedTS(gamma=0.5)
    state = learned(policy, [(1, 0.75)] + [(0, 1.0)] * 1200, n_arms=2)
    assert state.pulls[1] == 0.0  # 2**-1200 is below the smallest number
    assert state.mean[1] == 0.75
    assert deviations(policy, state)[1] == pytest.approx(0.2)
    policy.learn(state, 1201, 1, 0.25)
    assert state.mean[1] == 0.25
    assert state.pulls[1] == 1.0


@pytest.mark.parametrize(("gamma", "rounds"), [(0.99, 1833), (0.9051317, 185)])
def test_forget_below_drops_the_mean_after_the_rounds_the_specification_says(gamma, rounds):
    policy = DiscountedTS(gamma=gamma, forget_below=1e-8)
    for idle, kept in ((rounds - 1, True), (rounds + 1, False)):
        state = learned(policy, [(1, 1.0)] + [(0, 0.0)] * idle, n_arms=2)
        policy.choose(state, 0, Noise([0.0, 0.0]))
        assert (state.scores[1] == 1.0) == kept
        if not kept:
            assert 0.0 <= state.scores[1] < 1e-8  # N * mean, what is left of the sum
        frozen = DiscountedTS(gamma=gamma)
        frozen.choose(state, 0, Noise([0.0, 0.0]))
        assert state.scores[1] == 1.0


def test_belief_is_what_the_samples_are_drawn_from():
    for policy in (DiscountedTS(gamma=0.9, tau_max=0.7), DiscountedTS(gamma=0.5, forget_below=0.3, weight=2.0)):
        state = learned(policy, [(0, 1.0), (1, 0.5), (2, 0.75), (0, 0.0), (0, 1.0)])
        belief = policy.belief(state)
        policy.choose(state, 0, Noise([0.0] * 4))
        assert belief.mean.tolist() == state.scores
        assert belief.sd.tolist() == pytest.approx(deviations(policy, state))


# ---- how fast to forget (sections 1 and 6)


def test_presets_have_the_values_of_the_papers_main_setting():
    assert DiscountedTS.tuned(100_000, 10).gamma == pytest.approx(0.99, abs=1e-12)
    assert DiscountedTS.text(100_000, 10) == DiscountedTS(gamma=DiscountedTS.tuned(100_000, 10).gamma, tau_max=0.2)
    code = DiscountedTS.code(100_000, 10)
    assert code.gamma == pytest.approx(0.9051317, abs=1e-7)
    assert (code.tau_max, code.forget_below) == (0.2, 1e-8)
    for preset in (DiscountedTS.text, DiscountedTS.code):
        assert preset(10_000, 1, smooth=True).gamma == pytest.approx(0.9, abs=1e-12)
        assert preset(100_000, 1, smooth=True).gamma == pytest.approx(0.968377, abs=1e-6)
    assert DiscountedTS.code(100_000, 10, tau_max=0.14).tau_max == 0.14
    assert DiscountedTS.tuned_smooth(10_000, 0.75).gamma == pytest.approx(0.9, abs=1e-12)
    assert DiscountedTS.tuned_smooth(100_000, 0.5).gamma == pytest.approx(0.99683772, abs=1e-8)


@given(st.floats(1e-1, 1e6))
def test_evidence_halves_in_a_half_life(rounds):
    assert DiscountedTS.half_life(rounds).gamma ** rounds == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize(
    "rule",
    [
        lambda: DiscountedTS.tuned(10, 9),
        lambda: DiscountedTS.text(50, 1, smooth=True),
        lambda: DiscountedTS.tuned_smooth(2, 0.0),
        lambda: DiscountedTS.code(900, 10),  # 1 - 10 sqrt(9 / 900) = 0
        lambda: DiscountedTS.code(500, 10),  # negative
    ],
)
def test_formulas_that_leave_the_theorys_domain_end_at_its_edge_with_a_warning(rule):
    with pytest.warns(UserWarning, match="below 1 - 1/e where the theory ends"):
        made = rule()
    assert made.gamma == 1 - 1 / math.e


def test_inside_the_domain_there_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DiscountedTS.tuned(100_000, 10)
        DiscountedTS.code(100_000, 10)
        DiscountedTS.half_life(0.5)


@pytest.mark.parametrize(
    "rule",
    [
        lambda: DiscountedTS.half_life(0),
        lambda: DiscountedTS.half_life(-1),
        lambda: DiscountedTS.half_life(math.nan),
        lambda: DiscountedTS.half_life(math.inf),
        lambda: DiscountedTS.half_life("week"),
        lambda: DiscountedTS.tuned(0, 1),
        lambda: DiscountedTS.tuned(100, 0),
        lambda: DiscountedTS.tuned(10, 11),
        lambda: DiscountedTS.tuned(math.nan, 1),
        lambda: DiscountedTS.tuned(math.inf, 1),
        lambda: DiscountedTS.tuned("long", 1),
        lambda: DiscountedTS.tuned_smooth(1000, 1.0),
        lambda: DiscountedTS.tuned_smooth(1000, -0.1),
        lambda: DiscountedTS.tuned_smooth(1000, math.nan),
        lambda: DiscountedTS.tuned_smooth(1000, None),
        lambda: DiscountedTS(gamma=0.0),
        lambda: DiscountedTS(gamma=math.nan),
        lambda: DiscountedTS(tau_max=0.0),
        lambda: DiscountedTS(tau_max=math.inf),
        lambda: DiscountedTS(forget_below=-1e-9),
        lambda: DiscountedTS(weight=0),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(rule):
    with pytest.raises(ValueError, match=r"needs? .*; got ") as error:
        rule()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250
