"""Files as they come: delimiters, decimal commas, dates that begin with the day, booleans, gaps."""

import datetime
import subprocess
import sys

import numpy as np
import pytest

from driftbandit.cli import main
from driftbandit.logs import Log, LogError

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


def test_a_delimiter_can_be_named(tmp_path, plain):
    path = written(tmp_path, delimiter="^")
    assert same(plain, Log(path, delimiter="^"))
    with pytest.raises(LogError, match="is not a delimiter"):
        Log(path, delimiter="::")


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_decimal_commas_are_read_where_commas_do_not_separate(tmp_path, plain, delimiter):
    assert same(plain, Log(written(tmp_path, delimiter=delimiter, propensity="0,5", reward="{},0".format)))


@pytest.mark.parametrize("words", [("false", "true"), ("False", "True"), ("no", "yes"), ("F", "T")])
def test_booleans_are_rewards(tmp_path, plain, words):
    assert same(plain, Log(written(tmp_path, reward=lambda r: words[r])))


@pytest.mark.parametrize(
    "form",
    ["%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%Y/%m/%d %H:%M", "%d-%m-%Y %H:%M"],
)
def test_dates_that_begin_with_the_day_or_the_month_are_recognised(tmp_path, plain, form):
    """16 November and later: no month has the number 16."""
    assert same(plain, Log(written(tmp_path, form=form)))
    assert same(plain, Log(written(tmp_path, form=form), date_format=form))


def test_a_date_that_may_be_either_is_decided_by_the_order_or_refused():
    rest = {"arm": ["a", "b", "a"], "reward": [0, 1, 1]}
    log = Log({"time": ["03/04/2026", "04/04/2026", "02/05/2026"], **rest}, propensity="uniform")  # falls by months
    assert log.summary.span == 29 * 86400.0
    either = {"time": ["03/04/2026", "04/05/2026", "05/06/2026"], **rest}
    with pytest.raises(LogError, match=r"the day or with the month.*--date-format"):
        Log(either, propensity="uniform")
    assert Log(either, propensity="uniform", date_format="%m/%d/%Y").summary.span == 63 * 86400.0


def test_a_text_that_is_no_date_is_compared_with_other_rows_only_if_these_are_dates():
    rest = {"arm": ["a", "b", "a"], "reward": [0, 1, 1]}
    with pytest.raises(LogError, match=r"Row 1: time is 'Monday', not a date \(and 2 more") as caught:
        Log({"time": ["Monday", "Tuesday", "Friday"], **rest}, propensity="uniform")
    assert "other rows" not in str(caught.value)
    with pytest.raises(LogError, match="Row 2: time is 'Tuesday', not a date as in the other rows"):
        Log({"time": ["2026-01-01", "Tuesday", "2026-01-03"], **rest}, propensity="uniform")


@pytest.mark.parametrize("gap", ["", "NA", "null", "NaN"])
def test_rows_with_gaps_are_left_out_if_asked_for(tmp_path, gap):
    path = written(tmp_path, reward=lambda r: str(r) if r else gap)
    with pytest.raises(LogError, match=r"reward is missing.*--drop-missing"):
        Log(path)
    log = Log(path, drop_missing=True)
    assert (log.n, log.summary.left_out) == (20, 40)
    assert log.whole().row.tolist() == [n + 1 for n in range(N) if n % 3 == 1]


def test_a_missing_arm_is_left_out_the_same_way_and_the_message_names_the_option():
    events = {"time": [1, 2, 3, 4], "arm": ["a", "NA", "b", "a"], "reward": [1, 0, 1, 0]}
    with pytest.raises(LogError, match=r"arm is missing.*--drop-missing"):
        Log(events, propensity="uniform")
    assert Log(events, propensity="uniform", drop_missing=True).n == 3


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_on_any_system(tmp_path, ending):
    path = tmp_path / "log.csv"
    lines = ["time,arm,reward,propensity", *(f"{n},{'ab'[n % 2]},{n % 3 % 2},0.5" for n in range(60))]
    path.write_bytes("".join(line + ending for line in lines).encode("utf-8-sig"))
    assert Log(path).n == 60


def test_the_options_reach_the_reader(tmp_path, capsys):
    path = written(tmp_path, delimiter="^", form="%d %b %Y %H:%M", reward=lambda r: str(r) if r else "")
    options = ["--delimiter", "^", "--date-format", "%d %b %Y %H:%M", "--drop-missing", "--json"]
    assert main(["drift", path, *options]) == 2
    assert "only successes seem to be reported" in capsys.readouterr().err


def test_without_pyarrow_a_file_is_refused_in_a_sentence_and_columns_are_read(tmp_path):
    path = written(tmp_path)
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from driftbandit.logs import Log, drift\n"
        "log = Log({'time': range(900), 'arm': [0, 1] * 450, 'reward': [0, 1, 1] * 300}, propensity='uniform')\n"
        "assert log.n == 900 and drift(log).verdict\n"
        f"Log({path!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "driftbandit[lab]" in done.stderr.splitlines()[-1]
