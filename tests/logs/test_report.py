"""Results are printed as the commands print them, and a type checker knows what they are."""

import re

import pytest

from driftbandit import logs
from driftbandit.cli._main import main
from driftbandit.environments import phased
from driftbandit.logs import drift, replay
from driftbandit.logs.estimates import About, format_signed
from naive.simulated_logs import uniform_log

LOG = uniform_log(phased([[0.25, 0.65], [0.65, 0.25]] * 4, range(0, 2400, 300), 2400), seed=1)
ANSWERS = {
    "drift": lambda log: drift(log),
    "replay": lambda log: replay(log, ["dts @ 100"], own=False),
}
OPTIONS = {"drift": [], "replay": ["--policy", "dts @ 100", "--no-own"]}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_in_python_prints_what_the_command_prints(name, tmp_path, capsys):
    events, path = LOG.whole(), tmp_path / "log.csv"
    lines = [f"{t},{a},{r}" for t, a, r in zip(events.time, events.arm, events.reward, strict=True)]
    path.write_text("\n".join(["time,arm,reward", *lines]))
    log = logs.Log(str(path), propensity="uniform")
    found = ANSWERS[name](log)
    assert main([name, str(path), "--propensity", "uniform", *OPTIONS[name]]) == 0
    assert capsys.readouterr().out == f"{found}\n"
    assert repr(found) == str(found)
    assert str(found).startswith("log.csv: 2,400 events, 2 arms, 2399\n")


def test_the_text_of_a_log_describes_it():
    assert str(LOG) == "the log: 2,400 events, 2 arms, 2399"
    assert repr(LOG) == f"<Log {LOG}>"


def test_nothing_has_no_sign():
    assert format_signed(-0.004) == format_signed(0.004) == format_signed(-0.0) == "0.00"
    assert (format_signed(-0.005001), format_signed(0.2, 4)) == ("-0.01", "+0.2000")
    assert About().gain((-1e-5, -2e-5, 4e-3)) == "0.00 [0.00, +0.40]"
    assert About(points=False).gain((-1.0, -2.0, 0.001)) == "-1.00 [-2.00, 0.00]"


def test_no_answer_prints_minus_nothing():
    for answer in ANSWERS.values():
        assert not re.search(r"-0\.0*(?![0-9])", str(answer(LOG)))
