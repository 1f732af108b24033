"""A world in which arms change one at a time."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.environments.abrupt import _starts, world_seed
from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.rewards import Bernoulli
from driftbandit.parameters import checked, described, within


@described(
    short="local",
)
@checked
class Local(NamedTuple):
    """Means uniform on [0, 1]; at each of `changes` evenly spaced times one arm, any of them, is redrawn and the others
    stay.

    Forgetting everything at a change throws away what is still true of all other arms.

    >>> world = Local(n_arms=4, horizon=1000, changes=9).realise(3)
    >>> before, after = world.means(99, 101)
    >>> int((before != after).sum())
    1
    """

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    changes: Annotated[int, within(">= 0")] = 40
    world: str = "fresh"  # or a number in quotes, the same world for all runs
    law: Any = Bernoulli()

    def validate(self) -> None:
        """Refuse more changes than there are rounds to make them in, and an unknown `world`."""
        own_seed(self, 0)
        if self.changes >= self.horizon:
            raise ValueError(f"Local needs changes < horizon; got {self.changes} changes in {self.horizon} rounds.")

    @property
    def phases(self) -> int:
        """Stretches without any change."""
        return self.changes + 1

    def realise(self, key: int) -> Phased:
        """The world of one run."""
        return _local(self, own_seed(self, key))


def own_seed(spec: Any, key: int) -> int:
    """The seed behind `world`, for worlds that the authors' code does not have."""
    seed = None if spec.world == "authors" else world_seed(spec.world, key)
    if seed is None:
        raise ValueError(
            f'The authors\' code has no {type(spec).__name__} world; give "fresh" or a number in quotes such as "7".'
        )
    return seed


@lru_cache(maxsize=256)
def _local(spec: Local, seed: int) -> Phased:
    rng = np.random.default_rng(seed)
    table = np.tile(rng.uniform(0, 1, spec.n_arms), (spec.phases, 1))
    for phase in range(1, spec.phases):
        table[phase:, rng.integers(spec.n_arms)] = rng.uniform(0, 1)
    return phased(table, _starts(spec.horizon, spec.phases), spec.horizon, spec.law)
