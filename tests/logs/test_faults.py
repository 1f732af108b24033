"""Bad logs: every planted fault is named, with its row, in a sentence that says what to do."""

import gzip
import json

import numpy as np
import pytest

from driftbandit import Bandit
from driftbandit.logs import Log, LogError

HEAD = "time,arm,reward,propensity\n"
GOOD = "1,a,1,0.5\n2,b,0,0.5\n3,a,0,0.5\n"


def csv_file(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


# what is written, options, what is said
ROWS = [
    ("4,a,1,1e-9\n", {}, "Row 4: propensity 1e-09 is too small to be true"),
    ("4,a,1,1e-200\n", {}, "Row 4: propensity 1e-200 is too small to be true"),
    ("1,a,,0.5\n", {}, "Row 4: reward is missing"),
    ("4,a,NaN,0.5\n", {}, "Row 4: reward is missing"),
    ("4,a,inf,0.5\n", {}, "Row 4: reward is infinite"),
    ("4,a,good,0.5\n", {}, "Row 4: reward is 'good', not a number"),
    ("4,a,1.5,0.5\n", {"reward_range": (0, 1)}, "Row 4: reward 1.5 lies outside (0, 1)"),
    ("4,a,-0.1,0.5\n", {"reward_range": (0, 1)}, "Row 4: reward -0.1 lies outside (0, 1)"),
    ("4,a,1,0.5\n", {"reward_range": (0, 0.5)}, "Row 1: reward 1 lies outside (0, 0.5)"),
    ("4,a,1,0.5\n5,b,-1.1e30,0.5\n", {}, "Row 5: reward is too large. Rewards beyond 1e+30 need a range"),
    ("4,a,1e200,0.5\n", {}, "Row 4: reward is too large"),
    ("4,a,1e400,0.5\n", {}, "Row 4: reward is infinite"),
    (",a,1,0.5\n", {}, "Row 4: time is missing"),
    ("soon,a,1,0.5\n", {}, "Row 4: time is 'soon', not a number"),
    ("nan,a,1,0.5\n", {}, "Row 4: time is missing"),
    ("inf,a,1,0.5\n", {}, "Row 4: time is infinite"),
    ("4,,1,0.5\n", {}, "Row 4: arm is missing"),
    ("4,a,1,\n", {}, "Row 4: propensity is missing"),
    ("4,a,1,0\n", {}, "Row 4: propensity lies outside (0, 1]"),
    ("4,a,1,-0.5\n", {}, "Row 4: propensity lies outside (0, 1]"),
    ("4,a,1,1.01\n", {}, "Row 4: propensity lies outside (0, 1]"),
    ("4,a,1,nan\n", {}, "Row 4: propensity is missing"),
    ("4,a,1,half\n", {}, "Row 4: propensity is 'half', not a number"),
    ("4,a,1\n", {}, "Expected 4 columns, got 3: 4,a,1"),
    ('4,"a,1,0.5\n', {}, "It cannot be read"),
]


@pytest.mark.parametrize(("row", "options", "said"), ROWS)
def test_a_bad_row_is_named(tmp_path, row, options, said):
    with pytest.raises(LogError) as caught:
        Log(csv_file(tmp_path, HEAD + GOOD + row), **options)
    assert said in str(caught.value)
    assert str(caught.value).startswith("log.csv: ")


COLUMNS = [
    ("time,arm,reward,propensity,reward_time\n1,a,1,0.5,1\n2,b,0,0.5,1\n", {}, "Row 2: the reward was known before"),
    ("time,arm,reward,propensity,reward_time\n1,a,1,0.5,1\n2,b,0,0.5,x\n", {}, "reward_time is 'x', not a number"),
    (
        "time,arm,reward,available\n1,a,1,a|b\n2,b,0,a\n",
        {"propensity": "uniform"},
        "Row 2: the arm played was not among",
    ),
    ("time,arm,reward,available\n1,a,1,a|b\n2,b,0,|\n", {"propensity": "uniform"}, "Row 2: available is not a list"),
    ("when,arm,reward,propensity\n1,a,1,0.5\n", {}, "There is no column 'time' for the time"),
    ("time,arms,reward,propensity\n1,a,1,0.5\n", {}, "There is no column 'arm' for the arm; did you mean arms"),
    ("time,arm,click,propensity\n1,a,1,0.5\n", {}, "There is no column 'reward' for the reward"),
    (
        "time,arm,reward,propensity\n1,a,1,0.5\n",
        {"reward_time": "later"},
        "There is no column 'later' for the reward time",
    ),
    ("time,arm,reward\n1,a,1\n2,b,1\n", {}, "There are no propensities"),
    ("time,arm,reward,reward\n1,a,1,1\n", {}, "Two columns are named 'reward'"),
    ("", {}, "The file is empty"),
    (HEAD, {}, "The log has no events"),
    (HEAD + "1,a,1,0.5\n2,a,0,0.5\n", {}, "There is only one arm, 'a'"),
    (HEAD + "1,a,1,0.5\n1,b,0,0.5\n", {}, "All times are the same"),
    (HEAD.encode() + b"1,\xff,1,0.5\n", {}, "invalid UTF8"),
    (HEAD + "2026-01-01,a,1,0.5\n2026-13-01,b,0,0.5\n", {}, "Row 2: time is '2026-13-01', not a date"),
    (HEAD + "2026-01-01T00:00:00Z,a,1,0.5\n7,b,0,0.5\n", {}, "Row 2: time is '7', not a date"),
    (HEAD + GOOD, {"time_unit": "fortnight"}, "'fortnight' is not a unit of time"),
    (HEAD + GOOD, {"reward_range": (1, 0)}, "range of rewards is (1, 0)"),
    (HEAD + GOOD, {"reward_range": (0, 1e200)}, "range of rewards is (0, 1e+200)"),
]


@pytest.mark.parametrize(("text", "options", "said"), COLUMNS)
def test_a_bad_file_is_explained(tmp_path, text, options, said):
    with pytest.raises(LogError) as caught:
        Log(csv_file(tmp_path, text), **options)
    assert said in str(caught.value)


JSON = [
    ('{"time": 1, "arm": "a"', "Row 2: the line is not a JSON object"),
    ("[1, 2]", "Row 2: the line is not a JSON object"),
    ("[" * 5000, "Row 2: the line is not a JSON object"),
    ('{"time": 2, "arm": "a", "propensity": 0.5}', "Row 2: reward is missing"),
    ('{"time": 2, "arm": ["a"], "reward": 1, "propensity": 0.5}', "does every column have values of one type"),
    ('{"time": null, "arm": "a", "reward": 1, "propensity": 0.5}', "Row 2: time is missing"),
    ('{"time": 2, "arm": null, "reward": 1, "propensity": 0.5}', "Row 2: arm is missing"),
]


@pytest.mark.parametrize(("line", "said"), JSON)
def test_a_bad_line_of_json_is_named(tmp_path, line, said):
    good = '{"time": 1, "arm": "a", "reward": 1, "propensity": 0.5}\n'
    last = '{"time": 3, "arm": "b", "reward": 0, "propensity": 0.5}\n'
    with pytest.raises(LogError) as caught:
        Log(csv_file(tmp_path, good + line + "\n" + last, "log.jsonl"))
    assert said in str(caught.value)


def test_files_that_are_not_logs_are_refused_in_one_sentence(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for given, said in (
        (str(tmp_path / "nowhere.csv"), "does not exist"),
        (str(tmp_path / "folder.csv"), "is a folder"),
        ("log.xlsx", "is not known"),
        (csv_file(tmp_path, "no parquet", "log.parquet"), "cannot be read"),
        (csv_file(tmp_path, b"\x1f\x8b\x08broken", "log.csv.gz"), "cannot be read"),
        (7, "a log cannot be made of int"),
        ({"time": [1, 2], "arm": ["a"]}, "the columns have different lengths"),
    ):
        with pytest.raises(LogError) as caught:
            Log(given)
        assert said.lower() in str(caught.value).lower()


def test_a_cut_parquet_file_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    path = tmp_path / "log.parquet"
    parquet.write_table(
        pa.table({"time": [1.0, 2.0], "arm": ["a", "b"], "reward": [0, 1], "propensity": [0.5, 0.5]}), path
    )
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(LogError, match="It cannot be read"):
        Log(str(path))


def test_propensities_that_do_not_fit_the_counts_are_refused():
    rng = np.random.default_rng(0)
    arm = rng.choice(["a", "b"], 4000, p=[0.8, 0.2])
    log = {"time": np.arange(4000.0), "arm": arm, "reward": rng.integers(0, 2, 4000)}
    with pytest.raises(LogError, match="declared uniform do not fit the counts"):
        Log(log, propensity="uniform")
    with pytest.raises(LogError, match="given do not fit the counts"):
        Log({**log, "propensity": np.full(4000, 0.5)})
    assert Log({**log, "propensity": np.where(arm == "a", 0.8, 0.2)}).n == 4000


def test_the_propensities_of_a_sharp_contextual_policy_are_accepted():
    """Without a floor, arms are as good as impossible in most contexts. 147 of 150 such logs were accepted, and the
    others refused for propensities of 1 in most events."""
    for seed in range(8):
        rng, rows = np.random.default_rng(seed), []
        features = {"x": "number", "d": ["m", "k"]}
        bandit = Bandit(["a", "b", "c"], "lin-ts(sd=0.2)", seed=seed, floor=0.0, features=features)
        for t in range(150):
            device = int(rng.integers(2))
            context = {"x": rng.normal(), "d": "mk"[device]}
            decision = bandit.decide(context=context, probability=True)
            reward = (decision.arm == "ab"[device]) + 0.3 * rng.normal()
            bandit.reward(decision, reward)
            rows.append((t, decision.arm, reward, decision.probability))
        log = dict(zip(("time", "arm", "reward", "propensity"), map(list, zip(*rows, strict=True)), strict=True))
        assert not any("1/propensity" in warning for warning in Log(log).summary.warnings)


def test_a_column_of_ids_is_not_taken_for_arms():
    with pytest.raises(LogError, match="more than 1000 different arms"):
        Log({"time": np.arange(3000.0), "arm": np.arange(3000), "reward": np.zeros(3000)}, propensity="uniform")


def test_a_fault_in_a_late_piece_is_named_by_its_row_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("driftbandit.logs.read.PIECE", 10)
    lines = [f"{t},{'ab'[t % 2]},{t % 2},0.5\n" for t in range(95)]
    lines[57] = "57,a,7,0.5\n"
    with pytest.raises(LogError, match="Row 58: reward 7 lies outside"):
        Log(csv_file(tmp_path, HEAD + "".join(lines)), reward_range=(0, 1))
    events = [json.dumps({"time": t, "arm": "ab"[t % 2], "reward": t % 2, "propensity": 0.5}) + "\n" for t in range(95)]
    events[33] = '{"time": 33, "arm": "a", "reward": 9, "propensity": 0.5}\n'
    packed = gzip.compress("".join(events).encode())
    with pytest.raises(LogError, match="Row 34: reward 9 lies outside"):
        Log(csv_file(tmp_path, packed, "log.jsonl.gz"), reward_range=(0, 1))
