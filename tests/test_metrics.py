"""Drift metrics on plays made by hand, where every number can be checked."""

import numpy as np
import pytest

from driftbandit.environments import Abrupt, PhaseTable, Smooth
from driftbandit.lab import drift_metrics as drift
from driftbandit.lab import sweep
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.result import Result
from driftbandit.lab.study import Study, Variants, run
from driftbandit.lab.summaries import difference
from driftbandit.lab.work import Cell, Part, compute
from driftbandit.spec import parse

# Two arms: 0.8 and 0.2, after 400 rounds 0.2 and 0.6; so arm 0 is the better fixed one (400 * 1.0 > 400 * 0.8).
ENVIRONMENT = PhaseTable(means=((0.8, 0.2), (0.2, 0.6)), starts=(0, 400), horizon=800)


def measured(arms, alarms=None, environment=ENVIRONMENT):
    return drift.GapTable(environment.realise(0)).measure(np.array(arms), alarms)


def summarised(arms, alarms=None, environment=ENVIRONMENT):
    """The summary of a single run."""
    gaps = drift.GapTable(environment.realise(0)).gaps
    regret = gaps[np.arange(len(arms)), arms].sum()
    columns = {name: np.array([value]) for name, value in measured(arms, alarms, environment)._asdict().items()}
    return drift.summarise(Part(Cell("p", "w"), np.array([len(arms)]), np.array([[regret]]), drift=columns))


def test_a_play_that_notices_the_change_after_150_rounds_is_measured_by_hand():
    # Arm 0 throughout, arm 1 from round 550 on: 150 rounds lost at 0.4 each.
    arms, alarms = [0] * 550 + [1] * 250, np.array([100, 460, 500])
    # Uniform play loses 0.2 a round here, half of it is 0.1: 25 wrong rounds in the next 100. That is from round 125.
    assert measured(arms, alarms)[:3] == (1, 125, 1)
    assert measured(arms, alarms)[5:7] == (1, 60)
    line = summarised(arms, alarms)
    assert line.regret.mean == pytest.approx(60.0)
    assert (line.recovery.mean, line.recovered) == (125.0, 1.0)
    assert line.worst_phase.mean == pytest.approx(60.0)
    assert line.best_share.mean == pytest.approx(650 / 800)
    assert line.delay is not None
    assert (line.delay.mean, line.missed) == (60.0, 0.0)
    assert line.false_alarms is not None
    assert line.false_alarms.mean == 1.0  # the one before any change; two answer for two changed arms


def test_a_play_that_never_notices_has_not_recovered_and_missed_the_change():
    assert measured([0] * 800, np.zeros(0, np.int64))[:3] == (1, 400, 0)
    line = summarised([0] * 800, np.zeros(0, np.int64))
    assert (line.recovered, line.missed) == (0.0, 1.0)
    assert line.delay is not None
    assert np.isnan(line.delay.mean)


def test_policies_without_alarms_have_no_delay_and_a_still_environment_no_recovery():
    line = summarised([0] * 800)
    assert (line.delay, line.missed, line.false_alarms) == (None, None, None)
    stationary = PhaseTable(means=((0.8, 0.2),), starts=(0,), horizon=800)
    still = summarised([0] * 800, environment=stationary)
    assert still.regret.mean == 0.0
    assert np.isnan(still.recovery.mean)
    assert np.isnan(still.recovered)


def test_an_arm_as_good_as_the_best_counts_as_the_best():
    environment = PhaseTable(means=((0.5, 0.5, 0.1),), starts=(0,), horizon=200)
    assert measured([0, 1] * 100, environment=environment).best_share == 1.0


def test_phases_of_a_drift_begin_when_another_arm_leads():
    environment = Smooth(n_arms=3, horizon=2000, sigma=0.01)
    found = drift.GapTable(environment).starts.tolist()
    assert found[0] == 0
    assert all(environment.best_arm(t) != environment.best_arm(t - 1) for t in found[1:])
    assert len(found) == 1 + sum(
        environment.best_arm(t) != environment.best_arm(t - 1) for t in range(1, environment.horizon)
    )


@pytest.mark.parametrize("policy", ["cusum-ucb(samples=10)", "ds-ts"])
def test_the_phases_of_a_chunk_are_measured_without_changing_its_regret(policy):
    chunk = Cell(parse.parse(policy), Abrupt(n_arms=3, horizon=600, phases=3), 3, 5, 4, True, first_run=2)
    done = compute(chunk, compiled=False)
    plain = simulate(chunk.policy, chunk.environment, 3, 5, first_run=2, checkpoints=4, compiled=False)
    assert np.array_equal(done.regret, plain.regret)  # recording changes nothing
    assert done.drift is not None
    assert done.drift["changes"].tolist() == [2, 2, 2]
    assert (done.drift["worst_phase"] <= done.regret[:, -1]).all()
    assert (done.drift["worst_phase"] >= done.regret[:, -1] / 3).all()
    assert np.isnan(done.drift["noticed"]).all() == (policy == "ds-ts")


