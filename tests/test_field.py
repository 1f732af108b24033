"""`driftbandit field`: the suite is what it says, the best tuned policy is the best, ratios are right,
and tables and figures show them."""

import csv
import math
import shlex
from pathlib import Path

import numpy as np
import pytest

from driftbandit.environments import Abrupt, PhaseTable, Smooth
from driftbandit.environments.named import APART, CHECK, DESIGN, NAMED, STILL, SuiteEnvironment
from driftbandit.environments.scaled import LAWS
from driftbandit.errors import SpecError
from driftbandit.field import contest, suites
from driftbandit.field.figures import Spot, choose_spots, draw_ratios, find_frontier, find_spots, join_memories
from driftbandit.field.standings import (
    KeptLine,
    find_best_tuned,
    make_kept_line,
    read_kept,
    settings,
    standings,
    summaries,
    write_kept,
)
from driftbandit.field.suite import (
    Suite,
    choose_environments,
    find_facts,
    find_short_name,
)
from driftbandit.field.suites import BINARY, LINEAR, LINEAR_GRID, SCALE, SUITES, load_suite, measure_scale
from driftbandit.spec.parse import parse_environment
from tests import field_targets

ROOT = Path(__file__).parent.parent
SUITE = BINARY.environments

# ---- the suite


def test_the_suite_has_every_kind_arms_from_2_to_50_and_names_of_its_own():
    kinds = "abrupt gap smooth finite limited stationary fast slow trap local mixed seasonal rising bursts common rare"
    assert {environment.kind for environment in SUITE} == set(kinds.split())
    assert len({environment.name for environment in SUITE}) == len(SUITE)
    arms = {environment.environment.n_arms for environment in SUITE}
    assert (min(arms), max(arms)) == (2, 50)
    assert {environment.role for environment in SUITE} == {DESIGN, CHECK}
    assert set(APART) < {environment.kind for environment in SUITE}


@pytest.mark.parametrize("name", SUITES)
def test_an_environment_of_a_suite_is_read_back_from_its_name_and_from_what_the_list_prints(name):
    for environment in load_suite(name).environments:
        assert parse_environment(repr(environment.environment)) == environment.environment
        assert parse_environment(environment.name) == environment.environment


def test_no_two_named_environments_share_a_name_and_parameters_may_be_given():
    suites = [one.name for name in SUITES for one in load_suite(name).environments]
    assert len({name.casefold() for name in NAMED}) == len(NAMED) >= len(set(suites)) == len(suites)
    assert parse_environment("Stat-K10-g.1(horizon=70)").horizon == 70
    with pytest.raises(SpecError, match=r"did you mean stat-K10-g\.1, .* or .*\?"):
        parse_environment("stat-K10-g.2")


def test_environments_are_chosen_by_name_kind_and_role():
    assert [environment.name for environment in choose_environments(["trap-K5", "slow"], SUITE)] == [
        "trap-K5",
        "slow-K5",
        "slow-K10",
    ]
    assert (
        len(choose_environments(["design"], SUITE)) + len(choose_environments(["check"], SUITE))
        == len(choose_environments([], SUITE))
        == len(SUITE)
    )
    with pytest.raises(ValueError, match="no environment, kind or role 'smoth'; did you mean smooth"):
        choose_environments(["smoth"], SUITE)


def test_a_policy_is_given_the_phases_of_an_environment_and_how_often_the_best_arm_changes_in_a_drift():
    assert find_facts(Abrupt(3, 500, 4))[:3] == (500, 4, 3)
    assert find_facts(Smooth(5, 10_000, 1e-3)).phases == 14
    steps = PhaseTable(means=((0.1, 0.5), (0.2, 0.5), (0.6, 0.5), (0.5, 0.5)), starts=(0, 2, 4, 6), horizon=8)
    assert find_facts(steps).phases == 2  # the second arm reigns, then the first; being level takes no crown
    assert find_facts(steps).variation == pytest.approx(0.1 + 0.4 + 0.1)


# ---- the grid


@pytest.mark.parametrize("horizon", [10_000, 100_000, 1_000_000])
def test_every_setting_of_the_grid_can_be_made_and_none_is_tried_twice(horizon):
    labels = suites.labels(horizon)
    assert len(set(labels)) == len(labels) > 100
    facts = find_facts(Abrupt(5, 2000, 4))._replace(horizon=horizon)
    made = {label: suites.make_policy(label, facts) for label in labels}
    assert made["sw-ts(window=1000)"].window == 1000
    assert made["ds-ts(gamma=0.999, tau_max=0.05)"].gamma == 0.999
    assert made["dots.tuned"].optimistic
    assert {find_short_name(label) for label in labels} == set(suites.list_entrants()) - set(suites.UNTUNED)


