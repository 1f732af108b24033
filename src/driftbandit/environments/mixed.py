"""A world in which arms differ in how they change: some stay, some jump, some wander."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.environments.local import own_seed
from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.rewards import Bernoulli
from driftbandit.environments.seasonal import stepped
from driftbandit.parameters import checked, described, within


@described(
    short="mixed",
)
@checked
class Mixed(NamedTuple):
    """Arms 0, 3, 6, .. stay where they are; arms 1, 4, .. jump, each on its own, `jumps` times on average; arms 2, 5,
    .. wander, reflected at 0 and 1, by about `wander` over the whole horizon.

    All begin uniform on [0, 1]. Means move at the beginnings of `steps` equal steps.

    >>> first, last = Mixed(n_arms=3, horizon=1000, steps=100).realise(5).means(0, 1000)[[0, -1]]
    >>> [bool(moved) for moved in first != last]
    [False, True, True]
    """

    n_arms: Annotated[int, within(">= 1")] = 6
    horizon: Annotated[int, within(">= 1")] = 100_000
    jumps: Annotated[float, within(">= 0")] = 5.0
    wander: Annotated[float, within(">= 0")] = 1.0
    steps: Annotated[int, within(">= 1")] = 1_000
    world: str = "fresh"  # or a number in quotes, the same world for all runs
    law: Any = Bernoulli()

    def validate(self) -> None:
        """Refuse an unknown `world`."""
        own_seed(self, 0)

    def realise(self, key: int) -> Phased:
        """The world of one run."""
        return _mixed(self, own_seed(self, key))


@lru_cache(maxsize=256)
def _mixed(spec: Mixed, seed: int) -> Phased:
    rng = np.random.default_rng(seed)
    starts, _ = stepped(spec.horizon, spec.steps)
    count = len(starts)
    table = np.empty((count, spec.n_arms))
    for arm in range(spec.n_arms):
        anew = rng.uniform(0, 1, count)
        jumps = rng.uniform(0, 1, count) < spec.jumps / count
        steps = rng.standard_normal(count) * spec.wander / np.sqrt(count)
        jumps[0], steps[0] = True, 0.0
        if arm % 3 == 0:
            table[:, arm] = anew[0]
        elif arm % 3 == 1:
            table[:, arm] = anew[np.maximum.accumulate(np.where(jumps, np.arange(count), 0))]
        else:
            table[:, arm] = np.abs((anew[0] + np.cumsum(steps) + 1.0) % 2.0 - 1.0)  # a walk folded into [0, 1]
    return phased(table, starts, spec.horizon, spec.law)
