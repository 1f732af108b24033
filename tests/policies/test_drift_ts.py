"""DriftTS against its slow twin, numbers one can check by hand, and what must hold whatever the rewards."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit import Bandit
from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.environments.rewards import Constant, TruncatedGaussian
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.beta_ts import BetaTS
from driftbandit.policies.drift import DriftTS, hypotheses
from driftbandit.policies.drift import runs as drift_runs
from driftbandit.policies.drift.hypotheses import (
    CHANGES,
    EVERY,
    HASTE,
    HYPOTHESES,
    LEVEL,
    LEVEL_SPREAD,
    LOSSES,
    OLD,
    PLACES,
    RATES,
    RUN_RECORD,
    RUNS,
    blend_pairs,
    count_runs,
    count_slots,
    power,
    run_counter,
    update_sums,
    write_posteriors,
)
from harness import SITUATIONS, abrupt_means, assert_same_as_twin, rewards, taught
from naive import TWINS
from naive.drift_ts import aged
from small_policies import chosen, play_arm

POLICY_ = DriftTS()
histories = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 1.0, 0.3])), max_size=150)


def weights_of(state):
    """The weights as probabilities."""
    weights = np.array(state.known.shared[:HYPOTHESES])
    return weights / weights.sum()


# ---- the twin --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
def test_drift_ts_chooses_the_arms_of_its_twin(n_arms, environment, kind):
    assert_same_as_twin(POLICY_, n_arms, 400 if n_arms == 30 else 1000, seed=n_arms, environment=environment, kind=kind)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["binary", "real"])
def test_over_thousands_of_rounds_too(kind):
    assert_same_as_twin(POLICY_, 3, 6000, seed=1, kind=kind)


def test_a_horizon_shorter_than_the_number_of_arms_is_played():
    assert_same_as_twin(POLICY_, 30, 12, seed=3)


@pytest.mark.parametrize("kind", ["real", pytest.param("binary", marks=pytest.mark.long)])
def test_all_hypotheses_weigh_what_the_twins_do(kind):
    n_arms, rounds = 3, 1600
    reward = rewards(abrupt_means(n_arms, rounds, 5), kind, 5)
    twin, state = TWINS["DriftTS"](n_arms), to_lists(POLICY_.init(n_arms))
    for t in range(rounds):
        arm = t * 7 % 11 % n_arms
        twin.learn(t, arm, reward(t, arm))
        POLICY_.learn(state, t, arm, reward(t, arm))
        if t % 501 == 500 or t < 20:
            weights, changes = weights_of(state), np.array(state.known.shared[CHANGES : CHANGES + RUNS])
            # In bank S 1 - (a probability next to 1) is rounded off by chance; nothing of that matters.
            for first, bank, near in ((0, twin.together, 1e-100), (PLACES, twin.one_by_one, 1e-12)):
                runs = aged(bank)
                slots = [first + slot for slot in range(len(runs))]
                assert count_runs(run_counter((t + 1) // EVERY)) == len(runs)
                whole = sum(hypothesis.weight for hypothesis in twin.hypotheses())
                assert weights[slots] == pytest.approx([run.weight / whole for run in runs], rel=1e-8, abs=near)
                assert changes[slots] == pytest.approx([run.changes for run in runs], rel=1e-6)
            drifts = [*twin.drifts, *twin.common_drifts]
            assert weights[RUNS:] == pytest.approx([drift.weight / whole for drift in drifts], rel=1e-8)
            levels = state.known.shared[LEVEL:LEVEL_SPREAD]
            assert levels == pytest.approx([common.level for common in twin.common_drifts], rel=1e-9)


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_before_any_reward_half_a_share_each_goes_to_the_two_first_runs():
    weights = weights_of(POLICY_.init(2))
    assert weights[[0, PLACES]] == pytest.approx([1 / 18, 1 / 18])
    assert weights[RUNS : RUNS + RATES] == pytest.approx(0.75 / 9)
    assert weights[RUNS + RATES :] == pytest.approx(0.25 / 9)


def test_one_reward_is_not_informative():
    # Everybody expected 1/2.
    weights = weights_of(taught(POLICY_, [(0, 1.0)], n_arms=2))
    assert weights == pytest.approx(weights_of(POLICY_.init(2)), rel=1e-12)


def test_three_rewards_weigh_hypotheses_as_computed_by_hand():
    # Runs expect 1/2, then a win with 2/3, then with 3/4, and see a loss. The fastest drift (q = 1/64) has n = 1,
    # then n = 64/65 + 1, m = 1; then n / (1 + n/64) pulls' worth of wins. The first common drift (u = r = 1/4,
    # q = 1/64) is worked out below from the specification.
    run = [1 / 2, 2 / 3, 1 / 4]
    n1 = 1 / (1 + 1 / 64)
    n2 = (n1 + 1) / (1 + (n1 + 1) / 64)
    drift = [1 / 2, (1 + n1) / (2 + n1), 1 / (2 + n2)]
    common, level, u, offset, r = [], 0.5, 0.25, 0.0, 0.25
    for y in (1.0, 1.0, 0.0):
        u += 1 / 64
        m, n = level + offset, max(1 / (u + r) - 2, 0)
        p = (1 + n * min(max(m, 0), 1)) / (2 + n)
        common.append(p if y else 1 - p)
        s, e = 1 + u + r, (y - m) / (1 + u + r)
        level, offset, u, r = level + u * e, offset + r * e, min(u - u * u / s, 1), r - r * r / s
    weights = weights_of(taught(POLICY_, [(0, 1.0), (0, 1.0), (0, 0.0)], n_arms=1))
    assert weights[0] == weights[PLACES]
    for place, says, part in ((RUNS, drift, 0.75), (RUNS + RATES, common, 0.25)):
        expected = (part / 9 * math.prod(says)) / (1 / 18 * math.prod(run))
        assert weights[place] / weights[0] == pytest.approx(expected, rel=1e-12)


def test_the_first_new_run_gets_a_sixteenth_of_sixteen_seventeenths_of_its_sources():
    state = taught(POLICY_, [(0, 1.0), (1, 0.0)] * 8, n_arms=2)
    weights, alpha, flow = weights_of(state), 0.2, 16 / 17 / 16  # of all weight times 1 + 1/4, the 1/4 goes to drifts
    bank = weights[0] / ((1 - alpha) * (1 - flow))  # the weight of the bank and the drifts before
    drifts = (weights[RUNS:].sum() - alpha) / ((1 - alpha) * (1 - flow))
    assert weights[1] == pytest.approx((1 - alpha) * flow * (bank + drifts / 2), rel=1e-12)
    assert state.known.shared[CHANGES + 1] == 1.0  # it has seen one change
    assert sum(state.known.shared[:HYPOTHESES]) == pytest.approx(1.0, abs=1e-12)  # normalised when runs are added
    record = state.known.runs[:RUN_RECORD]
    assert (record[1], record[1 + LOSSES]) == (8.0, 0.0)  # arm 0 had eight wins when it started
    assert state.known.changed[1] == 0.5
    # Or it goes on from the heaviest's memory, that of the slowest drift, which has forgotten next to nothing.
    assert (record[OLD + 1], record[OLD + 1 + LOSSES]) == pytest.approx((0.0, 0.0), abs=1e-5)


def test_two_runs_merge_into_one_with_the_heaviers_record():
    known = taught(POLICY_, [(0, 1.0)] * 32, n_arms=1).known
    known.shared[0], known.shared[1], known.shared[CHANGES], known.shared[CHANGES + 1] = 0.1, 0.3, 2.0, 6.0
    (
        known.shared[PLACES],
        known.shared[PLACES + 1],
        known.shared[CHANGES + PLACES],
        known.shared[CHANGES + PLACES + 1],
    ) = (
        0.2,
        0.05,
        4.0,
        9.0,
    )
    known.runs[0], known.runs[1], known.runs[LOSSES], known.runs[LOSSES + 1] = 5.0, 7.0, 1.0, 2.0
    known.runs[OLD], known.runs[OLD + 1], known.changed[0], known.changed[1] = 3.0, 4.0, 0.6, 0.7
    drift_runs.merge_runs(known, 0, 1, 0)
    assert (known.shared[0], known.shared[PLACES]) == pytest.approx((0.4, 0.25))
    assert (known.shared[CHANGES], known.shared[CHANGES + PLACES]) == pytest.approx((5.0, 5.0))
    assert (known.runs[0], known.runs[LOSSES], known.runs[OLD], known.changed[0]) == (7.0, 2.0, 4.0, 0.7)


@pytest.mark.parametrize("rounds", [0, 15, 16, 31, 32, 47, 48, 80, 112, 128, 400, 2000])
def test_the_levels_are_those_of_a_binary_counter(rounds):
    state = taught(POLICY_, [(0, float(t % 2)) for t in range(rounds)], n_arms=1)
    count = 2 + rounds // EVERY
    levels = count.bit_length() - 1
    expected = sum(1 + (count >> level & 1) for level in range(levels))
    for first in (0, PLACES):
        assert [state.known.shared[first + slot] > 0.0 for slot in range(PLACES)] == [
            slot < expected for slot in range(PLACES)
        ]
        starts = [state.known.runs[slot] + state.known.runs[slot + LOSSES] for slot in range(expected)]
        assert starts == sorted(set(starts))  # the oldest first, and no two alike
    assert expected <= count_slots(rounds) < expected + 4


def test_the_oldest_runs_are_merged_forever_when_the_levels_are_used_up(monkeypatch):
    monkeypatch.setattr(hypotheses, "LEVELS", 3)
    monkeypatch.setattr(drift_runs, "LEVELS", 3)
    state, most = to_lists(POLICY_.init(1)), 0
    for t in range(4000):
        POLICY_.learn(state, t, 0, float(t % 3 == 0))
        used = [slot for slot in range(PLACES) if state.known.shared[slot] > 0.0]
        assert used == list(range(len(used)))
        assert len(used) == count_runs(run_counter((t + 1) // EVERY))
        starts = [state.known.runs[slot] + state.known.runs[slot + LOSSES] for slot in used]
        assert starts == sorted(set(starts))
        most = max(most, len(used))
    assert most == 7  # one of level 3, two of each below
    assert math.isclose(sum(weights_of(state)), 1.0)


def test_likelihoods_of_fractions_are_powers():
    generator = np.random.default_rng(0)
    for y in generator.random(300).tolist():
        a, b, c, d = (1.0 + generator.random(4) * (1e6, 50.0, 5.0, 1e5)).tolist()
        wanted = [x**y * z ** (1 - y) for x, z in ((a, b), (c, d))]
        assert blend_pairs(a, b, c, d, y) == pytest.approx(wanted, rel=2e-14)
        assert power(a / d, y) == pytest.approx((a / d) ** y, rel=2e-14)


# ---- always ----------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(histories)
def test_weights_are_probabilities_and_records_stay_in_range(history):
    state = taught(POLICY_, history, n_arms=3)
    weights, t = weights_of(state), len(history)
    assert (weights >= 0.0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert sum(state.known.cumulative[3::4]) == pytest.approx(sum(state.known.shared[:HYPOTHESES]), rel=1e-12)
    assert np.count_nonzero(weights[:RUNS]) <= 4 * math.log2(2 + t / EVERY + 1)  # two banks, two a level
    assert sum(state.known.wins) + sum(state.known.losses) == pytest.approx(t)
    assert all(0.0 <= p <= 1.0 for p in state.known.changed)
    assert (np.array(state.known.shared[CHANGES : CHANGES + RUNS]) <= max(1, t // EVERY)).all()


@given(histories)
def test_with_only_the_first_run_it_has_the_evidence_of_ts_twice(history):
    state, ts = taught(POLICY_, history, n_arms=3), taught(BetaTS(), history, n_arms=3)
    known = state.known
    known.shared[:HYPOTHESES] = [1.0] + [0.0] * (HYPOTHESES - 1)
    for arm in range(3):  # the run that counts from the beginning
        known.runs[arm * RUN_RECORD] = known.runs[arm * RUN_RECORD + LOSSES] = 0.0
    update_sums(known.shared, known.cumulative, count_slots(len(history)))
    stream = Stream(stream_key(1, 0, POLICY))
    for n in range(3):
        arm = POLICY_.choose(state, len(history), stream.at(n))
        assert state.a == pytest.approx([2.0 * a for a in ts.a])
        assert state.b == pytest.approx([2.0 * b for b in ts.b])
        assert state.scores[arm] == max(state.scores)
        write_posteriors(state, len(history), stream.at(n), 0, 1.0, HASTE)  # what it knows is what TS knows
        assert (state.a, state.b) == (pytest.approx(ts.a), pytest.approx(ts.b))


@pytest.mark.parametrize("n_arms", [2, 6])
def test_an_arm_never_played_is_tried(n_arms):
    state, stream = to_lists(POLICY_.init(n_arms)), Stream(stream_key(2, 0, POLICY))
    for t in range(2000):
        POLICY_.learn(state, t, t % (n_arms - 1), float(t % 10 < 4))
    assert n_arms - 1 in {POLICY_.choose(state, 2000, stream.at(t)) for t in range(2000, 2100)}


@pytest.mark.long
@pytest.mark.parametrize("law", [Constant(), TruncatedGaussian(0.4)])
def test_rewards_between_and_beyond_0_and_1_give_the_same_run_in_all_ways(law):
    environment = Abrupt(n_arms=3, horizon=500, phases=3, instance="2", law=law)
    lanes, single = (simulate(POLICY_, environment, runs=6, pulls=True, lockstep=flag) for flag in (True, False))
    plain = simulate(POLICY_, environment, runs=1, pulls=True, compiled=False)
    assert (lanes.regret == single.regret).all()
    assert (lanes.pulls == single.pulls).all()
    assert (plain.regret[0] == single.regret[0]).all()


# ---- live ------------------------------------------------------------------------------------------------------------


def bandit_after(n_arms, rounds, seed=3):
    """A bandit in an environment that changes after two thirds of the rounds."""
    generator = np.random.default_rng([seed, rounds])
    bandit, means = (
        Bandit(n_arms, DriftTS(), reward_range=(0, 1), seed=seed, first=False, floor=0.0),
        generator.random(n_arms),
    )
    for t in range(rounds):
        if t == rounds * 2 // 3:
            means = generator.random(n_arms)
        decision = bandit.decide()
        arm = decision.arm
        bandit.reward(decision, float(generator.random() < means[arm]))
    return bandit


@pytest.mark.parametrize(("n_arms", "rounds"), [(2, 0), (4, 2), (3, 30), (5, 400)])
def test_probabilities_are_the_frequencies_of_many_choices(n_arms, rounds):
    """Within 5 standard errors of 8,000 choices: one chance failure in 100,000."""
    bandit = bandit_after(n_arms, rounds)
    exact = bandit.probabilities()
    values = np.array(list(exact.values()))
    choices = chosen(bandit, 8000)
    sampled = np.array([choices.count(arm) for arm in range(n_arms)]) / 8000
    assert values.sum() == pytest.approx(1.0)
    assert exact.error < 2e-3
    assert (np.abs(sampled - values) < 5 * np.sqrt(values * (1 - values) / 8000) + exact.error + 1e-3).all()


def test_arms_never_tried_are_equally_likely():
    found = Bandit(4, DriftTS(), reward_range=(0, 1), seed=1).probabilities()
    assert list(found.values()) == pytest.approx([0.25] * 4, abs=1e-6)


def test_a_new_arm_is_tried_and_a_removed_one_is_not():
    bandit = bandit_after(3, 300)
    bandit.add_arm("new")
    assert bandit.probabilities()["new"] > 0.02
    assert "new" in chosen(bandit, 200)
    bandit.retire_arm(0)
    assert 0 not in chosen(bandit, 200)
    assert set(bandit.probabilities()) == {1, 2, "new"}
    assert chosen(Bandit.restore(bandit.snapshot()), 20) == chosen(bandit, 20)


def test_snapshots_stay_small():
    assert len(bandit_after(10, 3000).snapshot()) < 60_000


def test_it_explains_when_the_environment_changed_and_the_expected_rewards():
    bandit = Bandit(["left", "right"], DriftTS(), reward_range=(0, 1), seed=1)
    for t in range(800):
        play_arm(bandit, ("left", "right")[t % 2], float((t % 4 < 2) != (t % 2 == 0 and t >= 480)) if t % 8 else 1.0)
    for t in range(800, 1200):
        play_arm(bandit, "left", 0.0 if t % 10 else 1.0)
        play_arm(bandit, "right", 1.0 if t % 10 else 0.0)
    found = bandit.explain()
    assert found.stationary + found.jumps + found.drifts + found.common_drift == pytest.approx(1.0, abs=1e-4)
    assert found.jumps > found.stationary
    assert found.last_change == pytest.approx(800, rel=0.1)
    assert found.arms["left"].mean == pytest.approx(0.1, abs=0.05)
    assert found.arms["right"].mean == pytest.approx(0.9, abs=0.05)
    assert "last change about" in str(found).lower()
    with pytest.raises(ValueError, match="cannot explain its choices"):
        Bandit(2, BetaTS(), reward_range=(0, 1)).explain()


def test_a_stationary_environment_is_explained_as_such():
    """Slow drifts predict the same as a stationary environment does, and count as one. One fixed run."""
    bandit, generator, found = Bandit(3, DriftTS(), reward_range=(0, 1), seed=0), np.random.default_rng(0), []
    for t in range(3000):
        decision = bandit.decide()
        arm = decision.arm
        bandit.reward(decision, float(generator.random() < (0.3, 0.5, 0.7)[arm]))
        if t + 1 in (300, 3000):
            found.append(bandit.explain())
    assert found[0].stationary > 0.5
    assert found[1].stationary > 0.6
    assert found[1].last_change is None
    assert "no change visible" in str(found[1]).lower()
