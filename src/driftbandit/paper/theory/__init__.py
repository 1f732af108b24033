"""The paper's analysis, computable: bounds with their conditions, tuning rules, and what a world looks like to them.

Start with `diagnose(world)`, give its numbers to `theorem1` or `theorem2`, and read `Bound.vacuous` first."""

from driftbandit.paper.theory.bound import (
    BetaInterval,
    Bound,
    Condition,
    Tuning,
    beta_interval,
    corollary1,
    corollary2,
)
from driftbandit.paper.theory.diagnosis import (
    Diagnosis,
    MeanSource,
    breakpoints,
    close_rounds,
    diagnose,
    pseudo_stationary,
    separations,
    smallest_constant,
)
from driftbandit.paper.theory.peers import Order, lower_bound, table1
from driftbandit.paper.theory.promise import bounds_for
from driftbandit.paper.theory.theorem import first_useful_horizon, tau_max_condition, theorem1, theorem2

__all__ = [
    "BetaInterval",
    "Bound",
    "Condition",
    "Diagnosis",
    "MeanSource",
    "Order",
    "Tuning",
    "beta_interval",
    "bounds_for",
    "breakpoints",
    "close_rounds",
    "corollary1",
    "corollary2",
    "diagnose",
    "first_useful_horizon",
    "lower_bound",
    "pseudo_stationary",
    "separations",
    "smallest_constant",
    "table1",
    "tau_max_condition",
    "theorem1",
    "theorem2",
]
