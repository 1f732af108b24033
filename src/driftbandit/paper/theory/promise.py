"""One policy in one environment: the quantities of the analysis, the bounds, and the measured regret.

The theorems of the paper are about DS-TS. Every other policy gets the quantities and the lower bound only."""

import math
from typing import Any, NamedTuple

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.stats.intervals import Interval, interval
from driftbandit.paper.theory import paper_functions as f
from driftbandit.paper.theory.bound import Bound, beta_interval, corollary1, power
from driftbandit.paper.theory.diagnosis import (
    Diagnosis,
    MeanSource,
    breakpoints,
    close_rounds,
    diagnose,
    separations,
    smallest_constant,
)
from driftbandit.paper.theory.peers import Order, lower_bound, table1
from driftbandit.paper.theory.theorem import FORMS, first_useful_horizon, theorem1, theorem2


def drift_gap(drift: float, eps: float) -> float:
    """A gap at which Theorem 2 can speak: twice the least it needs (6 sigma D), at most 1.

    Closer to the least, its second term explodes; further up, more rounds are given up as too close to call."""
    return min(1.0, 12.0 * drift * math.exp(min(f.log_D(eps), 700.0))) if drift > 0.0 and 0.0 < eps < 1.0 else 1.0


def bounds_for(world: MeanSource, eps: float, tau_max: float = 0.2, found: Diagnosis | None = None) -> list[Bound]:
    """Both theorems for DS-TS with discount 1 - eps: Theorem 1 in all its forms, then Theorem 2 as proved.

    Theorem 1 takes the phases as they are; in a smoothly drifting world nearly every round is one, and only Theorem 2
    has a chance. Pass `found` to spare a second reading of the means."""
    found = diagnose(world) if found is None else found
    shared = {"eps": eps, "mu_max": found.mu_max, "tau_max": tau_max}
    arms = (None, found.suboptimal_arms)
    bounds = [
        theorem1(horizon=found.horizon, phases=found.phases, gap=found.gap, form=form, sum_over=count, **shared)
        for form in FORMS
        for count in arms
    ]
    gap = drift_gap(found.drift, eps)
    close = close_rounds(separations(world), gap)
    bounds += [
        theorem2(horizon=found.horizon, gap=gap, drift=found.drift, close_rounds=close, sum_over=count, **shared)
        for count in arms
    ]
    return bounds


class Quantity(NamedTuple):
    """One quantity of the analysis, its letter in the paper, its value here, and what it is in words."""

    letter: str
    value: str
    meaning: str


class Promise(NamedTuple):
    """Everything the report shows."""

    environment: Any
    policy: Any
    found: Diagnosis
    facts: tuple[Quantity, ...]
    bounds: tuple[Bound, ...]  # upper bounds for this policy; empty when there is none for it
    floor: Bound  # what no policy avoids in the worse of two worlds of this length
    orders: dict[str, Order]  # Table 1
    measured: Interval | None  # final regret, if it was asked for
    runs: int

    def gap_to(self, bound: Bound) -> float | None:
        """How many orders of magnitude the bound is above the measured regret."""
        if self.measured is None or bound.log10 is None or self.measured.mean <= 0.0:
            return None
        return bound.log10 - math.log10(self.measured.mean)

    def table(self) -> list[list[str]]:
        """A row per bound: statement, scope, value, verdict, and how far the measured regret is from it."""
        rows = []
        for bound in [*self.bounds, self.floor]:
            above = self.gap_to(bound)
            value = (">= " if bound.lower else "<= ") + power(bound.log10)
            rows.append(
                [bound.name, bound.scope, value, bound.verdict, "-" if above is None else f"10^{above:+.1f} times"]
            )
        return rows

    def as_json(self) -> dict[str, Any]:
        """Everything as data; bounds as decimal logarithms, since some have thousands of digits."""
        bounds = [
            {
                "statement": bound.name,
                "for": bound.scope,
                "lower": bound.lower,
                "log10": bound.log10,
                "vacuous": bound.vacuous,
                "holds": bound.holds,
                "failed": [str(condition) for condition in bound.failed],
                "log10_measured_over_bound": self.gap_to(bound),
            }
            for bound in [*self.bounds, self.floor]
        ]
        return {
            "environment": repr(self.environment),
            "policy": repr(self.policy),
            "facts": [dict(zip(("quantity", "value", "what"), fact, strict=True)) for fact in self.facts],
            "bounds": bounds,
            "orders": [{"policy": o.policy, "order": o.formula, "log10": o.log10} for o in self.orders.values()],
            "measured": self.measured,
        }


def discount(policy: Any) -> float | None:
    """1 - gamma of a policy that discounts, else None."""
    gamma = getattr(policy, "gamma", None)
    return None if gamma is None else 1.0 - float(gamma)


