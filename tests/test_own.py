"""A user's own policies and environments: named by file or module, compiled, kept, and their errors shown at their
lines."""

import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from driftbandit.cli import _main as cli
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.result import Result
from driftbandit.lab.study import loads
from driftbandit.spec import parse, user_code

HEAD = """\
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.primitives import argmax_fair


class Known(NamedTuple):
    pulls: Any
    scores: Any

"""

GREEDY = (
    HEAD
    + """
class Greedy(NamedTuple):
    gamma: float = 0.9

    def init(self, n_arms):
        return Known(np.zeros(n_arms), np.ones(n_arms))

    def choose(self, state, t, rng):
        return argmax_fair(state.scores, rng)

    def learn(self, state, t, arm, reward):
        for i in range(len(state.pulls)):
            state.pulls[i] *= self.gamma
        state.pulls[arm] += 1.0
        state.scores[arm] += (reward - state.scores[arm]) / state.pulls[arm]
"""
)

ENVIRONMENT = """
import math
from typing import NamedTuple


class Tide(NamedTuple):
    n_arms: int = 2
    horizon: int = 400
    period: float = 200.0

    def mean(self, t, arm):
        return 0.5 + 0.4 * math.sin(6.283185307179586 * t / self.period + 3.141592653589793 * arm)

    def best(self, t):
        return max(self.mean(t, 0), self.mean(t, 1))

    def pull(self, t, arm, rng):
        return 1.0 if rng.uniform(0) < self.mean(t, arm) else 0.0

    def realise(self, key):
        return self
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(GREEDY)
    (tmp_path / "tide.py").write_text(ENVIRONMENT)
    return tmp_path


def test_a_policy_is_named_by_its_file_and_takes_parameters(here):
    policy = user_code.load_policy("mine.py:Greedy(gamma=0.5)")
    assert policy.gamma == 0.5
    assert user_code.load_policy(user_code.text_of(policy)) == policy  # the text of a result finds it again
    assert user_code.load_policy(str(here / "mine.py") + ":Greedy").gamma == 0.9
    os.makedirs("a folder")
    os.rename("mine.py", "a folder/mine.py")
    assert user_code.load_policy("a folder/mine.py:Greedy").gamma == 0.9


def test_a_policy_within_a_wrapper_and_one_of_an_importable_module(here, monkeypatch):
    wrapped = user_code.load_policy("PeriodicRestart(base=mine.py:Greedy(gamma=0.7), period=50)")
    assert wrapped.base.gamma == 0.7
    (here / "package").mkdir()
    (here / "package" / "inner.py").write_text(GREEDY)
    monkeypatch.syspath_prepend(str(here))
    assert user_code.load_policy("package.inner:Greedy(gamma=0.8)").gamma == 0.8


def test_compiled_and_interpreted_agree_and_the_edited_file_is_another_policy(here):
    policy, environment = user_code.load_policy("mine.py:Greedy"), user_code.load_environment("tide.py:Tide")
    quick = simulate(policy, environment, runs=3, trajectories=True)
    slow = simulate(policy, environment, runs=3, trajectories=True, compiled=False)
    assert np.array_equal(quick.arms, slow.arms)
    (here / "mine.py").write_text(GREEDY.replace("np.ones", "np.zeros"))
    edited = simulate(user_code.load_policy("mine.py:Greedy"), environment, runs=3, compiled=False, trajectories=True)
    assert not np.array_equal(quick.arms, edited.arms)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("class X:\n    def choose(self:\n", 2, "SyntaxError"),
        ("x = 1\ny = undefined\n", 2, "NameError: name 'undefined'"),
        ("\n\nimport nowhere_at_all\n", 3, "No module named 'nowhere_at_all'"),
    ],
)
def test_a_file_that_does_not_load_is_named_with_its_line(here, text, line, words):
    (here / "wrong.py").write_text(text)
    with pytest.raises(ValueError, match=f"wrong.py, line {line}: .*{words}"):
        user_code.load_policy("wrong.py:X")


def test_what_does_not_compile_is_shown_at_the_users_line(here):
    (here / "wrong.py").write_text(GREEDY.replace("state.pulls[arm] += 1.0", "state.pulls[arm] += undefined_name"))
    line = GREEDY.splitlines().index("        state.pulls[arm] += 1.0") + 1
    with pytest.raises(TypeError, match=rf"wrong.py, line {line}, in learn: .*undefined_name"):
        simulate(
            user_code.load_policy("wrong.py:Greedy"), user_code.load_environment("abrupt(horizon=50, phases=2)"), runs=1
        )


def test_a_name_that_is_not_there_gets_the_nearest_one(here):
    with pytest.raises(ValueError, match=r"mine.py has no 'Gredy'; did you mean Greedy\?"):
        user_code.load_policy("mine.py:Gredy")
    with pytest.raises(ValueError, match=r"Greedy has no parameter 'gama'; did you mean gamma\?"):
        user_code.load_policy("mine.py:Greedy(gama=0.5)")


def test_paths_in_a_study_begin_next_to_the_study(here, monkeypatch):
    study = loads('policies = ["mine.py:Greedy"]\nenvironments = ["tide.py:Tide"]\nruns = 2\n', folder=here)
    monkeypatch.chdir("/")
    cell = study.cells()[0]
    assert (cell.label, cell.environment_label) == ("mine.py:Greedy", "tide.py:Tide")
    assert type(cell.policy).__name__ == "Greedy"


@pytest.mark.long
def test_the_command_plays_own_classes_and_keeps_what_it_compiled(here):
    """Two processes: the second finds the compiled loops on disk."""
    words = ["run", "mine.py:Greedy(gamma=0.8)", "ts", "--env", "tide.py:Tide", "--runs", "4", "--drift"]
    words += ["--out", "results"]
    environment = {**os.environ, "DRIFTBANDIT_CACHE": str(here / "cache")}
    code = f"from driftbandit.cli import _main as cli; raise SystemExit(cli.main({words!r}))"
    outs, kept = [], []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=240
        )
        assert done.returncode == 0, done.stderr
        outs.append(done.stdout)
        kept.append({path: path.stat().st_mtime_ns for path in (here / "cache").rglob("*.kernel")})
        shutil.rmtree("results")  # so that the second plays again
    assert kept[0]
    assert kept[0] == kept[1]
    assert outs[0] == outs[1]


def test_text_in_quotes_is_not_a_path():
    assert parse.parse('abrupt(instance="7")').instance == "7"
    with pytest.raises(ValueError, match="instance"):
        parse.parse('abrupt(instance="a.py:B")')


def test_the_command_line_names_the_wrong_line_of_the_users_file(here, capsys):
    (here / "wrong.py").write_text(textwrap.dedent("import math\n\nx = math.nothing\n"))
    assert cli.main(["run", "wrong.py:X"]) == 2
    assert "wrong.py, line 3: AttributeError" in capsys.readouterr().err


def test_only_what_a_policy_needs_travels_with_it(here):
    mine, tide = user_code.load_policy("mine.py:Greedy"), user_code.load_environment("tide.py:Tide")
    assert [os.path.basename(path) for path, _ in user_code.worker_code((mine, tide)).files] == ["mine.py", "tide.py"]
    assert [os.path.basename(path) for path, _ in user_code.worker_code(mine).files] == ["mine.py"]
    assert user_code.worker_code(parse.parse("ds-ts")) == ((), (), ())


@pytest.mark.parametrize(
    ("out", "texts"),
    [
        ("result.parquet", ["PeriodicRestart(base=mine.py:Greedy(gamma=0.8), period=50)", "ds-ts"]),
        ("results", ["neighbour_module:Greedy(gamma=0.7)"]),
    ],
)
def test_what_was_saved_names_own_classes_so_that_they_are_found_again(here, out, texts, monkeypatch):
    (here / "neighbour_module.py").write_text(GREEDY)
    environment = "tide.py:Tide(period=150.0)"
    words = ["run", *texts, "--env", environment, "--runs", "2", "--out", out, "--interpreted"]
    assert cli.main(words) == 0
    result = Result.load(here / out if out.endswith(".parquet") else here / out / "result.parquet")
    policies = [user_code.load_policy(text) for text in texts]
    monkeypatch.chdir("/")
    assert [user_code.load_policy(part.texts()[0]) for part in result.parts] == policies
    assert user_code.load_environment(result.parts[0].texts()[1]) == user_code.load_environment(str(here / environment))
