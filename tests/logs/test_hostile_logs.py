"""Hostile and odd files: refused in a sentence that names the row, in bounded memory; and what is merely unusual is
read."""

import datetime
import gzip
import json
import tracemalloc
import zoneinfo

import numpy as np
import pytest

from driftbandit.logs import Log, LogError, replay
from driftbandit.logs.read import Source

HEAD = "time,arm,reward,propensity\n"
GOOD = "1,a,1,0.5\n2,b,0,0.5\n3,a,0,0.5\n"


def file(tmp_path, content, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


FILES = [
    (HEAD + GOOD + "4," + "x" * (2 << 20) + ",1,0.5\n", "log.csv", "A line has more than 1,048,576 bytes"),
    (HEAD + GOOD + "4,a,1,0.5\0\n", "log.csv", "Row 4: propensity is '0.5\\x00', not a number"),
    ((HEAD + GOOD).encode("utf-16"), "log.csv", "The text is not UTF-8"),
    ((HEAD + "1,à,1,0.5\n").encode("latin-1"), "log.csv", "invalid UTF8"),
    (HEAD + GOOD + '4,"a,1,0.5\n' + "5,a,1,0.5\n" * 30_000, "log.csv", "It cannot be read"),
    ("time,arm,reward,propensity,arm\n1,a,1,0.5,b\n", "log.csv", "Two columns are named 'arm'"),
    (HEAD + GOOD + "4,a,1e400,0.5\n", "log.csv", "Row 4: reward is infinite"),
    (HEAD + GOOD + "4,a,1,1e-400\n", "log.csv", "Row 4: propensity lies outside (0, 1]"),
    (HEAD + GOOD + "4,a,=1+1,0.5\n", "log.csv", "Row 4: reward is '=1+1', not a number"),
    (HEAD + GOOD + '4,a,"1,0",0.5\n', "log.csv", "Row 4: reward is '1,0', not a number"),
    ('{"time": 1, "arm": "a", "reward": 1e400, "propensity": 0.5}\n', "log.jsonl", "Row 1: reward is infinite"),
    ('{"time": 1, "arm": "a", "reward": ' + "9" * 400 + ', "propensity": 0.5}\n', "log.jsonl", "It cannot be read"),
    ('{"time": {"$date": 5}, "arm": "a", "reward": 1, "propensity": 1}\n', "log.jsonl", "The column time holds struct"),
    ('{"time": 1, "arm": {"__class__": "os"}, "reward": 1, "propensity": 1}\n', "log.jsonl", "arm is not a name"),
    ("{" + '"a":{' * 5000 + "\n", "log.jsonl", "Row 1: the line is not a JSON object"),
    (b"\x1f\x8b\x08\x00" + b"\0" * 40, "log.jsonl.gz", "cannot be read"),
    (gzip.compress((HEAD + GOOD).encode())[:-9], "log.csv.gz", "cannot be read"),
    (HEAD + "2026-01-01T00:00:00Z,a,1,0.5\n2026-01-01T01:00:00,b,0,0.5\n", "log.csv",
     "Row 2: time is '2026-01-01T01:00:00', not a date like the others"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "name", "said"), FILES, ids=[f"{n}-{said[:30]}" for _, n, said in FILES])
def test_a_hostile_file_is_refused_in_a_sentence(tmp_path, content, name, said):
    with pytest.raises(LogError) as caught:
        Log(file(tmp_path, content, name))
    assert said in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(("name", "unit"), [("log.csv.gz", b"0"), ("log.jsonl.gz", b"[")])
def test_a_small_file_of_gigabytes_takes_no_memory(tmp_path, name, unit):
    packed = gzip.compress(unit * (100_000_000 // len(unit)), 9)
    assert len(packed) < 300_000
    path = file(tmp_path, packed, name)
    tracemalloc.start()
    try:
        with pytest.raises(LogError, match="line has more than 1,048,576 bytes"):
            Log(path)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


def test_nested_columns_of_parquet_are_named_and_unused_ones_left_alone(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    good = {"time": [1.0, 2.0, 3.0], "arm": ["a", "b", "a"], "reward": [0.0, 1.0, 1.0], "propensity": [0.5] * 3}
    odd = {"x": [{"y": [1, {"z": 2}]}] * 3, "deep": [[[1], []]] * 3}
    path = tmp_path / "log.parquet"
    parquet.write_table(pa.table({**good, "context": [{"user": 1, "tags": ["x"]}] * 3, "deep": odd["deep"]}), path)
    assert Log(str(path)).n == 3
    for column in ("reward", "time", "arm"):
        parquet.write_table(pa.table({**good, column: [{"value": 1}] * 3}), path)
        with pytest.raises(LogError, match=column):
            Log(str(path))


def test_dates_of_several_time_zones_are_one_order_also_over_the_end_of_summer_time():
    paris, york = zoneinfo.ZoneInfo("Europe/Paris"), zoneinfo.ZoneInfo("America/New_York")
    start = datetime.datetime(2026, 10, 24, 22, tzinfo=datetime.UTC)
    moments = [start + datetime.timedelta(minutes=30 * i) for i in range(12)]
    texts = [moment.astimezone((paris, york, datetime.UTC)[i % 3]).isoformat() for i, moment in enumerate(moments)]
    columns = {"time": texts, "arm": ["a", "b"] * 6, "reward": [0, 1, 1] * 4}
    log = Log(columns, propensity="uniform")
    assert log.whole().time.tolist() == [moment.timestamp() for moment in moments]
    local = [moment.astimezone(paris).replace(tzinfo=None).isoformat() for moment in moments]
    (warning,) = Log({**columns, "time": local}, propensity="uniform").summary.warnings
    assert "summer time ends" in warning


def test_names_differ_by_every_letter_and_may_be_anything_else():
    odd = ["$x_1$", "_hidden", "a|b", "ä", "a\u0301", "🙂", "'; DROP TABLE event; --", "__import__('os')", " a ", "A"]
    n = 40 * len(odd)
    log = Log({"time": np.arange(n), "arm": odd * 40, "reward": np.arange(n) % 3 == 0}, propensity="uniform")
    assert sorted(log.arms) == sorted(name.strip() for name in odd)


def test_control_characters_of_names_do_not_reach_the_terminal():
    arms = ["a\x1b[31m\n", "b\x1b]0;x\x07"]
    events = {"time": range(400), "arm": arms * 200, "reward": [1, 0, 0, 1] * 100}
    printed = str(replay(Log(events, propensity="uniform"), ["uniform"], own=False))
    assert "\\x1b" in printed
    assert all(letter == "\n" or letter.isprintable() for letter in printed)


def test_odd_names_are_drawn_as_they_stand(tmp_path):
    pytest.importorskip("matplotlib")
    from driftbandit.logs import drift

    n = 4000
    names = np.array(["$\\frac", "_hidden", "a" * 90])
    rng = np.random.default_rng(0)
    log = Log(
        {"time": np.arange(n), "arm": names[rng.integers(0, 3, n)], "reward": rng.integers(0, 2, n)},
        propensity="uniform",
    )
    assert drift(log).plot(log, tmp_path / "drift.svg").stat().st_size > 10_000


def test_rows_without_a_list_of_available_arms_offer_all_of_them_also_those_met_later():
    """Arms beyond the 64th are met after rows that say nothing; an even logger gave each 1 / 80 there."""
    rng = np.random.default_rng(1)
    n, k = 8000, 80
    arm = np.where(np.arange(n) < 3000, rng.integers(0, 60, n), rng.integers(0, k, n))
    offered = [json.dumps([int(a) for a in range(60)]) if t < 3000 and t % 2 else None for t in range(n)]
    arm[:3000] = np.where(np.arange(3000) % 2, arm[:3000], rng.integers(0, k, 3000))
    columns = {"time": np.arange(n), "arm": arm, "reward": rng.integers(0, 2, n), "available": offered}
    log = Log(columns, propensity="uniform")
    events = log.whole()
    listed = (np.arange(n) < 3000) & (np.arange(n) % 2 == 1)
    assert np.allclose(events.propensity, np.where(listed, 1 / 60, 1 / k))
    assert (log.menus[events.menu].sum(axis=1) == np.where(listed, 60, k)).all()
    assert log.summary.least == pytest.approx(1 / k)


def test_nothing_of_an_address_is_shown():
    assert "secret" not in Source("postgresql://user:secret@host/db").name
