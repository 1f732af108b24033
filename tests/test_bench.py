"""The benchmark on a tiny scale: it runs, its yardsticks play the policies they stand for, its pages hold what was
measured. Nothing here asserts a time."""

import json
import re
import shutil

import numpy as np
import pytest

from driftbandit import cli
from driftbandit.discovery import policies
from driftbandit.draws import POLICY, WORLD, Stream, stream_key
from driftbandit.lab.bench import clock, figure, machine, peers, process, reference, report, workload
from driftbandit.lab.simulate import simulate
from driftbandit.state import to_lists

LOOPS = reference.numpy_loops()
needs_loops = pytest.mark.skipif(LOOPS is None, reason="an installed package brings no reference loops")


@pytest.fixture(scope="module")
def data():
    return report.measure(workload.TINY, None, lambda text: None)


def test_every_policy_can_be_made_ready_for_the_workload():
    names = workload.names(workload.FULL)
    assert sorted(names) == sorted(cls.short for cls in policies().values())
    for name in names:
        assert hasattr(workload.tuned(name, 1000, 4), "choose")


# At 3000 rounds the theory's parameters make M-UCB play in turn, ADSWITCH evict nobody and META replay nearly always;
# with these each run has several alarms or new episodes that matter, and both CTS run out of room. Everybody else plays
# as the benchmark does.
LIVELY = {
    "adswitch": {"c1": 0.3, "every": 10},
    "global-cts": {"max_runs": 60},
    "m-ucb": {"window": 40, "threshold": 9.0, "explore": 0.2},
    "meta": {"c0": 0.2, "replays": 0.1},
    "pa-cts": {"max_runs": 60},
}
SLOW = ("d-klucb", "glr-klucb", "kl-ucb", "osub", "sw-klucb", "sw-osub")  # relative entropy by halving intervals
# What these do next depends on coins they tossed before, not only on the arms played and the rewards seen.
PLANNING = ("adswitch", "lb-sda", "lb-sda-lm", "meta", "osub", "sw-lb-sda", "sw-osub")


def lively(name, horizon, n_arms):
    return workload.tuned(name, horizon, n_arms)._replace(**LIVELY.get(name, {}))


@needs_loops
def test_every_policy_has_a_plain_numpy_loop():
    assert sorted(LOOPS.LOOPS) == sorted(workload.names(workload.FULL))


@needs_loops
@pytest.mark.parametrize("name", workload.names(workload.FULL))
def test_a_plain_numpy_loop_has_the_regret_of_the_policy_it_stands_for(name):
    # The same worlds for both, 12 of them, or 16 for those that the next test leaves out. A difference of means beyond
    # 5 standard errors has a chance of about 1 in 2500 for each policy (t distribution, 11 degrees of freedom), 1 in
    # 80 for all, and the seeds are fixed. A fixed arm and the oracle leave nothing to chance: only rounding may differ.
    horizon, n_arms, runs = 1000 if name in SLOW else 3000, 4, 16 if name in PLANNING else 12
    policy = lively(name, horizon, n_arms)
    table = workload.tables(n_arms, horizon, runs)
    plain = np.array([LOOPS.play(name, policy, table[run], horizon, run).regret for run in range(runs)])
    ours = simulate(policy, workload.environment(n_arms, horizon), runs=runs, workers=1, checkpoints=1).regret[:, -1]
    error = (plain - ours).std(ddof=1) / runs**0.5
    assert abs(plain.mean() - ours.mean()) < 5 * error + 1e-6


@needs_loops
@pytest.mark.parametrize("name", sorted(set(workload.names(workload.FULL)) - set(PLANNING)))
def test_a_plain_numpy_loop_that_looks_over_the_shoulder_of_its_policy_would_choose_by_the_same_law(name):
    # The loop is asked in every round, then told what the policy played and got. Both choose by the same law given the
    # past, so whatever number goes with an arm, the differences between the two choices are fair bets: their sum over
    # the root of the summed squares is about standard normal, beyond 5 with a chance of 1 in 1.7 million. The numbers
    # are the arm's mean, and how often it was played of late. Far sharper than regret, where one run differs from
    # the next by more than most mistakes cost.
    horizon, n_arms = 1500 if name in SLOW else 3000, 4
    policy = lively(name, horizon, n_arms)
    world = workload.environment(n_arms, horizon).realise(stream_key(0, 0, WORLD))
    table = np.asarray(world.table).reshape(-1, n_arms)
    ours = policy.bound(world) if hasattr(policy, "bound") else policy
    state, stream = to_lists(ours.init(n_arms)), Stream(stream_key(0, 0, POLICY))
    plain = LOOPS.LOOPS[name](policy, n_arms, np.random.default_rng(1))
    if hasattr(plain, "look"):
        plain.look(table, world.breakpoints.tolist())
    luck, lately, bets = np.random.default_rng(2).random(horizon), np.zeros(n_arms), np.zeros((horizon, 2))
    for t in range(horizon):
        arm, other, means = ours.choose(state, t, stream.at(t)), plain.choose(t), table[world.phase(t)]
        bets[t] = means[other] - means[arm], lately[other] - lately[arm]
        reward = float(luck[t] < means[arm])
        ours.learn(state, t, arm, reward)
        plain.learn(t, arm, reward)
        lately *= 0.95
        lately[arm] += 1.0
    assert (np.abs(bets.sum(axis=0)) <= 5 * np.sqrt((bets**2).sum(axis=0))).all()


