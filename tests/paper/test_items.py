import csv
import math
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from driftbandit.environments import Abrupt, Smooth
from driftbandit.errors import NotComputed
from driftbandit.lab import work as store
from driftbandit.lab.result import Result
from driftbandit.paper.items import choose, items
from driftbandit.paper.items.item import EIGHT, PARAMETERS, ItemKey, PaperOptions, make_policy
from driftbandit.paper.reproduction import SUMMARY, PaperRun
from harness import shortened

# Short horizons push the code's gamma below the theory's domain, which it says each time.
pytestmark = pytest.mark.filterwarnings("ignore:The formula gives gamma")

PAPER = [
    *("fig1", "fig2", "fig3a", "fig3b", "fig3c", "fig3d", "fig4a", "fig4b", "fig4c", "fig4d", "table1", "fig5a"),
    *("fig5b", "fig6a", "fig6b", "fig6c", "fig6d", "fig7a", "fig7b"),
]


def small(*names, horizon=1000):
    return [shortened(item, horizon) for item in choose(names).values()]


def missing(run):
    """How many chunks are still to be computed."""
    return len(run.store.missing(run.plan))


def quiet(run):
    said = []
    run.compute(progress=False, say=said.append)
    return said


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Every item at a hundredth of its horizon, three runs, one parameter set."""
    run = PaperRun(PaperOptions(tmp_path_factory.mktemp("paper"), runs=3, parameters=("code",)), items=small())
    quiet(run)
    return run


@pytest.mark.long
def test_every_item_writes_its_data_and_its_figure_in_three_formats(whole):
    assert whole.failures == {}
    assert list(whole.items) == list(items())
    for name in items():
        for ending, head in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
            assert (whole.options.out / "figures" / f"{name}.{ending}").read_bytes().startswith(head)


@pytest.mark.long
def test_the_summary_has_a_line_for_every_policy_item_and_gap(whole):
    with open(whole.options.out / "summary.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == SUMMARY
    assert len(lines) == sum(len(item.labels) * max(1, len(item.gaps)) for item in items().values())
    line = next(line for line in lines if (line["item"], line["policy"], line["gap"]) == ("fig4b", "ds-ts", "0.07"))
    final = whole.final("fig4b", "ds-ts", "code", 0.07)
    half = 4.302653 * final.std(ddof=1) / math.sqrt(3)  # the t-quantile of 2 degrees of freedom
    assert float(line["regret_mean"]) == pytest.approx(final.mean(), abs=1e-3)
    assert float(line["regret_ci_high"]) - float(line["regret_mean"]) == pytest.approx(half, abs=2e-3)
    assert (line["parameters"], line["environment"], line["horizon"], line["runs"]) == ("code", "authors", "1000", "3")
    assert all((line["gap"] != "") == line["item"].startswith("fig4") for line in lines)


@pytest.mark.long
def test_saved_curves_can_be_read_like_any_other_result(whole):
    result = Result.load(whole.options.out / "data" / "fig3a.parquet")
    assert result.policies == [f"{label} (code)" for label in EIGHT]
    assert np.array_equal(result.final("sw-ts (code)"), whole.final("fig3a", "sw-ts", "code"))
    gaps = Result.load(whole.options.out / "data" / "fig4b.parquet")
    assert len(gaps.environments) == len(items()["fig4b"].gaps)


def test_all_figures_of_the_paper_and_all_announced_ones_are_there():
    announced = [f"abrupt-b{b}-k{k}" for b in (5, 20) for k in (5, 10, 20, 30)]
    announced += ["smooth-k20", "smooth-k30", *(f"finite-k{k}" for k in (5, 10, 20, 30))]
    assert list(items()) == [*PAPER, *announced]
    assert all(len(items()[name].gaps) == 29 for name in ("fig4a", "fig4b", "fig4c", "fig4d"))
    environments = {name: item.environment for name, item in items().items() if item.labels}
    assert environments["fig3d"] == Abrupt(n_arms=30, horizon=100_000, phases=10, instance="authors")
    assert environments["fig6c"] == Smooth(n_arms=5, horizon=100_000, sigma=1e-4, start=0)
    assert (environments["fig4c"].n_arms, environments["fig4c"].phases) == (5, 5)


def test_parameters_of_text_and_code_are_those_of_the_paper_and_of_its_code():
    environment = Abrupt(n_arms=5, horizon=100_000, phases=10)
    text, code = ({label: make_policy(label, which, environment) for label in EIGHT} for which in PARAMETERS)
    assert (text["ds-ts"].gamma, text["ds-ts"].tau_max, text["ds-ts"].forget_below) == (0.99, 0.2, 0.0)
    assert code["ds-ts"].gamma == pytest.approx(0.9051317, abs=1e-7)
    assert (code["ds-ts"].tau_max, code["ds-ts"].forget_below) == (0.2, 1e-8)
    assert (text["d-ucb"].gamma, code["d-ucb"].gamma) == pytest.approx((0.9975, 0.999375), abs=1e-12)
    assert text["sw-ts"].window == code["sw-ts"].window == text["sw-lb-sda"].window == code["sw-lb-sda"].window == 678
    assert text["sw-lb-sda"].forced_power == code["sw-lb-sda"].forced_power == 0.333  # the paper prints none
    assert text["exp3s"].explore == pytest.approx(0.0624304, abs=1e-7)  # not the misprinted formula's 1
    assert code["exp3s"].explore == pytest.approx(0.0059293, abs=1e-7)
    assert text["exp3s"].share == code["exp3s"].share == 1e-5
    for policy in (text["cusum-ucb"], code["cusum-ucb"]):
        assert (policy.threshold, policy.explore) == pytest.approx((9.2103, 0.0303485), abs=1e-4)
        assert (policy.samples, policy.drift, policy.xi, policy.warmup) == (50, 0.05, 0.5, True)
    for policy in (text["m-ucb"], code["m-ucb"]):
        assert (policy.window, policy.threshold, policy.explore) == pytest.approx((800, 100.6547, 0.0758714), abs=1e-4)
    assert text["ts"] == code["ts"]


def test_smooth_environments_count_as_one_phase():
    for horizon, gamma, window, ucb, explore in (
        (10_000, 0.9, 606, 0.9991667, 0.0062765),
        (100_000, 0.968377, 2145, 0.9997365, 0.0021470),
    ):
        environment = Smooth(n_arms=5, horizon=horizon)
        assert [make_policy("ds-ts", which, environment).gamma for which in PARAMETERS] == pytest.approx(
            [gamma] * 2, abs=1e-6
        )
        assert make_policy("sw-ts", "code", environment).window == window
        assert make_policy("d-ucb", "code", environment).gamma == pytest.approx(ucb, abs=1e-7)
        assert make_policy("exp3s", "code", environment).explore == pytest.approx(explore, abs=1e-7)
        assert make_policy("d-ucb", "text", environment).gamma == pytest.approx(1 - 1 / math.sqrt(horizon) / 4)


def test_ds_ts_given_the_largest_mean_takes_a_fifth_of_it():
    for name, tau in (("fig7a", 0.14), ("fig7b", 0.1)):
        for parameters in PARAMETERS:
            policies = items()[name].policies(parameters)
            assert policies["ds-ts-mu"].tau_max == pytest.approx(tau)
            assert policies["ds-ts-mu"]._replace(tau_max=0.2) == policies["ds-ts"]


def test_fresh_environments_differ_between_runs_and_the_authors_environment_does_not():
    item = items()["fig3a"]
    fresh, authors = item.make_environment("fresh"), item.make_environment("authors")
    assert fresh.realise(1).mean(0, 0) != fresh.realise(2).mean(0, 0)
    assert authors.realise(1).mean(0, 0) == authors.realise(2).mean(0, 0) == pytest.approx(0.437587, abs=1e-6)
    assert items()["finite-k5"].make_environment("fresh").instance == "fresh"


def test_an_unknown_item_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"no item 'fig3e'; did you mean fig3\w\? The items are: fig1, fig2"):
        choose(["fig3e"])
    assert list(choose(["fig7", "finite"])) == ["fig7a", "fig7b", *(f"finite-k{k}" for k in (5, 10, 20, 30))]


@pytest.mark.long
def test_an_interrupted_job_goes_on_where_it_stopped_and_ends_with_the_same_numbers(tmp_path, monkeypatch):
    options = PaperOptions(tmp_path / "a", runs=2)
    stopped = PaperRun(options, items=small("fig6a"))
    put, left = store.Store.put, [3]

    def put_three(self, name, outcome):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        put(self, name, outcome)

    with monkeypatch.context() as patch:
        patch.setattr(store.Store, "put", put_three)
        with pytest.raises(KeyboardInterrupt):
            quiet(stopped)
    again = PaperRun(options, items=small("fig6a"))
    quiet(again)
    assert again.tally.reused == 3
    at_once = PaperRun(replace(options, out=tmp_path / "b"), items=small("fig6a"))
    quiet(at_once)
    assert at_once.tally.reused == 0
    assert (tmp_path / "a" / "figures" / "fig6a.svg").read_bytes() == (
        tmp_path / "b" / "figures" / "fig6a.svg"
    ).read_bytes()
    for label in again.items["fig6a"].labels:
        for parameters in PARAMETERS:
            assert np.array_equal(again.final("fig6a", label, parameters), at_once.final("fig6a", label, parameters))


def test_the_same_call_again_reuses_everything_and_a_changed_parameter_or_source_nothing(tmp_path, monkeypatch):
    options = PaperOptions(tmp_path, runs=2, parameters=("text",))
    cells = len(items()["fig6a"].labels)
    first = PaperRun(options, items=small("fig6a"))
    quiet(first)
    again = PaperRun(options, items=small("fig6a"))
    quiet(again)
    assert (first.tally, again.tally) == ((0, cells), (cells, 0))
    for changed in (replace(options, seed=1), replace(options, runs=3)):
        assert missing(PaperRun(changed, items=small("fig6a"))) == cells
    assert missing(PaperRun(options, items=small("fig6a", horizon=900))) == cells
    monkeypatch.setattr(store, "code_digest", lambda *values: "another source")
    assert missing(PaperRun(options, items=small("fig6a"))) == cells


def test_where_text_and_code_agree_the_simulation_is_done_once(tmp_path):
    run = PaperRun(PaperOptions(tmp_path), items=[items()["fig3a"]])
    # ds-ts, d-ucb and exp3s differ between text and code, the other five do not; a chunk holds the 100 runs of a cell.
    assert len(run.plan) == 5 + 2 * 3


class _Broken(Smooth):
    def realise(self, key):
        raise RuntimeError("the environment\nfell apart")


def test_an_item_that_fails_is_reported_in_a_line_and_the_others_are_written(tmp_path):
    good, bad = small("fig5a", "fig6a")[0], replace(small("fig6b")[0], environment=_Broken(horizon=1000))
    run = PaperRun(PaperOptions(tmp_path, runs=2, parameters=("text",)), items=[bad, good])
    said = quiet(run)
    assert run.failures == {"fig6b": "RuntimeError: the environment fell apart"}
    assert "fig6b failed, the others go on. RuntimeError: the environment fell apart" in said
    assert (tmp_path / "figures" / "fig5a.png").exists()
    with pytest.raises(NotComputed, match="fig6b has no results: RuntimeError"):
        run.final("fig6b", "ts", "text")


def test_a_full_disk_ends_the_job_with_a_sentence_and_keeps_what_was_done(tmp_path, monkeypatch):
    options = PaperOptions(tmp_path, runs=2, parameters=("text",))
    run = PaperRun(options, items=small("fig6a", "fig6b"))
    rename, left = os.replace, [7]  # a figure and its data are replaced in the same way

    def full(source, target):
        if str(target).endswith(".chunk"):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "No space left on device")
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match=r"No space left on device\. Finished work is kept"):
            quiet(run)
    assert (tmp_path / "figures" / "fig6a.svg").exists()
    assert missing(PaperRun(options, items=small("fig6a", "fig6b"))) == 12 - 7


def test_an_unwritable_folder_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="Cannot write in the folder"):
        PaperRun(PaperOptions(tmp_path / "file"), items=small("fig6a"))
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_progress_covers_the_whole_job_and_ends_at_one(tmp_path):
    shares = []
    run = PaperRun(PaperOptions(tmp_path, runs=2, parameters=("text",)), items=small("fig6a", "fig6b"))
    run.compute(progress=shares.append, say=lambda line: None)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert len(shares) == 12


def test_extra_simulations_are_computed_with_the_figures(tmp_path):
    item = small("fig6a")[0]
    options = PaperOptions(tmp_path, runs=2, parameters=("text",))
    cell = item.cells(options)[ItemKey("ts", "text")]
    run = PaperRun(options, {"effect/other seed": cell._replace(seed=5)}, items=[item])
    quiet(run)
    assert run.extra("effect/other seed").regret.shape == (2, 1000)
    assert not np.array_equal(run.extra("effect/other seed").regret, run.outcome("fig6a", "ts", "text").regret)
