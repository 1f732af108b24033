"""The command line: what it prints, what it refuses, and that it loads nothing heavy before it must."""

import importlib.util
import os
import subprocess
import sys

import pytest

from driftbandit.cli import _main as cli
from driftbandit.lab.result import Result
from driftbandit.spec import parse

ENVIRONMENT = "abrupt(n_arms=3, horizon=300, phases=3)"
PLAY = ["run", "ds-ts", "ds-ts(gamma=0.5)", "--env", ENVIRONMENT, "--runs", "3"]


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        timeout=60,
    )


def refused(capsys, *words):
    """The one sentence with which these words are refused."""
    assert cli.main(list(words)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("driftbandit: ")
    assert err.count("\n") == 1
    return err


def test_help_is_printed_without_loading_anything_heavy():
    heavy = ["numba", "scipy", "matplotlib", "pyarrow"]
    words = "import sys; from driftbandit.cli._main import main; main(['run', '--help']); main(['list']); "
    done = python(words + f"print([name for name in {heavy} if name in sys.modules])")
    assert done.stderr == ""
    assert done.stdout.rstrip().endswith("[]")


def test_python_dash_m_works_and_the_exit_code_is_ours():
    done = subprocess.run([sys.executable, "-m", "driftbandit", "lst"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean list" in done.stderr


@pytest.mark.parametrize("command", [module.__name__.rsplit(".", 1)[1] for module in cli.modules()])
def test_every_command_has_a_help_with_examples(capsys, command):
    assert cli.main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert f"driftbandit {command}" in out


def test_without_a_command_the_help_shows_all_of_them(capsys):
    assert cli.main([]) == 0
    out = capsys.readouterr().out
    for module in cli.modules():
        assert module.__name__.rsplit(".", 1)[1] in out


def test_list_has_a_line_for_everything_discovered(capsys):
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    shorts = [cls.short for cls in parse.policies().values()]
    for name in [*shorts, *parse.environments(), *parse.laws()]:
        assert sum(line.startswith(f"{name} ") for line in lines) == 1


def test_list_environments_names_those_of_the_suites_and_describes_each(capsys):
    assert cli.main(["list", "environments"]) == 0
    named = capsys.readouterr().out.replace("\n", " ").replace(",", " ").split()
    assert {"fresh-K5-p10", "common.0", "trap-K5-out", "D01-rest", "kim-tewari-K100-d50", "wu"} <= set(named)
    assert cli.main(["list", "trap-K5-out"]) == 0
    assert "kind='trap', reward='outliers'" in capsys.readouterr().out


def test_list_shows_one_policy_in_full(capsys):
    assert cli.main(["list", "ds-ts"]) == 0
    out = capsys.readouterr().out
    assert "Thompson sampling that forgets" in out
    assert "ds-ts.half_life(rounds" in out
    assert "(0, 1]" in out


def test_run_prints_a_summary_and_saves_and_draws(capsys, tmp_path):
    out, plot = tmp_path / "sub" / "r.parquet", tmp_path / "r.svg"
    assert cli.main([*PLAY, "--seed", "5", "--out", str(out), "--plot", str(plot)]) == 0
    printed = capsys.readouterr().out
    result = Result.load(out)
    assert result.policies == ["ds-ts", "ds-ts(gamma=0.5)"]
    assert result.provenance["seed"] == 5
    for row in result.summary():
        assert f"{row.regret.mean:.1f}" in printed
    assert plot.read_text().startswith("<?xml")

    again = tmp_path / "again.png"
    assert cli.main(["run", str(out), "--plot", str(again)]) == 0
    assert again.stat().st_size > 1000


def test_run_gives_the_same_numbers_for_any_number_of_workers(tmp_path):
    files = [tmp_path / f"{workers}.parquet" for workers in (1, 2)]
    for workers, file in zip((1, 2), files, strict=True):
        assert cli.main([*PLAY, "--workers", str(workers), "--out", str(file)]) == 0
    one, two = map(Result.load, files)
    assert all((one.curve(label) == two.curve(label)).all() for label in one.policies)


def test_run_imports_no_item_of_the_paper(tmp_path):
    words = [*PLAY, "--interpreted", "--runs", "1"]
    code = f"import sys; from driftbandit.cli._main import main; main({words!r}); "
    done = python(code + "print([name for name in sys.modules if 'paper' in name])")
    assert done.stderr == ""
    assert done.stdout.rstrip().endswith("[]")


def test_a_named_constructor_learns_the_horizon_from_the_environment(tmp_path):
    file = tmp_path / "r.parquet"
    assert (
        cli.main(
            [
                "run",
                "ds-ts.tuned",
                "--env",
                "abrupt(horizon=400, phases=4)",
                "--runs",
                "1",
                "--interpreted",
                "--out",
                str(file),
            ]
        )
        == 0
    )
    assert "gamma=0.9," in Result.load(file).part("ds-ts.tuned").texts()[0]


def test_what_a_formula_warns_of_is_a_note_of_one_line(capsys):
    assert (
        cli.main(["run", "ds-ts.tuned", "--env", "abrupt(horizon=40, phases=10)", "--runs", "1", "--interpreted"]) == 0
    )
    err = capsys.readouterr().err
    assert err.startswith("driftbandit: note: The formula gives gamma")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rnu", "ds-ts"], "did you mean run"),
        (["run"], "Name a policy, a study or a saved result"),
        (["run", "ds-tss"], "did you mean ds-ts"),
        (["run", "ds-ts", "--env", "abrubt"], "did you mean abrupt"),
        (["run", "ds-ts", "--env", "log.csv"], "`driftbandit drift log.csv --environment FILE.csv` writes"),
        (["run", "ds-ts", "--env", "table(log.parquet)"], "for --environment 'table(\"FILE.csv\")'."),
        (["run", "log.csv.gz"], "learn from a log"),
        (["run", "ds-ts(gamma=7)"], "(0, 1]"),
        (["run", "ds-ts", "ds-ts"], "given twice"),
        (["run", "smooth"], "Expected a policy, got 'smooth'"),
        (["run", "ds-ts", "--runs", "0"], "from 1 to 1_000_000_000; got '0'"),
        (["run", "ds-ts", "--runs", "many"], "got 'many'"),
        (["run", "ds-ts", "--seed", "-1"], "0 or more"),
        (["run", "ds-ts", "--wrokers", "2"], "did you mean --workers"),
        (["run", "ds-ts", "--label", "a", "--label", "b"], "2 labels are too many for 1 policies"),
        (["run", "ds-ts", "--plot", "x.doc"], "must end in .svg"),
        (["run", "nowhere.parquet", "--plot", "x.svg"], "There is no file 'nowhere.parquet'"),
        (["run", "nowhere.parquet", "ts"], "nowhere.parquet lists its policies"),
        (["list", "polices"], "did you mean policies"),
    ],
)
def test_wrong_words_get_one_sentence_with_what_is_right(capsys, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    assert says in refused(capsys, *words)
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_that_cannot_be_written_is_noticed_before_the_work(capsys, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("driftbandit.lab.study.run", lambda *_, **__: pytest.fail("the work was begun"))
    for option, name in (("--out", "x.parquet"), ("--plot", "x.svg")):
        assert "Cannot write in the folder" in refused(capsys, *PLAY, option, str(tmp_path / "file" / name))


def test_without_the_lab_extra_the_error_names_what_to_install(capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name == "numba" else find(name, *rest))
    assert "pip install '.[lab]'" in refused(capsys, *PLAY)


def test_a_missing_package_found_out_late_is_said_in_the_same_way(capsys, monkeypatch):
    def fail(*_, **__):
        raise ModuleNotFoundError("No module named 'numba'", name="numba.core")

    monkeypatch.setattr("driftbandit.lab.study.run", fail)
    assert "pip install '.[lab]'" in refused(capsys, *PLAY)


def test_ctrl_c_ends_with_130_and_one_line(capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("driftbandit.lab.study.run", interrupted)
    assert cli.main(PLAY) == 130
    assert capsys.readouterr().err == "driftbandit: interrupted.\n"


def test_traceback_shows_where_an_error_arose():
    with pytest.raises(ValueError, match="did you mean ds-ts"):
        cli.main(["--traceback", "run", "ds-tss"])
