"""A world of long calms and short storms."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.environments.local import own_seed
from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.rewards import Bernoulli
from driftbandit.parameters import checked, described, within


@described(
    short="bursts",
)
@checked
class Bursts(NamedTuple):
    """Calm, except for `bursts` storms: in each, all means are redrawn `changes` times, `every` rounds apart.

    Storms begin in the middle of `bursts` equal parts of the horizon. No single rate of forgetting suits both the calm
    and the storm.

    >>> world = Bursts(n_arms=2, horizon=1000, bursts=2, changes=3, every=10).realise(0)
    >>> world.breakpoints.tolist()
    [0, 250, 260, 270, 750, 760, 770]
    """

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    bursts: Annotated[int, within(">= 1")] = 5
    changes: Annotated[int, within(">= 1")] = 10  # in each burst
    every: Annotated[int, within(">= 1")] = 200  # rounds between the changes of a burst
    world: str = "fresh"  # or a number in quotes, the same world for all runs
    law: Any = Bernoulli()

    def validate(self) -> None:
        """Refuse bursts that run into the next part of the horizon, and an unknown `world`."""
        own_seed(self, 0)
        room = self.horizon // (2 * self.bursts)
        if self.changes * self.every > room or room < 1:
            raise ValueError(
                f"Bursts needs changes * every <= horizon / (2 bursts), here {room}; got {self.changes * self.every}."
            )

    @property
    def phases(self) -> int:
        """Stretches without any change."""
        return self.bursts * self.changes + 1

    def realise(self, key: int) -> Phased:
        """The world of one run."""
        return _bursts(self, own_seed(self, key))


@lru_cache(maxsize=256)
def _bursts(spec: Bursts, seed: int) -> Phased:
    storms = [(2 * burst + 1) * spec.horizon // (2 * spec.bursts) for burst in range(spec.bursts)]
    starts = [0, *(storm + spec.every * change for storm in storms for change in range(spec.changes))]
    table = np.random.default_rng(seed).uniform(0, 1, (len(starts), spec.n_arms))
    return phased(table, starts, spec.horizon, spec.law)
