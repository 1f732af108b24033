"""The benchmark on a tiny scale: it runs, its yardsticks play the policies they stand for, its pages hold what was
measured. Nothing here asserts a time."""

import json
import os
import re
import shutil

import numpy as np
import pytest

from benchmarks.speed import (
    clock,
    figure,
    goals,
    machine,
    numpy_loops,
    peers,
    process,
    reference,
    report,
    scaling,
    workload,
)
from benchmarks.speed.__main__ import main as bench
from driftbandit.core.draws import ENVIRONMENT, POLICY, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.lab.engine.simulate import simulate
from driftbandit.spec.parse import policies

LOOPS = numpy_loops
STANDING = sorted(LOOPS.LOOPS)


@pytest.fixture(scope="module")
def data():
    return report.measure(workload.TINY, None, lambda text: None)


def test_every_policy_can_be_made_ready_for_the_workload():
    names = workload.names(workload.FULL)
    assert sorted(names) == sorted(cls.short for cls in policies().values())
    for name in names:
        assert hasattr(workload.tuned(name, 1000, 4), "choose")


# At 3000 rounds the theory's parameters make M-UCB play in turn and ADSWITCH evict no arm; with these each run has
# several alarms or new episodes that matter, and both CTS run out of space. All others play as the benchmark does.
LIVELY = {
    "adswitch": {"c1": 0.3, "every": 10},
    "global-cts": {"max_runs": 60},
    "m-ucb": {"window": 40, "threshold": 9.0, "explore": 0.2},
    "pa-cts": {"max_runs": 60},
}
SLOW = (
    "d-klucb",
    "drift-ts",
    "glr-klucb",
    "kl-ucb",
    "sw-klucb",
    "sw-osub",
)  # relative entropy by halving intervals
# What these do next depends on coins they tossed before, not only on the arms played and the rewards seen.
PLANNING = ("adswitch", "lb-sda", "sw-lb-sda", "sw-osub")


def lively(name, horizon, n_arms):
    return workload.tuned(name, horizon, n_arms)._replace(**LIVELY.get(name, {}))


def test_every_plain_numpy_loop_stands_for_a_policy():
    # Not the other way round: a policy is one file and its test, and without a loop the table has a dash.
    assert set(STANDING) <= set(workload.names(workload.FULL))


@pytest.mark.long
@pytest.mark.parametrize("name", STANDING)
def test_a_plain_numpy_loop_has_the_regret_of_the_policy_it_stands_for(name):
    # The same environments for both, 12 of them, or 16 for those that the next test leaves out. A difference of means
    # beyond 5 standard errors has a probability of about 1 in 2500 for each policy (t distribution, 11 degrees of
    # freedom), 1 in 80 for all, and the seeds are fixed. A fixed arm and the oracle leave nothing to chance: only
    # rounding may differ.
    horizon, n_arms, runs = 600 if name in SLOW else 1500, 4, 16 if name in PLANNING else 12
    policy = lively(name, horizon, n_arms)
    table = workload.tables(n_arms, horizon, runs)
    plain = np.array([LOOPS.play(name, policy, table[run], horizon, run).regret for run in range(runs)])
    ours = simulate(policy, workload.environment(n_arms, horizon), runs=runs, workers=1, checkpoints=1).regret[:, -1]
    error = (plain - ours).std(ddof=1) / runs**0.5
    assert abs(plain.mean() - ours.mean()) < 5 * error + 1e-6


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(STANDING) - set(PLANNING)))
def test_a_plain_numpy_loop_that_looks_over_the_shoulder_of_its_policy_would_choose_by_the_same_law(name):
    # The loop chooses in every round, then learns the policy's arm and reward. Both choose by the same law given the
    # past, so whatever number goes with an arm, the differences between the two choices are fair bets: their sum over
    # the root of the summed squares is about standard normal, beyond 5 with a probability of 1 in 1.7 million. The
    # numbers are the arm's mean, and how often it was played of late. Far sharper than regret, where one run differs
    # from the next by more than most mistakes cost.
    horizon, n_arms = 1500 if name in SLOW else 3000, 4
    policy = lively(name, horizon, n_arms)
    environment = workload.environment(n_arms, horizon).realise(stream_key(0, 0, ENVIRONMENT))
    table = np.asarray(environment.table).reshape(-1, n_arms)
    ours = policy.with_environment(environment) if hasattr(policy, "with_environment") else policy
    state, stream = to_lists(ours.init(n_arms)), Stream(stream_key(0, 0, POLICY))
    plain = LOOPS.LOOPS[name](policy, n_arms, np.random.default_rng(1))
    if hasattr(plain, "look"):
        plain.look(table, environment.breakpoints.tolist())
    reward_rng, lately, bets = np.random.default_rng(2).random(horizon), np.zeros(n_arms), np.zeros((horizon, 2))
    for t in range(horizon):
        arm, other, means = ours.choose(state, t, stream.at(t)), plain.choose(t), table[environment.phase(t)]
        bets[t] = means[other] - means[arm], lately[other] - lately[arm]
        reward = float(reward_rng[t] < means[arm])
        learn_reward(ours, state, t, arm, reward, stream.at(t))
        plain.learn(t, arm, reward)
        lately *= 0.95
        lately[arm] += 1.0
    assert (np.abs(bets.sum(axis=0)) <= 5 * np.sqrt((bets**2).sum(axis=0))).all()


