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
from driftbandit.cli import _main as cli
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.baseline import Uniform
from driftbandit.spec import user_code

HERE = Path(first_policies.__file__)
ENVIRONMENT = Abrupt(n_arms=4, horizon=1000, phases=1)
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


@pytest.mark.long
@pytest.mark.parametrize("name", [cls.__name__ for cls in first_policies.ALL])
def test_it_plays_learns_and_repeats_itself(name: str) -> None:
    """Less than 0.7 of the regret of uniform play, over the same four runs, each time the same."""
    policy = user_code.load_policy(f"{HERE}:{name}")
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        first, again = (simulate(policy, ENVIRONMENT, runs=3, seed=1, progress=False) for _ in range(2))
    assert np.array_equal(first.regret, again.regret)
    assert len({run[-1] for run in first.regret}) > 1
    assert first.regret[:, -1].mean() < 0.7 * simulate(Uniform(), ENVIRONMENT, runs=3, seed=1).regret[:, -1].mean()
    warned = [str(note.message) for note in notes if "interpreted" in str(note.message)]
    assert len(warned) <= 1
    assert all("first_policies.py, line " in note and "times slower" in note for note in warned)


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
    from driftbandit.lab.work import Cell, Store

    cells = [Cell(user_code.load_policy(f"{HERE}:ThompsonInItself"), ENVIRONMENT, 3, seed) for seed in range(2)]
    stores = [Store(tmp_path / name) for name in ("threads", "processes")]
    for store, executor in zip(stores, ("threads", 2), strict=True):
        store.play(cells, executor)
    for cell in cells:
        assert np.array_equal(stores[0].result(cell).regret, stores[1].result(cell).regret)


def test_own_things_are_checked_before_anything_long_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FOREVER.replace("while t >= 70:\n            pass", "state.nothing"))
    assert cli.main(["field", "mine.py:Forever", "--quick"]) == 2
    said = capsys.readouterr()
    assert "mine.py, line 7, in choose" in said.err
    assert "tuning" not in said.out
    assert not list(tmp_path.rglob("*.chunk"))


LATE = """
import numpy as np

class Late:
    def init(self, n_arms):
        return [n_arms]
    def choose(self, state, t, rng):
        return %s
    def learn(self, state, t, arm, reward):
        pass

class Half:
    def init(self, n_arms):
        return [n_arms]
    def choose(self, state, t, rng):
        return 0
"""


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ("[0][t > 300]", "late.py, line 8: IndexError: list index out of range."),
        ("9 if t > 300 else 0", "late.py, line 7, in choose: ValueError: The policy chose an arm that does not exist"),
        ("float('nan') if t > 300 else 0", "late.py, line 7, in choose: TypeError"),
    ],
)
def test_an_error_in_a_later_round_is_one_sentence_with_the_line(tmp_path, monkeypatch, capsys, arm, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "late.py").write_text(LATE % arm)
    assert cli.main(["run", "late.py:Late", "--runs", "1", "--env", "abrupt(n_arms=3, horizon=1000)"]) == 2
    assert said in capsys.readouterr().err


def test_a_class_that_is_not_a_policy_is_refused_with_the_missing_methods(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "late.py").write_text(LATE % "0")
    assert cli.main(["run", "late.py:Half", "--runs", "1"]) == 2
    assert "Half does not have learn." in capsys.readouterr().err
    assert cli.main(["run", "late.py:Nobody", "--runs", "1"]) == 2
    assert "It defines: Late, Half." in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("executor", ["threads", "processes:1"])
def test_a_policy_that_loops_forever_obeys_the_first_interrupt(tmp_path, executor):
    (tmp_path / "mine.py").write_text(FOREVER)
    words = ["run", "mine.py:Forever", "--env", "abrupt(n_arms=3, horizon=200, phases=2)", "--runs", "2"]
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from driftbandit.cli import _main as cli\n"
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
