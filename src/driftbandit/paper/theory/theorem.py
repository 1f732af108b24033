"""Theorems 1 and 2 of the paper as numbers with their conditions, and the orders of Table 1.

The letters are functions of eps = 1 - gamma, because the bounds fall below T only near eps = 1e-20, where 1 - eps is
exactly 1 in floating point. Numbers that may exceed a float are given by their natural logarithm, `log_...`.

Both theorems bound E k_T(i), the plays of one arm in rounds where it is not the best. Regret is at most the sum over
the arms that are ever sub-optimal, which the paper leaves out: `arms` is how many they are. Rounds near a change
(Theorem 1) or with close arms (Theorem 2) count once in that sum, because a round has one play.

The bounds are as the proofs give them. Theorem 1 as printed is larger by another factor G. One step of its proof
multiplies a random number of rounds by a bound on E[1/p] that does not hold conditionally on those rounds."""

import math
from typing import NamedTuple

import numpy as np

SQRT2 = math.sqrt(2.0)
LARGEST_EPS = math.exp(-1.0)  # the theorems need gamma > 1 - 1/e


def log_add(*logs: float) -> float:
    """ln(e^a + e^b + ...)."""
    return float(np.logaddexp.reduce(logs))


def log_D(eps: float) -> float:
    """ln D(gamma)."""
    lam = -math.log(eps)
    return math.log(2.0 * lam - math.log(lam)) - math.log(-math.log1p(-eps))


def D(eps: float) -> float:
    """D(gamma) = ln(eps^2 ln(1/eps)) / ln(gamma): for how many rounds after a change old rewards bias an average.

    About 2 ln(1/eps) / eps. Theorem 1 gives up this part of each phase."""
    return (2.0 * math.log(eps) + math.log(-math.log(eps))) / math.log1p(-eps)


def G(eps: float) -> float:
    """gamma^(-1/(1-gamma)): by how much evidence shrinks in one memory length; falls to e as eps -> 0."""
    return math.exp(-math.log1p(-eps) / eps)


def n(eps: float) -> float:
    """n = 12 sqrt(2) + 3 sqrt(eps); n^2 lies in (288, 353.07) on the theorems' range of gamma."""
    return 12.0 * SQRT2 + 3.0 * math.sqrt(eps)


def margin(eps: float, gap: float, drift: float) -> float:
    """gap/3 - 2 drift D, which Theorem 2 needs above 0."""
    return gap / 3.0 - 2.0 * drift * math.exp(min(log_D(eps), 700.0))


def log_L(eps: float, gap: float) -> float:
    """ln of L(gamma) = 144 (1 + sqrt 2)^2 ln(1/eps + e^25) / gap^2, as in Lemma 2; Theorem 1 prints L G for L."""
    return math.log(144.0 * (1.0 + SQRT2) ** 2) + math.log(log_add(-math.log(eps), 25.0)) - 2.0 * math.log(gap)


def log_F(x: float) -> float:
    """ln of x e^(-x^2/2) / ((1 + x^2) sqrt(2 pi)), a lower bound of P(Z > x)."""
    return math.log(x) - 0.5 * x * x - math.log1p(x * x) - 0.5 * math.log(2.0 * math.pi)


def log_C(ratio: float) -> float:
    """ln of C = e^25 + 12 + 1 / F(mu_max / tau_max)."""
    return log_add(25.0, math.log(12.0), -log_F(ratio))


def log_M(eps: float, gap: float, drift: float, ratio: float) -> float:
    """ln of M(gamma) = L G (C + 1) + 594 G / (gap/3 - 2 drift D)^2, of Theorem 2. The 594 covers n^2 <= 353."""
    log_G = math.log(G(eps))
    return log_add(
        log_L(eps, gap) + log_G + log_add(log_C(ratio), 0.0),
        math.log(594.0) + log_G - 2.0 * math.log(margin(eps, gap, drift)),
    )


class Condition(NamedTuple):
    """One hypothesis of a theorem, whether it holds, and the numbers it was checked with."""

    text: str
    holds: bool
    found: str


class Bound(NamedTuple):
    """A bound on plays of sub-optimal arms. It is kept as a logarithm: some bounds have thousands of digits.

    `log10` is None where the formula has no value; the failed condition is the reason. Where conditions fail and there
    is a number, it is what the formula gives, and is not proved."""

    name: str
    log10: float | None
    log10_horizon: float
    conditions: tuple[Condition, ...]

    @property
    def failed(self) -> list[Condition]:
        """The conditions that do not hold."""
        return [condition for condition in self.conditions if not condition.holds]

    @property
    def vacuous(self) -> bool:
        """Whether the bound is T or more, which is true of every policy, or undefined."""
        return self.log10 is None or self.log10 >= self.log10_horizon

    @property
    def verdict(self) -> str:
        """ "vacuous", "conditions fail" or "below T"."""
        return "vacuous" if self.vacuous else ("conditions fail" if self.failed else "below T")


def show_power(log10: float | None) -> str:
    """A number by its decimal logarithm, as a power of ten if it is large or small."""
    if log10 is None:
        return "undefined"
    return f"10^{log10:.2f}" if abs(log10) >= 6.0 else f"{10.0**log10:.4g}"


def _bound(name: str, log: float, horizon: int, arms: int, conditions: list[Condition]) -> Bound:
    log10 = log / math.log(10.0) if math.isfinite(log) else None
    scope = "one arm" if arms == 1 else f"{arms} arms"
    return Bound(f"{name}, {scope}", log10, math.log10(horizon), tuple(conditions))


