"""The commands drift and replay: thin, with JSON, figures and refusals of one sentence."""

import json

import numpy as np
import pytest

from driftbandit.cli._main import main
from driftbandit.environments import phased

ENVIRONMENT = phased([[0.25, 0.65], [0.65, 0.25]] * 5, range(0, 6000, 600), 6000)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, 6000)
    reward = rng.random(6000) < ENVIRONMENT.means(0, 6000)[np.arange(6000), arm]
    start = np.datetime64("2026-01-01T00:00:00")
    path = tmp_path_factory.mktemp("logs") / "clicks.csv"
    lines = [
        f"{start + np.timedelta64(300 * t, 's')},{'red' if a else 'green'},{int(r)}"
        for t, (a, r) in enumerate(zip(arm, reward, strict=True))
    ]
    path.write_text("when,button,click\n" + "\n".join(lines) + "\n")
    return str(path)


def words(file, command, *more):
    return [command, file, "--time", "when", "--arm", "button", "--reward", "click", "--propensity", "uniform", *more]


def test_drift_answers_in_a_sentence_and_writes_an_environment_and_a_figure(file, tmp_path, capsys):
    picture, environment = tmp_path / "drift.svg", tmp_path / "environment.csv"
    assert main(words(file, "drift", "--plot", str(picture), "--environment", str(environment))) == 0
    out = capsys.readouterr().out
    assert "clicks.csv: 6,000 events, 2 arms" in out
    assert "The ranking moves and stays" in out
    assert picture.stat().st_size > 10_000
    assert environment.read_text().startswith("rounds,green,red\n")
    assert main(["run", "ds-ts(gamma=0.97)", "--env", f'table("{environment}")', "--runs", "2", "--interpreted"]) == 0


def test_replay_prints_policies_side_by_side(file, capsys):
    assert main(words(file, "replay", "--policy", "ds-ts(gamma=[0.9, 0.99])", "dts @ 2 h")) == 0
    out = capsys.readouterr().out
    for text in ("own history, 0.5 times the traffic", "ds-ts(gamma=0.9) ", "ds-ts(gamma=0.99)", "dts @ 2 h", "ts "):
        assert text in out
    assert "over the best arm in hindsight" in out
    assert "over the logger" in out


def test_lengths_are_printed_in_the_unit_of_the_log(tmp_path, capsys):
    """Five minutes between events, in hours: nothing is printed in seconds."""
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, 6000)
    reward = rng.random(6000) < ENVIRONMENT.means(0, 6000)[np.arange(6000), arm]
    lines = [f"{t / 12},{a},{int(r)}" for t, (a, r) in enumerate(zip(arm, reward, strict=True))]
    path = tmp_path / "hours.csv"
    path.write_text("\n".join(["time,arm,reward", *lines]))
    options = [str(path), "--propensity", "uniform", "--time-unit", "h"]
    assert main(["drift", *options]) == 0
    out = capsys.readouterr().out
    assert "hours.csv: 6,000 events, 2 arms, 499.9 h" in out
    assert "The ranking moves and stays: the best arm of the last 1/128 of the log (3.906 h) gains +" in out
    assert main(["replay", *options, "--policy", "dts @ 2 h", "--no-own"]) == 0
    out = capsys.readouterr().out
    assert "32 blocks of 15.62 h" in out
    assert "dts @ 2 h" in out
    assert main(["drift", *options[:-2]]) == 0  # numbers without a unit
    assert "the best arm of the last 1/128 of the log (3.906) gains +" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["drift", "replay"])
def test_every_command_prints_json(file, capsys, command):
    more = ["--policy", "dts @ 2 h", "--no-own"] if command == "replay" else []
    assert main(words(file, command, "--json", *more)) == 0
    found = json.loads(capsys.readouterr().out)
    key = {"drift": "recommendation", "replay": "lines"}[command]
    assert key in found


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--propensity", "chance"], "there is no column 'chance' for the propensity"),
        (["--propensity", "foo"], 'by propensity= (--propensity COLUMN), or the word "uniform" if'),
        (["--reward-time", "paid"], "name the right one by reward_time= (--reward-time COLUMN)."),
        (["--reward-range", "1", "0"], "the range of rewards is (1, 0)"),
        (["--block", "month"], "An interval needs at least 8"),
        (["--block", "moon"], "a length of time is a positive time"),
        (["--reward-range", "0", "0.5"], "lies outside (0, 0.5)"),
        (["--time-unit", "x"], "is not a unit of time"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(file, capsys, more, said):
    assert main([*words(file, "drift"), *more]) == 2
    assert said.lower() in capsys.readouterr().err.lower()


def test_a_log_without_propensities_is_refused(file, capsys):
    assert main(["replay", file, "--time", "when", "--arm", "button", "--reward", "click"]) == 2
    assert "There are no propensities" in capsys.readouterr().err


def test_a_policy_that_cannot_forget_by_the_clock_is_refused(file, capsys):
    assert main(words(file, "replay", "--policy", "kl-ucb @ 6 h")) == 2
    err = capsys.readouterr().err
    assert "can forget by the clock, and KLUCB (kl-ucb) cannot" in err
    assert "d-klucb" in err
