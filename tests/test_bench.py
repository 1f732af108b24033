"""The benchmark on a tiny scale: it runs, its yardsticks play the policies they stand for, its pages hold what was
measured. Nothing here asserts a time."""

import json
import re
import shutil

import numpy as np
import pytest

from driftbandit import cli
from driftbandit.discovery import policies
from driftbandit.lab.bench import clock, figure, machine, peers, process, reference, report, workload
from driftbandit.lab.simulate import simulate

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


@needs_loops
@pytest.mark.parametrize("name", ["ds-ts", "ts", "sw-ts", "d-ucb", "cusum-ucb", "m-ucb", "exp3s", "sw-lb-sda"])
def test_a_plain_numpy_loop_has_the_regret_of_the_policy_it_stands_for(name):
    # The same 12 worlds for both. A difference of means beyond 5 standard errors has a chance of about 1 in 2500 for
    # each policy (t distribution, 11 degrees of freedom), and the seeds are fixed.
    horizon, n_arms, runs = 3000, 4, 12
    policy = workload.tuned(name, horizon, n_arms)
    table = workload.tables(n_arms, horizon, runs)
    plain = np.array([LOOPS.play(name, policy, table[run], horizon, run) for run in range(runs)])
    ours = simulate(policy, workload.environment(n_arms, horizon), runs=runs, workers=1, checkpoints=1).regret[:, -1]
    error = (plain - ours).std(ddof=1) / runs**0.5
    assert abs(plain.mean() - ours.mean()) < 5 * error


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