def theory(environment: Any, policy: Any, runs: int = 0, seed: int = 0, workers: int | None = None) -> Promise:
    """What is proved for this policy in this environment: the diagnosis and the bounds. With `runs` > 0 the policy is
    played too.

    A random environment is diagnosed as run 0 realises it; the regret is over all runs."""
    if environment.n_arms < 2:
        raise ValueError(f"Bounds on regret need 2 arms or more; got {environment.n_arms}.")
    world = environment.realise(stream_key(seed, 0, WORLD))
    found = diagnose(world)
    eps = discount(policy)
    proved = getattr(policy, "short", "") == "ds-ts" and eps is not None
    played = simulate(policy, environment, runs, seed, checkpoints=1, workers=workers) if runs else None
    return Promise(
        environment,
        policy,
        found,
        tuple(facts(world, found, eps)),
        tuple(bounds_for(world, eps, policy.tau_max, found)) if proved and eps is not None else (),
        lower_bound(found.horizon),
        table1(found.horizon, found.phases, found.gap),
        None if played is None else interval(played.regret[:, -1]),
        runs,
    )


def facts(world: Any, found: Diagnosis, eps: float | None) -> list[Quantity]:
    """The diagnostics with their letters; those that need a discount only when there is one in (0, 1)."""
    out = [
        Quantity("T", f"{found.horizon}", "rounds"),
        Quantity("K", f"{found.n_arms}", "arms"),
        Quantity("B_T", f"{found.phases}", "phases: runs of rounds with equal means"),
        Quantity("", f"{found.switches}", "times the best arm changes"),
        Quantity("P", f"{found.crossings}", "rounds after which some pair of arms has changed order"),
        Quantity("Delta_T", f"{found.gap:.6g}", "smallest distance of a wrong arm to the best, over all rounds"),
        Quantity("", f"{found.tied_rounds}", "rounds in which the best arm is tied"),
        Quantity("V_T", f"{found.variation:.6g}", "total variation: the largest change of a mean, summed over rounds"),
        Quantity("sigma", f"{found.drift:.6g}", "largest change of a mean in one round (Lipschitz constant)"),
        Quantity("mu_max", f"{found.mu_max:.6g}", f"largest mean (the smallest is {found.mu_min:.6g})"),
        Quantity("", f"{found.uniform_regret:.6g}", "regret of choosing arms at random"),
    ]
    distances = separations(world)
    betas = [0.5]
    low = smallest_beta(world, found)
    if low is not None and 0.0 <= low < 1.0:
        betas.append(low)
    for beta in betas:
        constant = smallest_constant(distances, beta)
        shown = "none" if constant is None else f"{constant:.6g}"
        out.append(Quantity("F", shown, f"smallest constant of Assumption 2 at beta = {beta:.3f}"))
    advice = corollary1(found.horizon, found.phases)
    shown = f"{advice.gamma:.6g}" if advice.holds and advice.gamma is not None else "none"
    out.append(Quantity("gamma", shown, "discount of Corollary 1; none if the phases are too short for the horizon"))
    useful = first_useful_horizon(
        phases=found.phases, gap=found.gap, mu_max=found.mu_max, sum_over=found.suboptimal_arms
    )
    shown = "none" if useful is None else f"10^{useful:.1f}"
    out.append(Quantity("", shown, "horizon from which Theorem 1 is below T, over all arms, with that discount"))
    if eps is None or not 0.0 < eps < f.LARGEST_EPS:
        return out
    wait = f.D(eps)
    gap = drift_gap(found.drift, eps)
    out += [
        Quantity("D", f"{wait:.6g}", "rounds after a change about which Theorem 1 says nothing"),
        Quantity("", f"{settled(world, wait)}", "pseudo-stationary rounds: D or more after the last change"),
        Quantity("H", f"{close_rounds(distances, gap)}", f"rounds in which two arms are closer than {gap:.4g}"),
    ]
    return out


def settled(world: Any, wait: float) -> int:
    """The size of the pseudo-stationary set, counted phase by phase without keeping the breakpoints."""
    delay = max(math.ceil(wait) - 1, 0)
    total, start = 0, 0
    for point in breakpoints(world):
        total += max(0, point - start - delay)
        start = point
    return total + max(0, int(world.horizon) - start - delay)


def smallest_beta(world: Any, found: Diagnosis) -> float | None:
    """The smallest beta the remark after Corollary 2 admits in this world at a gap of 1: from its drift, and from its
    crossings with the smallest constant F that Assumption 2 allows there."""
    low = beta_interval(horizon=found.horizon, gap=1.0, drift=found.drift).low
    if low is None or found.crossings == 0:
        return low
    constant = smallest_constant(separations(world), min(max(low, 0.0), 1.0))
    return beta_interval(
        horizon=found.horizon, gap=1.0, drift=found.drift, constant=constant, crossings=found.crossings
    ).low