def test_the_longest_memory_is_for_the_longest_environments_and_all_others_are_tried_everywhere():
    short, long = set(suites.labels(10_000)), set(suites.labels(1_000_000))
    assert short < long
    assert all("300000" in label or "0.9999967" in label for label in long - short)


# ---- tuning


FEW = BINARY._replace(
    labels=lambda environment, coarse: [
        "ts.tuned",
        "uniform.tuned",
        "ds-ts(gamma=0.9)",
        "kl-ucb.tuned",
        "d-klucb(gamma=0.5)",
    ]
)


LITTLE = SuiteEnvironment("little", "stationary", DESIGN, Abrupt(3, 2000, 1))


def tuned(environment: SuiteEnvironment, suite: Suite, folder: Path) -> list[KeptLine]:
    plan = contest.TuningPlan(suite, folder, runs=12, workers=1)
    ((name, lines),) = [(one.name, lines) for one, lines in contest.tune_grid([environment], plan)]
    assert name == environment.name
    return lines


@pytest.mark.long
def test_dear_settings_far_behind_play_the_first_runs_only(tmp_path):
    lines = {one.label: one for one in tuned(LITTLE, FEW, tmp_path)}
    assert lines["d-klucb(gamma=0.5)"].runs == contest.FIRST_RUNS  # a memory of two rounds
    assert lines["kl-ucb.tuned"].runs == 12
    assert lines["uniform.tuned"].runs == 12  # cheap


@pytest.mark.long
def test_in_a_long_environment_cheap_settings_far_behind_play_the_first_runs_only_too(monkeypatch, tmp_path):
    monkeypatch.setattr(contest, "LONG", 2000)
    lines = {one.label: one for one in tuned(LITTLE, FEW, tmp_path)}
    assert lines["uniform.tuned"].runs == contest.FIRST_RUNS
    assert lines["ts.tuned"].runs == 12  # the best, or near it


def test_the_race_is_left_when_the_first_runs_are_clearly_behind_what_patience_allows():
    best = np.array([10.0, 10.0, 10.0, 10.0, 500.0, 500.0])  # later runs have no say
    assert contest.may_win(np.array([12.0, 12.5, 12.5, 13.0]), best)
    assert not contest.may_win(np.array([13.0, 14.0, 14.0, 15.0]), best)
    assert contest.may_win(np.array([9.0, 10.0, 10.0, 60.0]), best)  # one bad run is not proof


@pytest.mark.long
def test_in_the_environments_of_the_frontier_everybody_plays_all_runs(tmp_path):
    environment = LITTLE._replace(name=BINARY.all_runs[0])
    assert {one.runs for one in tuned(environment, FEW, tmp_path)} == {12}


