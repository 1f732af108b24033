"""Theorems 1 and 2 of the paper, as numbers.

Both bound E k_T(i), the plays of one arm in rounds where it is not the best. Regret is at most the sum over arms, and
the paper leaves that sum out of its statements: `sum_over` puts it in. The rounds near a change (Theorem 1) or with
close arms (Theorem 2) are then counted once and not once per arm, because a round has only one play.

Read these as claims. One step of the proof multiplies a random number of rounds by a bound on E[1/p] that does not
hold conditionally on those rounds, and the constant e^25 makes Theorem 1 larger than T for every T below 1e40."""

import math

from driftbandit.paper.theory import paper_functions as f
from driftbandit.paper.theory.bound import (
    Bound,
    Condition,
    drift_condition,
    gamma_condition,
    gap_condition,
    horizon_condition,
    log10_or_none,
    means_condition,
    safe_log,
    show,
)

FORMS = ("proved", "printed")


def _checked_form(form: str) -> None:
    if form not in FORMS:
        raise ValueError(f'form is "proved" or "printed"; got {form!r}.')


def _scope(sum_over: int | None) -> tuple[str, float]:
    if sum_over is None:
        return "one arm", 0.0
    if sum_over < 1:
        raise ValueError(f"sum_over counts the arms that are ever sub-optimal, at least 1; got {sum_over!r}.")
    return "all arms", math.log(sum_over)


def _drawable(mu_max: float, tau_max: float) -> bool:
    """Has 1 / F(mu_max / tau_max) a logarithm? Beyond a ratio of 1e150 even that has no float."""
    return 0.0 < mu_max < math.inf and 0.0 < tau_max < math.inf and mu_max / tau_max < 1e150


def tau_max_condition(tau_max: float, gap: float, eps: float, form: str = "proved") -> Condition:
    """The largest standard deviation must keep exploration alive.

    Printed: tau_max >= 1/(12 sqrt 2), whatever the problem. What the proof uses is 1/tau_max^2 <= A, that is
    tau_max >= gap / (n sqrt(ln(1/eps))), which the printed condition implies."""
    if form == "printed" or not (0.0 < eps < 1.0 and gap > 0.0):
        floor, text = 1.0 / (12.0 * f.SQRT2), "tau_max >= 1/(12 sqrt 2)"
    else:
        floor, text = gap / (f.n(eps) * math.sqrt(-math.log(eps))), "tau_max >= gap / (n sqrt(ln(1/(1-gamma))))"
    floor = max(floor, 1e-149)  # a gap of 1e-148 is a rounding error, and 1/F has no logarithm as a float beyond it
    return Condition(text, floor <= tau_max < math.inf, f"tau_max = {tau_max:.6g}, needed {floor:.6g}")


def _log_theorem1(
    log_horizon: float, log_phases: float, gap: float, eps: float, ratio: float, form: str, log_arms: float
) -> float:
    powers_of_G = 2.0 if form == "printed" else 1.0
    slow = f.log_add(f.log_C(ratio), math.log(2.0)) + f.log_L(eps, gap) + powers_of_G * math.log(f.G(eps))
    return f.log_add(
        log_phases + f.log_D(eps),
        log_arms + slow + log_horizon + math.log(eps) + math.log(-math.log(eps)),
    )


def theorem1(
    *,
    horizon: float,
    phases: int,
    gap: float,
    eps: float,
    mu_max: float = 1.0,
    tau_max: float = 0.2,
    form: str = "proved",
    sum_over: int | None = None,
) -> Bound:
    """Theorem 1, abrupt changes: E k_T(i) <= B_T D + (C + 2) L G T eps ln(1/eps).

    horizon: T, any size; phases: B_T, the first phase counted; gap: Delta_T; eps: 1 - gamma; sum_over: how many arms
    are ever sub-optimal, K as soon as the best arm changes and K - 1 only while one arm stays best (None: one arm).
    `form="printed"` multiplies by G = e once more, as the theorem's text does and its proof does not.

    >>> theorem1(horizon=10**5, phases=10, gap=0.1, eps=0.01).vacuous
    True"""
    _checked_form(form)
    scope, log_arms = _scope(sum_over)
    log_horizon, log_phases = safe_log(horizon), safe_log(phases)
    ordered = log_horizon is not None and log_phases is not None and 0.0 <= log_phases <= log_horizon
    conditions = (
        horizon_condition(horizon),
        Condition("the number of phases B_T is between 1 and T", ordered, f"B_T = {show(phases)}"),
        gamma_condition(eps),
        gap_condition(gap),
        means_condition(mu_max),
        tau_max_condition(tau_max, gap, eps, form),
    )
    log = None
    meaningful = 0.0 < eps < 1.0 and 0.0 < gap < math.inf and _drawable(mu_max, tau_max)
    if meaningful and log_horizon is not None and log_phases is not None:
        log = _log_theorem1(log_horizon, log_phases, gap, eps, mu_max / tau_max, form, log_arms)
    return Bound(f"Theorem 1 as {form}", log10_or_none(log), log10_or_none(log_horizon), scope, conditions)


