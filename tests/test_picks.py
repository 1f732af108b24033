"""Picking an arm, on rows of lanes: each lane picks what the interpreted function picks from its own numbers."""

import numba
import numpy as np
import pytest

from driftbandit.core import primitives
from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.lab.engine.compiled_draws import lane_stream
from driftbandit.lab.engine.lane_arrays import LaneArray
from driftbandit.lab.engine.numba_methods import OPTIONS

LANES, ROUNDS = 8, 60


def in_lanes(pick, tables):
    """What `pick(values, rng)` gives for every round and lane; `tables` is rounds × arms × lanes."""
    keys = [stream_key(5, lane, POLICY) for lane in range(LANES)]
    n_arms = tables.shape[1]

    @numba.njit(**OPTIONS)
    def play(stream, tables, values, out):
        for t in range(ROUNDS):
            for i in range(n_arms):
                values[i] = tables[t * n_arms + i]
            out[t] = pick(values, stream.at(t))

    out = LaneArray(np.zeros((ROUNDS, LANES), np.int64))
    rows = LaneArray(tables.reshape(ROUNDS * n_arms, LANES))
    play(lane_stream(keys, n_arms), rows, LaneArray(np.zeros((n_arms, LANES))), out)
    streams = [Stream(key) for key in keys]
    single = [
        [pick.py_func(tables[t, :, lane].tolist(), stream.at(t)) for lane, stream in enumerate(streams)]
        for t in range(ROUNDS)
    ]
    return out.array.tolist(), single


@pytest.mark.parametrize(
    ("name", "n_arms"),
    [
        pytest.param(name, n_arms, marks=() if (name, n_arms) == ("argmax_fair", 7) else pytest.mark.long)
        for name in ("argmax", "argmax_fair", "draw_from")
        for n_arms in (1, 2, 7)
    ],
)
def test_every_lane_picks_as_a_single_run_does(name, n_arms):
    rng = np.random.default_rng(3)
    tables = rng.integers(0, 3, (ROUNDS, n_arms, LANES)).astype(float)  # so that many are equal
    tables[0] = np.inf
    if name == "argmax":
        pick = numba.njit(lambda values, rng: primitives.argmax(values), **OPTIONS)
    elif name == "argmax_fair":
        pick = numba.njit(lambda values, rng: primitives.argmax_fair(values, rng), **OPTIONS)
    else:
        tables[0] = 1.0
        tables /= np.maximum(tables.sum(axis=1, keepdims=True), 1.0) * 1.25  # the last arm gets what is missing
        pick = numba.njit(lambda values, rng: primitives.draw_from(values, rng.uniform(0)), **OPTIONS)
    together, single = in_lanes(pick, tables)
    assert together == single
    assert n_arms == 1 or len({arm for row in single for arm in row}) == n_arms
