"""Experiments run, results are summed up by hand-checkable numbers, and files are whole or refused."""

import json

import numpy as np
import pytest

from driftbandit.environments import Abrupt
from driftbandit.errors import ResultError
from driftbandit.lab import Variants, run
from driftbandit.lab.files import replace_file, writable
from driftbandit.lab.result import Result
from driftbandit.lab.summaries import t_interval
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.spec.parse import parse
from hand_made import made

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


ENVIRONMENT = Abrupt(n_arms=3, horizon=60, phases=2)
POLICIES = {"slow": DiscountedTS(gamma=0.99), "quick": "ds-ts(gamma=0.5)"}


def play(folder, **changes):
    """Each call with a separate folder, so that nothing is taken from an earlier one."""
    given = {"what": POLICIES, "environments": ENVIRONMENT, "runs": 4, "seed": 3, "progress": False, "compiled": False}
    return run(**{**given, "folder": folder, **changes})


@pytest.fixture
def result():
    """Two policies, three runs, regret 10, 20, 30 and 1, 1, 1 at the end."""
    rising = np.array([[5.0, 10.0], [10.0, 20.0], [15.0, 30.0]])
    return made([50, 100], {"a": rising, "b": np.ones((3, 2))}, {"a": "A()"}, id="hand")


def test_the_interval_is_students_t(result):
    # Standard deviation 10, three runs: 4.302653 * 10 / sqrt(3) = 24.8414 on either side of 20.
    a, b = result.summary()
    assert (a.environment, a.policy, a.regret.mean, a.difference) == ("Abrupt()", "a", 20.0, None)
    assert (a.regret.low, a.regret.high) == pytest.approx((20 - 24.84138, 20 + 24.84138), abs=1e-4)
    assert b.regret == (1.0, 1.0, 1.0)
    assert b.difference.mean == -19.0
    assert t_interval(result.curve("a"))[1] == pytest.approx([10 + 12.42069, 20 + 24.84138], abs=1e-4)
    assert result.final("a").tolist() == [10.0, 20.0, 30.0]


def test_one_run_has_no_interval():
    low, high = t_interval(np.array([[3.0, 4.0]]))
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_an_unknown_label_gets_the_nearest_one(tmp_path):
    with pytest.raises(ValueError, match="did you mean quick"):
        play(tmp_path).final("quik")


def test_run_gives_one_curve_per_policy_and_run_and_says_where_it_comes_from(tmp_path):
    result = play(tmp_path)
    assert result.policies == ["slow", "quick"]
    assert result.curve("slow").shape == (4, 60)  # no more checkpoints than rounds
    policy, environment = result.part("quick").texts()
    assert parse(policy) == DiscountedTS(gamma=0.5)
    assert parse(environment) == Abrupt(n_arms=3, horizon=60, phases=2)
    assert result.provenance["seed"] == 3
    assert set(result.provenance["versions"]) == {"driftbandit", "numpy", "numba", "python"}
    assert all(part.seconds > 0.0 for part in result.parts)
    json.dumps(result.provenance)


def test_other_policies_and_more_runs_change_no_curve(tmp_path):
    together = play(tmp_path / "together")
    single = play(tmp_path / "alone", what={"x": "ds-ts(gamma=0.5)"}, runs=2)
    assert (single.curve("x") == together.curve("quick")[:2]).all()


def test_compiled_and_interpreted_runs_agree_to_the_last_bit(tmp_path):
    pytest.importorskip("numba")
    compiled, plain = play(tmp_path / "compiled", workers=2, compiled=True), play(tmp_path / "plain")
    assert all((compiled.curve(label) == plain.curve(label)).all() for label in plain.policies)


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    first = play(tmp_path, what={"slow": POLICIES["slow"]})
    chunks = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.chunk")}
    both = play(tmp_path)
    assert (both.curve("slow") == first.curve("slow")).all()
    assert len(chunks) == 1
    assert all(path.stat().st_mtime_ns == written for path, written in chunks.items())  # read, not computed again