def theorem2(
    *,
    horizon: float,
    gap: float,
    drift: float,
    eps: float,
    close_rounds: int | None = None,
    constant: float | None = None,
    beta: float | None = None,
    gap0: float = 1.0,
    mu_max: float = 1.0,
    tau_max: float = 0.2,
    sum_over: int | None = None,
) -> Bound:
    """Theorem 2, smooth changes: E k_T(i) <= F gap T^beta + M T eps ln(1/eps).

    gap: the Delta of the reader's choice (rounds where two arms are closer are given up); drift: sigma, the largest
    change of a mean in a round; gap0: Assumption 2 is known below this gap. Give either `constant` (F) and `beta`,
    the theorem as printed, or `close_rounds` = |H(gap, T)|, where the proof starts: it needs no Assumption 2, which
    fails for some worlds the paper says satisfy it."""
    scope, log_arms = _scope(sum_over)
    as_proved = close_rounds is not None
    if as_proved == (constant is not None) or (constant is None) != (beta is None):
        raise ValueError("theorem2 needs either close_rounds, or constant and beta together.")
    log_horizon = safe_log(horizon)
    inside = 0.0 < eps < 1.0
    margin = f.margin(eps, gap, drift) if inside else -math.inf
    conditions = [
        horizon_condition(horizon),
        gamma_condition(eps),
        gap_condition(gap),
        drift_condition(drift),
        means_condition(mu_max),
        tau_max_condition(tau_max, margin if as_proved else gap, eps, "proved" if as_proved else "printed"),
        Condition("2 sigma D(gamma) < gap / 3", margin > 0.0, f"difference {margin:.6g}" if inside else "no D(gamma)"),
    ]
    if constant is not None and beta is not None:
        known = Condition("gap < gap0, where Assumption 2 bounds the close rounds", gap < gap0, f"gap0 = {gap0:.6g}")
        usable = 0.0 < constant < math.inf and 0.0 <= beta <= 1.0
        found = f"F = {constant:.6g}, beta = {beta:.6g}"
        conditions += [known, Condition("F > 0 and beta in [0, 1]", usable, found)]
    log = None
    meaningful = inside and margin > 0.0 and gap < math.inf and _drawable(mu_max, tau_max)
    if meaningful and log_horizon is not None and drift >= 0.0:
        if constant is not None and beta is not None:
            scale = safe_log(constant)
            given_up = -math.inf if scale is None else scale + math.log(gap) + beta * log_horizon
        else:
            rounds = safe_log(close_rounds)
            given_up = -math.inf if rounds is None else rounds
        rest = f.log_M(eps, gap, drift, mu_max / tau_max) + log_horizon + math.log(eps) + math.log(-math.log(eps))
        log = f.log_add(given_up, log_arms + rest)
    name = f"Theorem 2 as {'proved' if as_proved else 'printed'}"
    return Bound(name, log10_or_none(log), log10_or_none(log_horizon), scope, tuple(conditions))


def first_useful_horizon(
    *,
    phases: int,
    gap: float,
    mu_max: float = 1.0,
    tau_max: float = 0.2,
    form: str = "proved",
    sum_over: int | None = None,
) -> float | None:
    """log10 of the T at which Theorem 1, with Corollary 1's gamma, first falls below T.

    None when that is beyond 10^600. The paper's settings give 40: no computer will see such a T."""
    _checked_form(form)
    _, log_arms = _scope(sum_over)
    if not (phases >= 1 and gap > 0.0 and _drawable(mu_max, tau_max)):
        return None
    log_phases = math.log(phases)

    def excess(log_horizon: float) -> float:
        eps = math.exp(0.5 * (log_phases - log_horizon))
        return _log_theorem1(log_horizon, log_phases, gap, eps, mu_max / tau_max, form, log_arms) - log_horizon

    low, high = log_phases + 2.0, 600.0 * math.log(10.0)  # below the first, gamma < 1 - 1/e
    if excess(high) > 0.0:
        return None
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return log10_or_none(high)
