"""The suite `linear`: mean rewards that are linear in features, against rivals that are given the noise.

A label such as `d-lin-ucb(gamma=0.99, alpha=0.15, lam=0.2)` is that policy with the true noise as its `sd` and the
root of the mean square of all means as its `coefficient_norm`. DriftLinTS is given nothing."""

import math
from typing import Any

from driftbandit.environments.linear import NAMED, Linear
from driftbandit.field.scale import measure_scale
from driftbandit.field.suite import CHECK, DESIGN, REPOSITORY, Suite, SuiteEnvironment, find_facts
from driftbandit.spec.user_code import load_policy

APART = ("context-trap", "context-rising")  # idle arms that change: not averaged


def _one(name: str, role: str) -> SuiteEnvironment:
    environment = Linear(**NAMED[name])
    return SuiteEnvironment(name, environment.change, role, environment, name not in APART)


_DESIGN = (*(name for name in NAMED if name.startswith(("D", "H"))), *APART)
_CHECKS = tuple(name for name in NAMED if name.startswith("N"))
ENVIRONMENTS = (*(_one(name, DESIGN) for name in _DESIGN), *(_one(name, CHECK) for name in _CHECKS))

_BOUND = "alpha={}, lam=0.2)"
GRID = (
    *(f"lin-ucb({_BOUND.format(alpha)}" for alpha in (0.3, 1.0)),
    "lin-ts(alpha=1.0, lam=0.2)",
    *(f"d-lin-ucb(gamma={g}, {_BOUND.format(alpha)}" for g in (0.97, 0.99, 0.997, 0.999) for alpha in (0.15, 0.3, 1.0)),
    *(f"sw-lin-ucb(window={w}, {_BOUND.format(0.3)}" for w in (300, 1_000)),
    *(f"restart-lin-ucb(period={w}, {_BOUND.format(0.3)}" for w in (1_000, 3_000)),
    *(
        f"cusum-lin-ucb(threshold={threshold}, explore=0, local={local}, {_BOUND.format(0.3)}"
        for threshold in (10, 20)
        for local in (False, True)
    ),
)
_COARSE = tuple(label for label in GRID if "alpha=0.3" in label and not label.startswith(("sw-", "restart-", "cusum-")))


def make_policy(label: str, environment: SuiteEnvironment) -> Any:
    """The policy of a setting of the grid, or of any policy's text."""
    policy = load_policy(label, environment=find_facts(environment.environment))
    if label in GRID:
        scale = measure_scale(environment.environment)
        given = {"sd": scale.noise, "coefficient_norm": math.hypot(scale.mean, scale.sd)}
        policy = policy._replace(**{name: value for name, value in given.items() if name in policy._fields})
    return policy


LINEAR = Suite(
    name="linear",
    environments=ENVIRONMENTS,
    quick=tuple(
        environment._replace(environment=environment.environment._replace(horizon=2_000))
        for environment in ENVIRONMENTS
        if environment.name in ("D02-abrupt", "D06-russac-abrupt", "N11-newcomer")
    ),
    entrants=("drift-lin-ts",),
    labels=lambda environment, coarse: list(_COARSE if coarse else GRID),
    make_policy=make_policy,
    families=("lin-ucb", "lin-ts", "d-lin-ucb", "sw-lin-ucb", "restart-lin-ucb", "cusum-lin-ucb"),
    kept=REPOSITORY / "docs" / "field" / "linear" / "kept.csv",
    runs=8,
    aside=("cusum-lin-ucb",),
    aside_note=("detection counted", "Change detection, a family with more to tune, is never the best tuned"),
)