def _list_shared_conditions(gap: float, eps: float, tau_max: float, distance: float) -> list[Condition]:
    """Those of both theorems. `distance` is the gap (Theorem 1) or the margin (Theorem 2).

    The paper prints tau_max >= 1/(12 sqrt 2), which implies the condition that the proof needs."""
    inside = 0.0 < eps < 1.0 and distance > 0.0
    floor = distance / (n(eps) * math.sqrt(-math.log(eps))) if inside else 1.0 / (12.0 * SQRT2)
    return [
        Condition("gamma is in (1 - 1/e, 1)", 0.0 < eps < LARGEST_EPS, f"1 - gamma = {eps:.6g}"),
        Condition("the gap is above 0: the best arm is never tied", 0.0 < gap <= 1.0, f"gap = {gap:.6g}"),
        Condition("tau_max is large enough", tau_max >= floor, f"tau_max = {tau_max:.6g}, needed {floor:.6g}"),
    ]


def _log_theorem1(
    log_horizon: float, log_phases: float, gap: float, eps: float, ratio: float, log_arms: float
) -> float:
    per_round = log_add(log_C(ratio), math.log(2.0)) + log_L(eps, gap) + math.log(G(eps))
    return log_add(
        log_phases + log_D(eps), log_arms + per_round + log_horizon + math.log(eps) + math.log(-math.log(eps))
    )


def theorem1(
    *, horizon: int, phases: int, gap: float, eps: float, mu_max: float = 1.0, tau_max: float = 0.2, arms: int = 1
) -> Bound:
    """Theorem 1, abrupt changes: E k_T(i) <= B_T D + (C + 2) L G T eps ln(1/eps).

    >>> theorem1(horizon=10**5, phases=10, gap=0.1, eps=0.01).vacuous
    True
    """
    log = math.nan
    if 0.0 < eps < 1.0 and gap > 0.0 and mu_max > 0.0:
        log = _log_theorem1(math.log(horizon), math.log(phases), gap, eps, mu_max / tau_max, math.log(arms))
    return _bound("Theorem 1", log, horizon, arms, _list_shared_conditions(gap, eps, tau_max, gap))


def theorem2(
    *,
    horizon: int,
    gap: float,
    drift: float,
    eps: float,
    close_rounds: int,
    mu_max: float = 1.0,
    tau_max: float = 0.2,
    arms: int = 1,
) -> Bound:
    """Theorem 2, smooth changes: E k_T(i) <= |H(gap, T)| + M T eps ln(1/eps).

    gap: any distance; the `close_rounds` = |H(gap, T)| rounds in which two arms are closer are given up. drift: sigma,
    the largest change of a mean in a round. The paper prints F gap T^beta for |H|, by Assumption 2."""
    left = margin(eps, gap, drift) if 0.0 < eps < 1.0 else -math.inf
    log = math.nan
    if left > 0.0 and mu_max > 0.0:
        rest = log_M(eps, gap, drift, mu_max / tau_max) + math.log(horizon) + math.log(eps) + math.log(-math.log(eps))
        log = log_add(math.log(close_rounds) if close_rounds else -math.inf, math.log(arms) + rest)
    conditions = _list_shared_conditions(gap, eps, tau_max, left)
    conditions.append(Condition("2 sigma D(gamma) < gap / 3", left > 0.0, f"sigma = {drift:.6g}, gap = {gap:.6g}"))
    return _bound("Theorem 2", log, horizon, arms, conditions)


def first_useful_horizon(phases: int, gap: float, mu_max: float = 1.0, tau_max: float = 0.2, arms: int = 1) -> float:
    """log10 of the T at which Theorem 1, with Corollary 1's gamma, first falls below T; infinite beyond 10^600."""
    if gap <= 0.0 or mu_max <= 0.0:
        return math.inf
    log_phases = math.log(phases)

    def excess(log_horizon: float) -> float:
        eps = math.exp(0.5 * (log_phases - log_horizon))
        return _log_theorem1(log_horizon, log_phases, gap, eps, mu_max / tau_max, math.log(arms)) - log_horizon

    low, high = log_phases + 2.0, 600.0 * math.log(10.0)  # gamma = 1 - 1/e at the lower end
    if excess(high) > 0.0:
        return math.inf
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return high / math.log(10.0)


def smallest_beta(horizon: int, gap: float, drift: float, constant: float = 1.0, crossings: int = 0) -> float:
    """The smallest beta that the remark after Corollary 2 admits; none is admitted if it is above 1.

    crossings: P, rounds in which some pair of arms changes order; constant: F of Assumption 2, used if P > 0."""
    log_horizon = math.log(horizon)
    low = 1.0 - (math.log(gap) - math.log(12.0 * drift * log_horizon)) / log_horizon
    if crossings:
        inner = math.log(constant) + math.log(gap) - math.log(24.0 * crossings * log_horizon)
        low = max(low, 0.5 - 0.5 * inner / log_horizon)
    return low


ORDERS = {
    "cusum-ucb": "B_T / gap^2 + sqrt(T B_T)",
    "sw-ts": "sqrt(T B_T) / gap",
    "d-ucb": "sqrt(T B_T) / gap^2",
    "ds-ts": "sqrt(T B_T) / gap^2",
}


def table1(horizon: float, phases: float, gap: float) -> dict[str, float]:
    """Table 1 of the paper: the sizes of `ORDERS`, which leave out constants and logarithms."""
    root = math.sqrt(horizon * phases)
    return {"cusum-ucb": phases / gap**2 + root, "sw-ts": root / gap, "d-ucb": root / gap**2, "ds-ts": root / gap**2}
