"""Arbitrary bounded rewards: each arm pays one of a few amounts (the paper's "arbitrarily generated" rewards, section
5.1)."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import described, within
from driftbandit.environments.phased import Phased, drawn, equal_starts, instance_seed, means_of_base, phased
from driftbandit.environments.rewards import Constant


@described(pays="[0, 1]")
@means_of_base
class FinitePhased(NamedTuple):
    """A piecewise-constant environment whose rewards come from a finite support, ready to play."""

    n_arms: int
    horizon: int
    base: Phased
    points: int
    support: Any  # amount d of arm i in phase p at (p * n_arms + i) * points + d
    cumulative: Any  # probability of amounts 0..d, in the same layout

    def pull(self, t: int, arm: int, rng: Any) -> float:
        first = (self.base.phase(t) * self.n_arms + arm) * self.points
        u = rng.uniform(0)
        d = 0
        while d < self.points - 1 and u >= self.cumulative[first + d]:
            d += 1
        return self.support[first + d] + 0.0  # type: ignore[no-any-return]


@drawn("finite", authors=True, pays="[0, 1]")
class AbruptFinite(NamedTuple):
    """Each arm pays one of `points` amounts drawn from [0, 1], with probabilities redrawn in each phase.

    The amounts are redrawn in each phase too. The authors' code has one probability vector per phase for all arms
    (`shared_probabilities=True`); it also draws one per arm and throws it away, which `shared_probabilities=False`
    uses. They never report a result with these rewards. `instance="authors"` is their seed-0 environment."""

    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 100_000
    phases: Annotated[int, within(">= 1")] = 10
    points: Annotated[int, within(">= 1")] = 5
    shared_probabilities: bool = True
    instance: str = "fresh"

    def realise(self, key: int) -> FinitePhased:
        return _finite(self, instance_seed(self, key))


@lru_cache(maxsize=256)
def _finite(spec: AbruptFinite, seed: int | None) -> FinitePhased:
    shape = (spec.phases, spec.n_arms, spec.points)
    if seed is None:
        support, own, shared = _authors(*shape)
    else:
        rng = np.random.default_rng(seed)
        support, own, shared = rng.uniform(0, 1, shape), rng.uniform(1, 10, shape), rng.uniform(1, 10, shape)[:, :1]
    weights = np.broadcast_to(shared if spec.shared_probabilities else own, shape)
    probabilities = weights / weights.sum(axis=2, keepdims=True)
    base = phased(
        (support * probabilities).sum(axis=2), equal_starts(spec.horizon, spec.phases), spec.horizon, Constant()
    )
    cumulative = probabilities.cumsum(axis=2)
    return FinitePhased(spec.n_arms, spec.horizon, base, spec.points, support.ravel().copy(), cumulative.ravel().copy())


def _authors(phases: int, n_arms: int, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The draws of the authors' generator, phase by phase: amounts and unused weights per arm, then the weights that
    all arms share."""
    legacy = np.random.RandomState(0)
    drawn = [(legacy.uniform(0, 1, (n_arms, 2, points)), legacy.uniform(1, 10, points)) for _ in range(phases)]
    own = np.array([pair[0] for pair in drawn])
    return own[:, :, 0], own[:, :, 1], np.array([pair[1] for pair in drawn])[:, None]
