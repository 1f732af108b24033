"""One colour, dash and marker for a policy in every figure of the project, distinguishable without colour."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from driftbandit.environments import Abrupt
from driftbandit.lab import plots as regret
from driftbandit.lab import plots as style
from driftbandit.lab import sweep
from driftbandit.paper import picture
from driftbandit.policies.beta_ts import DiscountedBetaTS
from driftbandit.policies.ucb import DiscountedUCB
from driftbandit.spec import parse
from hand_made import made

GREEN = "#009e73"


def shape(line):
    return line.get_color(), line.get_marker()


def result(policies):
    rounds = np.arange(1, 41) * 25
    curves = {label: np.ones((3, 1)) * rounds * (n + 1) for n, label in enumerate(policies)}
    return made(rounds, curves, policies, id="x", title="")


def drawn(figure, label):
    return next(line for axes in figure.axes for line in axes.lines if str(line.get_label()).startswith(label))


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("ds-ts", "ds-ts"), ("ds-ts(gamma=0.5)", "ds-ts"), ("DiscountedTS(gamma=0.5, tau_max=0.2)", "ds-ts"),
        ("ds-ts.half_life(70)", "ds-ts"), ("ds-ts (code)", "ds-ts"), ("ds-ts, tau_max 1", "ds-ts"),
        ("ds-ts [gamma=0.9]", "ds-ts"), ("ds-ts-mu", "ds-ts-mu"), ("dots", "dots"),
        ("DiscountedBetaTS(gamma=0.9, optimistic=True)", "dots"), ("DiscountedBetaTS(gamma=0.9)", "dts"),
        (DiscountedUCB(), "d-ucb"), (DiscountedBetaTS(optimistic=True), "dots"), (DiscountedBetaTS(), "dts"),
        ("/home/me/mine.py:Mine(gamma=0.9)", "Mine"), ("package.module:Mine", "Mine"), ("my own label", "my"),
    ],
    ids=repr,
)  # fmt: skip
def test_a_policy_is_known_by_whatever_names_it(what, name):
    assert style.identify(what) == name


def test_every_policy_of_the_package_has_a_look_of_its_own():
    names = [name for cls in parse.policies().values() for name in (cls.short, *getattr(cls, "aliases", ()))]
    looks = {name: tuple(map(str, style.find_style(name).values())) for name in [*names, "ds-ts-mu"]}
    assert len(set(looks.values())) == len(looks)
    paper = {tuple(map(str, style.find_style(name).values()))[1:] for name in picture.NAMES}
    assert len(paper) == len(picture.NAMES)  # also without colour


def test_several_curves_of_one_policy_share_its_colour_and_differ_in_the_rest():
    looks = style.find_styles(["ds-ts(gamma=0.9)", "d-ucb", "ds-ts(gamma=0.5)", "ds-ts(gamma=0.1)", "ts"])
    assert looks[1] == style.find_style("d-ucb")
    assert len({(str(one["linestyle"]), one["marker"]) for one in looks}) == 5
    assert [one["color"][1:3] for one in looks][0::2][:2] == ["00", "59"]  # black and a grey of it


def test_d_ucb_looks_alike_in_every_figure():
    own = GREEN, "D"
    # run, compare, plot: alone, after others, under its own label
    for policies in (
        {"d-ucb(gamma=0.9)": "DiscountedUCB(gamma=0.9)"},
        {"ts": "BetaTS()", "ds-ts": "DiscountedTS()", "mine": "DiscountedUCB(gamma=0.9)"},
    ):
        assert shape(drawn(regret.draw(result(policies)), list(policies)[-1])) == own
    # the paper
    assert (picture.style_of("d-ucb")["color"], picture.style_of("d-ucb")["marker"]) == own


def test_d_ucb_looks_the_same_in_a_sweep_and_in_the_field(tmp_path, monkeypatch):
    from driftbandit.lab import Study, Variants, run

    figures = []

    def caught(draw, path, size, dpi=110):
        figures.append(Figure(figsize=size))
        draw(figures[-1])
        return path

    study = Study(["ts", "d-ucb", Variants("ds-ts", gamma=[0.5, 0.9])], [Abrupt(2, 100, 2)], runs=2)
    done = run(study, folder=tmp_path, progress=False, compiled=False)
    monkeypatch.setattr(sweep, "save_chart", caught)
    sweep.save_curves(done, done.grids(), tmp_path / "x.svg")
    assert drawn(figures[-1], "d-ucb").get_color() == GREEN


def test_the_users_own_policy_has_a_strong_colour_that_no_other_has():
    ours = [
        style.find_style(name)
        for cls in parse.policies().values()
        for name in (cls.short, *getattr(cls, "aliases", ()))
    ]
    looks = style.find_styles(["ts", "mine.py:Mine(gamma=0.9)", "d-ucb", "mine.py:Other", "mine.py:Mine(gamma=0.5)"])
    first, other, again = looks[1], looks[3], looks[4]
    for one in (first, other):
        assert one["color"] not in {style["color"] for style in ours}
        red, green, blue = (int(one["color"][place : place + 2], 16) for place in (1, 3, 5))
        assert max(red, green, blue) - min(red, green, blue) > 100  # strong, not grey or pale
        assert one["linewidth"] > 2
    assert len({first["color"], other["color"], again["color"]}) == 3


def test_a_sweeps_map_names_what_is_fixed_and_rings_the_best_of_each_environment(tmp_path, monkeypatch):
    from driftbandit.lab import Study, Variants, run

    figures = []

    def caught(draw, path, size, dpi=110):
        figures.append(Figure(figsize=size, layout="constrained"))
        draw(figures[-1])
        return path

    monkeypatch.setattr(sweep, "save_chart", caught)
    swept = Variants("ds-ts", gamma=[0.5, 0.9], tau_max=[0.1, 0.2], forget_below=[0.0, 1e-8])
    study = Study([swept], [Variants("abrupt(n_arms=2, horizon=100)", "abrupt", phases=[1, 5])], runs=4)
    sweep.save_sweeps(run(study, folder=tmp_path, progress=False, compiled=False), tmp_path)
    maps = [axes for axes in figures[0].axes if axes.images]
    titles = [axes.get_title(loc="left") for axes in maps]
    assert [title.split(", ")[0] for title in titles] == ["abrupt [phases=1]", "abrupt [phases=5]"]
    assert all("forget_below=" in title for title in titles)
    assert [sum(line.get_marker() == "o" for line in axes.lines) for axes in maps] == [1, 1]


@pytest.mark.parametrize("width", [3.6, 4.4, 5.4])
def test_a_narrow_figure_has_its_legend_below_the_axes_and_nothing_cut_off(width):
    figure = regret.draw(result({"ds-ts": "DiscountedTS()", "d-ucb": "DiscountedUCB()"}), "A title " * 12, width)
    figure.draw_without_rendering()
    legend, axes = figure.legends[0].get_window_extent(), figure.axes[0].get_tightbbox()
    assert legend.y1 <= axes.y0 + 1
    assert axes.x1 <= figure.bbox.x1 + 1
    assert legend.x1 <= figure.bbox.x1 + 1
    assert figure.axes[0].get_window_extent().width > 0.6 * figure.bbox.width


def test_a_width_no_page_has_is_refused():
    with pytest.raises(ValueError, match="between 2 and 40 inches"):
        regret.draw(result({"ts": "BetaTS()"}), width=0.1)
