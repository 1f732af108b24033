"""A world that punishes complacency: an arm that nobody plays any more becomes the best."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.rewards import Bernoulli
from driftbandit.parameters import checked, described, within


@described(
    short="trap",
)
@checked
class Trap(NamedTuple):
    """The first arm pays `level` for ever and all others `others`, until the last one jumps to `jump` half-way through.

    Nothing that a good policy sees changes: the arm it plays pays as before. Only playing bad arms again finds the
    jump, and in a world that stands still that is pure loss (Garivier and Moulines 2011 make this a bound). Compare it
    with a stationary world: the two together show what a policy pays for watching.

    >>> world = Trap(n_arms=3, horizon=100).realise(0)
    >>> [float(world.mean(t, 2)) for t in (49, 50)]
    [0.1, 0.9]
    """

    n_arms: Annotated[int, within(">= 2")] = 5
    horizon: Annotated[int, within(">= 2")] = 100_000
    level: Annotated[float, within("[0, 1]")] = 0.5
    others: Annotated[float, within("[0, 1]")] = 0.1
    jump: Annotated[float, within("[0, 1]")] = 0.9
    law: Any = Bernoulli()

    @property
    def phases(self) -> int:
        """Before the jump and after it."""
        return 2

    def realise(self, key: int) -> Phased:
        """The same world for every run."""
        return _trap(self)


@lru_cache(maxsize=64)
def _trap(spec: Trap) -> Phased:
    before = [spec.level, *[spec.others] * (spec.n_arms - 1)]
    after = [*before[:-1], spec.jump]
    return phased([before, after], [0, spec.horizon // 2], spec.horizon, spec.law)
