"""A policy drawn beside the paper's own: one more curve, and nothing else."""

import pytest

from driftbandit.cli import main
from driftbandit.lab.experiments.result import Result
from driftbandit.paper import choose
from driftbandit.paper.claims import verdicts
from driftbandit.paper.items.item import PARAMETERS, SIX, PaperOptions
from driftbandit.paper.job import PaperRun

pytest.importorskip("matplotlib")
# Short horizons push the code's gamma below the theory's domain, which it says each time.
pytestmark = pytest.mark.filterwarnings("ignore:The formula gives gamma")


def computed(folder, *additions):
    """Figure 6(a) at a tenth of its horizon, two runs."""
    items = [item.scaled(1000) for item in choose(["fig6a"]).values()]
    run = PaperRun(PaperOptions(folder, runs=2, additions=additions), items=items)
    run.compute(progress=False, say=lambda line: None)
    assert run.failures == {}
    return run


def curves(run):
    """The names of the curves in every panel of the figure as it is drawn."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4))
    run.items["fig6a"].draw(run, figure)
    return [[line.get_label() for line in axes.get_lines()] for axes in figure.axes]


def files(run):
    out = run.options.out
    return {
        name: (out / name).read_bytes() for name in ("summary.csv", "figures/fig6a.svg", "figures/fig6a-narrow.svg")
    }


def test_an_addition_is_one_more_curve_in_every_panel_and_in_nothing_that_is_the_papers(tmp_path):
    plain = computed(tmp_path)
    before, told, panels = files(plain), verdicts(plain), curves(plain)
    assert all(len(panel) == len(SIX) for panel in panels)
    assert all("Drift" not in name for panel in panels for name in panel)

    more = computed(tmp_path, "drift-ts")
    assert curves(more) == [[*panel, "DriftTS (added)"] for panel in panels]
    after = files(more)
    assert after["summary.csv"] == before["summary.csv"]
    assert after["figures/fig6a.svg"] != before["figures/fig6a.svg"]
    assert more.labels("fig6a") == plain.labels("fig6a")
    assert repr(verdicts(more)) == repr(told)
    assert more.tally == (plain.tally.computed, 1)  # computed once, though both panels show it

    again = computed(tmp_path)
    assert files(again) == before  # the figure without it is the same to the byte
    assert "drift-ts" not in Result.load(tmp_path / "data" / "fig6a.parquet").policies


def test_the_data_beside_a_figure_hold_what_was_added_to_it(tmp_path):
    run = computed(tmp_path, "drift-ts")
    result = Result.load(tmp_path / "data" / "fig6a.parquet")
    assert result.policies == [*(f"{label} ({p})" for p in PARAMETERS for label in SIX), "drift-ts"]
    assert (result.final("drift-ts") == run.final("fig6a", "drift-ts", "text")).all()


def test_the_command_takes_the_policies_it_knows_how_to_add_and_no_others(tmp_path, capsys):
    assert main(["reproduce", "fig6a", "--with", "kl-ucb", "--out", str(tmp_path)]) == 2
    assert "choose from 'drift-ts'" in capsys.readouterr().err
    assert main(["reproduce", "table1", "--runs", "2", "--with", "drift-ts", "--out", str(tmp_path)]) == 0
    assert "--with drift-ts" in (tmp_path / "index.html").read_text(encoding="utf-8")
