"""What a theorem promises: a number, the conditions it rests on, and whether the number says anything.

A bound is kept as a logarithm. At the paper's own settings it is 1e21 and with a small tau_max it has thousands of
digits, so a float would be infinite just where a reader wants to know how far off the promise is."""

import math
from typing import Any, NamedTuple

from driftbandit.paper.theory import paper_functions as f

LOG10_E = math.log10(math.e)


class Condition(NamedTuple):
    """One hypothesis of a statement, whether it holds, and what was found."""

    text: str
    holds: bool
    found: str = ""

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'FAILS'}: {self.text}" + (f" ({self.found})" if self.found else "")


class Bound(NamedTuple):
    """A bound on plays of sub-optimal arms (or on regret) with the conditions under which it was proved.

    `log10` is None when some input leaves the formula without meaning (a tied best arm, gamma outside (0, 1)); the
    failing condition then says why. A bound whose conditions fail may still have a number: it is what the formula
    gives, and nobody proved it. `scope` is "one arm", "all arms" or "regret"."""

    name: str
    log10: float | None
    log10_horizon: float | None
    scope: str
    conditions: tuple[Condition, ...]
    lower: bool = False  # a floor that no policy beats, instead of a ceiling

    @property
    def value(self) -> float | None:
        """The number itself, or None when it is undefined or too large for a float (then see `log10`)."""
        return None if self.log10 is None or self.log10 > 308.0 else 10.0**self.log10

    @property
    def holds(self) -> bool:
        """Do all conditions hold?"""
        return all(condition.holds for condition in self.conditions)

    @property
    def failed(self) -> tuple[Condition, ...]:
        """The conditions that fail, in the order of the statement."""
        return tuple(condition for condition in self.conditions if not condition.holds)

    @property
    def vacuous(self) -> bool:
        """True when nothing is promised: an upper bound of T or more (playing wrong every round costs no more than
        T), a lower bound without a positive value, or a formula without meaning."""
        if self.log10 is None:
            return True
        return not self.lower and (self.log10_horizon is None or self.log10 >= self.log10_horizon)

    @property
    def promises(self) -> bool:
        """True when the conditions hold and the number is not vacuous."""
        return self.holds and not self.vacuous

    def __str__(self) -> str:
        reasons = "; ".join(condition.text for condition in self.failed)
        sign = ">=" if self.lower else "<="
        bound = f"{self.name}, {self.scope}: {sign} {power(self.log10)} ({self.verdict})"
        return bound + (f"; fails: {reasons}" if reasons else "")

    @property
    def verdict(self) -> str:
        """Whether the bound is vacuous, or its conditions fail, in two words."""
        return "vacuous" if self.vacuous else ("below T" if self.holds else "conditions fail")


def power(log10: float | None) -> str:
    """A number by its decimal logarithm, as a power of ten if it is large or small."""
    if log10 is None:
        return "undefined"
    return f"10^{log10:.2f}" if abs(log10) >= 6.0 else f"{10.0**log10:.4g}"


def log10_or_none(log: float | None) -> float | None:
    """A natural logarithm as a decimal one. Minus infinity (the number 0) and None both become None."""
    return None if log is None or not math.isfinite(log) else log * LOG10_E


def safe_log(value: Any) -> float | None:
    """ln(value) for a positive finite number of any size, integers beyond floats included; else None."""
    try:
        return math.log(value) if value > 0 and value != math.inf else None
    except (TypeError, ValueError):
        return None


def show(value: Any) -> str:
    """A number for a sentence; huge integers as a power of ten."""
    log = safe_log(value)
    return f"10^{log * LOG10_E:.1f}" if log is not None and log > 50.0 else f"{value:.6g}"


def horizon_condition(horizon: Any) -> Condition:
    """The horizon must be a finite number of rounds."""
    log = safe_log(horizon)
    return Condition("the horizon T is at least 1", log is not None and log >= 0.0, f"T = {show(horizon)}")


def gamma_condition(eps: float) -> Condition:
    """The analysis covers gamma in (1 - 1/e, 1) only."""
    return Condition("gamma lies in (1 - 1/e, 1)", 0.0 < eps < math.exp(-1.0), f"1 - gamma = {eps:.6g}")


def gap_condition(gap: float) -> Condition:
    """A tie for the best arm in a single round makes every gap-dependent bound infinite."""
    return Condition("the smallest gap is in (0, 1]: the best arm is never tied", 0.0 < gap <= 1.0, f"gap = {gap:.6g}")


def means_condition(mu_max: float) -> Condition:
    """Rewards are in [0, 1], so the largest mean is too, and it must not be 0."""
    return Condition("the largest mean mu_max is in (0, 1]", 0.0 < mu_max <= 1.0, f"mu_max = {mu_max:.6g}")


def drift_condition(drift: float) -> Condition:
    """The Lipschitz constant sigma of the means."""
    return Condition("the drift sigma is in [0, 1]", 0.0 <= drift <= 1.0, f"sigma = {drift:.6g}")


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
