"""Results as data frames and in notebooks."""

import pytest

from driftbandit.environments import Smooth
from driftbandit.lab import Study, Variants, run
from driftbandit.policies.discounted_ts import DiscountedTS
from hand_made import made

pytest.importorskip("pyarrow")


def played(runs, seed=3):
    policies = {"a": "ds-ts(gamma=0.9)", "b": "ds-ts(gamma=0.5)"}
    environment = "abrupt(n_arms=3, horizon=60, phases=2)"
    given = {"checkpoints": 4, "title": "A small one", "progress": False, "compiled": False}
    return run(policies, environment, runs, seed, **given)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_one_row_a_policy_run_and_round(backend):
    pytest.importorskip(backend)
    frame = played(3).to_frame(backend)
    assert type(frame).__module__.split(".")[0] == backend
    assert len(frame) == 2 * 3 * 4
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert names == ["environment", "policy", "run", "round", "regret"]


def test_a_result_is_read_by_any_reader_of_arrow():
    import pyarrow as pa

    result = played(2)
    table = result.to_frame("pyarrow")
    assert pa.table(result) == table
    assert pytest.importorskip("polars").DataFrame(result)["regret"].to_list() == table["regret"].to_pylist()
    query = "select avg(regret) from result where round = 60 and policy = 'a'"
    assert pytest.importorskip("duckdb").sql(query).fetchall()[0][0] == pytest.approx(result.final("a").mean())


def test_an_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="pandas, polars, pyarrow"):
        played(1).to_frame("excel")


def test_a_saved_result_is_read_by_any_reader_of_parquet(tmp_path):
    result = played(2)
    (path,) = result.save(tmp_path / "r.parquet")
    import pyarrow.parquet as pq

    assert pq.read_table(path)["regret"].to_pylist() == result.to_frame("pyarrow")["regret"].to_pylist()
    duckdb = pytest.importorskip("duckdb")
    mean = duckdb.sql(f"select avg(regret) from '{path}' where round = 60 and policy = 'a'").fetchall()[0][0]
    assert mean == pytest.approx(result.final("a").mean())


def test_a_notebook_shows_a_table_and_a_figure_and_no_label_is_taken_for_html():
    pytest.importorskip("matplotlib")
    result = played(2)
    odd = made(result.part("a").rounds, {"<b>": result.curve("a")}, environment="<i>")
    page = odd._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "data:image/png;base64," in page
    assert result.plot().axes[0].get_xlabel() == "round"


def test_a_simulation_is_shown_in_a_line():
    from driftbandit.lab.engine.simulate import simulate

    done = simulate(DiscountedTS(0.9), Smooth(n_arms=3, horizon=200), runs=3, compiled=False)
    assert repr(done) == f"<3 runs of 200 rounds: regret {done.regret[:, -1].mean():.1f} on average>"


def test_a_result_shows_every_environment_in_a_notebook_and_no_label_is_taken_for_html(tmp_path):
    pytest.importorskip("matplotlib")
    environments = [Variants("smooth(n_arms=2, horizon=200)", "<b>one</b>"), "abrupt(n_arms=2, horizon=200, phases=2)"]
    done = run(Study(["ts", "uniform"], environments, runs=2), folder=tmp_path, progress=False, compiled=False)
    page = done._repr_html_()
    assert "&lt;b&gt;one" in page
    assert "<b>" not in page
    assert page.count("<table>") == 2
    assert "data:image/png;base64," in page
    for line in done.summary():
        assert f"{line.regret.mean:.1f}" in page