def test_progress_rises_to_one(tmp_path):
    shares: list[float] = []
    play(tmp_path, runs=1, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"runs": 0}, "runs needs a whole number, 1 or more"),
        ({"seed": -1}, "seed needs a whole number, 0 or more"),
        ({"runs": 2.5}, "whole number"),
        ({"what": {}}, "policies needs a list with one text or more"),
        ({"what": {"x": DiscountedTS}}, "A policy has init, choose and learn"),
        ({"environments": 3}, "An environment has n_arms, horizon and realise"),
        ({"checkpoints": 0}, "checkpoints needs a whole number"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_written(tmp_path, changes, says):
    with pytest.raises((ValueError, TypeError), match=says):
        play(tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


def test_a_saved_result_is_loaded_as_it_was(tmp_path, result):
    loaded = Result.load(result.save(tmp_path / "new folder" / "r.parquet")[0])
    assert loaded.policies == result.policies
    assert loaded.part("b").rounds.tolist() == [50, 100]
    assert loaded.part("a").texts() == ("A()", "Abrupt()")
    assert all((loaded.curve(label) == result.curve(label)).all() for label in result.policies)
    assert loaded.provenance == result.provenance
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["r.parquet"]  # no draft is left


def test_the_rows_are_tidy(tmp_path, result):
    table = pq.read_table(result.save(tmp_path / "r.parquet")[0])
    assert table.column_names == ["environment", "policy", "run", "round", "regret"]
    assert table.num_rows == 2 * 3 * 2
    assert [table[name][2].as_py() for name in table.column_names] == ["Abrupt()", "a", 1, 50, 10.0]


def damage(table, how):
    note = table.schema.metadata
    changed = {
        "foreign": lambda: table.replace_schema_metadata(None),
        "nonsense": lambda: table.replace_schema_metadata({b"driftbandit": b"[1"}),
        "newer": lambda: table.replace_schema_metadata({b"driftbandit": b'{"format": 99, "parts": []}'}),
        "column": lambda: table.drop_columns(["round"]),
        "row": lambda: table.slice(1),
        "moved": lambda: pa.concat_tables([table.slice(1), table.slice(0, 1)]),
        "empty": lambda: table.slice(0, 0),
        "repeated": lambda: pa.concat_tables([table.slice(1), table.slice(3, 1)]),
        "policy": lambda: table.set_column(1, "policy", pa.array(["c"] * table.num_rows)).replace_schema_metadata(note),
        "words": lambda: table.set_column(4, "regret", pa.array(["x"] * table.num_rows)).replace_schema_metadata(note),
        "nan": lambda: table.set_column(4, "regret", pa.array([float("nan")] * table.num_rows)).replace_schema_metadata(
            note
        ),
    }
    return changed[how]()


@pytest.mark.parametrize(
    "how", ["foreign", "nonsense", "newer", "column", "moved", "row", "empty", "repeated", "policy", "words", "nan"]
)
def test_a_file_that_is_not_a_whole_result_is_refused(tmp_path, result, how):
    (path,) = result.save(tmp_path / "r.parquet")
    pq.write_table(damage(pq.read_table(path), how), path)
    with pytest.raises(ResultError, match="damaged, or not a result"):
        Result.load(path)


def test_truncated_and_altered_bytes_are_noticed(tmp_path, result):
    (path,) = result.save(tmp_path / "r.parquet")
    whole = path.read_bytes()
    for bytes_left in (whole[: len(whole) // 2], b"", b"not parquet at all"):
        path.write_bytes(bytes_left)
        with pytest.raises(ResultError, match="damaged"):
            Result.load(path)
    with pytest.raises(ResultError, match="There is no file"):
        Result.load(tmp_path / "nowhere.parquet")


def test_a_failed_write_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def stopped_half_way():
        with replace_file(path) as draft:
            draft.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stopped_half_way()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["x.txt"]


def test_a_place_that_cannot_be_written_is_noticed_without_writing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Cannot write in the folder"):
        writable(tmp_path / "file" / "x.parquet")
    with pytest.raises(OSError, match="there is a folder"):
        writable(tmp_path)
    with pytest.raises(ValueError, match=r"must end in \.svg"):
        writable(tmp_path / "x.doc", (".svg",))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_environments_of_different_lengths_stand_in_one_file(tmp_path):
    places = ["abrupt(n_arms=2, horizon=60, phases=2)", "smooth(n_arms=3, horizon=90)"]
    result = run(["ts", "uniform"], places, 3, checkpoints=3, folder=tmp_path, progress=False, compiled=False)
    loaded = Result.load(result.save(tmp_path / "r.parquet")[0])
    assert (loaded.environments, loaded.policies) == (places, ["ts", "uniform"])
    assert [part.rounds[-1] for part in loaded.parts] == [60, 60, 90, 90]
    for mine, other in zip(result.summary(), loaded.summary(), strict=True):
        assert mine == other
    assert loaded.only(places[1]).environments == places[1:]
    with pytest.raises(ValueError, match="There is no environment 'abrupt'"):
        loaded.final("ts", "abrupt")


def test_swept_values_are_columns_of_the_frame_and_come_back_from_the_file(tmp_path):
    swept = [Variants("ds-ts", gamma=[0.5, 0.9])]
    result = run(swept, ENVIRONMENT, 2, checkpoints=2, folder=tmp_path, progress=False, compiled=False)
    frame = result.to_frame("pyarrow", final=True)
    assert frame["policy.gamma"].to_pylist() == [0.5, 0.5, 0.9, 0.9]
    assert frame["round"].to_pylist() == [60] * 4
    loaded = Result.load(result.save(tmp_path / "r.parquet")[0])
    assert [dict(part.cell.policy_values) for part in loaded.parts] == [{"gamma": 0.5}, {"gamma": 0.9}]
    assert loaded.columns().keys() == result.columns().keys()


def test_a_study_too_large_for_memory_keeps_the_regret_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("driftbandit.lab.study._MOST", 10)
    whole = play(tmp_path)
    assert whole.part("slow").rounds.tolist() == [60]
    monkeypatch.undo()
    assert np.array_equal(whole.final("slow"), play(tmp_path).final("slow"))
