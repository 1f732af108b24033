"""Every file in examples/ runs as it is, with fewer runs and rounds, and is listed in its README."""

import re
import runpy
from pathlib import Path

import pytest

from driftbandit.cli import _main as cli
from driftbandit.lab.study import load_study

pytest.importorskip("pyarrow")
EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = [path for path in sorted(EXAMPLES.iterdir()) if path.suffix in (".toml", ".py")]
STUDIES = [path for path in FILES if path.suffix == ".toml"]


@pytest.mark.long
@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.name)
def test_the_example_runs(path, tmp_path, capsys):
    words = ["run", str(path), "--runs", "4", "--horizon", "400", "--out", str(tmp_path)]
    assert cli.main(words) == 0, capsys.readouterr().err
    assert (tmp_path / "summary.csv").exists()


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.name)
def test_the_example_is_read(path):
    assert load_study(path).count() > 0


def test_the_readme_lists_every_example():
    listed = set(re.findall(r"`([\w.]+\.(?:toml|py))`", (EXAMPLES / "README.md").read_text("utf-8")))
    assert listed == {path.name for path in EXAMPLES.iterdir() if path.suffix in (".toml", ".py")}


def test_the_committed_sweep_has_the_cells_of_its_study():
    study = load_study(EXAMPLES / "forgetting_and_spread.toml")
    table = (EXAMPLES.parent / "docs" / "sweeps" / "forgetting-and-spread.csv").read_text("utf-8")
    assert study.runs == 100
    assert len(table.splitlines()) == 1 + study.count()


@pytest.mark.long
def test_flights_with_weather_are_answered_and_drawn(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    example = runpy.run_path(str(EXAMPLES / "flights" / "weather.py"))
    example["POLICIES"].update({"on time": ["lin-ts(sd=0.5)"], "minutes": ["lin-ts(sd=0.03)"]})  # the quick ones
    example["main"](str(tmp_path), 1500)
    printed = capsys.readouterr().out
    for words in ("reward: on time", "reward: minutes", "gain of the best arm by context", "lin-ts(sd=0.5)"):
        assert words in printed
    assert "<svg" in (tmp_path / "weather.svg").read_text("utf-8")
