"""Studies: what a file says is what is played, and what is wrong in it is named with its place."""

import json

import numpy as np
import pytest

from driftbandit.cli import _main as cli
from driftbandit.errors import StudyError
from driftbandit.lab.study import Study, Variants, load_study, loads, run, with_values
from driftbandit.spec import parse

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
tau_max = [0.1, 0.2, 0.4]

[[environment]]
text = "abrupt"
n_arms = [2, 3]
phases = 2
"""


def test_a_file_makes_every_policy_meet_every_environment():
    cells = loads(GOOD).cells()
    assert len(cells) == 2 * (2 + 2 * 3)
    assert cells[0].environment_label == "abrupt [n_arms=2]"
    assert [cell.label for cell in cells[:4]] == [
        "ts",
        "ds-ts.tuned",
        "swept [gamma=0.9, tau_max=0.1]",
        "swept [gamma=0.9, tau_max=0.2]",
    ]
    assert {cell.environment.horizon for cell in cells} == {300}
    assert cells[1].policy.gamma == pytest.approx(1 - (2 / 300) ** 0.5)  # tuned to the environment's own phases


@pytest.mark.parametrize(
    ("right", "wrong", "place", "hint"),
    [
        ("horizon", "horizn", "horizn", "did you mean horizon"),
        ("runs = 6", "runs = 0", "", "runs needs a whole number, 1 or more"),
        ("runs = 6", 'runs = "six"', "", "runs needs a whole number, 1 or more; got 'six'"),
        ('"ts",', '"tz",', "policies, 'tz'", "did you mean ts"),
        ("ds-ts.tuned", "ds-ts.tunned", "policies, 'ds-ts.tunned'", "did you mean tuned"),
        ('text = "ds-ts"', 'text = "dsts"', "[[policy]] number 1", "did you mean ds-ts"),
        ("gamma =", "gama =", "[[policy]] number 1", "did you mean gamma"),
        ("0.99]", "1.99]", "[[policy]] number 1", "gamma in (0, 1]; got 1.99"),
        ("n_arms = [2, 3]", "n_arms = [2, 0]", "[[environment]] number 1", "n_arms >= 1"),
        ("n_arms = [2, 3]", "n_arms = []", "[[environment]] number 1", "is empty"),
        ("phases = 2", "phazes = 2", "[[environment]] number 1", "did you mean phases"),
        ("[[environment]]", "[[enviroment]]", "enviroment", "did you mean environment"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_the_nearest_right_word(right, wrong, place, hint):
    assert right in GOOD
    with pytest.raises(StudyError) as refused:
        loads(GOOD.replace(right, wrong), "mine.toml")
    message = str(refused.value)
    assert hint in message
    assert message.startswith(f"mine.toml, {place}: " if place else "mine.toml: ")


def test_values_reach_into_the_parts_of_a_environment_and_are_checked():
    environment = with_values(parse.parse("smooth(law=Gaussian(sd=0.1))"), {"law.sd": 0.2})
    assert environment.law.sd == 0.2
    with pytest.raises(ValueError, match="Gaussian"):
        with_values(environment, {"law.sd": -1.0})
    with pytest.raises(ValueError, match=r"Smooth has no parameter 'sgima'; did you mean sigma\?"):
        with_values(environment, {"sgima": 1.0})


def test_the_reference_must_be_one_of_the_policies():
    with pytest.raises(ValueError, match=r"not one of the policies; did you mean ts\?"):
        Study(["ts", "ds-ts"], ["abrupt"], reference="tss")


def test_a_cell_does_not_change_when_others_are_added(tmp_path):
    environment = "abrupt(n_arms=3, horizon=200, phases=2)"
    single = run(Study(["ds-ts"], [environment], runs=4), folder=tmp_path / "a", progress=False, compiled=False)
    among = run(
        Study(["ts", Variants("ds-ts", gamma=[0.9, 0.99])], [environment], runs=4),
        folder=tmp_path / "b",
        progress=False,
        compiled=False,
    )
    assert np.array_equal(single.parts[0].final, among.parts[2].final)  # ds-ts has gamma = 0.99 by default


def test_a_file_that_is_not_toml_is_refused_with_its_line():
    with pytest.raises(StudyError, match=r"mine.toml is not valid TOML.*line 4"):
        loads(GOOD.replace("seed = 1", "seed = = 1"), "mine.toml")


def test_a_study_resumes(tmp_path):
    study = Study(["ds-ts", "ts"], ["abrupt(n_arms=3, horizon=200, phases=2)"], runs=4)
    first = run(study, folder=tmp_path, progress=False, compiled=False)
    again = run(study, folder=tmp_path, progress=False, compiled=False)
    assert (first.tally, again.tally) == ((0, 2), (2, 0))
    assert all(np.array_equal(a.final, b.final) for a, b in zip(first.parts, again.parts, strict=True))


def test_the_file_that_init_writes_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "--init", "study.toml"]) == 0
    small = (tmp_path / "study.toml").read_text().replace("10_000", "400").replace("runs = 20", "runs = 4")
    (tmp_path / "study.toml").write_text(small)
    assert cli.main(["run", "study.toml", "--interpreted"]) == 0
    out = capsys.readouterr().out
    assert "best of the swept in abrupt" in out
    names = {path.name for path in (tmp_path / "study-results").iterdir()}
    assert {"summary.csv", "result.parquet", "chunks"} <= names
    assert any(name.startswith("sweep-") for name in names)
    assert load_study(tmp_path / "study.toml").count() == 8
    assert cli.main(["run", "--init", "mine.py"]) == 2
    assert cli.main(["run", "--init", "study.toml"]) == 2  # never over another file


def test_two_policies_and_a_environment_straight_from_the_command_line(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path))
    words = [
        "run",
        "ds-ts",
        "ts",
        "--env",
        "abrupt(n_arms=3, phases=2)",
        "--horizon",
        "200",
        "--runs",
        "4",
        "--interpreted",
    ]
    for again in (False, True):  # what was played is kept, also without a folder
        assert cli.main(words) == 0
        out = capsys.readouterr().out
        assert "above ds-ts" in out
        assert ("2 of 2 chunks were ready" in out) == again


def test_arguments_may_stand_in_any_order(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path))
    words = [
        "ts",
        "--runs",
        "2",
        "ds-ts",
        "--env",
        "abrupt(n_arms=2, horizon=100, phases=2)",
        "--json",
        "uniform",
        "--interpreted",
    ]
    assert cli.main(["run", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["policy"] for line in found["summary"]] == ["ts", "ds-ts", "uniform"]


def test_labels_name_the_policies_in_their_order(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path))
    words = ["run", "ts", "ds-ts", "--horizon", "100", "--runs", "2", "--interpreted", "--label"]
    assert cli.main([*words, "Thompson", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["policy"] for line in found["summary"]] == ["Thompson", "ds-ts"]
    assert cli.main([*words, "a", "--label", "b", "--label", "c"]) == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "ts", "--executor", "daks"], "did you mean dask"),
        (["run", "ts", "--executor", "processes:none"], "whole number"),
        (["run", "none.toml"], "Cannot read 'none.toml'"),
        (["run", "a.toml", "ts"], "lists its policies"),
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
