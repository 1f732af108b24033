"""A world in which one arm keeps improving to the end."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.rewards import Bernoulli
from driftbandit.environments.seasonal import stepped
from driftbandit.parameters import checked, described, within


@described(
    short="rising",
)
@checked
class Rising(NamedTuple):
    """The last arm rises in a straight line from `first` to `last` while the others stay, evenly spaced from `lowest`
    to `highest`: a newcomer that learns, or a model being trained.

    It is the worst arm at first, so a policy that has made up its mind does not see it pass the others. Means move in
    `steps` equal steps.

    >>> world = Rising(n_arms=3, horizon=900, steps=900).realise(0)
    >>> world.best_arm(0), world.best_arm(899)
    (1, 2)
    """

    n_arms: Annotated[int, within(">= 2")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    first: Annotated[float, within("[0, 1]")] = 0.1
    last: Annotated[float, within("[0, 1]")] = 0.9
    lowest: Annotated[float, within("[0, 1]")] = 0.3
    highest: Annotated[float, within("[0, 1]")] = 0.6
    steps: Annotated[int, within(">= 1")] = 2_000
    law: Any = Bernoulli()

    def realise(self, key: int) -> Phased:
        """The same world for every run."""
        return _rising(self)


@lru_cache(maxsize=64)
def _rising(spec: Rising) -> Phased:
    starts, middle = stepped(spec.horizon, spec.steps)
    table = np.empty((len(starts), spec.n_arms))
    table[:, :-1] = np.linspace(spec.lowest, spec.highest, spec.n_arms - 1)
    table[:, -1] = spec.first + (spec.last - spec.first) * middle / spec.horizon
    return phased(table, starts, spec.horizon, spec.law)
