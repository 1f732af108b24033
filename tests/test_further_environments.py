"""The environments other than the paper's: each changes in the documented way, and in no other."""

import math

import numpy as np
import pytest

from driftbandit.core.draws import Stream
from driftbandit.environments import Bursts, CommonShift, Constant, Local, Mixed, Rare, Rising, Seasonal, Trap
from driftbandit.environments.scaled import LAWS, Scaled
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies import BetaTS
from driftbandit.spec.parse import parse_environment

ENVIRONMENTS = {
    "trap": Trap(n_arms=4, horizon=3000),
    "local": Local(n_arms=4, horizon=3000, changes=12),
    "common": CommonShift(n_arms=4, horizon=3000, days=30),
    "seasonal": Seasonal(n_arms=4, horizon=3000, period=1000, steps=300),
    "rising": Rising(n_arms=4, horizon=3000, steps=300),
    "bursts": Bursts(n_arms=4, horizon=3000, bursts=3, changes=4, every=50),
    "mixed": Mixed(n_arms=7, horizon=3000, steps=300),
    "rare": Rare(n_arms=4, horizon=3000, phases=5, highest=0.02),
}
RANDOM = ["local", "common", "bursts", "mixed", "rare"]


def table(spec, key: int = 0) -> np.ndarray:
    return spec.realise(key).means(0, spec.horizon)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_is_found_by_its_short_name_and_read_back_from_its_text(name):
    assert type(parse_environment(name)) is type(ENVIRONMENTS[name])
    assert parse_environment(repr(ENVIRONMENTS[name])) == ENVIRONMENTS[name]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_means_stay_in_range_and_the_best_is_the_largest(name):
    for key in range(5):
        environment = ENVIRONMENTS[name].realise(key)
        means = environment.means(0, environment.horizon)
        assert means.min() >= 0.0
        assert means.max() <= 1.0
        for t in range(0, environment.horizon, 97):
            assert means[t].tolist() == [environment.mean(t, arm) for arm in range(environment.n_arms)]
            assert environment.best(t) == means[t].max()


@pytest.mark.long
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_lockstep_single_and_interpreted_runs_give_the_same_numbers(name):
    spec = ENVIRONMENTS[name]
    lanes = simulate(BetaTS(), spec, runs=7, checkpoints=5, workers=1, progress=False)
    single = simulate(BetaTS(), spec, runs=7, checkpoints=5, workers=1, progress=False, lockstep=False)
    slow = simulate(BetaTS(), spec, runs=2, checkpoints=5, progress=False, compiled=False)
    assert np.array_equal(lanes.regret, single.regret)
    assert np.array_equal(lanes.regret[:2], slow.regret)


@pytest.mark.parametrize("name", RANDOM)
def test_fresh_environments_differ_between_runs_numbered_ones_do_not_and_change_times_never(name):
    spec = ENVIRONMENTS[name]
    assert not np.array_equal(table(spec, 1), table(spec, 2))
    assert np.array_equal(table(spec, 1), table(spec, 1))
    numbered = spec._replace(instance="7")
    assert np.array_equal(table(numbered, 1), table(numbered, 2))
    assert np.array_equal(spec.realise(1).breakpoints, spec.realise(2).breakpoints)


@pytest.mark.parametrize("name", ["trap", "seasonal", "rising"])
def test_environments_without_chance_are_the_same_object_for_every_run(name):
    assert ENVIRONMENTS[name].realise(1) is ENVIRONMENTS[name].realise(2)


@pytest.mark.parametrize("law", [Constant()])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_law_is_handed_on(name, law):
    assert ENVIRONMENTS[name]._replace(law=law).realise(0).law == law


def test_the_trap_changes_one_arm_once_and_never_the_one_that_is_played():
    means = table(Trap(n_arms=5, horizon=1000))
    assert means[0].tolist() == [0.5, 0.1, 0.1, 0.1, 0.1]
    assert means[-1].tolist() == [0.5, 0.1, 0.1, 0.1, 0.9]
    assert np.flatnonzero((np.diff(means, axis=0) != 0).any(axis=1)).tolist() == [499]


def test_local_changes_redraw_one_arm_at_a_time_and_all_arms_in_turn():
    means = table(Local(n_arms=5, horizon=41_000, changes=400), 3)
    changed = np.diff(means, axis=0) != 0
    rounds = changed.any(axis=1)
    assert rounds.sum() == 400
    assert (changed.sum(axis=1)[rounds] == 1).all()
    counts = changed.sum(axis=0)
    # each of 400 changes picks one of 5 arms: 80 an arm, standard deviation 8; 5 of them, a probability of 3 in a
    # million
    assert np.abs(counts - 80).max() <= 40


def test_a_common_shift_keeps_differences_and_has_the_stated_spread():
    spec = CommonShift(n_arms=3, horizon=2000, days=2000, sd=0.03, lowest=0.45, highest=0.55)
    means = table(spec, 1)
    assert np.allclose(np.diff(means, axis=1), 0.05, atol=1e-12)
    shifts = means[:, 0] - 0.45
    # 5 standard errors: a probability of about one in a million of a false alarm each
    assert abs(shifts.mean()) < 5 * 0.03 / math.sqrt(2000)
    assert abs(shifts.std() - 0.03) < 5 * 0.03 / math.sqrt(2 * 2000)
    assert np.array_equal(table(spec._replace(sd=0.0), 1)[0], np.linspace(0.45, 0.55, 3))


