"""Every policy as a good NumPy user would write it: the yardstick of `python -m benchmarks.speed`.

Straightforward on purpose: arrays over arms, one `Generator`, no compiler, and no trick that would need explaining.
They follow the same definitions as the package (docs and `tests/naive`), from other random numbers, so their regret
agrees with ours within sampling error; `tests/test_bench.py` checks that for each. A loop takes the package's policy as
`p` and reads the parameters off it. Rewards are the 0s and 1s of the workload, and options that the workload leaves off
(a warm-up, optimism, a term with ln ln) are left out.

What looks back on its record does so over the whole of it, round after round: GLR-klUCB tests every split, the two CTS
weigh every run they keep. Such loops become slower as rounds go on."""

import math
import time
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from . import adaptive, baseline, changepoint, detectors, exponential, mixture, subsampling, thompson, ucb, unimodal
from .common import LOOPS

__all__ = ["LOOPS", "Played", "play"]

_FAMILIES = (adaptive, baseline, changepoint, detectors, exponential, mixture, subsampling, thompson, ucb, unimodal)
_GLANCE = 32  # rounds between two looks at the clock, which costs as much as a tenth of a short round


class Played(NamedTuple):
    """What became of a run."""

    regret: float
    rounds: int  # played before a limit, or the end, was reached


def play(name, policy, table, horizon, seed, rounds=math.inf, seconds=math.inf):
    """One run in an environment of equal phases with the means of `table` (phases × arms). It ends early after so many
    `rounds`, or soon after it has taken so many `seconds` of CPU time."""
    n_phases, n_arms = table.shape
    starts = [phase * horizon // n_phases for phase in range(n_phases + 1)]
    rng, rewards_rng = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    regret, until = 0.0, time.thread_time() + seconds
    player = LOOPS[name](policy, n_arms, rng)
    if hasattr(player, "look"):  # only oracles do
        player.look(table, starts[:-1])
    for phase, (start, stop) in enumerate(pairwise(starts)):
        means = table[phase].tolist()
        best = max(means)
        for t, u in zip(range(start, stop), rewards_rng.random(stop - start).tolist(), strict=True):
            if t >= rounds or (t % _GLANCE == 0 and time.thread_time() > until):
                return Played(regret, t)
            arm = player.choose(t)
            player.learn(t, arm, 1.0 if u < means[arm] else 0.0)
            regret += best - means[arm]
    return Played(regret, horizon)
