"""The command line when things go wrong around it: the output is closed, the disk is full, letters are missing, Ctrl-C
comes early, numbers are too large. Nothing computed is lost, and nothing is a traceback."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import driftbandit
from driftbandit.cli import _main as cli
from driftbandit.cli import _shared
from driftbandit.cli._shared import whole
from driftbandit.lab.result import Result

SOURCE = str(Path(driftbandit.__file__).parents[1])
SMALL = "abrupt(n_arms=2, horizon=200, phases=2)"
PLAY = ["run", "ts", "--interpreted", "--env", SMALL, "--runs", "2"]
NAMES = [module.__name__.rsplit(".", 1)[1] for module in cli.modules()]

full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


def shell(line, **variables):
    """A line of shell with `driftbandit` in it."""
    words = line.replace("driftbandit ", f"'{sys.executable}' -m driftbandit ")
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {words}"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE, **variables},
        timeout=120,
    )


# --- saved before printed


def test_a_reader_that_leaves_does_not_lose_results(tmp_path):
    done = shell(f"driftbandit run ts --interpreted --env '{SMALL}' --runs 2 --out {tmp_path}/x.parquet | true")
    assert done.stderr == ""
    assert done.returncode in (0, 141)
    assert Result.load(tmp_path / "x.parquet").policies == ["ts"]


@full
def test_a_full_disk_behind_the_output_is_one_sentence_and_the_result_is_saved(tmp_path):
    done = shell(f"driftbandit run ts --interpreted --env '{SMALL}' --runs 2 --out {tmp_path}/x.parquet > /dev/full")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr
    assert Result.load(tmp_path / "x.parquet").policies == ["ts"]


@full
@pytest.mark.parametrize(
    ("words", "file"),
    [
        ([*PLAY, "--out", "x.parquet", "--plot", "x.svg"], "x.svg"),
        ([*PLAY, "--out", "r"], "r/summary.csv"),
        (["run", "--init", "s.toml"], "s.toml"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:The formula gives")
def test_whatever_a_command_saves_is_saved_before_it_prints(words, file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with open("/dev/full", "w", buffering=1, encoding="utf-8") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert cli.main(words) == 2
    assert "No space left" in capsys.readouterr().err
    assert (tmp_path / file).exists()


def test_letters_a_terminal_has_not_are_replaced():
    done = shell("driftbandit list sw-ts; driftbandit list 'Größe'", PYTHONIOENCODING="ascii")
    assert "Trov?" in done.stdout
    assert "named 'Gr" in done.stderr
    assert "codec" not in done.stderr


# --- Ctrl-C


def interrupted_by(module, words, tmp_path):
    """Runs the command with Ctrl-C pressed while this module is being imported."""
    folder = tmp_path / module
    folder.mkdir()
    (folder / "__init__.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    return subprocess.run(
        [sys.executable, "-m", "driftbandit", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE}"},
        timeout=60,
    )


def test_ctrl_c_during_imports_is_a_quiet_130(tmp_path):
    done = interrupted_by("matplotlib", [*PLAY, "--plot", str(tmp_path / "x.svg")], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "driftbandit: interrupted.\n")


@pytest.mark.parametrize("executor", ["threads:2", "processes:1"])
def test_ctrl_c_while_policies_compile_ends_the_process(executor, tmp_path):
    """The policies take longer to compile than the process may take to end."""
    words = ["run", "drift-lin-ts", "drift-auto", "drift-ts", "--env", SMALL, "--runs", "2", "--executor", executor]
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from driftbandit.__main__ import main\n"
        f"if __name__ == '__main__': sys.argv = ['driftbandit', *{words!r}]; sys.exit(main())"
    )
    environment = {**os.environ, "DRIFTBANDIT_CACHE": str(tmp_path), "PYTHONPATH": str(SOURCE)}
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", code], stderr=pipe, stdout=pipe, env=environment, text=True)
    try:
        time.sleep(6.0 if executor == "processes:1" else 4.0)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(3.0) == 130
        assert process.communicate() == ("", "driftbandit: interrupted.\n")
    finally:
        process.kill()


# --- numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [("9007199254740993", 2**53 + 1), ("123456789012345678901234567890", 123456789012345678901234567890),
     ("1e5", 100_000), ("100_000", 100_000), ("2.5e1", 25), (" 7 ", 7)],
)  # fmt: skip
def test_whole_numbers_are_taken_exactly_as_written(text, number):
    assert whole(0)(text) == number


@pytest.mark.parametrize("text", ["1e999999999", "-1", "0.5", "nan", "inf", "", "1e", "x" * 500])
def test_a_number_that_is_not_whole_is_refused_in_a_short_line(text):
    with pytest.raises(Exception, match="needs a whole number") as caught:
        whole(0)(text)
    assert len(str(caught.value)) < 140


def test_a_large_seed_is_used_to_its_last_digit(tmp_path, capsys):
    assert cli.main([*PLAY, "--seed", "9007199254740993", "--out", str(tmp_path / "x.parquet")]) == 0
    assert "seed 9007199254740993" in capsys.readouterr().out
    assert Result.load(tmp_path / "x.parquet").provenance["seed"] == 9007199254740993


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "sw-ts(window=1000000000000)"], "does not fit into memory"),
        (["run", "ts", "--env", "smooth(horizon=9000000000000000000)"], "is too long"),
        (["run", "ts", "--env", "abrupt(horizon=9000000000000000)", "--runs", "1"], "does not fit into memory"),
        (["run", "ts", "--env", "smooth(horizon=9000000000000)", "--runs", "1000000"], "would take years"),
        (["run", "ts", "--runs", "1e18"], "from 1 to 1_000_000_000"),
        (["run", "ts", "--env", "abrupt(n_arms=1000000000000)"], "this machine has"),
        (["run", "ts", "--workers", "1e9"], "from 1 to 4_096"),
        (["run", "sw-ts(window=1000000000000)", "ts"], "does not fit into memory"),
        (["run", "ts", "--horizon", "9e18"], "is too long"),
        (["run", "ts", "--runs", "1e9"], "this machine has"),
        (["theory", "--env", "smooth(horizon=9000000000000000000)"], "is too long"),
        (["field", "--runs", "1e18"], "from 2 to"),
        (["reproduce", "--runs", "1e18"], "from 1 to"),
        (["theory", "--runs", "1e18"], "from 2 to"),
    ],
)
def test_sizes_beyond_memory_are_refused_at_once(words, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("driftbandit.lab.engine.simulate.play_all", lambda *_: pytest.fail("the work was begun"))
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert (out, err.count("\n")) == ("", 1)


def test_running_out_of_memory_all_the_same_is_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr("driftbandit.lab.study.run", lambda *_, **__: np.empty(2**50))
    assert cli.main(PLAY) == 2
    assert "There is not enough memory for this: Unable to allocate" in capsys.readouterr().err


# --- help


@pytest.mark.parametrize("command", NAMES)
def test_no_help_shows_a_doubled_percent_sign(command, capsys):
    assert cli.main([command, "--help"]) == 0
    assert cli.main(["--help"]) == 0
    assert "%%" not in capsys.readouterr().out


def test_an_unknown_word_is_quoted_no_longer_than_a_line(capsys):
    assert cli.main(["x" * 5000]) == 2
    assert cli.main(["list", "x" * 5000]) == 2
    assert cli.main(["run", "--" + "x" * 5000, "ts"]) == 2
    assert all(len(line) < 400 for line in capsys.readouterr().err.splitlines())


# --- tables


def test_a_table_never_cuts_a_number_however_narrow_the_terminal():
    head = ["policy", "regret", "95 % interval", "above the reference", "95 % interval", "what it is"]
    rows = [["ds-ts(gamma=0.9051316701949487)", "123456.7", "-123456.7 to 123456.8", "-310234.5", "-1.0 to 2.0",
             "a sentence that goes on and on"]]  # fmt: skip
    for width in (30, 80, 120):
        lines = [line for _, line in _shared.layout_table(head, rows, width)]
        text = " ".join(lines)
        for cell in rows[0][:5]:
            assert cell in text, (width, cell)
        assert set(rows[0][5].split()) <= set(text.split())
        if width >= 120:
            assert max(map(len, lines)) <= width


def test_the_commands_tables_fit_a_terminal_of_80_columns(capsys, monkeypatch):
    monkeypatch.setattr(_shared, "terminal_width", lambda: 80)
    monkeypatch.setenv("NO_COLOR", "1")
    for words in (["list", "policies"], ["list", "environments"], ["list", "ds-ts"]):
        assert cli.main(words) == 0
        printed = capsys.readouterr().out
        table = printed.split("\n\n")[-1]
        assert max(len(line) for line in table.splitlines()) <= 80, words


def test_list_policies_is_one_line_a_policy_at_80_columns(capsys):
    from driftbandit.spec import parse

    assert cli.main(["list", "policies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(parse.policies())
    assert max(map(len, lines)) <= 80


def test_on_a_real_terminal_numbers_are_whole():
    primary, secondary = pty.openpty()
    words = [sys.executable, "-m", "driftbandit", *PLAY]
    env = {**os.environ, "PYTHONPATH": SOURCE, "COLUMNS": "40", "TERM": "xterm"}
    process = subprocess.Popen(words, stdout=secondary, stderr=subprocess.DEVNULL, env=env)
    os.close(secondary)
    out = b""
    with os.fdopen(primary, "rb", buffering=0) as screen:
        while True:
            try:
                piece = screen.read(4096)
            except OSError:
                break
            if not piece:
                break
            out += piece
    assert process.wait() == 0
    assert "…" not in out.decode()
    assert b"regret" in out


# --- JSON


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (PLAY, {"summary", "seed", "wrote"}),
        ([*PLAY[:-1], "1", "--drift"], {"summary", "drift"}),
        (["list"], {"policies", "environments", "laws"}),
        (["list", "ds-ts"], {"parameters", "constructors", "short"}),
        (["list", "items"], {"items"}),
        (["theory", "--env", SMALL, "ds-ts.tuned"], {"bounds", "quantities"}),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:The formula gives")
def test_json_is_one_strict_document_and_nothing_else(words, keys, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*words, "--json"]) == 0

    def refuse(constant):
        pytest.fail(f"{constant} is not JSON")

    data = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert keys <= set(data)


def test_every_command_that_prints_results_has_json():
    parser = cli.build_parser()
    action = next(action for action in parser._actions if hasattr(action, "choices") and action.choices)
    without = {name for name, sub in action.choices.items() if "--json" not in sub._option_string_actions}
    assert without == {
        "demo",
        "export",
        "keys",
        "live",
        "serve",
        "watch",
    }  # write or serve


def test_numbers_json_has_not_are_null(capsys):
    _shared.print_json({"a": float("nan"), "b": [np.float64("inf"), np.int64(3)], "c": Path("x")})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 3], "c": "x"}
