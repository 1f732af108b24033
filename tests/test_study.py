"""Studies: what a file says is what is played, and what is wrong in it is named with its place."""

import json

import numpy as np
import pytest

from driftbandit import cli
from driftbandit.lab.experiments.run import plan, run
from driftbandit.lab.experiments.study import Study, Variants, with_values
from driftbandit.lab.experiments.study_file import StudyError, load_study, loads
from driftbandit.text import parse

pytest.importorskip("pyarrow")

GOOD = """\
title = "a title"
horizon = 300
runs = 6
seed = 1
policies = [
    "ts",
    "ds-ts.tuned",
]

[[policy]]
text = "ds-ts"
label = "swept"
gamma = [0.9, 0.99]
tau_max = {from = 0.1, to = 0.4, count = 3, scale = "log"}

[[environment]]
text = "abrupt"
n_arms = [2, 3]
phases = 2
"""


def test_a_file_makes_every_policy_meet_every_world():
    cells = loads(GOOD).cells()
    assert len(cells) == 2 * (2 + 2 * 3)
    assert cells[0].world == "abrupt [n_arms=2]"
    assert [cell.label for cell in cells[:4]] == [
        "ts",
        "ds-ts.tuned",
        "swept [gamma=0.9, tau_max=0.1]",
        "swept [gamma=0.9, tau_max=0.2]",
    ]
    assert {cell.environment.horizon for cell in cells} == {300}
    assert cells[1].policy.gamma == pytest.approx(1 - (2 / 300) ** 0.5)  # tuned to the world's own phases


@pytest.mark.parametrize(
    ("right", "wrong", "place", "hint"),
    [
        ("horizon", "horizn", "horizn", "did you mean horizon"),
        ("runs = 6", "runs = 0", "runs", "runs needs a whole number, 1 or more"),
        ("runs = 6", 'runs = "six"', "runs", "runs needs a whole number; got 'six'"),
        ("seed = 1", "seed = = 1", "line 4", "not valid TOML"),
        ('"ts",', '"tz",', "policies, 'tz'", "did you mean ts"),
        ("ds-ts.tuned", "ds-ts.tunned", "policies, 'ds-ts.tunned'", "did you mean tuned"),
        ('text = "ds-ts"', 'text = "dsts"', "[[policy]] number 1, text", "did you mean ds-ts"),
        ("gamma =", "gama =", "[[policy]] number 1, gama", "did you mean gamma"),
        ("0.99]", "1.99]", "[[policy]] number 1, gamma", "gamma in (0, 1]; got 1.99"),
        ("count = 3", "cuont = 3", "[[policy]] number 1, tau_max", "did you mean count"),
        ('"log"', '"lgo"', "[[policy]] number 1, tau_max", "did you mean log"),
        ("n_arms = [2, 3]", "n_arms = [2, 0]", "[[environment]] number 1, n_arms", "n_arms >= 1"),
        ("n_arms = [2, 3]", "n_arms = []", "[[environment]] number 1, n_arms", "is empty"),
        ("phases = 2", "phazes = 2", "[[environment]] number 1, phazes", "did you mean phases"),
        ("[[environment]]", "[[enviroment]]", "enviroment", "did you mean environment"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_the_nearest_right_word(right, wrong, place, hint):
    assert right in GOOD
    with pytest.raises(StudyError) as refused:
        loads(GOOD.replace(right, wrong), "mine.toml")
    message = str(refused.value)
    assert hint in message
    assert message.startswith(f"mine.toml, {place}: ")


def test_lists_walked_together_are_paired_and_need_one_length():
    both = Variants("ds-ts", together=True, gamma=[0.9, 0.99], tau_max=[0.1, 0.2])
    assert [list(values.values()) for values in both.settings()] == [[0.9, 0.1], [0.99, 0.2]]
    with pytest.raises(ValueError, match="same length; got gamma with 2, tau_max with 1"):
        Variants("ds-ts", together=True, gamma=[0.9, 0.99], tau_max=[0.1])


def test_a_range_of_discounts_is_even_in_what_is_forgotten():
    values = Variants("ds-ts", gamma={"from": 0.9, "to": 0.999, "count": 3, "scale": "forgetting"}).values["gamma"]
    assert values == pytest.approx([0.9, 0.99, 0.999])  # 1 - gamma = 0.1, 0.01, 0.001


def test_values_reach_into_the_parts_of_a_world_and_are_checked():
    world = with_values(parse.parse("smooth(law=Gaussian(sd=0.1))"), {"law.sd": 0.2})
    assert world.law.sd == 0.2
    with pytest.raises(ValueError, match="Gaussian"):
        with_values(world, {"law.sd": -1.0})
    with pytest.raises(ValueError, match=r"Smooth has no parameter 'sgima'; did you mean sigma\?"):
        with_values(world, {"sgima": 1.0})


def test_the_reference_must_be_one_of_the_policies():
    with pytest.raises(ValueError, match=r"none of the policies; did you mean ts\?"):
        Study(["ts", "ds-ts"], ["abrupt"], reference="tss")


def test_a_cell_does_not_change_when_others_are_added(tmp_path):
    world = "abrupt(n_arms=3, horizon=200, phases=2)"
    alone = run(Study(["ds-ts"], [world], runs=4), folder=tmp_path / "a", progress=False)
    among = run(
        Study(["ts", Variants("ds-ts", gamma=[0.9, 0.99])], [world], runs=4), folder=tmp_path / "b", progress=False
    )
    assert np.array_equal(alone.parts[0].final, among.parts[2].final)  # ds-ts has gamma = 0.99 by default


def test_a_study_says_how_much_work_it_is_and_resumes(tmp_path):
    study = Study(["ds-ts", "ts"], ["abrupt(n_arms=3, horizon=200, phases=2)"], runs=4)
    before = plan(study, tmp_path)
    assert (before.cells, before.chunks, before.ready, before.rounds) == (2, 2, 0, 2 * 4 * 200)
    assert before.seconds is not None
    assert 0 < before.seconds < 60
    first = run(study, folder=tmp_path, progress=False)
    again = run(study, folder=tmp_path, progress=False)
    assert (first.tally, again.tally) == ((0, 2), (2, 0))
    assert all(np.array_equal(a.final, b.final) for a, b in zip(first.parts, again.parts, strict=True))


def test_the_file_that_init_writes_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "--init", "study.toml"]) == 0
    small = (tmp_path / "study.toml").read_text().replace("10_000", "400").replace("runs = 20", "runs = 4")
    (tmp_path / "study.toml").write_text(small)
    assert cli.main(["run", "study.toml"]) == 0
    out = capsys.readouterr().out
    assert "best of the swept in abrupt" in out
    names = {path.name for path in (tmp_path / "study-results").iterdir()}
    assert {"summary.csv", "result.parquet", "chunks"} <= names
    assert any(name.startswith("sweep-") for name in names)
    assert load_study(tmp_path / "study.toml").count() == 8
    assert cli.main(["run", "--init", "mine.py"]) == 2
    assert cli.main(["run", "--init", "study.toml"]) == 2  # never over another file


def test_two_policies_and_a_world_straight_from_the_command_line(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path))
    words = ["run", "ds-ts", "ts", "--env", "abrupt(n_arms=3, phases=2)", "--horizon", "200", "--runs", "4"]
    for ready in (0, 2):  # what was played is kept, also without a folder
        assert cli.main([*words, "--dry-run"]) == 0
        assert f"2 cells of 4 runs in 2 chunks, {ready} of them ready" in capsys.readouterr().out
        assert cli.main(words) == 0
        assert "above ds-ts" in capsys.readouterr().out


