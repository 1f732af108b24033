"""A world of rare rewards: clicks and purchases, a few in a hundred or in a thousand."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.environments.abrupt import _starts
from driftbandit.environments.local import own_seed
from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.rewards import Bernoulli
from driftbandit.parameters import checked, described, within


@described(
    short="rare",
)
@checked
class Rare(NamedTuple):
    """All means are redrawn at the start of each of `phases` equal phases, uniformly on [0, `highest`].

    The abrupt world with its means scaled down: the same question with far less evidence per round.

    >>> float(Rare(highest=0.05).realise(1).best(0)) <= 0.05
    True
    """

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    highest: Annotated[float, within("(0, 1]")] = 0.05
    world: str = "fresh"  # or a number in quotes, the same world for all runs
    law: Any = Bernoulli()

    def validate(self) -> None:
        """Refuse more phases than rounds and an unknown `world`."""
        own_seed(self, 0)
        if self.phases > self.horizon:
            raise ValueError(f"Rare needs phases <= horizon; got {self.phases} phases in {self.horizon} rounds.")

    def realise(self, key: int) -> Phased:
        """The world of one run."""
        return _rare(self, own_seed(self, key))


@lru_cache(maxsize=256)
def _rare(spec: Rare, seed: int) -> Phased:
    table = spec.highest * np.random.default_rng(seed).uniform(0, 1, (spec.phases, spec.n_arms))
    return phased(table, _starts(spec.horizon, spec.phases), spec.horizon, spec.law)
