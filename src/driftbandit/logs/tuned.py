"""How fast to forget: a half-life chosen on the first part of a log and judged on the last, or a plain "cannot tell".

The follower of every candidate runs over the whole log; `advice` chooses and judges. In a world that stands still a
half-life is recommended in fewer than one log of twenty."""

from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandit.logs.advice import Tuned, advise, parts
from driftbandit.logs.candidates import candidates
from driftbandit.logs.drift_check import drift
from driftbandit.logs.follow import Followed, follow
from driftbandit.logs.half_lives import (
    NO_TUNING,
    checked_grid,
    family,
    grid_candidates,
    half_life_grid,
    spread_candidates,
    untuned_candidates,
)
from driftbandit.logs.log import Log
from driftbandit.logs.refusals import refuse_what_cannot_tell
from driftbandit.logs.replayed import refuse_few_blocks


def tune(
    log: Log,
    *,
    block: Any = None,
    half_lives: Any = None,
    by_clock: bool = True,
    others: Any = (),
    untuned: Any = NO_TUNING,
    seed: int = 0,
    compiled: bool = True,
    progress: bool | Callable[[float], None] = False,
) -> Tuned:
    """Choose how fast to forget. `half_lives` replaces the grid; with by_clock=False they count rewards; `others` adds
    policies of your own; `untuned` are those without a half-life that may win instead."""
    refuse_what_cannot_tell(log)
    found = drift(log, block=block, seed=seed)
    grid = half_life_grid(log, by_clock) if half_lives is None else checked_grid(half_lives)
    unit = log.summary.said_in
    tried = [*grid_candidates(log, grid, by_clock), *untuned_candidates(log, untuned)]
    there = {candidate.label for candidate in tried}
    tried += [candidate for candidate in candidates(others, unit) if candidate.label not in there]
    followed = follow(log, tried, block=block, seed=seed, compiled=compiled, progress=progress)
    refuse_few_blocks(int((followed.events > 0).sum()))
    spread = spread_candidates(grid, _best_spread_half_life(followed, grid), by_clock, unit)
    followed = _joined(followed, follow(log, spread, block=block, seed=seed, compiled=compiled, progress=progress))
    return advise(log, followed, found, grid, by_clock)._replace(about=log.about)


def _best_spread_half_life(followed: Followed, grid: list[float]) -> float:
    """The half-life of the grid with which DS-TS earns most in the first part."""
    first, _ = parts(followed)
    values = followed.value[first].sum(axis=0)
    mine = [at for at, c in enumerate(followed.candidates) if family(c) == "ds-ts" and c.forgets in grid]
    return followed.candidates[max(mine, key=lambda at: values[at])].forgets


def _joined(one: Followed, two: Followed) -> Followed:
    columns = ("value", "noise", "weight", "weight2", "weighted", "accepted", "earned")
    both: dict[str, Any] = {name: np.concatenate([getattr(one, name), getattr(two, name)], axis=1) for name in columns}
    return one._replace(candidates=[*one.candidates, *two.candidates], **both)