def test_tuning_goes_on_where_it_stopped(tmp_path):
    one = BINARY._replace(labels=lambda environment, coarse: ["ds-ts(gamma=0.9)", "ds-ts(gamma=0.99)"])
    first = tuned(LITTLE, one, tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.chunk")}
    assert tuned(LITTLE, one, tmp_path) == first
    assert len(first) == 2
    assert files == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.chunk")}


# ---- what is kept


def test_lines_are_read_back_as_they_were_written(tmp_path):
    regret = np.array([1.0, 2.0, 4.0, 9.0])
    one = make_kept_line("w", "sw-ts(window=10)", regret)
    assert one.mean == 4.0
    assert one.first_half == 1.5
    assert one.second_half == 6.5
    assert one.error == pytest.approx(regret.std(ddof=1) / 2)
    write_kept([one, one._replace(label='my.py:Mine(a="b,c")')], tmp_path / "kept.csv")
    back = read_kept(tmp_path / "kept.csv")
    assert [line.label for line in back] == ["sw-ts(window=10)", 'my.py:Mine(a="b,c")']
    assert back[0] == one._replace(error=float(f"{one.error:.7g}"))
    assert read_kept(tmp_path / "absent.csv") == []


@pytest.mark.parametrize(
    ("text", "why"), [("a,b\n", "not a file of tuned"), ("", "not a file of tuned"), ("GOOD\nw,l,x,1,1,1\n", "damaged")]
)
def test_a_file_that_holds_something_else_is_refused(tmp_path, text, why):
    path = tmp_path / "kept.csv"
    path.write_text(text.replace("GOOD", ",".join(KeptLine._fields)), encoding="utf-8")
    with pytest.raises(ValueError, match=why):
        read_kept(path)


def test_what_the_package_keeps_is_what_the_code_computes():
    lines = {(one.environment, one.label): one for one in read_kept(BINARY.kept)}
    assert lines
    assert {environment for environment, _ in lines} <= {environment.name for environment in SUITE}
    environment = choose_environments(["smooth-K5-short"], SUITE)[0]
    texts = ["ds-ts(gamma=0.999)"]
    for text in texts:
        from driftbandit.lab.work import compute

        (cell,) = contest.make_cells(BINARY, [text], [environment], BINARY.runs, contest.SEED)
        mine = make_kept_line(environment.name, text, compute(cell.chunks()[0]).regret[:, -1])
        theirs = lines[environment.name, text]
        assert theirs.runs == mine.runs
        assert theirs[3:] == pytest.approx(mine[3:], rel=1e-6)


# ---- ratios

STAND = SuiteEnvironment("stand", "stationary", DESIGN, Abrupt(3, 400, 1), False)
MOVE = SuiteEnvironment("move", "abrupt", DESIGN, Abrupt(3, 400, 4))
DRIFT = SuiteEnvironment("drift", "smooth", CHECK, Smooth(3, 400))
LINES = [
    KeptLine("stand", "ts.tuned", 32, 10.0, 1.0, 9.0),
    KeptLine("stand", "sw-ts(window=100)", 32, 40.0, 2.0, 40.0),
    KeptLine("stand", "sw-ts(window=300)", 32, 20.0, 2.0, 20.0),
    KeptLine("move", "ts.tuned", 32, 90.0, 1.0, 90.0),
    KeptLine("move", "sw-ts(window=100)", 32, 20.0, 1.0, 18.0),
    KeptLine("move", "sw-ts(window=300)", 32, 21.0, 1.0, 22.0),
    KeptLine("move", "global-cts(hazard=0.01)", 4, 1.0, 1.0, 1.0),
    KeptLine("move", "uniform.tuned", 32, 5.0, 1.0, 5.0),
    KeptLine("drift", "ts.tuned", 32, 45.0, 1.0, 45.0),
    KeptLine("drift", "sw-ts(window=100)", 32, 5.0, 1.0, 5.0),
    KeptLine("drift", "sw-ts(window=300)", 32, 10.0, 1.0, 10.0),
]
THREE = [STAND, MOVE, DRIFT]


def test_the_best_tuned_policy_is_the_least_regret_among_those_that_played_all_runs_and_know_nothing_extra():
    best = find_best_tuned(BINARY, THREE, LINES)
    assert {name: one.line.label for name, one in best.items()} == {
        "stand": "ts.tuned",
        "move": "sw-ts(window=100)",  # not the four runs of global-cts, not uniform play
        "drift": "sw-ts(window=100)",
    }
    assert best["move"].policy == "SlidingTS(window=100, prior_wins=1.0, prior_losses=1.0, binarise=False)"
    # chosen on the first half: window 100 (18), which has 22 on the second; on the second: window 300 (20), first 22
    assert best["move"].fair == pytest.approx((22 + 22) / 2)


def test_ratios_errors_and_means_are_as_worked_out_by_hand():
    best = find_best_tuned(BINARY, THREE, LINES)
    mine = {"stand": KeptLine("stand", "mine", 8, 20.0, 4.0, 0.0), "move": KeptLine("move", "mine", 8, 40.0, 4.0, 0.0)}
    mine["drift"] = KeptLine("drift", "mine", 8, 20.0, 1.0, 0.0)
    found = standings(THREE, best, {"mine": mine})
    assert [one.ratio for one in found] == [2.0, 2.0, 4.0]
    assert found[1].error == pytest.approx(2.0 * math.sqrt(0.1**2 + 0.05**2))
    (total,) = summaries(found)
    assert (total.design, total.check) == pytest.approx((2.0, 4.0))  # the environment that stands still is apart
    assert total.mean == pytest.approx(math.sqrt(8.0))
    assert total.every == pytest.approx(16 ** (1 / 3))
    assert (total.worst, total.worst_environment, total.near, total.environments) == (4.0, "drift", 0, 3)
    assert total.error == pytest.approx(math.hypot(found[1].error / 2.0, found[2].error / 4.0) / 2)


def test_restarts_that_fall_on_the_changes_are_not_best_tuned_but_their_effect_is_reported():
    restarts = KeptLine("move", "periodic-restart(base=ts, period=100)", 32, 10.0, 1.0, 10.0)
    best = find_best_tuned(BINARY, THREE, [*LINES, restarts])
    assert best["move"].line.label == "sw-ts(window=100)"
    assert (best["move"].aside, best["drift"].aside) == (10.0, 5.0)
    found = standings(THREE, best, {"mine": {"move": restarts._replace(mean=40.0), "drift": LINES[-1]}})
    (total,) = summaries(found)
    assert total.mean == pytest.approx(2.0)  # 40 / 20 and 10 / 5
    assert total.aside == pytest.approx(math.sqrt(8.0))  # 40 / 10 and 10 / 5


def test_a_family_stands_with_its_theory_with_one_setting_and_tuned_for_each_environment():
    best = find_best_tuned(BINARY, THREE, LINES)
    found = settings(BINARY, THREE, LINES, best)
    assert set(found) == {
        "ts",
        "uniform",
        "sw-ts(window=300)",
        "sw-ts, tuned for each environment",
        "global-cts, tuned for each environment",
    }
    # over the design environments, 300 has 2 x 1.05 and 100 has 4 x 1: 300 is chosen, though 100 wins in the check
    # environment
    assert found["sw-ts, tuned for each environment"]["drift"].label == "sw-ts(window=100)"
    assert found["sw-ts, tuned for each environment"]["stand"].label == "sw-ts(window=300)"


# ---- tables and figures


def results():
    best = find_best_tuned(BINARY, THREE, LINES)
    found = standings(THREE, best, settings(BINARY, THREE, LINES, best))
    return best, found, summaries(found)


SPOTS = [
    Spot("sw-ts(window=30)", 4.0, 1.5),
    Spot("drift-ts", 3.0, 1.5),
    Spot("sw-ts(window=100)", 3.5, 2.0),
    Spot("ts", 1.0, 9.0),
]


def test_a_setting_is_on_the_frontier_unless_another_has_no_more_regret_in_both():
    assert [one.label for one in find_frontier(SPOTS)] == ["ts", "drift-ts"]
    assert choose_spots(SPOTS)["sw-ts"].changing == 1.5
    assert [[one.label for one in line] for line in join_memories(SPOTS)] == [["sw-ts(window=30)", "sw-ts(window=100)"]]


def test_a_setting_has_its_mean_ratio_where_nothing_changes_and_where_things_change():
    ratios = {"still": 2.0, "also-still": 8.0, "moves": 3.0}
    environments = [SuiteEnvironment(name, STILL if "still" in name else "local", DESIGN, None) for name in ratios]
    lines = [KeptLine(name, "ts", 4, 10.0 * value, 0.0, 0.0) for name, value in ratios.items()]
    (spot,) = find_spots(environments, dict.fromkeys(ratios, 10.0), [*lines, lines[0]._replace(label="seldom-played")])
    assert spot == ("ts", pytest.approx(4.0), pytest.approx(3.0))


def test_the_table_names_the_best_policy_and_the_csv_has_all(tmp_path):
    best, found, totals = results()
    played = {"ts": {line.environment: line for line in LINES if line.label == "ts.tuned"}}
    result = contest.Contest(BINARY, THREE, best, played, found, totals, SPOTS, "How.")
    result.save_markdown(tmp_path / "t.md")
    text = (tmp_path / "t.md").read_text(encoding="utf-8")
    assert "| `ts` | 1.00 | 9.00 |\n| `drift-ts` | 3.00 | 1.50 |\n" in text
    assert "| `sw-ts(window=30)` |" not in text
    assert "| move | design | `sw-ts(window=100)` | 20 ± 1.0 | 4.50 ± 0.23 |" in text
    result.save_csv(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 3 + len(found)
    assert '"SlidingTS(window=100, prior_wins=1.0, prior_losses=1.0, binarise=False)"' in lines[2]


def test_a_contest_names_the_command_that_makes_it_and_needs_the_tuned_settings(tmp_path):
    suite = BINARY._replace(environments=(LITTLE,), kept=tmp_path / "kept.csv")
    given = {"suite": suite, "out": tmp_path, "runs": 2, "seed": 3, "workers": 1, "progress": False}
    with pytest.raises(ValueError, match=r"no file .*kept\.csv.*checkout.*--kept .*--tune"):
        contest.field(["ts"], ["little"], **given)
    assert not list(tmp_path.rglob("*.chunk"))
    write_kept([KeptLine("little", "ts.tuned", 32, 10.0, 1.0, 9.0)], suite.kept)
    found = contest.field(["ts", "sw-ts(window=100)"], ["little"], **given)
    command = shlex.split(found.how.split("`")[1])
    assert command[:4] == ["driftbandit", "field", "ts", "sw-ts(window=100)"]
    assert command[4:] == ["--suite", "binary", "--environments", "little", "--runs", "2", "--seed", "3"]
    assert set(found.played) == {"ts", "sw-ts(window=100)"} <= {one.name for one in found.totals}


def test_the_figure_is_drawn_the_same_twice_and_holds_a_dot_per_environment(tmp_path):
    best, found, totals = results()
    played = {"ts": {}, "sw-ts(window=300)": {}}
    result = contest.Contest(BINARY, THREE, best, played, found, totals, SPOTS, "How.")
    one, two = result.save(tmp_path / "one"), result.save(tmp_path / "two")
    assert [path.name for path in one] == ["ratios.csv", "table.md", "ratios.svg", "frontier.svg"]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    from matplotlib.figure import Figure

    figure = Figure()
    draw_ratios(figure, result)
    (axes,) = figure.axes
    dots = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert len(dots) == 2 * (3 + 2)
    ticks = axes.get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["move", "drift *", "stand", "geometric mean", "worst"]


@pytest.mark.parametrize("name", field_targets.BY_SUITE)
def test_the_measured_regret_is_not_above_the_specification(name):
    """At most 3 standard errors above, in every environment that has a target."""
    policy, targets = field_targets.BY_SUITE[name]
    path = ROOT / "docs/field" / ("" if name == "binary" else name) / "ratios.csv"
    with path.open(newline="", encoding="utf-8") as file:
        measured = {row["environment"]: row for row in csv.DictReader(file) if row["policy"] == policy}
    assert set(targets) <= set(measured)
    for environment, (target, error) in targets.items():
        regret, own = (float(measured[environment][key]) for key in ("regret", "error"))
        assert regret - target <= 3 * math.hypot(error, own), environment


# ---- the suite of any scale


def test_the_suite_of_any_scale_has_the_environments_of_the_specification_and_checks_of_its_own():
    suite = load_suite("scale")
    assert (
        len([environment for environment in suite.environments if environment.changing and environment.role == DESIGN])
        == 24
    )
    assert {environment.kind for environment in suite.environments if not environment.changing} == {"trap", "rising"}
    assert set(field_targets.DRIFT_LIN_TS) == {
        environment.name for environment in suite.environments if environment.role == DESIGN
    }
    for kind in ("trap", "rising"):  # under each law
        assert {one.environment.reward for one in suite.environments if one.kind == kind} == set(LAWS)


def test_rivals_are_given_the_noise_and_the_range_of_each_environment():
    environment = next(
        environment for environment in load_suite("scale").environments if environment.name == "smooth-K10-gbig"
    )
    given = measure_scale(environment.environment)
    assert given.noise == pytest.approx(100.0, rel=0.05)
    assert 5_000 < given.mean < 6_000
    assert 900 < given.width <= 1_000
    rival = SCALE.make_policy("d-gts(0.99, 0.5)", environment)
    assert (rival.gamma, rival.noise, rival.prior_mean) == (0.99, 0.5 * given.noise, given.mean)
    assert SCALE.make_policy("d-ucb(1, 0.001)", environment).reward_max == given.width
    assert SCALE.make_policy("ds-ts(gamma=0.9)", environment).gamma == 0.9  # any other text is a policy's


# ---- the suite with contexts


def test_the_suite_with_contexts_has_the_environments_of_the_specification_and_thirteen_for_checks():
    environments = load_suite("linear").environments
    assert {one.name for one in environments if one.role == DESIGN} == set(field_targets.DRIFT_LIN_TS_CONTEXTS)
    assert len([one for one in environments if one.role == DESIGN and one.changing]) == 26
    checks = [one.name for one in environments if one.role == CHECK]
    assert len(checks) == 13
    assert all(name.startswith("N") for name in checks)


def test_linear_rivals_are_given_the_noise_and_a_theory_the_changes_of_the_coefficients():
    environment = choose_environments(["H11-lownoise"], load_suite("linear").environments)[0]
    rival = LINEAR.make_policy("d-lin-ucb(gamma=0.99, alpha=0.3, lam=0.2)", environment)
    assert rival.sd == pytest.approx(0.05, rel=0.05)
    assert LINEAR.make_policy("d-lin-ucb(gamma=0.99)", environment).sd == 1.0  # any other text is a policy's
    facts = find_facts(environment.environment)
    assert (facts.phases, facts.n_features, facts.joint) == (21, 4, False)
    assert LINEAR.make_policy("d-lin-ucb.tuned", environment).gamma == pytest.approx(
        1 - (facts.variation / (25 * facts.horizon)) ** (2 / 3)
    )
    for label in LINEAR_GRID:
        LINEAR.make_policy(label, environment)
    assert len(set(LINEAR_GRID)) == len(LINEAR_GRID)
