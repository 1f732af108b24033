"""Files as they come: delimiters, decimal commas, booleans, endings of lines."""

import datetime

import numpy as np
import pytest

from driftbandit.logs import Log

N = 60
START = datetime.datetime(2026, 11, 16, 8, 30)


def written(tmp_path, *, delimiter=",", form="%Y-%m-%dT%H:%M:%S", reward=str, propensity="0.5", name="log.csv"):
    lines = [delimiter.join(["time", "arm", "reward", "propensity"])]
    for n in range(N):
        time = (START + datetime.timedelta(hours=7 * n)).strftime(form)
        lines.append(delimiter.join([time, "ab"[n % 2], reward(n % 3 % 2), propensity]))
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def same(one, two):
    return one.arms == two.arms and all(np.allclose(x, y) for x, y in zip(one.whole(), two.whole(), strict=True))


@pytest.fixture
def plain(tmp_path):
    return Log(written(tmp_path, name="plain.csv"))


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, plain, delimiter):
    assert same(plain, Log(written(tmp_path, delimiter=delimiter)))


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_decimal_commas_are_read_where_commas_do_not_separate(tmp_path, plain, delimiter):
    assert same(plain, Log(written(tmp_path, delimiter=delimiter, propensity="0,5", reward="{},0".format)))


@pytest.mark.parametrize("words", [("false", "true"), ("False", "True")])
def test_booleans_are_rewards(tmp_path, plain, words):
    assert same(plain, Log(written(tmp_path, reward=lambda r: words[r])))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_on_any_system(tmp_path, ending):
    path = tmp_path / "log.csv"
    lines = ["time,arm,reward,propensity", *(f"{n},{'ab'[n % 2]},{n % 3 % 2},0.5" for n in range(60))]
    path.write_bytes("".join(line + ending for line in lines).encode("utf-8-sig"))
    assert Log(path).n == 60
