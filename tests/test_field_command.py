"""`driftbandit field`: one's own policy stands in the table after one command."""

import json

import pytest

from driftbandit.cli._main import main
from driftbandit.field.contest import field


def test_the_list_names_every_environment(capsys):
    assert main(["field", "--list", "--environments", "trap,common.2"]) == 0
    out = capsys.readouterr().out
    assert "trap-K20" in out
    assert "CommonShift(" in out
    assert "smooth" not in out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--environments", "nowhere"], "no environment, kind or role 'nowhere'"),
        (["sw-tss"], "did you mean sw-ts"),
        (["--kept", "absent.csv"], "--tune"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence_before_any_work(arguments, why, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["field", *arguments]) != 0
    err = capsys.readouterr().err
    assert why in err
    assert "Traceback" not in err
    assert not list(tmp_path.rglob("*.chunk"))


MINE = '''
from typing import NamedTuple
import numpy as np

class State(NamedTuple):
    pulls: object

class Mine(NamedTuple):
    """Plays arms in turn."""
    first: int = 0

    def init(self, n_arms):
        return State(np.zeros(n_arms, np.int64))

    def choose(self, state, t, rng):
        return (t + self.first) % len(state.pulls)

    def learn(self, state, t, arm, reward):
        state.pulls[arm] += 1
'''


@pytest.mark.long
def test_a_users_policy_is_in_the_table_after_one_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    environments = "trap-K5,smooth-K5-short,stat-K5"
    assert (
        main(["field", "mine.py:Mine(first=1)", "--quick", "--environments", environments, "--out", "out", "--json"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert [environment["name"] for environment in found["environments"]] == ["smooth-K5-short", "stat-K5", "trap-K5"]
    mine = {one["environment"]: one for one in found["standings"] if one["policy"] == "mine.py:Mine(first=1)"}
    assert set(mine) == {"smooth-K5-short", "stat-K5", "trap-K5"}
    # in turn, in the trap of 5 arms: (0.4 * 4/5) a round before the jump, (0.9 * 4 - 0.5 - 0.3) / 5 after it
    assert mine["trap-K5"]["regret"] == pytest.approx(2500 * 0.32 + 2500 * 0.56)
    best = {environment["name"]: environment["best"] for environment in found["environments"]}
    assert mine["trap-K5"]["ratio"] == pytest.approx(mine["trap-K5"]["regret"] / best["trap-K5"]["regret"])
    for name in ("ratios.csv", "table.md", "ratios.svg", "kept.csv"):
        assert (tmp_path / "out" / name).stat().st_size > 0
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.chunk")}
    # again, with one more environment: what is finished is not played again, and what was tuned is read from the file
    more = [
        "field",
        "ds-ts(gamma=0.99)",
        "--kept",
        "out/kept.csv",
        "--environments",
        "stat-K5",
        "--runs",
        "2",
        "--out",
        "two",
    ]
    options = {"out": tmp_path / "out", "quick": True, "progress": False}
    again = field(["mine.py:Mine(first=1)"], environments.split(","), **options, say=lambda text: None)
    assert again.to_dict()["standings"] == found["standings"]
    assert files == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.chunk")}
    monkeypatch.setattr("driftbandit.cli.field._LEADERS", 1)
    assert main(more) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line for line in lines if "ds-ts(gamma=0.99) " in line]
    assert row.split()[1] == "*"
    assert any(line.startswith("and ") and line.endswith("others: table.md has them all") for line in lines)
