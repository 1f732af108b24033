"""Figures: the same bytes from the same result, every policy distinguishable without colour, nothing hidden or cut
off."""

from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from driftbandit.lab import plots as regret
from driftbandit.lab import plots as style
from hand_made import made


def result(labels, runs=5, name="hand"):
    rounds = np.arange(1, 41) * 25
    slope = np.arange(1, runs + 1)[:, None] / 10
    curves = {label: slope * rounds * (number + 1) for number, label in enumerate(labels)}
    return made(rounds, curves, id=name, title="Two environments")


@pytest.mark.parametrize("ending", regret.ENDINGS)
def test_the_same_result_gives_the_same_bytes(tmp_path, ending):
    first = regret.plot(result("ab"), tmp_path / f"first{ending}").read_bytes()
    assert regret.plot(result("ab"), tmp_path / f"second{ending}").read_bytes() == first
    assert len(first) > 2000


def test_an_svg_is_well_formed_and_carries_no_date(tmp_path):
    path = regret.plot(result("ab"), tmp_path / "x.svg")
    assert ElementTree.parse(path).getroot().tag.endswith("svg")
    assert "dc:date" not in path.read_text()


def test_no_two_of_a_hundred_policies_look_alike_even_without_colour():
    looks = [style.choose_style(number) for number in range(45)]
    assert len({(str(one["linestyle"]), one["marker"]) for one in looks}) == 45
    assert len({tuple(map(str, style.choose_style(number).values())) for number in range(100)}) == 100


def test_axes_are_labelled_and_begin_at_zero():
    axes = regret.draw(result("ab")).axes[0]
    assert axes.get_xlabel() == "round"
    assert axes.get_ylabel() == "regret (mean of 5 runs, 95% interval)"
    assert axes.get_title(loc="left") == "Two environments"
    assert axes.get_xlim()[0] == axes.get_ylim()[0] == 0
    assert len(axes.collections) == 2  # one band a policy


def test_one_run_is_drawn_without_a_band():
    axes = regret.draw(result("ab", runs=1)).axes[0]
    assert len(axes.collections) == 0
    assert axes.get_ylabel() == "regret (one run)"


def test_the_legend_lists_the_curves_from_top_to_bottom():
    legend = regret.draw(result(["low", "middle", "high"])).legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["high", "middle", "low"]


@pytest.mark.parametrize(
    "labels",
    [
        ["ds-ts", "ts"],
        ["DiscountedTS(gamma=0.99, tau_max=0.2, forget_below=0.0, weight=1.0)", "x" * 200],
        list("abcdefghijklmnopqrstuvw"),
    ],
)
def test_legend_and_title_do_not_cover_data_and_nothing_is_cut_off(labels):
    drawn = regret.draw(result(labels), title="A title that goes on and on, " * 6)
    drawn.draw_without_rendering()
    legend, axes = drawn.legends[0].get_window_extent(), drawn.axes[0].get_window_extent()
    title = drawn.axes[0]._left_title.get_window_extent()
    page = drawn.bbox
    assert not legend.overlaps(axes)
    assert not legend.overlaps(title)
    for box in (legend, drawn.axes[0].get_tightbbox()):
        assert box.x0 >= page.x0 - 1
        assert box.x1 <= page.x1 + 1
        assert box.y0 >= page.y0 - 1
        assert box.y1 <= page.y1 + 1
    assert axes.width > 0.35 * page.width
    assert axes.height > 0.25 * page.height


def test_curves_of_several_results_keep_apart():
    names = [
        text.get_text()
        for text in regret.draw([result("ab", name="one"), result("bc", name="two")]).legends[0].get_texts()
    ]
    assert sorted(names) == ["a", "b (one)", "b (two)", "c"]
    same = [text.get_text() for text in regret.draw([result("a"), result("a")]).legends[0].get_texts()]
    assert sorted(same) == ["a (result 1)", "a (result 2)"]


def test_thousands_are_set_apart_by_commas():
    assert [style.thousands(value) for value in (100_000, 2.5, -1000)] == ["100,000", "2.5", "\u22121,000"]


def test_an_ending_we_cannot_draw_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.svg or \.png or \.pdf"):
        regret.plot(result("a"), tmp_path / "x.jpg")
    with pytest.raises(ValueError, match="at least one result"):
        regret.draw([])
