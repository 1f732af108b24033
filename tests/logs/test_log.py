"""A log is the same log from every source, in order, with ties shuffled."""

import datetime
import json

import numpy as np
import pytest

from driftbandit.logs import Log, LogError


def columns(n=500, seed=0):
    rng = np.random.default_rng(seed)
    arm = rng.choice(["red", "green", "blue"], n)
    return {
        "time": np.arange(n, dtype=np.float64) * 60.0,
        "arm": arm,
        "reward": rng.integers(0, 2, n).astype(np.float64),
        "propensity": np.full(n, 1.0 / 3.0),
    }


def same(one, two):
    a, b = one.whole(), two.whole()
    return one.arms == two.arms and all(np.allclose(x, y) for x, y in zip(a[:5], b[:5], strict=True))


def test_csv_json_lines_parquet_and_frames_give_the_same_log(tmp_path):
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    import pyarrow.parquet as parquet

    data = columns()
    log = Log(data)
    names = list(data)
    rows = list(zip(*(data[name].tolist() for name in names), strict=True))
    (tmp_path / "log.csv").write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n")
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    table = pa.table({name: data[name] for name in names})
    parquet.write_table(table, tmp_path / "log.parquet")
    for source in (
        *(str(tmp_path / f"log.{end}") for end in ("csv", "jsonl", "parquet")),
        table,
        pd.DataFrame(data),
        pl.DataFrame(data),
    ):
        assert same(log, Log(source))


@pytest.mark.parametrize("text", ["2026-03-01 00:00:00", "2026-03-01T00:00:00Z", "2026-03-01T01:00:00+01:00"])
def test_dates_are_read_in_every_common_form(text):
    start = datetime.datetime.fromisoformat(text)
    times = [(start + datetime.timedelta(hours=h)).isoformat().replace("+00:00", "Z") for h in range(4)]
    log = Log({"time": times, "arm": ["a", "b"] * 2, "reward": [0, 1, 1, 0]}, propensity="uniform")
    assert log.summary.dates
    assert log.summary.start == 1772323200.0
    assert log.summary.span == 3 * 3600.0


def test_arrow_and_numpy_dates_and_units_of_numbers_agree():
    pa = pytest.importorskip("pyarrow")
    times = np.datetime64("2026-03-01", "us") + np.arange(4) * np.timedelta64(3600, "s")
    rest = {"arm": ["a", "b"] * 2, "reward": [0, 1, 1, 0]}
    starts = {
        Log(given, propensity="uniform").summary.start
        for given in ({"time": times, **rest}, pa.table({"time": times, **rest}))
    }
    micros = Log({"time": times.astype(np.int64), **rest}, propensity="uniform", time_unit="us").summary
    assert starts == {1772323200.0}
    assert micros.start == pytest.approx(1772323200.0)


