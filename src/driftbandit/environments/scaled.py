"""Environments whose rewards have any scale and law: the field that DriftLinTS is measured in."""

from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.environments.phased import Repaid, phased
from driftbandit.environments.rewards import (
    Bernoulli,
    BetaLaw,
    Constant,
    Gaussian,
    LogNormal,
    Outliers,
    Poisson,
    Purchases,
    check_law,
)

KINDS = ("abrupt", "stationary", "smooth", "local", "common", "trap", "rising")
# How values in [0, 1] become means, and the law of rewards around these.
LAWS: dict[str, tuple[Any, Any]] = {
    "gauss-0.01": (lambda v: v, Gaussian(0.01)),
    "gauss-0.1": (lambda v: v, Gaussian(0.1)),
    "gauss-1": (lambda v: v, Gaussian(1.0)),
    "large": (lambda v: 5000.0 + 1000.0 * v, Gaussian(100.0)),
    "binary": (lambda v: v, Bernoulli()),
    "revenue": (lambda v: 0.1 * np.exp(0.5) * v, Purchases(float(np.exp(0.5)), 1.0)),
    "latency": (lambda v: -np.exp(1.5 - v), LogNormal(1.0)),
    "beta": (lambda v: 0.1 + 0.8 * v, BetaLaw(50.0)),
    "counts": (lambda v: 10.0 * v, Poisson()),
    "noise-changes": (lambda v: v, Gaussian(0.05)),
    "outliers": (lambda v: v, Outliers(0.1, 50.0, 5e-4)),
}


class AnyLaw(NamedTuple):
    """One of several laws, by its number: one type to the compiler, so that a policy is compiled once for all."""

    number: int  # the position of the law among those that follow, from 0
    gaussian: Any = Gaussian()
    bernoulli: Any = Bernoulli()
    purchases: Any = Purchases()
    log_normal: Any = LogNormal()
    beta: Any = BetaLaw()
    poisson: Any = Poisson()
    outliers: Any = Outliers()

    @classmethod
    def of(cls, law: Any) -> Any:
        """The law as one of these; a law of another type, such as a user's own, as it is."""
        laws = cls(0)[1:]
        if type(law) not in map(type, laws):
            return law
        number = [type(one) for one in laws].index(type(law))
        return cls(number, *(law if at == number else one for at, one in enumerate(laws)))

    @property
    def pays(self) -> str:
        laws: tuple[Any, ...] = self[1:]
        return str(laws[self.number].pays)

    def draw(self, mean: Any, rng: Any) -> Any:
        if self.number == 0:
            return self.gaussian.draw(mean, rng)
        if self.number == 1:
            return self.bernoulli.draw(mean, rng)
        if self.number == 2:
            return self.purchases.draw(mean, rng)
        if self.number == 3:
            return self.log_normal.draw(mean, rng)
        if self.number == 4:
            return self.beta.draw(mean, rng)
        if self.number == 5:
            return self.poisson.draw(mean, rng)
        return self.outliers.draw(mean, rng)


class LouderInTurn(NamedTuple):
    """Pays by a law, with ten times the noise in every second stretch of rounds, if there are any."""

    law: AnyLaw
    stretch: int  # rounds before the noise changes; 0: it does not

    @property
    def pays(self) -> str:
        return self.law.pays

    def pay(self, base: Any, t: int, arm: Any, rng: Any) -> Any:
        mean = base.mean(t, arm)
        reward = self.law.draw(mean, rng)
        if self.stretch > 0 and (t // self.stretch) % 2 == 1:
            return mean + 10.0 * (reward - mean)
        return reward


@described(short="scaled")
@checked
class Scaled(NamedTuple):
    """Values in [0, 1] that change by `kind`, turned into rewards of the law `reward`, some far from [0, 1].

    Kinds: "abrupt" (10 phases), "stationary", "smooth" (a random walk), "local" (one of the arms jumps, 19 times),
    "common" (all arms shift together every 100 rounds), "trap" (an idle arm becomes the best at half time), "rising"
    (the worst arm climbs to the top). Rewards: "gauss-0.01", "gauss-0.1", "gauss-1", "large" (means around 5,500),
    "binary", "revenue" (mostly 0), "latency" (negative, with a long tail), "beta", "counts", "noise-changes",
    "outliers"."""

    kind: str = "abrupt"
    reward: str = "gauss-0.1"
    n_arms: Annotated[int, within(">= 1")] = 5
    horizon: Annotated[int, within(">= 1")] = 20_000

    def validate(self) -> None:
        for name, value, known in (("kind", self.kind, KINDS), ("reward", self.reward, tuple(LAWS))):
            if value not in known:
                raise ValueError(f"{name} is one of {', '.join(known)}; got {value!r:.60}.")

    def realise(self, key: int) -> Repaid:
        return _make_scaled(self, key)


@lru_cache(maxsize=64)
def _make_scaled(spec: Scaled, key: int) -> Repaid:
    values = _values(spec, np.random.default_rng(key))
    starts = np.append(0, 1 + np.flatnonzero((np.diff(values, axis=0) != 0.0).any(axis=1)))
    means, law = LAWS[spec.reward]
    table = means(values[starts])
    check_law(law, float(table.min()), float(table.max()))
    stretch = max(1, spec.horizon // 8) if spec.reward == "noise-changes" else 0
    base = phased(table, starts, spec.horizon, Constant())
    return Repaid(spec.n_arms, spec.horizon, base, LouderInTurn(AnyLaw.of(law), stretch))


def _values(spec: Scaled, rng: np.random.Generator) -> np.ndarray:
    """The value of every arm in every round."""
    rounds, arms = spec.horizon, spec.n_arms
    if spec.kind in ("abrupt", "stationary"):
        phases = 10 if spec.kind == "abrupt" else 1
        return rng.uniform(0, 1, (phases, arms))[np.arange(rounds) * phases // rounds]
    if spec.kind == "smooth":
        steps = rng.normal(0, 0.01 * np.sqrt(20_000 / rounds), (rounds, arms))
        steps[0] = rng.uniform(0, 1, arms)
        return np.asarray(np.abs((np.cumsum(steps, axis=0) + 1.0) % 2.0 - 1.0))
    if spec.kind == "local":
        rows = [rng.uniform(0, 1, arms)]
        for _ in range(19):
            rows.append(rows[-1].copy())
            rows[-1][rng.integers(arms)] = rng.uniform()
        return np.array(rows)[np.arange(rounds) * 20 // rounds]
    if spec.kind == "common":
        shift = rng.normal(0, 0.15, -(-rounds // 100))[np.arange(rounds) // 100]
        return np.clip(rng.permutation(np.linspace(0.4, 0.6, arms)) + shift[:, None], 0.01, 0.99)
    if spec.kind == "trap":
        values = np.full((rounds, arms), 0.1)
        values[:, 0] = 0.5
        values[rounds // 2 :, -1] = 0.9
        return values
    values = np.tile(np.linspace(0.3, 0.6, arms), (rounds, 1))
    values[:, -1] = np.linspace(0.1, 0.9, rounds)
    return values
