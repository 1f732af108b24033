"""Results are printed as the commands print them, and a type checker knows what they are."""

import ast
import inspect
import re
import typing
from pathlib import Path

import pytest

from driftbandit import Agent, logs
from driftbandit.cli import main
from driftbandit.environments import phased
from driftbandit.logs import drift, replay, tune
from driftbandit.logs.report import About, signed
from driftbandit.logs.simulated import uniform_log
from driftbandit.logs.suited import SUITED

LOG = uniform_log(phased([[0.25, 0.65], [0.65, 0.25]] * 4, range(0, 2400, 300), 2400), seed=1)
ANSWERS = {
    "drift": lambda log: drift(log),
    "replay": lambda log: replay(log, ["dts @ 100"], own=False),
    "tune": lambda log: tune(log, half_lives=[50.0, 200.0], untuned=()),
}
OPTIONS = {"drift": [], "replay": ["--policy", "dts @ 100", "--no-own"], "tune": []}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_in_python_prints_what_the_command_prints(name, tmp_path, capsys, monkeypatch):
    events, path = LOG.whole(), tmp_path / "log.csv"
    lines = [f"{t},{a},{r}" for t, a, r in zip(events.time, events.arm, events.reward, strict=True)]
    path.write_text("\n".join(["time,arm,reward", *lines]))
    log = logs.Log(str(path), propensity="uniform")
    found = ANSWERS[name](log)
    if name == "tune":  # of the command's own candidates some take long to compile
        monkeypatch.setattr("driftbandit.logs.tuned.tune", lambda *_, **__: found)
    assert main([name, str(path), "--propensity", "uniform", *OPTIONS[name]]) == 0
    assert capsys.readouterr().out == f"{found}\n"
    assert repr(found) == str(found)
    assert str(found).startswith("log.csv: 2,400 events, 2 arms, 2399\n")


@pytest.mark.parametrize(
    ("verdict", "named", "not_named"),
    [
        ("ranking", {"drift-ts", "ds-ts", "dts", "driftbandit tune"}, {"kl-ucb"}),
        ("fleeting", {"ts", "kl-ucb"}, {"drift-ts", "ds-ts"}),
        ("unclear", {"ts", "kl-ucb", "drift-ts", "driftbandit tune"}, {"ds-ts"}),
        ("levels", {"ts", "kl-ucb", "drift-ts"}, {"ds-ts", "driftbandit tune"}),
        ("nothing", {"ts", "kl-ucb"}, {"drift-ts", "ds-ts"}),
        ("cannot tell", {"drift-ts"}, {"ds-ts", "kl-ucb"}),
    ],
)
def test_every_verdict_names_policies_and_drift_ts_where_it_is_right(verdict, named, not_named):
    words = set(re.findall(r"driftbandit tune|[a-z]+(?:-[a-z]+)*", SUITED[verdict]))
    assert named <= words
    assert not not_named & words


def test_what_tune_chooses_is_among_what_drift_advised():
    found = tune(LOG, half_lives=[50.0, 200.0])
    assert found.drift.verdict == "ranking"
    assert re.match(r"[a-z-]+", found.chosen)[0] in found.drift.family
    assert f"Use {found.drift.family}." in str(found.drift)


def test_a_log_says_what_it_is():
    assert str(LOG) == "the log: 2,400 events, 2 arms, 2399"
    assert repr(LOG) == f"<Log {LOG}>"


def test_nothing_has_no_sign():
    assert signed(-0.004) == signed(0.004) == signed(-0.0) == "0.00"
    assert (signed(-0.005001), signed(0.2, 4)) == ("-0.01", "+0.2000")
    assert About().gain((-1e-5, -2e-5, 4e-3)) == "0.00 [0.00, +0.40]"
    assert About(points=False).gain((-1.0, -2.0, 0.001)) == "-1.00 [-2.00, 0.00]"


def test_no_answer_prints_minus_nothing():
    for answer in ANSWERS.values():
        assert not re.search(r"-0\.0*(?![0-9])", str(answer(LOG)))


def test_a_type_checker_is_told_every_name_of_logs():
    """They are imported when first used, which a type checker cannot follow."""
    tree = ast.parse(Path(logs.__file__).read_text())
    known = next(node for node in tree.body if isinstance(node, ast.If))
    told = {alias.name: node.module for node in known.body for alias in node.names}
    assert told == {name: f"driftbandit.logs.{home}" for name, home in logs._HOMES.items()}
    assert sorted(told) == sorted(logs.__all__)


def test_a_type_checker_is_told_what_an_agent_answers():
    one, several = (typing.get_type_hints(version)["return"] for version in typing.get_overloads(Agent.choose))
    assert (one, several) == (typing.Any, list[typing.Any])
    assert inspect.signature(Agent.explain).return_annotation == "Explanation"