def test_the_export_of_a_live_journal_is_a_log(tmp_path):
    """Open decisions have no reward yet and are left out; columns that a log does not need are ignored."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    n = 300
    rng = np.random.default_rng(0)
    arm = rng.choice(["a", "b"], n, p=[0.7, 0.3])
    when = [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(minutes=i) for i in range(n)]
    late = [moment + datetime.timedelta(minutes=5) for moment in when]
    reward = [None if i % 10 == 3 else float(rng.integers(0, 2)) for i in range(n)]
    outcome = [None if value is None else ("default" if i % 7 == 0 else "reward") for i, value in enumerate(reward)]
    table = pa.table(
        {
            "time": pa.array(when, pa.timestamp("us", "UTC")),
            "decision": [f"id-{i}" for i in range(n)],
            "arm": arm,
            "reward": reward,
            "reward_time": pa.array(
                [m if r is not None else None for m, r in zip(late, reward, strict=True)], pa.timestamp("us", "UTC")
            ),
            "outcome": outcome,
            "propensity": np.where(arm == "a", 0.7, 0.3),
            "p_a": np.full(n, 0.7),
            "p_b": np.full(n, 0.3),
            "policy": ["DiscountedTS()"] * n,
            "known": range(n),
            "available": [None if i < 100 else '["a", "b"]' for i in range(n)],
        }
    )
    parquet.write_table(table, tmp_path / "journal.parquet")
    log = Log(str(tmp_path / "journal.parquet"))
    assert (log.n, log.summary.left_out, log.summary.delay) == (270, 30, 300.0)
    assert not log.summary.adaptive


def test_columns_may_have_other_names_and_rewards_another_range():
    log = Log(
        {"when": [1, 2, 3], "button": [1, 2, 1], "cents": [0, 50, 100]},
        time="when", arm="button", reward="cents", propensity="uniform", reward_range=(0, 100),
    )  # fmt: skip
    assert log.arms == ["1", "2"]
    assert log.whole().reward.tolist() == [0.0, 0.5, 1.0]


def test_rows_out_of_order_are_sorted_with_a_warning():
    data = columns(50)
    order = np.random.default_rng(1).permutation(50)
    mixed = Log({name: column[order] for name, column in data.items()})
    assert same(Log(data), mixed)
    assert any("which were sorted" in text for text in mixed.summary.warnings)


def test_available_arms_have_equal_probabilities():
    log = Log(
        {"time": [1, 2, 3], "arm": ["a", "b", "c"], "reward": [0, 1, 0], "available": ["a|b", "a|b|c", '["c", "a"]']},
        propensity="uniform",
    )
    events = log.whole()
    assert events.propensity.tolist() == [0.5, 1 / 3, 0.5]
    assert log.menus[events.menu].tolist() == [[True, True, False], [True, True, True], [True, False, True]]


def test_a_log_read_in_many_pieces_is_the_same(tmp_path, monkeypatch):
    data = columns(400)
    data["time"] = np.floor(data["time"] / 600.0)  # ties across the borders of pieces
    path = tmp_path / "log.jsonl"
    rows = zip(*(column.tolist() for column in data.values()), strict=True)
    path.write_text("".join(json.dumps(dict(zip(data, row, strict=True))) + "\n" for row in rows))
    whole = Log(str(path))
    monkeypatch.setattr("driftbandit.logs.read.PIECE", 33)
    assert same(whole, Log(str(path)))
    assert same(whole, Log(data))


def test_rows_of_equal_time_are_shuffled_always_the_same_way():
    n = 4000
    data = {"time": np.arange(n) // 40, "arm": np.arange(n) % 2, "reward": (np.arange(n) % 40 < 20) * 1.0}
    one, two, other = (Log(data, propensity="uniform", seed=seed).whole() for seed in (0, 0, 1))
    assert (one.row == two.row).all()
    assert (one.row != other.row).any()
    assert (np.diff(one.time) >= 0).all()
    place = np.arange(n) % 40
    assert abs(np.corrcoef(place, one.reward)[0, 1]) < 5.0 / np.sqrt(n)  # chance failure one in a million


def test_an_adaptive_logger_is_noticed():
    rng = np.random.default_rng(0)
    n = 2000
    mu = np.where(np.arange(n) < 1000, 0.5, 0.8)
    first = rng.random(n) < mu
    log = Log(
        {
            "time": np.arange(n),
            "arm": np.where(first, "a", "b"),
            "reward": rng.integers(0, 2, n),
            "propensity": np.where(first, mu, 1 - mu),
        }
    )
    assert log.summary.adaptive
    assert not Log(columns()).summary.adaptive


def frames(n=60):
    """The same rows as every library writes them: categories, dates of nanoseconds and zones, nullable numbers."""
    pa, pd, pl, duckdb = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars", "duckdb"))
    start = datetime.datetime(2026, 3, 28, 20, tzinfo=datetime.UTC)
    when = [start + datetime.timedelta(minutes=20 * i, microseconds=i) for i in range(n)]
    arm, reward, p = ["red", "green", "blue"] * (n // 3), [float(i % 4 == 0) for i in range(n)], [1 / 3] * n
    table = pa.table(
        {
            "time": pa.array(when, pa.timestamp("ns", "Europe/Paris")),
            "arm": pa.array(arm).dictionary_encode(),
            "reward": pa.array([int(r) for r in reward], pa.int8()),
            "propensity": pa.array(p, pa.float64()),
        }
    )
    frame = pd.DataFrame({"time": pd.to_datetime(when).tz_convert("America/New_York"), "reward": reward})
    frame = frame.assign(arm=pd.Categorical(arm), propensity=pd.array(p, "Float64"), note=None).set_index("time")
    yield "plain", {"time": np.array([m.replace(tzinfo=None) for m in when], "M8[us]"), "arm": arm, "reward": reward}
    yield "pyarrow", table
    yield "pyarrow in chunks", pa.concat_tables([table.slice(0, 7), table.slice(7)])
    yield "pyarrow stream", table.to_reader(max_chunksize=11)
    yield "pandas", frame.reset_index()
    yield "pandas with the time as index", frame
    yield (
        "pandas by arrow",
        frame.reset_index().convert_dtypes(dtype_backend="pyarrow").astype({"arm": "string[pyarrow]"}),
    )
    yield "pandas of bools", frame.reset_index().assign(reward=[r > 0 for r in reward])
    yield (
        "polars",
        pl.DataFrame({"time": when, "arm": pl.Series(arm, dtype=pl.Categorical), "reward": reward, "propensity": p}),
    )
    yield (
        "polars of dates without a zone",
        pl.DataFrame({"time": [m.replace(tzinfo=None) for m in when], "arm": arm, "reward": reward, "propensity": p}),
    )
    base = table.set_column(0, "time", table["time"].cast(pa.timestamp("us", "UTC")))  # noqa: F841 - DuckDB sees it
    yield "duckdb", duckdb.sql("SELECT * FROM base")


def test_every_data_frame_gives_the_same_log():
    plain, *others = frames()
    log = Log(plain[1], propensity="uniform")
    for name, frame in others:
        other = Log(frame)
        assert other.arms == log.arms, name
        for mine, yours in zip(log.whole()[:4], other.whole()[:4], strict=True):
            assert np.allclose(mine, yours, atol=1e-5, rtol=0.0), name
        assert other.summary.dates, name


def test_a_frame_of_mixed_types_is_refused_in_a_sentence():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"time": [1, 2], "arm": ["a", {"b": 1}], "reward": [0, 1], "propensity": [0.5, 0.5]})
    with pytest.raises(ValueError, match="every column have values of one type"):
        Log(frame)


def test_numbers_counted_from_1970_are_dates():
    columns = {"time": [1772323200, 1772326800, 1772330400], "arm": [1, 2, 1], "reward": [0, 1, 1]}
    for unit, factor in (("unix-s", 1), ("unix-ms", 1000), ("unix-us", 1_000_000)):
        log = Log({**columns, "time": [t * factor for t in columns["time"]]}, propensity="uniform", time_unit=unit)
        assert log.summary.dates
        assert log.summary.start == pytest.approx(1772323200.0)
        assert log.summary.span == pytest.approx(7200.0)


@pytest.mark.parametrize(("first", "last"), [(1.7e9, 1.8e9), (0.0, 3.6e9), (-5e9, -4e9)])
def test_large_numbers_that_may_count_anything_are_refused(first, last):
    columns = {"time": np.linspace(first, last, 10), "arm": ["a", "b"] * 5, "reward": [0, 1] * 5}
    with pytest.raises(LogError, match=r"umbers such as .* \(--time-unit\)"):
        Log(columns, propensity="uniform")
    assert Log(columns, propensity="uniform", time_unit="us").summary.span == pytest.approx((last - first) * 1e-6)


def test_dates_in_nanoseconds_are_not_taken_for_numbers():
    times = np.datetime64("2023-11-14T22:13", "ns") + np.arange(10) * np.timedelta64(60, "s")
    log = Log({"time": times, "arm": ["a", "b"] * 5, "reward": [0, 1] * 5}, propensity="uniform")
    assert log.summary.dates
    assert log.summary.warnings == []
    assert log.summary.span == pytest.approx(540.0)
