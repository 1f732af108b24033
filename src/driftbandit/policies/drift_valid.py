"""Which states `DriftTS` can be in: what a snapshot of it is checked by before it is played."""

from typing import Any

import numpy as np

from driftbandit.parameters import within
from driftbandit.policies.drift_bank import (
    CHANGES,
    HYPOTHESES,
    LEVEL,
    LEVEL_SPREAD,
    LOSSES,
    MOVER_RECORD,
    OFFSET,
    RUN_RECORD,
    SPREAD,
    slots_at,
)
from driftbandit.policies.drift_draw import add_up
from driftbandit.validity import COUNTS, SCRATCH, close, fits, need

_SLACK = 1e-6  # what rounding may leave between sums that should be equal


def validate(state: Any, t: int, like: Any) -> None:
    """Refuse a state that no t rewards lead to: weights that are none, sums at a birth beyond those of today, rates
    that are not the policy's."""
    known = state.known
    world = np.asarray(known.world)
    weights, changes = world[:HYPOTHESES], world[CHANGES:LEVEL]
    need(((weights >= 0.0) & (weights <= 2.0)).all() and weights.sum() > 1e-100, "weights lie between 0 and 1")
    need(((changes >= 0.0) & (changes <= 1e15)).all(), "a hypothesis has seen 0 changes or more")
    need((np.abs(world[LEVEL:LEVEL_SPREAD]) <= 1e6).all(), "levels are means of rewards")
    need(((world[LEVEL_SPREAD:] >= 0.0) & (world[LEVEL_SPREAD:] <= 2.0)).all(), "levels vary by 0 to 2")
    need(np.array_equal(known.rates, like.known.rates), "the rates are the policy's own")
    sums_up_to = np.array(known.cumulative, float)
    add_up(world, sums_up_to, slots_at(t))
    need(close(sums_up_to, known.cumulative), "the sums of the weights are those of the weights")
    fits(known, wins=COUNTS, losses=COUNTS, last=within(f"[0, {t}]"), changed=within("[0, 1]"))
    fits(state, a=SCRATCH, b=SCRATCH, draws=SCRATCH)
    rewards = float(np.sum(known.wins) + np.sum(known.losses))
    need(abs(rewards - t) <= _SLACK * (1.0 + t), "every reward is a win, a loss or a part of each")
    runs = np.asarray(known.runs).reshape(-1, RUN_RECORD)
    for sums, at in ((known.wins, runs[:, :LOSSES]), (known.losses, runs[:, LOSSES:])):
        now = np.asarray(sums)[:, None]
        since = now - at
        need((since >= -_SLACK * (1.0 + now)).all() and (since <= 1e15).all(), "no run counts more than there was")
    movers = np.asarray(known.movers).reshape(-1, MOVER_RECORD)
    need(((movers[:, :OFFSET] >= 0.0) & (movers[:, :OFFSET] <= 1e15)).all(), "drifters count 0 or more")
    need((np.abs(movers[:, OFFSET:SPREAD]) <= 1e6).all(), "offsets are differences of means")
    need(((movers[:, SPREAD:] > 0.0) & (movers[:, SPREAD:] <= 1.0)).all(), "offsets vary by more than 0")