def test_a_plain_numpy_loop_stops_at_the_limit_of_rounds_or_of_time():
    policy, table = workload.tuned("ts", 1000, 4), workload.tables(4, 1000, 1)[0]
    assert LOOPS.play("ts", policy, table, 1000, 0).rounds == 1000
    assert LOOPS.play("ts", policy, table, 1000, 0, rounds=150).rounds == 150
    assert LOOPS.play("ts", policy, table, 1000, 0, seconds=-1.0) == (0.0, 0)  # the time was over before it began


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.long
def test_the_c_loops_have_the_regret_of_ds_ts():
    # 64 runs of lockstep and 8 single ones on environments that ours plays too; within 5 standard errors of independent
    # runs.
    rows = reference.c_rows(workload.TINY._replace(horizon=2000, arms=(4,)))
    assert not isinstance(rows, str), rows
    policy = workload.tuned("ds-ts", 2000, 4)
    ours = simulate(policy, workload.environment(4, 2000), runs=64, workers=1, checkpoints=1).regret[:, -1]
    for row in rows:
        count = 64 if row["lockstep"] else 8
        mine = ours[:count]
        assert abs(row["regret"] - mine.mean()) < 5 * mine.std(ddof=1) * (2 / count) ** 0.5


def test_without_a_compiler_the_c_row_has_the_reason(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    why = reference.c_rows(workload.TINY)
    assert isinstance(why, str)
    assert "compiler" in why or "installed package" in why


@pytest.mark.long
def test_every_part_is_measured_and_every_table_is_full(data):
    titles = [table.title for table in report.tables(data)]
    assert titles == [
        "Goals",
        "Every policy",
        "DS-TS and C",
        "Other libraries",
        "Live",
        "Start",
        "Imports",
        "Growth",
        "Workers",
        "Memory",
    ]
    for table in report.tables(data):
        assert all(len(row) == len(table.head) for row in table.rows)
    assert all(row["ns"] > 0 and row["wall_ns"] > 0 for row in data["policies"])
    assert {row["policy"] for row in data["policies"]} == {"ds-ts", "d-ucb"}
    assert {row["lockstep"] for row in data["policies"] if row["policy"] == "ds-ts"} == {False, True}
    json.dumps(data)
    assert sum(data["parts_s"].values()) == data["seconds"]


# --- goals -------------------------------------------------------------------------------------------------------


def verdicts(data, what):
    return next(row["verdicts"] for row in goals.judged(data) if row["what"].startswith(what))


@pytest.mark.long
def test_a_goal_is_met_at_its_limit_and_missed_above_it(data):
    times = {5: 18.0, 10: 24.1, 30: 55.0}
    rows = [{"policy": "ds-ts", "lockstep": True, "n_arms": n_arms, "ns": ns} for n_arms, ns in times.items()]
    made = {**data, "policies": rows}
    assert verdicts(made, "ds-ts, 64 runs in lockstep") == ["met", "missed", "met"]
    page = report.markdown({**data, "goals": goals.judged(made)})
    assert "| at most 18 / 24 / 55 ns | 18 / 24.1 / 55 ns | missed at K = 10 |" in page


@pytest.mark.long
def test_two_workers_need_at_least_their_goal(data):
    row = {**data["workers"]["ds-ts"], "workers": [1, 2], "speedup": [1.0, 1.79], "machine": [1.0, 1.79]}
    assert verdicts({**data, "workers": {"ds-ts": row}}, "ds-ts, two workers") == ["missed"]
    row["speedup"] = [1.0, 1.8]
    assert verdicts({**data, "workers": {"ds-ts": row}}, "ds-ts, two workers") == ["met"]


@pytest.mark.long
def test_what_was_not_measured_is_neither_met_nor_missed(data):
    found = goals.judged({**data, "policies": [], "c": "no compiler", "scaling": [], "workers": {}, "live": []})
    assert all(set(row["verdicts"]) == {"not measured"} for row in found if row["unit"] in ("ns", "times", "µs"))


@pytest.mark.long
def test_a_machine_on_which_c_takes_twice_as_long_has_the_factor_two(data):
    c = [{"n_arms": 5, "lockstep": False, "ns": 62.0}, {"n_arms": 10, "lockstep": False, "ns": 84.0}]
    ours = [{"policy": "ds-ts", "lockstep": False, "n_arms": 5, "ns": 60.0}]
    made = {**data, "c": c, "policies": ours}
    assert goals.factors(made) == [2.0, 2.0, None]
    row = next(row for row in goals.judged(made) if row["what"] == "ds-ts, one run")
    assert row["verdicts"] == ["missed", "not measured", "not measured"]
    assert row["over_factor"] == [30.0, None, None]
    assert row["verdicts_over_factor"] == ["met", "not measured", "not measured"]


def test_every_policy_that_a_goal_names_exists():
    known = {cls.short for cls in policies().values()}
    for goal in goals.GOALS:
        first = goal.what.split(",")[0].split(" ")[0]
        assert first in known | {"warm", "cold", "policies", "compiled", "interpreted"}


@pytest.mark.long
def test_a_policy_whose_memory_grows_is_named_next_to_the_goal(data):
    rows = [{**data["memory"][0], "policy": "hoarder", "flat": False}]
    found = next(row for row in goals.judged({**data, "memory": rows}) if "memory" in row["what"])
    assert (found["verdicts"], found["note"]) == (["missed"], "hoarder")


# --- the parts ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_workers_are_tried_in_powers_of_two_up_to_all_cores_and_share_the_groups_evenly(data):
    assert scaling.counts(12) == [1, 2, 4, 8, 12]
    row = data["workers"]["ds-ts"]
    assert row["workers"][:2] == [1, 2]
    assert all(row["runs"] % (32 * count) == 0 for count in row["workers"])
    assert len(row["speedup"]) == len(row["machine"]) == len(row["workers"])


@pytest.mark.long
def test_the_page_names_the_machine_and_the_versions(data):
    text = report.markdown(data)
    assert data["machine"]["processor"] in text
    assert re.search(r"numpy \d+\.\d+", text)
    assert re.search(r"load average", text)
    assert "| ds-ts (lockstep) |" in text


@pytest.mark.long
def test_a_figure_is_drawn_also_without_c_and_libraries(data, tmp_path):
    assert figure.save(data, tmp_path / "a.svg").stat().st_size > 1000
    assert figure.save({**data, "c": "no compiler", "peers": []}, tmp_path / "b.png").stat().st_size > 1000


@pytest.mark.long
def test_a_library_that_cannot_be_installed_is_listed_with_the_reason(data, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "ENVIRONMENTS", {"none": {"river": ("no-such-package-anywhere",)}})
    monkeypatch.setattr(
        peers, "_ready", lambda folder, packages: (tmp_path / "python", "pip: No matching distribution")
    )
    rows = peers.rows(workload.TINY, peers.install(tmp_path, lambda text: None), lambda text: None)
    table = next(table for table in report.tables({**data, "peers": rows}) if table.title == "Other libraries")
    assert table.rows[-1][0] == "river"
    assert table.rows[-1][-1] == "pip: No matching distribution"
    assert [row[1] for row in table.rows[:-1]] == ["ds-ts", "dts", "ts"]


def test_a_library_that_cannot_be_had_does_not_keep_out_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "ENVIRONMENTS", {"here": {"good": ("good",), "bad": ("bad", "old<2")}})
    monkeypatch.setattr(
        peers, "_ready", lambda folder, packages: (folder, "pip: no" if "bad" in packages else "")
    )  # fmt: skip
    found = peers.install(tmp_path, lambda text: None)
    assert [(one.library, one.reason) for one in found] == [("good", ""), ("bad", "pip: no")]


