"""A world whose weather moves all arms together and leaves their order alone."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.environments.abrupt import _starts
from driftbandit.environments.local import own_seed
from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.rewards import Bernoulli
from driftbandit.parameters import checked, described, within


@described(
    short="common",
)
@checked
class CommonShift(NamedTuple):
    """Arms evenly spaced from `lowest` to `highest`, all moved by the same normal shift of spread `sd`, a new one each
    day; means are cut to [0, 1].

    Weather, weekends and sales do this. The best arm never changes, so nothing should be forgotten, and yet every arm's
    own record looks like change.

    >>> world = CommonShift(n_arms=3, sd=0.05).realise(1)
    >>> monday, tuesday = world.means(99, 101)
    >>> [round(float(shift), 12) for shift in (tuesday - monday) - (tuesday - monday)[0]]
    [0.0, 0.0, 0.0]
    """

    n_arms: Annotated[int, within(">= 1")] = 9
    horizon: Annotated[int, within(">= 1")] = 36_500
    days: Annotated[int, within(">= 1")] = 365
    sd: Annotated[float, within(">= 0")] = 0.2
    lowest: Annotated[float, within("[0, 1]")] = 0.55
    highest: Annotated[float, within("[0, 1]")] = 0.74
    world: str = "fresh"  # or a number in quotes, the same world for all runs
    law: Any = Bernoulli()

    def validate(self) -> None:
        """Refuse more days than rounds and an unknown `world`."""
        own_seed(self, 0)
        if self.days > self.horizon:
            raise ValueError(f"CommonShift needs days <= horizon; got {self.days} days in {self.horizon} rounds.")

    @property
    def phases(self) -> int:
        """The best arm stays the best."""
        return 1

    def realise(self, key: int) -> Phased:
        """The world of one run."""
        return _common(self, own_seed(self, key))


@lru_cache(maxsize=256)
def _common(spec: CommonShift, seed: int) -> Phased:
    shifts = spec.sd * np.random.default_rng(seed).standard_normal(spec.days)
    levels = np.linspace(spec.lowest, spec.highest, spec.n_arms)
    table = np.clip(levels + shifts[:, None], 0.0, 1.0)
    return phased(table, _starts(spec.horizon, spec.days), spec.horizon, spec.law)
