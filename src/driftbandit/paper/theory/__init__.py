"""The paper's analysis: bounds with their conditions, and the quantities they need."""

import math
from dataclasses import dataclass
from typing import Any

from driftbandit.core.draws import ENVIRONMENT, stream_key
from driftbandit.core.protocols import Environment, Realisation
from driftbandit.lab.tables import Contents, Report, ShownTable
from driftbandit.paper.theory import theorem
from driftbandit.paper.theory.diagnosis import Diagnosis, close_rounds, diagnose, separations

Quantity = tuple[str, str, str]  # letter in the paper, value, meaning


@dataclass(frozen=True, repr=False)
class Analysis(Report):
    """The quantities of one environment, and the bounds for one policy in it."""

    environment: str
    policy: str
    quantities: list[Quantity]
    bounds: list[theorem.Bound]  # empty unless the policy is DS-TS

    def _contents(self) -> Contents:
        """The quantities, the bounds, and the conditions that do not hold."""
        title = "the environment, as run 0 realises it"
        quantities = ShownTable(title, ["letter", "value", "meaning"], list(map(list, self.quantities)))
        about: list[str | ShownTable] = [self.environment, self.policy, "", quantities, ""]
        if not self.bounds:
            return [*about, "The paper's theorems are about DS-TS; they have no bound for this policy."]
        rows = [[bound.name, f"<= {theorem.show_power(bound.log10)}", bound.verdict] for bound in self.bounds]
        head = ["theorem", "plays of sub-optimal arms", "verdict"]
        failed = dict.fromkeys(condition for bound in self.bounds for condition in bound.failed)
        return [
            *about,
            ShownTable("bounds (vacuous: not below T)", head, rows),
            *(f"  fails: {condition.text} ({condition.found})" for condition in failed),
        ]


def theory(environment: Environment, policy: Any, seed: int = 0) -> Analysis:
    """The quantities of an environment, as run 0 realises it, and the theorems' bounds if the policy is DS-TS."""
    if getattr(environment, "n_features", 0):
        raise ValueError("The paper's theorems are about means that do not depend on features.")
    realised = environment.realise(stream_key(seed, 0, ENVIRONMENT))
    found = diagnose(realised)
    quantities, bounds = _quantities(found), []
    if getattr(policy, "short", "") == "ds-ts":
        eps = 1.0 - policy.gamma
        bounds = bounds_for(realised, eps, policy.tau_max, found)
        if 0.0 < eps < theorem.LARGEST_EPS:
            quantities.append(("D", f"{theorem.D(eps):.6g}", "rounds after a change that Theorem 1 gives up"))
    return Analysis(repr(environment), repr(policy), quantities, bounds)


def bounds_for(realised: Realisation, eps: float, tau_max: float, found: Diagnosis) -> list[theorem.Bound]:
    """Both theorems for DS-TS with discount 1 - eps: each for one arm and summed over the sub-optimal arms.

    The gap of Theorem 2 is twice the least it admits (6 sigma D). Near the least its second term explodes; above, more
    rounds are given up as too close."""
    gap = 1.0
    if found.drift and 0.0 < eps < 1.0:
        gap = min(1.0, 12.0 * found.drift * math.exp(min(theorem.log_D(eps), 700.0)))
    shared: dict[str, Any] = {"horizon": found.horizon, "eps": eps, "mu_max": found.mu_max, "tau_max": tau_max}
    close = close_rounds(separations(realised), gap)
    counts = sorted({1, found.suboptimal_arms})
    return [
        *(theorem.theorem1(phases=found.phases, gap=found.gap, arms=arms, **shared) for arms in counts),
        *(theorem.theorem2(gap=gap, drift=found.drift, close_rounds=close, arms=arms, **shared) for arms in counts),
    ]


def _quantities(found: Diagnosis) -> list[Quantity]:
    useful = theorem.first_useful_horizon(found.phases, found.gap, found.mu_max, arms=found.suboptimal_arms)
    horizon = f"10^{useful:.1f}" if useful < math.inf else "none"
    drifts = found.horizon > 1 and found.drift > 0.0
    beta = f"{theorem.smallest_beta(found.horizon, 1.0, found.drift):.3f}" if drifts else "any"
    return [
        ("T", f"{found.horizon}", "rounds"),
        ("K", f"{found.n_arms}", "arms"),
        ("B_T", f"{found.phases}", "phases: runs of rounds with equal means"),
        ("", f"{found.switches}", "times the best arm changes"),
        ("P", f"{found.crossings}", "rounds after which some pair of arms has changed order"),
        ("Delta_T", f"{found.gap:.6g}", "smallest distance of another arm to the best, over all rounds"),
        ("sigma", f"{found.drift:.6g}", "largest change of a mean in one round"),
        ("mu_max", f"{found.mu_max:.6g}", "largest mean"),
        ("", f"{found.uniform_regret:.6g}", "regret of choosing arms uniformly"),
        ("beta", beta, "smallest beta that this drift admits in Corollary 2; none if above 1"),
        ("", horizon, "horizon from which Theorem 1, with Corollary 1's gamma, is below T"),
    ]