@pytest.mark.long
def test_libraries_that_were_left_out_are_mentioned(data):
    table = next(table for table in report.tables(data) if table.title == "Other libraries")
    assert [row[-1][:9] for row in table.rows] == ["left out:"]


def test_a_power_law_is_recognised_by_its_exponent():
    assert clock.slope([1.0, 10.0, 100.0], [5.0, 5.0, 5.0]) == 0.0
    assert clock.slope([1.0, 10.0, 100.0], [1.0, 100.0, 10_000.0]) == 2.0


@pytest.mark.long
def test_memory_is_that_of_the_process_itself_not_of_who_started_it(data):
    ballast = np.ones(20_000_000)  # 160 MB here; a child must not inherit the figure
    row = process.memory(workload.TINY)[0]
    assert ballast[0] == 1.0
    assert 20 < row["short_mb"] < 160


def test_memory_is_measured_for_every_policy_whose_cost_names_no_horizon():
    flat, costs = process.flat(workload.FULL), {cls.short: cls.cost for cls in policies().values()}
    assert {"ds-ts", "sw-ts", "pa-cts", "glr-klucb"} <= set(flat)
    assert "horizon" in costs["lb-sda"]
    assert "lb-sda" not in flat


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="elsewhere the least peak is that of starting up")
@pytest.mark.long
def test_memory_that_grows_with_the_horizon_shows(monkeypatch, data):
    # Lb-sda keeps every reward, which its cost says; 4 MB of float64 over 400,000 rounds and little over 4,000.
    monkeypatch.setattr(process, "flat", lambda scale: ["lb-sda"])
    far = workload.TINY._replace(far=400_000)
    process.memory(far)  # compiles
    row = process.memory(far)[0]
    assert row["long_mb"] - row["short_mb"] > 3.0
    assert not row["flat"]


def test_the_machine_is_described_in_one_line():
    assert "\n" not in machine.sentence(machine.describe())


@pytest.mark.long
def test_the_command_writes_json_table_and_figure(capsys, monkeypatch, tmp_path, data):
    places = []
    monkeypatch.setattr("benchmarks.speed.report.measure", lambda scale, place, say: places.append(place) or data)
    bench(["--quick", "--out", str(tmp_path / "speed")])
    assert {path.name for path in (tmp_path / "speed").iterdir()} == {
        "speed.json",
        "table.md",
        "speed.svg",
        "speed.png",
    }
    assert "Every policy" in capsys.readouterr().out
    bench(["--out", str(tmp_path / "speed")])
    bench(["--no-peers", "--out", str(tmp_path / "speed")])
    assert [place is None for place in places] == [True, False, True]  # other libraries by default, but not in haste