def test_a_dry_run_writes_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path / "cache"))
    assert cli.main(["run", "--init", "study.toml"]) == 0
    before = sorted(path for path in tmp_path.rglob("*") if "cache" not in path.parts)
    words = ["--horizon", "200", "--dry-run", "--runs", "4"]
    assert cli.main(["run", *words, "study.toml"]) == 0
    assert cli.main(["run", "ts", *words, "--out", "results", "--plot", "sub/x.svg"]) == 0
    assert sorted(path for path in tmp_path.rglob("*") if "cache" not in path.parts) == before
    assert not list((tmp_path / "cache").rglob("*.chunk"))


def test_arguments_may_stand_in_any_order(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path))
    words = ["ts", "--runs", "2", "ds-ts", "--env", "abrupt(n_arms=2, horizon=100, phases=2)", "--json", "uniform"]
    assert cli.main(["run", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["policy"] for line in found["summary"]] == ["ts", "ds-ts", "uniform"]


def test_labels_name_the_policies_in_their_order(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path))
    words = ["run", "ts", "ds-ts", "--horizon", "100", "--runs", "2", "--label"]
    assert cli.main([*words, "Thompson", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["policy"] for line in found["summary"]] == ["Thompson", "ds-ts"]
    assert cli.main([*words, "a", "--label", "b", "--label", "c"]) == 2


def test_a_study_nested_without_end_is_refused(tmp_path):
    with pytest.raises(StudyError, match="nested too deeply"):
        loads("x = " + 20_000 * "[")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "ts", "--executor", "daks"], "did you mean dask"),
        (["run", "ts", "--executor", "processes:none"], "whole number"),
        (["run", "none.toml"], "Cannot read 'none.toml'"),
        (["run", "a.toml", "ts"], "has policies of its own"),
        (["run", "nowhere.py:Mine"], "Cannot read 'nowhere.py'"),
        (["run", "nowhere:Mine"], "There is no module 'nowhere'"),
    ],
)
def test_wrong_words_are_refused_in_one_sentence(capsys, words, hint):
    assert cli.main(words) == 2
    err = capsys.readouterr().err
    assert hint in err
    assert err.count("\n") == 1


def test_a_file_nested_too_deeply_is_one_sentence():
    with pytest.raises(StudyError, match="nested too deeply"):
        loads("policies = " + "[" * 20_000 + "]" * 20_000)