def test_large_shifts_are_cut_at_zero_and_one():
    means = table(CommonShift(n_arms=3, horizon=500, days=500, sd=1.0), 1)
    assert means.min() == 0.0
    assert means.max() == 1.0


def test_seasons_are_sines_of_one_period_and_every_arm_reigns_for_its_share():
    spec = Seasonal(n_arms=4, horizon=4000, period=2000, level=0.4, swing=0.3, steps=4000)
    means = table(spec)
    t = np.arange(4000)
    for arm in range(4):
        assert np.allclose(means[:, arm], 0.4 + 0.3 * np.sin(2 * np.pi * (t / 2000 + arm / 4)), atol=1e-12)
    assert np.allclose(means[:2000], means[2000:], atol=1e-12)
    shares = np.bincount(means.argmax(axis=1), minlength=4) / 4000
    assert np.abs(shares - 0.25).max() < 0.002


def test_means_of_a_season_move_in_equal_steps():
    environment = Seasonal(n_arms=2, horizon=1000, steps=10).realise(0)
    assert environment.breakpoints.tolist() == list(range(0, 1000, 100))
    assert environment.mean(0, 0) == pytest.approx(0.5 + 0.4 * math.sin(2 * math.pi * 49.5 / 20_000))


def test_the_rising_arm_climbs_from_worst_to_best_and_the_others_stay():
    means = table(Rising(n_arms=5, horizon=1000, steps=1000))
    assert (np.diff(means[:, -1]) > 0).all()
    assert means[0, -1] == pytest.approx(0.1, abs=0.001)
    assert means[-1, -1] == pytest.approx(0.9, abs=0.001)
    assert (means[:, :-1] == means[0, :-1]).all()
    assert means[0, :-1] == pytest.approx([0.3, 0.4, 0.5, 0.6])
    best = means.argmax(axis=1)
    assert best[0] == 3
    assert np.flatnonzero(best == 4)[0] == pytest.approx(625, abs=1)  # 0.1 + 0.8 t / 1000 passes 0.6


def test_bursts_are_short_and_the_rest_is_calm():
    spec = Bursts(n_arms=3, horizon=10_000, bursts=2, changes=5, every=100)
    means = table(spec, 2)
    changed = np.flatnonzero((np.diff(means, axis=0) != 0).all(axis=1)) + 1
    assert changed.tolist() == [2500, 2600, 2700, 2800, 2900, 7500, 7600, 7700, 7800, 7900]
    assert spec.phases == 11


def test_in_a_mixed_environment_arms_stay_jump_or_wander():
    spec = Mixed(n_arms=6, horizon=10_000, jumps=5.0, wander=1.0, steps=1000)
    jumps, ends = [], []
    for key in range(60):
        means = table(spec, key)[::10]
        assert (means[:, [0, 3]] == means[0, [0, 3]]).all()
        jumps.append((np.diff(means[:, 1]) != 0).sum())
        steps = np.diff(means[:, 2])
        assert (steps != 0).mean() > 0.99
        ends.append(np.sqrt((steps**2).sum()))
    # 60 environments of about 5 jumps each, standard error 0.29; 1.5 is five of them: one in a million
    assert abs(np.mean(jumps) - 5.0) < 1.5
    assert np.mean(ends) == pytest.approx(1.0, abs=0.05)  # the length of 999 steps of spread 1 / sqrt(1000)


def test_rare_means_are_the_abrupt_environment_scaled_down():
    means = table(Rare(n_arms=50, horizon=100, phases=50, highest=0.01), 4)
    assert means.max() <= 0.01
    assert means.mean() == pytest.approx(0.005, abs=5 * 0.01 / math.sqrt(12 * 2500))  # five standard errors
    assert len(np.unique(means[:, 0])) == 50


@pytest.mark.parametrize(
    "build",
    [
        lambda: Trap(n_arms=1),
        lambda: Trap(jump=1.5),
        lambda: Local(changes=10, horizon=10),
        lambda: Local(instance="authors"),
        lambda: Local(instance="bogus"),
        lambda: CommonShift(sd=-1),
        lambda: CommonShift(days=11, horizon=10),
        lambda: CommonShift(instance="authors"),
        lambda: Seasonal(level=0.2, swing=0.4),
        lambda: Seasonal(period=0),
        lambda: Rising(n_arms=1),
        lambda: Bursts(horizon=1000, bursts=5, changes=10, every=100),
        lambda: Bursts(instance="authors"),
        lambda: Mixed(jumps=-1),
        lambda: Mixed(instance="authors"),
        lambda: Rare(highest=0.0),
        lambda: Rare(phases=11, horizon=10),
        lambda: Rare(instance="authors"),
    ],
)
def test_a_bad_environment_is_refused_in_one_sentence(build):
    with pytest.raises(ValueError, match=r"\.( |$)") as error:
        build()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("name", LAWS)
def test_a_scaled_environment_pays_by_its_law_and_one_type_serves_all(name):
    environment, law, stream = Scaled("stationary", name, 3, 80).realise(1), LAWS[name][1], Stream(4)
    assert type(environment) is type(Scaled("trap", "counts").realise(1))
    assert type(environment.payer.law) is type(Scaled("trap", "counts").realise(1).payer.law)
    for t in range(80):
        mean = environment.mean(t, t % 3)
        plain = law.draw(mean, stream.at(t))
        louder = name == "noise-changes" and (t // 10) % 2 == 1
        assert environment.pull(t, t % 3, stream.at(t)) == (mean + 10.0 * (plain - mean) if louder else plain)
