"""What a notebook shows: every answer as a table, whole in itself, with text from outside as text."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from driftbandit.environments import phased

pytest.importorskip("numba")
SWAPS = phased([[0.25, 0.65, 0.4], [0.65, 0.25, 0.4]] * 4, range(0, 4000, 500), 4000)


def page_of(shown):
    """The HTML, read as a browser would: well formed, without script or anything fetched."""
    html = shown._repr_html_()
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", html)
    return ElementTree.fromstring(f"<div>{html.replace('<br>', '<br/>').replace('&nbsp;', ' ')}</div>"), html


def test_answers_about_a_log_show_their_table_and_their_sentence():
    from driftbandit.logs import Log, drift, replay

    rng = np.random.default_rng(1)
    means = SWAPS.means(0, SWAPS.horizon)
    arm = rng.integers(0, means.shape[1], len(means))
    reward = rng.random(len(means)) < means[np.arange(len(means)), arm]
    log = Log({"time": np.arange(len(means)), "arm": arm, "reward": reward}, propensity="uniform")
    found = drift(log)
    tree, _ = page_of(found)
    assert len(tree.findall(".//tbody/tr")) == len(found.scales)
    assert {found.sentence, found.recommendation} <= {part.text for part in tree.iter("p")}
    tree, _ = page_of(replay(log, ["ts"], own=False))
    assert tree.find(".//tbody/tr/td").text == "ts"
