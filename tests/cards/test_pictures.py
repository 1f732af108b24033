"""The pictures show what the library computed."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from driftbandit import Bandit
from driftbandit.field.figures import choose_spots, join_memories
from driftbandit.field.suite import find_short_name
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies import DiscountedTS
from small_policies import play_arm
from tools.site import change, colours, decision, field_map, pictures

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    into = tmp_path_factory.mktemp("pictures") / "_made"
    pictures.write(into, quick=True)
    return into


def test_all_pictures_are_written_for_light_and_dark_pages(written):
    for name in ("change", "map", "decision"):
        for side in colours.SIDES:
            svg = (written / f"{name}-{side}.svg").read_text()
            ElementTree.fromstring(svg)
            assert (colours.INK in svg) == (side == "light")
        assert f"{{image}} /_made/{name}-dark.svg" in (written / f"{name}.md").read_text()


def test_a_second_call_writes_nothing(written):
    before = {path.name: path.stat().st_mtime_ns for path in written.iterdir()}
    pictures.write(written, quick=True)
    assert before == {path.name: path.stat().st_mtime_ns for path in written.iterdir()}


def test_the_sliders_hold_the_trajectories_of_the_library(written):
    found = re.search(r'id="forgetting-data">(.*?)</script>', (written / "forgetting.html").read_text())
    data = json.loads(found[1])
    assert found[1] in (written / "forgetting.md").read_text()
    for gamma, row in zip(data["gammas"], data["runs"], strict=True):
        for tau, shown in zip(data["taus"], row, strict=True):
            policy = DiscountedTS(gamma, tau)
            played = simulate(policy, change.ENVIRONMENT, 1, first_run=change.RUN, trajectories=True, compiled=False,
                              progress=False)  # fmt: skip
            assert shown["arms"] == "".join(map(str, played.arms[0]))
            assert shown["rewards"] == "".join(str(int(x)) for x in played.rewards[0])
            bandit = Bandit(2, policy)
            for t in range(change.HORIZON + 1):
                belief = policy.belief(bandit.state)
                for arm in range(2):
                    assert shown["mean"][arm][t] == round(belief.mean[arm] * data["scale"])
                    assert shown["sd"][arm][t] == round(belief.sd[arm] * data["scale"])
                if t < change.HORIZON:
                    play_arm(bandit, int(played.arms[0][t]), float(played.rewards[0][t]))


def test_the_idle_arm_of_the_figure_keeps_its_mean_while_its_spread_grows_to_tau_max():
    run = change.path()
    arm, start, end = change.telling(run)
    assert (run.arms[start:end] != arm).all()
    assert run.arms[end] == arm  # tried again
    assert np.ptp(run.mean[start : end + 1, arm]) == 0.0
    assert (np.diff(run.sd[start : end + 1, arm]) >= 0.0).all()
    assert run.sd[start, arm] < 0.75 * change.SHOWN.tau_max
    assert run.sd[end, arm] == change.SHOWN.tau_max
    assert start > change.CHANGE


def test_the_map_holds_the_policies_that_were_tuned():
    found = field_map.spots()
    points = choose_spots(found)
    assert {"ds-ts", "ts", "sw-ucb", "drift-ts"} <= set(points)
    assert "uniform" not in points
    for line in join_memories(found):
        assert len({find_short_name(spot.label) for spot in line}) == 1
    assert points["ts"].still < points["sw-ucb"].still  # forgetting costs where nothing changes
    assert points["ts"].changing > points["sw-ucb"].changing


def test_the_drawing_of_a_decision_names_its_five_steps():
    text = " ".join(ElementTree.fromstring(decision.drawing()).itertext())
    for word in ("decide", "journal", "reward", "fold", "audit"):
        assert word in text
