"""An environment from a file of means over time."""

import numpy as np
import pytest

from driftbandit.environments.table import Table
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies import DiscountedTS
from driftbandit.spec.parse import parse_environment


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "environment.csv"
    path.write_text("rounds,red,green\n30,0.2,0.8\n70,0.9,0.1\n")
    return str(path)


def test_a_file_of_means_is_played_row_by_row(file):
    environment = Table(file).realise(0)
    assert (environment.n_arms, environment.horizon) == (2, 100)
    assert [environment.mean(t, 0) for t in (0, 29, 30, 99)] == [0.2, 0.2, 0.9, 0.9]
    assert (environment.best(10), environment.best_arm(10), environment.best_arm(50)) == (0.8, 1, 0)


def test_stretching_plays_the_same_story_at_another_traffic(file):
    environment = Table(file, stretch=10.0).realise(0)
    assert (environment.horizon, environment.mean(299, 0), environment.mean(300, 0)) == (1000, 0.2, 0.9)
    assert Table(file, stretch=0.001).realise(0).horizon >= 1


def test_without_rounds_every_row_lasts_one(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text("a,b\n0.1,0.9\n0.9,0.1\n0.5,0.5\n")
    assert np.array_equal(Table(str(path)).realise(0).means(0, 3), [[0.1, 0.9], [0.9, 0.1], [0.5, 0.5]])


def test_the_laboratory_plays_it_and_its_text_gives_it_back(file):
    environment = Table(file, stretch=2.0)
    assert parse_environment(repr(environment)) == environment
    assert parse_environment(f'table("{file}")') == Table(file)
    assert np.isfinite(simulate(DiscountedTS(gamma=0.9), environment, runs=8).regret).all()


def test_a_changed_file_is_read_again(file):
    import os

    assert Table(file).horizon == 100
    with open(file, "w") as out:
        out.write("rounds,red,green\n5,0.2,0.8\n")
    os.utime(file, ns=(1, 1))
    assert Table(file).horizon == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a line of names and at least one line of means"),
        ("a,b\n", "a line of names and at least one line of means"),
        ("a,b\n0.1,0.2\n0.3\n", "needs 2 numbers in row 2"),
        ("a,b\n0.1,x\n", "needs 2 numbers in row 1"),
        ("a,b\n0.1,nan\n", "needs 2 numbers in row 1"),
        ("rounds\n3\n", "a column for each arm"),
        ("rounds,a\n0,0.5\n", "rows that last at least one round"),
        ("a,b\n0.1,1.5\n", "need means in"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_one_sentence(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Table(str(path))


def test_a_missing_file_is_refused():
    with pytest.raises(ValueError, match=r"here is no file 'nowhere\.csv'"):
        Table("nowhere.csv")
