"""The parameters the corollaries advise, and the range of problems for which they may be used.

The advice is asymptotic: it fixes how regret grows with T, not what plays best at a given T. At T = 1e5 with ten phases
the authors' own code takes a gamma ten times further from 1 than Corollary 1's, and gains by it; measure first."""

import math
from typing import NamedTuple

from driftbandit.paper.theory import paper_functions as f
from driftbandit.paper.theory.bound import Condition, gamma_condition, horizon_condition, safe_log, show


class Tuning(NamedTuple):
    """A discount with the conditions of the corollary that gives it. `eps` is None when the formula has no value."""

    name: str
    eps: float | None
    conditions: tuple[Condition, ...]

    @property
    def gamma(self) -> float | None:
        """1 - eps, which rounds to 1.0 when eps is below 1e-16: compute with `eps` there."""
        return None if self.eps is None else 1.0 - self.eps

    @property
    def holds(self) -> bool:
        """Do all conditions hold?"""
        return all(condition.holds for condition in self.conditions)


def corollary1(horizon: float, phases: int) -> Tuning:
    """Abrupt changes: gamma = 1 - sqrt(B_T / T), for regret of order sqrt(T B_T) ln^2 T.

    >>> corollary1(100_000, 10).eps
    0.01"""
    log_horizon, log_phases = safe_log(horizon), safe_log(phases)
    eps = None
    if log_horizon is not None and log_phases is not None:
        eps = math.sqrt(phases / horizon) if log_horizon < 600.0 else math.exp(0.5 * (log_phases - log_horizon))
    some = log_phases is not None and log_phases >= 0.0
    inside = eps is not None and 0.0 < eps < f.LARGEST_EPS
    phased = Condition("there is at least 1 phase", some, f"B_T = {show(phases)}")
    long = Condition("T > e^2 B_T, so that gamma > 1 - 1/e", inside, f"T = {show(horizon)}")
    return Tuning("Corollary 1", eps, (horizon_condition(horizon), phased, long))


def corollary2(horizon: float, beta: float) -> Tuning:
    """Smooth changes: gamma = 1 - T^(beta - 1), for regret of order T^beta ln^2 T.

    beta is the exponent of Assumption 2 and must lie in `beta_interval`; 1/2, the value the paper takes, does not in
    any of its own smooth experiments."""
    log_horizon = safe_log(horizon)
    inside = 0.0 <= beta < 1.0
    eps = None if log_horizon is None or not inside else math.exp((beta - 1.0) * log_horizon)
    return Tuning(
        "Corollary 2",
        eps,
        (
            horizon_condition(horizon),
            Condition("beta is in [0, 1)", inside, f"beta = {beta:.6g}"),
            gamma_condition(0.0 if eps is None else eps),
        ),
    )


class BetaInterval(NamedTuple):
    """The beta for which Theorem 2 and Corollary 2 apply together: [low, 1], empty when low exceeds 1.

    `low` is None when the formula has no value; the two terms say which requirement binds."""

    drift_term: float | None  # slow enough for the discount: 1 - log_T(gap / (12 sigma ln T))
    crossing_term: float | None  # few enough close rounds: 1/2 - log_T sqrt(F gap / (24 P ln T)); None if P = 0
    conditions: tuple[Condition, ...]

    @property
    def low(self) -> float | None:
        """The lower end."""
        if self.drift_term is None:
            return None
        return self.drift_term if self.crossing_term is None else max(self.drift_term, self.crossing_term)

    @property
    def empty(self) -> bool:
        """True when no beta is admissible."""
        return self.low is None or self.low > 1.0

    def admits(self, beta: float) -> bool:
        """Is this beta in the interval?"""
        return self.low is not None and self.low <= beta <= 1.0


def beta_interval(
    *, horizon: float, gap: float, drift: float, constant: float | None = None, crossings: int = 0
) -> BetaInterval:
    """The remark after Corollary 2: which beta a horizon, a gap and a drift admit.

    crossings: P, rounds in which some pair of arms changes order; constant: F of Assumption 2, needed if P > 0."""
    log_horizon = safe_log(horizon)
    long = log_horizon is not None and log_horizon > 0.0
    crossing_ok = crossings == 0 or (crossings > 0 and constant is not None and 0.0 < constant < math.inf)
    conditions = (
        Condition("the horizon T is above 1, so that log_T means something", long, f"T = {show(horizon)}"),
        Condition("the gap is in (0, 1]", 0.0 < gap <= 1.0, f"gap = {gap:.6g}"),
        Condition("the drift sigma is above 0 (at 0 every beta will do)", 0.0 < drift < math.inf, f"sigma = {drift:g}"),
        Condition("F > 0 is given when arms cross", crossing_ok, f"P = {crossings}, F = {constant}"),
    )
    if log_horizon is None or not all(condition.holds for condition in conditions):
        return BetaInterval(None, None, conditions)
    drift_term = 1.0 - (math.log(gap) - math.log(12.0 * drift * log_horizon)) / log_horizon
    crossing_term = None
    if crossings > 0 and constant is not None:
        inner = math.log(constant) + math.log(gap) - math.log(24.0 * crossings * log_horizon)
        crossing_term = 0.5 - 0.5 * inner / log_horizon
    return BetaInterval(drift_term, crossing_term, conditions)
