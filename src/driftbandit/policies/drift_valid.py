"""Which states `DriftTS` can be in: what a snapshot of it is checked by before it is played."""

from typing import Any

import numpy as np

from driftbandit.parameters import within
from driftbandit.policies.drift_bank import (
    CHANGED,
    CHANGES,
    HYPOTHESES,
    LEVEL,
    LEVEL_RATE,
    LEVEL_SPREAD,
    MOVER_RECORD,
    NEVER,
    OLD_PULLS,
    OLD_SUM,
    PULLS,
    RUN_RECORD,
    RUNS,
    SPREAD,
    slots_at,
)
from driftbandit.policies.drift_draw import add_up
from driftbandit.validity import COUNTS, SCRATCH, close, fits, need

_SLACK = 1e-6  # what rounding may leave between sums that should be equal


def validate(state: Any, t: int, like: Any) -> None:
    """Refuse a state that no t rewards lead to: weights that are none, sums at a birth beyond those of today, numbers
    of prior that are not the policy's."""
    known = state.known
    world = np.asarray(known.world)
    weights, changes = world[:HYPOTHESES], world[CHANGES:LEVEL]
    need(((weights >= 0.0) & (weights <= 2.0)).all() and weights.sum() > 1e-100, "weights lie between 0 and 1")
    need(((changes >= 0.0) & (changes <= 1e15)).all(), "a hypothesis has seen 0 changes or more")
    need((np.abs(world[LEVEL:LEVEL_SPREAD]) <= 1e6).all(), "levels are means of rewards")
    need(
        ((world[LEVEL_SPREAD:LEVEL_RATE] >= 0.0) & (world[LEVEL_SPREAD:LEVEL_RATE] <= 2.0)).all(),
        "levels vary by 0 to 2",
    )
    need(
        np.array_equal(world[LEVEL_RATE:], np.asarray(like.known.world)[LEVEL_RATE:]), "the rates are the policy's own"
    )
    sums_up_to = np.array(known.cumulative, float)
    add_up(world, sums_up_to, slots_at(t))
    need(close(sums_up_to, known.cumulative), "the sums of the weights are those of the weights")
    fits(known, sums=COUNTS, pulls=COUNTS, last=within(f"[0, {t}]"), heir_sums=SCRATCH, heir_pulls=SCRATCH)
    fits(state, a=SCRATCH, b=SCRATCH, draws=SCRATCH)
    sums, pulls = np.asarray(known.sums)[:, None], np.asarray(known.pulls)[:, None]
    need((sums <= pulls * (1.0 + _SLACK)).all(), "no arm was paid more than its pulls")
    _validate_runs(np.asarray(known.runs).reshape(-1, RUN_RECORD), sums, pulls)
    movers = np.asarray(known.movers).reshape(-1, MOVER_RECORD)
    need((np.abs(movers[:, :SPREAD]) <= 1e6).all(), "offsets are differences of means")
    need(((movers[:, SPREAD:] > 0.0) & (movers[:, SPREAD:] <= NEVER)).all(), "offsets vary by more than 0")


def _validate_runs(runs: np.ndarray, sums: np.ndarray, pulls: np.ndarray) -> None:
    """What came since a birth is a number of pulls, and rewards for them that lie between 0 and 1."""
    slack = _SLACK * (1.0 + pulls)
    changed = runs[:, CHANGED:OLD_SUM]
    need(((changed >= 0.0) & (changed <= 1.0)).all(), "an arm changed with a probability")
    ends = ((0, PULLS, RUNS), (OLD_SUM, OLD_PULLS, OLD_PULLS - OLD_SUM))
    for first_sum, first_pulls, count in ends:
        since = pulls - runs[:, first_pulls : first_pulls + count]
        won = sums - runs[:, first_sum : first_sum + count]
        need((since >= -slack).all() and (since <= 1e15).all(), "no run counts more pulls than there were")
        need((won >= -slack).all() and (won <= since + slack).all(), "no run was paid more than its pulls")
