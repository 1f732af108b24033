"""The first policy that a person writes works: what does not compile is interpreted, with one note."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import first_policies
from driftbandit import cli
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.baseline import Uniform
from driftbandit.text import load

HERE = Path(first_policies.__file__)
WORLD = Abrupt(n_arms=4, horizon=1000, phases=1)
FOREVER = """
class Forever:
    def init(self, n_arms):
        return None

    def choose(self, state, t, rng):
        while t >= 70:
            pass
        return 0

    def learn(self, state, t, arm, reward):
        pass
"""


@pytest.mark.parametrize("name", [cls.__name__ for cls in first_policies.ALL])
def test_it_plays_learns_and_repeats_itself(name: str) -> None:
    """Less than 0.7 of the regret of uniform play, over the same four runs, each time the same."""
    policy = load.load_policy(f"{HERE}:{name}")
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        first, again = (simulate(policy, WORLD, runs=3, seed=1, progress=False) for _ in range(2))
    assert np.array_equal(first.regret, again.regret)
    assert len({run[-1] for run in first.regret}) > 1
    assert first.regret[:, -1].mean() < 0.7 * simulate(Uniform(), WORLD, runs=3, seed=1).regret[:, -1].mean()
    told = [str(note.message) for note in notes if "interpreted" in str(note.message)]
    assert len(told) <= 1
    assert all("first_policies.py, line " in note and "times slower" in note for note in told)


def test_the_command_plays_a_plain_class_and_finds_its_results_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path / "cache"))
    words = ["run", f"{HERE}:ThompsonInItself", f"{HERE}:WindowOfLists(window=50)", "ts"]
    words += ["--env", "abrupt(n_arms=3, horizon=200, phases=2)", "--runs", "2", "--interpreted"]
    assert cli.main([*words, "--out", "result.parquet"]) == 0

    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.chunk")}
    assert len(kept) == 3
    assert cli.main(words) == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.chunk")} == kept
    assert "WindowOfLists" in capsys.readouterr().out


@pytest.mark.long
def test_a_plain_class_reaches_other_processes(tmp_path):
    from driftbandit.lab.jobs.batch import Batch
    from driftbandit.lab.jobs.work import Cell

    cells = [Cell(load.load_policy(f"{HERE}:ThompsonInItself"), WORLD, 3, seed) for seed in range(2)]
    batches = [Batch(cells, tmp_path / str(executor)) for executor in ("threads", 2)]
    for batch, executor in zip(batches, ("threads", 2), strict=True):
        batch.run(executor)
    for cell in cells:
        assert np.array_equal(batches[0].result(cell).regret, batches[1].result(cell).regret)


def test_own_things_are_checked_before_anything_long_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FOREVER.replace("while t >= 70:\n            pass", "state.nothing"))
    assert cli.main(["field", "mine.py:Forever", "--quick"]) == 2
    said = capsys.readouterr()
    assert "mine.py, line 7, in choose" in said.err
    assert "tuning" not in said.out
    assert not list(tmp_path.rglob("*.chunk"))


@pytest.mark.parametrize("executor", ["threads", "processes:1"])
def test_a_policy_that_loops_forever_obeys_the_first_interrupt(tmp_path, executor):
    (tmp_path / "mine.py").write_text(FOREVER)
    words = ["run", "mine.py:Forever", "--env", "abrupt(n_arms=3, horizon=200, phases=2)", "--runs", "2"]
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from driftbandit import cli\n"
        f"if __name__ == '__main__': sys.exit(cli.main({[*words, '--interpreted', '--executor', executor]!r}))"
    )
    environment = {**os.environ, "DRIFTBANDIT_CACHE": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    try:
        time.sleep(8 if executor == "threads" else 14)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 130
    finally:
        process.kill()