def test_alarms_are_the_same_compiled_and_interpreted():
    policy, environment = parse.parse("cusum-ucb(samples=10)"), Abrupt(n_arms=3, horizon=600, phases=3, instance="1")
    quick, slow = (simulate(policy, environment, 2, trajectories=True, compiled=c).alarms for c in (True, False))
    assert sum(len(rounds) for rounds in quick) > 0
    assert all(np.array_equal(a, b) for a, b in zip(quick, slow, strict=True))


def test_a_paired_difference_has_a_bootstrap_interval():
    rng = np.random.default_rng(0)
    common = rng.normal(0, 100, 50)
    found = difference(common + 3.0 + rng.normal(0, 1, 50), common)
    assert found.low < 3.0 < found.high
    assert found.high - found.low < 1.0  # the common reward_rng, a hundred times larger, is gone


def test_the_best_cell_is_judged_by_runs_that_did_not_choose_it(tmp_path):
    """Forty cells that are all the same but for a parameter without effect: the smallest mean over the choosing runs is
    too small, the mean over the others is not."""

    study = Study(["ts", Variants("ds-ts", gamma=[0.5 + n / 100 for n in range(40)])], ["abrupt(phases=2)"], runs=40)
    final = np.random.default_rng(1).normal(100.0, 10.0, (41, 40))
    parts = [Part(cell, np.array([10]), row[:, None]) for cell, row in zip(study.cells(), final, strict=True)]
    result = Result(parts, {})
    (best,) = result.best()
    assert parts[best.number].final[:20].mean() < 97.0
    assert best.regret.low < 100.0 < best.regret.high
    assert best.runs == 20
    assert best.as_good > 30


def test_the_best_setting_is_one_for_each_environment():
    """The easier environment has less regret in every cell; each has its own best gamma all the same."""
    places = [Variants("abrupt(n_arms=3, horizon=400)", "abrupt", phases=[1, 20])]
    study = Study([Variants("ds-ts", gamma=[0.8, 0.999])], places, runs=8)
    levels = {(1, 0.8): 20.0, (1, 0.999): 10.0, (20, 0.8): 100.0, (20, 0.999): 200.0}
    parts = [
        Part(cell, np.array([400]), levels[cell.environment.phases, cell.policy.gamma] + np.arange(8.0)[:, None] / 10)
        for cell in study.cells()
    ]
    result = Result(parts, {})
    found = {best.environment: parts[best.number].cell.policy.gamma for best in result.best()}
    assert found == {"abrupt [phases=1]": 0.999, "abrupt [phases=20]": 0.8}
    assert [grid.environment for grid in result.grids()] == list(found)  # a figure for each


def test_a_study_with_drift_writes_what_it_measured(tmp_path):
    study = Study(["ds-ts", "cusum-ucb(samples=10)"], ["abrupt(n_arms=3, horizon=600, phases=3)"], runs=4, drift=True)
    done = run(study, folder=tmp_path, progress=False, compiled=False)
    lines = done.drift
    assert [line.policy for line in lines] == ["ds-ts", "cusum-ucb(samples=10)"]
    assert lines[0].false_alarms is None
    assert lines[1].false_alarms is not None
    assert "drift.csv" in {path.name for path in done.save(tmp_path)}
    frame = done.to_frame("pyarrow", final=True)
    assert frame.num_rows == 2 * 4
    assert frame["regret"].to_pylist()[:4] == done.parts[0].final.tolist()


def test_a_sweep_over_a_policy_and_a_environment_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    study = Study(
        ["ds-ts(gamma=0.95)", Variants("ds-ts", "DS-TS", gamma=[0.9, 0.99], tau_max=[0.1, 0.2])],
        [Variants("abrupt(n_arms=3, horizon=200)", "abrupt", phases=[2, 4])],
        runs=4,
    )
    paths = sweep.save_sweeps(run(study, folder=tmp_path, progress=False, compiled=False), tmp_path)
    assert sorted(path.name for path in paths) == ["sweep-DS-TS.svg", "sweep-abrupt-phases.svg"]


def test_cells_of_one_sweep_meet_the_same_random_numbers(tmp_path):
    """The same policy under two names, and in two environments that differ in a parameter without effect on the
    rewards."""
    environment = "abrupt(n_arms=3, horizon=200, phases=2)"
    twice = Study(
        [Variants("ds-ts", "a", gamma=[0.9, 0.99]), Variants("ds-ts", "b", gamma=[0.99])], [environment], runs=4
    )
    done = run(twice, folder=tmp_path, progress=False, compiled=False)
    assert np.array_equal(done.parts[1].final, done.parts[2].final)
    assert Cell(parse.parse("ds-ts"), parse.parse(environment)).chunks()[0].seed == 0


def test_the_bootstrap_interval_is_scipys():
    from scipy import stats

    from driftbandit.lab.summaries import RESAMPLES, difference

    values, reference = np.random.default_rng(3).normal(size=(2, 40))
    ours = difference(values, reference, seed=7)
    theirs = stats.bootstrap(
        (values - reference,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=np.random.default_rng(7)
    )
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=1e-12)