@needs_loops
def test_a_plain_numpy_loop_stops_at_the_limit_of_rounds_or_of_time():
    policy, table = workload.tuned("ts", 1000, 4), workload.tables(4, 1000, 1)[0]
    assert LOOPS.play("ts", policy, table, 1000, 0).rounds == 1000
    assert LOOPS.play("ts", policy, table, 1000, 0, rounds=150).rounds == 150
    assert LOOPS.play("ts", policy, table, 1000, 0, seconds=-1.0) == (0.0, 0)  # the time was over before it began


@pytest.mark.skipif(LOOPS is None or shutil.which("cc") is None, reason="needs the C source and a compiler")
def test_the_c_loops_have_the_regret_of_ds_ts():
    # 64 runs of lockstep and 8 single ones on worlds that ours plays too; within 5 standard errors of independent runs.
    rows = reference.c_rows(workload.TINY._replace(horizon=2000, arms=(4,)))
    assert not isinstance(rows, str), rows
    policy = workload.tuned("ds-ts", 2000, 4)
    ours = simulate(policy, workload.environment(4, 2000), runs=64, workers=1, checkpoints=1).regret[:, -1]
    for row in rows:
        count = 64 if row["lockstep"] else 8
        mine = ours[:count]
        assert abs(row["regret"] - mine.mean()) < 5 * mine.std(ddof=1) * (2 / count) ** 0.5


def test_without_a_compiler_the_c_row_says_so(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    why = reference.c_rows(workload.TINY)
    assert isinstance(why, str)
    assert "compiler" in why or "installed package" in why


def test_every_part_is_measured_and_every_table_is_full(data):
    titles = [table.title for table in report.tables(data)]
    assert titles == ["Every policy", "DS-TS beside C", "Live", "Start", "Growth", "Two workers", "Memory"]
    for table in report.tables(data):
        assert all(len(row) == len(table.head) for row in table.rows)
    assert all(row["ns"] > 0 and row["wall_ns"] > 0 for row in data["policies"])
    assert {row["policy"] for row in data["policies"]} == {"ds-ts", "d-ucb"}
    assert {row["lockstep"] for row in data["policies"] if row["policy"] == "ds-ts"} == {False, True}
    json.dumps(data)


def test_the_page_says_on_which_machine_and_with_which_versions(data):
    text = report.markdown(data)
    assert data["machine"]["processor"] in text
    assert re.search(r"numpy \d+\.\d+", text)
    assert re.search(r"load average", text)
    assert "| ds-ts (lockstep) |" in text


def test_a_figure_is_drawn_also_without_c_and_libraries(data, tmp_path):
    assert figure.save(data, tmp_path / "a.svg").stat().st_size > 1000
    assert figure.save({**data, "c": "no compiler", "peers": []}, tmp_path / "b.png").stat().st_size > 1000


def test_a_library_that_cannot_be_installed_is_listed_with_the_reason(data, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "ENVIRONMENTS", {"none": {"river": ("no-such-package-anywhere",)}})
    monkeypatch.setattr(
        peers, "_ready", lambda folder, packages: (tmp_path / "python", "pip: No matching distribution")
    )
    rows = peers.rows(workload.TINY, tmp_path, lambda text: None)
    table = next(table for table in report.tables({**data, "peers": rows}) if table.title == "Other libraries")
    if LOOPS is None:
        assert "installed package" in table.rows[-1][-1]
    else:
        assert table.rows[-1][0] == "river"
        assert table.rows[-1][-1] == "pip: No matching distribution"
        assert [row[1] for row in table.rows[:-1]] == ["ds-ts", "dts", "ts"]


def test_a_power_law_is_recognised_by_its_exponent():
    assert clock.slope([1.0, 10.0, 100.0], [5.0, 5.0, 5.0]) == 0.0
    assert clock.slope([1.0, 10.0, 100.0], [1.0, 100.0, 10_000.0]) == 2.0


def test_memory_is_that_of_the_process_itself_not_of_who_started_it(data):
    ballast = np.ones(40_000_000)  # 320 MB here; a child must not inherit the figure
    row = process.memory(workload.TINY)[0]
    assert ballast[0] == 1.0
    assert 20 < row["short_mb"] < 320


def test_the_machine_is_described_in_one_line():
    assert "\n" not in machine.sentence(machine.describe())


def test_the_command_writes_json_table_and_figure(capsys, monkeypatch, tmp_path, data):
    monkeypatch.setattr("driftbandit.lab.bench.report.measure", lambda scale, place, say: data)
    assert cli.main(["bench", "--quick", "--out", str(tmp_path / "speed")]) == 0
    assert {path.name for path in (tmp_path / "speed").iterdir()} == {
        "speed.json",
        "table.md",
        "speed.svg",
        "speed.png",
    }
    assert "Every policy" in capsys.readouterr().out
